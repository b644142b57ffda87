"""What a step really executed and held, and how a checkpointed step compares with a plain one."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
from collections.abc import Callable, Iterator

import torch

from rematch._in_torch import refuse_in_recorded_step
from rematch._library import LIBRARY, RematchError, call
from rematch._step import loss_of
from rematch.planning import Checkpoint, size_text
from rematch.recording import recording
from rematch.scopes import scopes


@contextlib.contextmanager
def watch(device: str = "cpu") -> Iterator[dict]:
    """Counts the ops that are executed inside it, on all threads, recomputed ones apart.

    The dict is filled at the end: `ops` by phase and name; `before_bytes` and `peak_bytes` by phase, which are None
    without rematch.count_memory()."""
    figures: dict = {}
    handle = call("begin_watch", device)
    try:
        yield figures
    finally:
        text = LIBRARY.rematch_end_watch(handle)
        if text is not None:
            figures.update(json.loads(text))
    if text is None:
        raise RematchError(LIBRARY.rematch_error().decode())


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


def _run(model: torch.nn.Module, step: Callable[[], torch.Tensor], around: contextlib.AbstractContextManager) -> dict:
    model.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    try:
        with watch() as figures:
            with around:
                loss = loss_of(model, step)
            loss.backward()
        peaks = [peak for peak in figures["peak_bytes"].values() if peak is not None]
        return {"hash": _hash_of(model, loss),
                "executed_ops": {phase: sum(ops.values()) for phase, ops in figures["ops"].items()},
                "peak_bytes": max(peaks) - figures["before_bytes"] if peaks else None}
    finally:
        model.zero_grad(set_to_none=True)


class Comparison(dict):
    """What check() found; prints as a table."""

    def __str__(self) -> str:
        def row(name: str, figures: dict, bits: str) -> str:
            ops = "/".join(str(figures["executed_ops"].get(phase, 0)) for phase in ("forward", "recompute", "backward"))
            peak = figures["peak_bytes"]
            return f"| {name} | {ops} | {'not counted' if peak is None else size_text(peak)} | {bits} |"

        return "\n".join(["| step | ops forward/recompute/backward | bytes it rose by | bits |", "| --- | --- | --- | --- |",
                          row("without a plan", self["plain"], "reference"),
                          row("with the plan", self["checkpointed"], "equal" if self["bits_equal"] else "DIFFERENT")])


def check(model: torch.nn.Module, step: Callable[[], torch.Tensor], checkpoint: Checkpoint, *,
          blocks: dict[str, list[torch.nn.Module]] | None = None) -> Comparison:
    """Runs a step without and one with the checkpoint, from the same seed.

    `bits_equal` says whether loss and every gradient have equal bits; `plain` and `checkpointed` have `executed_ops`, their
    number by phase ("forward", "recompute", "backward"), and `peak_bytes`, by which the step rose: None without
    rematch.count_memory(). It prints as a table. `blocks` is as for scopes(). Call it without scopes on the model,
    and outside of a recording."""
    refuse_in_recorded_step("check")
    _run(model, step, contextlib.nullcontext())  # what the first step makes stays: caches, buffers
    plain = _run(model, step, contextlib.nullcontext())
    with scopes(model, checkpoint, blocks=blocks):
        checkpointed = _run(model, step, recording(checkpoint))
    equal = plain.pop("hash") == checkpointed.pop("hash")
    return Comparison(bits_equal=equal, plain=plain, checkpointed=checkpointed)
