"""What a step really executed and held, and how a checkpointed step compares with a plain one."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from rematch._in_torch import refuse_in_recorded_step
from rematch._library import LIBRARY, call, last_error
from rematch._step import left_as_it_was, loss_of
from rematch.planning import Checkpoint, require_checkpoint, size_text
from rematch.recording import recording
from rematch.scopes import scopes


@contextlib.contextmanager
def watch(model: torch.nn.Module | None = None, *, device: str | None = None) -> Iterator[dict[str, Any]]:
    """Counts the ops that are executed inside it, on all threads, recomputed ones apart, and what tensors hold.

    The dict is filled at the end: `ops` by phase ("forward", "recompute", "backward", and "optimizer" for step() of
    torch.optim) and name; `before_bytes`, and `peak_bytes` by phase, at its highest op boundary; what held them,
    `holders_bytes`, by phase and holder ("parameters", "gradients", "saved_activations", ...), and
    `holders_at_peak_bytes` at the highest of all. Bytes of the CPU and of meta are None without
    rematch.count_memory(); on a GPU they are torch's allocator's, whose own peak statistics start anew. `model` says
    which parameters there are and on which device; without one, or `device`, it is "cpu", and parameters are "other"."""
    figures: dict[str, Any] = {}
    handle = call("begin_watch", device or _device_of(model), *_tensors_of(model))
    try:
        with _optimizers_named():
            yield figures
    finally:
        text = LIBRARY.rematch_end_watch(handle)
        if text is not None:
            figures.update(json.loads(text))
    if text is None:
        raise last_error()


def _device_of(model: torch.nn.Module | None) -> str:
    parameter = None if model is None else next(model.parameters(), None)
    return "cpu" if parameter is None else str(parameter.device)


def _tensors_of(model: torch.nn.Module | None) -> list[Any]:
    """Addresses of what learns and of what does not, each with its number, as rematch_begin_watch takes them."""
    learning = [] if model is None else [p for p in model.parameters() if p.requires_grad]
    frozen = [] if model is None else [p for p in model.parameters() if not p.requires_grad]
    arguments: list[Any] = []
    for tensors in (learning, frozen):
        arguments += [(ctypes.c_void_p * len(tensors))(*(tensor._cdata for tensor in tensors)), len(tensors)]
    return arguments


@contextlib.contextmanager
def _optimizers_named() -> Iterator[None]:
    """In it, what a step() of torch.optim runs is the optimizer's."""
    def enter(*_: object) -> None:
        LIBRARY.rematch_set_in_optimizer(1)

    def leave(*_: object) -> None:
        LIBRARY.rematch_set_in_optimizer(0)

    handles = [register_optimizer_step_pre_hook(enter), register_optimizer_step_post_hook(leave)]
    try:
        yield
    finally:
        leave()  # where a step() failed
        for handle in handles:
            handle.remove()


def _bits(tensor: torch.Tensor | None) -> bytes:
    if tensor is None:
        return b"none"
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    content = local.detach().cpu().contiguous()
    return ctypes.string_at(content.data_ptr(), content.numel() * content.element_size())  # torch may have no numpy


def _hash_of(model: torch.nn.Module, loss: torch.Tensor) -> str:
    digest = hashlib.sha256(_bits(loss.detach().reshape(1)))
    for name, parameter in model.named_parameters():
        digest.update(name.encode() + _bits(parameter.grad))
    return digest.hexdigest()


def _run(model: torch.nn.Module, step: Callable[[], torch.Tensor],
         around: contextlib.AbstractContextManager[None]) -> dict[str, Any]:
    model.zero_grad(set_to_none=True)
    try:
        with left_as_it_was(model), watch(model) as figures:
            torch.manual_seed(0)
            with around:
                loss = loss_of(model, step)
            loss.backward()
        peaks = [peak for peak in figures["peak_bytes"].values() if peak is not None]
        return {"hash": _hash_of(model, loss),
                "executed_ops": {phase: sum(ops.values()) for phase, ops in figures["ops"].items()},
                "peak_bytes": max(peaks) - figures["before_bytes"] if peaks else None}
    finally:
        model.zero_grad(set_to_none=True)


class Comparison(dict[str, Any]):
    """What check() found; prints as a table."""

    def __str__(self) -> str:
        def row(name: str, figures: dict[str, Any], bits: str) -> str:
            ops = "/".join(str(figures["executed_ops"].get(phase, 0)) for phase in ("forward", "recompute", "backward"))
            peak = figures["peak_bytes"]
            return f"| {name} | {ops} | {'not counted' if peak is None else size_text(peak)} | {bits} |"

        return "\n".join(["| step | ops forward/recompute/backward | bytes it rose by | bits |", "| --- | --- | --- | --- |",
                          row("without a plan", self["plain"], "reference"),
                          row("with the plan", self["checkpointed"], "equal" if self["bits_equal"] else "DIFFERENT")])


def check(model: torch.nn.Module, step: Callable[[], torch.Tensor], checkpoint: Checkpoint, *,
          blocks: dict[str, list[torch.nn.Module]] | None = None) -> Comparison:
    """Runs a step without and one with the checkpoint, from the same seed and buffers, which it leaves as they were.

    `bits_equal` says whether loss and every gradient have equal bits; `plain` and `checkpointed` have `executed_ops`, their
    number by phase ("forward", "recompute", "backward"), and `peak_bytes`, by which the step rose: None without
    rematch.count_memory(). It prints as a table. Raises RematchError where the step runs other ops than the plan was
    made for, whatever the checkpoint's `on_mismatch` is. `blocks` is as for scopes(). Call it without scopes on the model,
    and outside of a recording."""
    refuse_in_recorded_step("check")
    require_checkpoint(checkpoint)
    _run(model, step, contextlib.nullcontext())  # what the first step makes stays: caches, buffers
    plain = _run(model, step, contextlib.nullcontext())
    strict = Checkpoint(checkpoint.plan, checkpoint.schedule, on_mismatch="refuse")
    with scopes(model, strict, blocks=blocks):
        checkpointed = _run(model, step, recording(strict))
    equal = plain.pop("hash") == checkpointed.pop("hash")
    return Comparison(bits_equal=equal, plain=plain, checkpointed=checkpointed)
