"""Makes a Checkpoint from a model and a memory budget, in one call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rematch._differences import how_to_keep, what_differs
from rematch._library import PlanError, Refused, RematchError
from rematch._progress import announced, say
from rematch._scope import listed
from rematch._step import run_first_step
from rematch.blocks import choose_blocks
from rematch.checkpoint import Checkpoint, SearchedCheckpoint
from rematch.opaque import keep_op
from rematch.planning import Links, bytes_of, combine, predict, resolve, search, size_text, with_micro_batches
from rematch.profiling import profile as measure_profile
from rematch.tracing import distributed_parameter, steps_of
from rematch.tracing import trace as record_trace
from rematch.watching import check, unrepeatable_ops

MAX_KEPT_OPS = 8
MAX_SEARCHES_OF_A_STEP = 8

_NOT_GIVEN: Any = object()


Step = Callable[[], torch.Tensor]


def auto(model: torch.nn.Module, step: Step | Sequence[Step], *, budget: str | int = _NOT_GIVEN, free: str | int = _NOT_GIVEN,
         device: str | None = None, schedule: str = "on_demand", optimizer: str = "adamw", offload: bool = False,
         link_rate: str | int | None = None, links: Links | None = None, simple: bool = False, accumulate: int = 1,
         blocks: dict[str, list[torch.nn.Module]] | None = None) -> SearchedCheckpoint:
    """Finds the fastest plan whose peak fits the budget, runs it once, and prints its choice on stderr.

    `step()` runs forward on one fixed batch and returns the loss. Give several steps as a list if they run different
    ops, such as one with a padded and one with an unpadded batch. A plan is searched for each step with the same
    budget, and one Checkpoint serves all steps.

    `budget` is "24GiB", or a number of bytes. The peak counts parameters, gradients, the state of `optimizer` and
    activations. Instead of a budget, `free` gives the bytes that are left after parameters and the optimizer's state.
    `offload`, `link_rate` and `links` are as for search(). With `simple`, chooses the fastest plan of the simple form
    that search() describes, for schedule "whole_region". With `accumulate`, the optimizer runs once for that many calls
    of `step`, whose gradients are added up; the peak counts these gradients in every call.

    Op times are measured on the model's own device, or come from the data sheet of `device` ("h100"). `blocks` names
    the lists of layers; pass the same to scopes().

    Returns a Checkpoint with the searched front as `front`, and the fronts of all steps as `fronts`. Restores
    generators and buffers. The model must have no scopes. Raises PlanError if no plan fits."""
    if (budget is _NOT_GIVEN) == (free is _NOT_GIVEN):
        raise ValueError("auto needs either budget='24GiB' or free='16GiB'")
    asked = {"budget": bytes_of(budget)} if free is _NOT_GIVEN else {"free": bytes_of(free)}
    steps = steps_of("auto", step)
    if not steps:
        raise ValueError("auto got an empty list of steps; give at least one")
    if name := distributed_parameter(model):
        raise Refused(f"{name} is a DTensor: each rank would choose its own plan, but all ranks must run the same plan, or "
                      "their collectives do not match. Choose before fully_shard; for tensor parallel layers, search on one "
                      "rank and broadcast its plan")
    if blocks is None:
        _say_which_layers(model)
    with announced("running a step without checkpointing"):
        for each in steps:
            run_first_step(model, each)
    with announced("tracing a step" if len(steps) == 1 else f"tracing {len(steps)} steps"):
        traces = record_trace(model, steps, blocks=blocks)
    kept = [_with_unrepeatable_ops_kept(model, each, traced, blocks) for each, traced in zip(steps, traces, strict=True)]
    if len(steps) > 1 and kept != traces:  # an op that one step must keep is kept in all steps
        kept = record_trace(model, steps, blocks=blocks)
    traces = kept
    searches = []
    for each, traced in zip(steps, traces, strict=True):
        # Rejects unknown names before timing ops, which takes long.
        predict(traced, resolve(traced, "none"), schedule, optimizer=optimizer, accumulate=accumulate)
        times = {"device": device} if device else {"profile": measure_profile(model, each, traced)}
        searches.append(functools.partial(search, traced, schedule=schedule, optimizer=optimizer, offload=offload,
                                          link_rate=link_rate, links=links, simple=simple, accumulate=accumulate, **times))
    names = [""] if len(steps) == 1 else [f"step {number} of {len(steps)}: " for number in range(1, len(steps) + 1)]
    fronts = [run(**asked) for run in searches]
    limit = min(front["budget_bytes"] for front in fronts)
    which, schedule = ("simple", "whole_region") if simple else ("answer", schedule)
    for front, name in zip(fronts, names, strict=True):
        _require_answer(front, which, limit, name)
    plan: dict[str, Any] = fronts[0][which]["plan"]
    peaks: list[int] = []
    if len(steps) > 1:
        accumulated = [with_micro_batches(traced, accumulate) for traced in traces]
        plan, peaks = _plan_for_all(searches, fronts, which, accumulated, limit, schedule, optimizer)
    checkpoint = SearchedCheckpoint(fronts[0], plan, schedule, fronts)
    for front, name in zip(fronts, names, strict=True):
        _say_what_was_chosen(front, which, name)
    if peaks:
        say(f"one plan for all steps, predicted peaks: {', '.join(size_text(peak) for peak in peaks)}")
    for each, traced, name in zip(steps, traces, names, strict=True):
        with announced("running the plan once"):
            _run_once(model, each, checkpoint, blocks, predict(traced, checkpoint.plan, schedule), name)
    return checkpoint


def _with_unrepeatable_ops_kept(model: torch.nn.Module, step: Callable[[], torch.Tensor], traced: dict[str, Any],
                                blocks: dict[str, list[torch.nn.Module]] | None) -> dict[str, Any]:
    """Recomputes every op once, and compares its results with those in forward. If an op that torch does not define
    gives different results, declares that plans must keep the op, and traces the step again. Returns the last trace."""
    for _ in range(MAX_KEPT_OPS):
        with announced("comparing the results of recomputed ops with their results in forward"):
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
    """Prints which lists of layers were chosen, if the model has other lists that the caller may have meant."""
    taken, passed_over = choose_blocks(model)
    if not passed_over:
        return
    names = ", ".join(f"{name} ({len(modules)})" for name, modules in taken.items())
    say(f"the layers are {names}; other lists: {listed(list(passed_over))}. To choose other lists, name the blocks: "
        "blocks={name: list(model.get_submodule(name).children()) for name in ['" + next(iter(passed_over)) + "']}")


def _plan_for_all(searches: list[functools.partial[dict[str, Any]]], fronts: list[dict[str, Any]], which: str,
                  traces: list[dict[str, Any]], limit: int, schedule: str, optimizer: str) -> tuple[dict[str, Any], list[int]]:
    """Combines the answers of all fronts into one plan. Returns the plan, and the peak of each step under it. If the
    combined plan exceeds the limit, searches again with lower budgets and updates `fronts`."""
    smallest = None
    for _ in range(MAX_SEARCHES_OF_A_STEP):
        plan = combine(traces, [front[which]["plan"] for front in fronts])
        peaks = [each["peak_bytes"] for each in predict(traces, plan, schedule, optimizer=optimizer)]
        excess = max(peaks) - limit
        if excess <= 0:
            return plan, peaks
        smallest = min(max(peaks), smallest or max(peaks))
        too_high = [peak > limit for peak in peaks]
        if not _search_lower(searches, fronts, which, too_high, excess) and not _search_lower(
                searches, fronts, which, [not is_high for is_high in too_high], excess):
            break
    raise PlanError(f"no plan for all steps fits into {size_text(limit)}, though each step's own plan does; the smallest plan "
                    f"found needs {size_text(smallest or 0)}. Use a smaller batch, or shard the model")


def _search_lower(searches: list[functools.partial[dict[str, Any]]], fronts: list[dict[str, Any]], which: str,
                  chosen: list[bool], excess: int) -> bool:
    """Repeats the search for each step whose entry in `chosen` is true. The new budget of a step is its old peak minus
    `excess`, but at least its lowest possible peak. Returns whether any peak is now lower."""
    is_any_lower = False
    for index, run in enumerate(searches):
        peak = fronts[index][which]["predicted_peak_allocated_bytes"]
        budget = max(peak - excess, fronts[index]["points"][0]["predicted_peak_allocated_bytes"])
        if chosen[index] and budget < peak:
            fronts[index] = run(budget=budget)
            is_any_lower |= fronts[index][which]["predicted_peak_allocated_bytes"] < peak
    return is_any_lower


def _require_answer(front: dict[str, Any], which: str, budget: int, name: str) -> None:
    """Raises PlanError if the requested plan, "answer" or "simple", does not fit."""
    lowest = front[which] or front["points"][0]
    if front[which] is None or lowest["predicted_peak_allocated_bytes"] > budget:
        raise PlanError(f"{name}no {'simple ' if which == 'simple' else ''}plan fits into {size_text(budget)}; the smallest peak is "
                        f"{size_text(lowest['predicted_peak_allocated_bytes'])}. Use a smaller batch, or shard the model")


def _say_what_was_chosen(front: dict[str, Any], which: str, name: str) -> None:
    answer, plain = front[which], front.get("none", front["nothing_recomputed"])
    source = "measured" if front["time_source"] == "measured" else "data-sheet"
    say(f"{name}{front['num_plans_found']} plans worth having, based on {source} times ({front['device']}); chosen for "
        f"a budget of {size_text(front['budget_bytes'])}: {answer['saves']}")
    ratio = answer["predicted_step_time_ns"] / max(1, plain["predicted_step_time_ns"])
    say(f"{name}predicted: peak {size_text(answer['predicted_peak_allocated_bytes'])} instead of "
        f"{size_text(plain['predicted_peak_allocated_bytes'])}, forward and backward {ratio:.2f} times as long, "
        f"{answer['predicted_recomputed_ops']} ops recomputed a step")


def _run_once(model: torch.nn.Module, step: Callable[[], torch.Tensor], checkpoint: Checkpoint,
              blocks: dict[str, list[torch.nn.Module]] | None, predicted: dict[str, Any], name: str) -> None:
    if not checkpoint.scope_names():
        say(f"{name}nothing needs checkpointing: the step without checkpointing fits")
        return
    found = check(model, step, checkpoint, blocks=blocks)
    if found["bits_equal"] is False:
        raise RematchError(f"{name}{found['first_difference']} differs from the step without the plan, though two steps "
                           "without the plan are equal" + _cause_of(found))
    recomputed = found["checkpointed"]["executed_ops"]["recompute"]
    if recomputed != predicted["recomputed_ops"]:
        raise RematchError(f"{name}the step recomputed {recomputed} ops, not the {predicted['recomputed_ops']} of the plan; "
                           "does step() run forward once?")
    risen = found["checkpointed"]["peak_bytes"]
    peak = "" if risen is None else (f", bytes rose by {size_text(risen)} (predicted "
                                     f"{size_text(predicted['peak_bytes'] - predicted['before_bytes'])})")
    bits = "equal" if found["bits_equal"] else "not compared, as the step is not repeatable"
    say(f"{name}ran the plan once: bits {bits}, {recomputed} ops recomputed{peak}")


def _cause_of(found: dict[str, Any]) -> str:
    differences = found["recompute_differences"]
    if not differences:
        return "; does a kernel write to its input? Call it through rematch.opaque()"
    return f": {what_differs(differences[0])}. {how_to_keep(differences[0]['op'])}"
