"""From a model and a budget to a checkpoint, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rematch._library import RematchError
from rematch._progress import announced, say
from rematch._scope import listed
from rematch.blocks import choose_blocks
from rematch.opaque import keep_op
from rematch.planning import Checkpoint, SearchedCheckpoint, bytes_of, predict, resolve, search, size_text
from rematch.profiling import profile as measure_profile
from rematch.recording import how_to_keep, what_differs
from rematch.tracing import distributed_parameter
from rematch.tracing import trace as record_trace
from rematch.watching import check, unrepeatable_ops

MAX_KEPT_OPS = 8


def auto(model: torch.nn.Module, step: Callable[[], torch.Tensor], *, budget: str | int, device: str | None = None,
         schedule: str = "on_demand", optimizer: str = "adamw",
         blocks: dict[str, list[torch.nn.Module]] | None = None) -> SearchedCheckpoint:
    """Finds the fastest plan whose peak fits the budget, runs it once, and says on stderr what it chose.

    `step()` runs forward on one fixed batch and returns the loss. The peak counts parameters, gradients, the state of
    `optimizer` and activations; `budget` is "24GiB" or bytes. Op times are measured on the model's own device, or
    those of the data sheet of `device` ("h100"). `blocks` names the lists of layers, as for scopes(), which then takes
    it too. The checkpoint's `front` is what was searched. Raises RematchError if no plan fits. Generators and buffers are
    left as they were; call it without scopes on the model."""
    limit = bytes_of(budget)
    if name := distributed_parameter(model):
        raise RematchError(f"{name} is a DTensor: each rank would choose a plan of its own, and ranks must run one, or their "
                           "collectives do not meet. Choose before fully_shard; of tensor parallel layers search on one rank "
                           "and broadcast its plan")
    if blocks is None:
        _say_which_layers(model)
    with announced("tracing a step"):
        traced = record_trace(model, step, blocks=blocks)
    traced = _with_unrepeatable_ops_kept(model, step, traced, blocks)
    predict(traced, resolve(traced, "none"), schedule, optimizer=optimizer)  # refuses names before ops are timed
    times = {"device": device} if device else {"profile": measure_profile(model, step, traced)}
    front = search(traced, schedule=schedule, optimizer=optimizer, budget=limit, **times)
    checkpoint = SearchedCheckpoint(front, _answer_of(front, limit)["plan"], schedule)
    _say_what_was_chosen(front, limit)
    with announced("running the plan once"):
        _run_once(model, step, checkpoint, blocks, predict(traced, checkpoint.plan, schedule))
    return checkpoint


def _with_unrepeatable_ops_kept(model: torch.nn.Module, step: Callable[[], torch.Tensor], traced: dict[str, Any],
                                blocks: dict[str, list[torch.nn.Module]] | None) -> dict[str, Any]:
    """Recomputes every op once, and compares results with those of forward. Ops of other libraries that differ are kept, and
    the step is traced again."""
    for _ in range(MAX_KEPT_OPS):
        with announced("comparing recomputed ops with those of forward"):
            found = unrepeatable_ops(model, step, resolve(traced, "full"), blocks)
        kept = sorted({each["op"] for each in found if not each["op"].startswith("aten::")})
        for each in found:
            if each["op"] in kept or each is found[0]:
                say(f"{what_differs(each)}. " + ("It is kept" if each["op"] in kept else how_to_keep(each["op"])))
        if not kept:
            break
        for op in kept:
            keep_op(op)
        traced = record_trace(model, step, blocks=blocks)
    return traced


def _say_which_layers(model: torch.nn.Module) -> None:
    """Where the model has other lists too, which the caller may mean."""
    taken, passed_over = choose_blocks(model)
    if not passed_over:
        return
    names = ", ".join(f"{name} ({len(modules)})" for name, modules in taken.items())
    say(f"the layers are {names}; also found, and not taken: {listed(list(passed_over))}. To choose, name the lists: "
        "blocks={name: list(model.get_submodule(name).children()) for name in ['" + next(iter(passed_over)) + "']}")


def _answer_of(front: dict[str, Any], budget: int) -> dict[str, Any]:
    answer: dict[str, Any] | None = front["answer"]
    if answer is None:
        lowest = front["points"][0]["predicted_peak_allocated_bytes"]
        raise RematchError(f"no plan fits into {size_text(budget)}; the smallest peak is {size_text(lowest)}. "
                           "Use a smaller batch, or shard the model")
    return answer


def _say_what_was_chosen(front: dict[str, Any], budget: int) -> None:
    answer, plain = front["answer"], front.get("none", front["nothing_recomputed"])
    source = "measured" if front["time_source"] == "measured" else "of the data sheet"
    say(f"{front['num_plans_found']} plans worth having, by times {source} ({front['device']}); chosen for "
        f"{size_text(budget)}: {answer['saves']}")
    ratio = answer["predicted_step_time_ns"] / max(1, plain["predicted_step_time_ns"])
    say(f"predicted: peak {size_text(answer['predicted_peak_allocated_bytes'])} instead of "
        f"{size_text(plain['predicted_peak_allocated_bytes'])}, forward and backward {ratio:.2f} times as long, "
        f"{answer['predicted_recomputed_ops']} ops recomputed a step")


def _run_once(model: torch.nn.Module, step: Callable[[], torch.Tensor], checkpoint: Checkpoint,
              blocks: dict[str, list[torch.nn.Module]] | None, predicted: dict[str, Any]) -> None:
    if not checkpoint.plan["regions"]:
        say("nothing needs checkpointing: the step without it fits")
        return
    found = check(model, step, checkpoint, blocks=blocks)
    if found["bits_equal"] is False:
        raise RematchError(f"{found['first_difference']} differs from that of the step without the plan, though two steps without "
                           "it are equal" + _cause_of(found))
    recomputed = found["checkpointed"]["executed_ops"]["recompute"]
    if recomputed != predicted["recomputed_ops"]:
        raise RematchError(f"the step recomputed {recomputed} ops, not the {predicted['recomputed_ops']} of the plan; "
                           "does step() run forward once?")
    risen = found["checkpointed"]["peak_bytes"]
    peak = "" if risen is None else (f", bytes rose by {size_text(risen)} (predicted "
                                     f"{size_text(predicted['peak_bytes'] - predicted['before_bytes'])})")
    bits = "equal" if found["bits_equal"] else "not compared, as the step is not repeatable"
    say(f"ran it once: bits {bits}, {recomputed} ops recomputed{peak}")


def _cause_of(found: dict[str, Any]) -> str:
    differences = found["recompute_differences"]
    if not differences:
        return "; does a kernel write to what it reads? Make its call rematch.opaque()"
    return f": {what_differs(differences[0])}. {how_to_keep(differences[0]['op'])}"
