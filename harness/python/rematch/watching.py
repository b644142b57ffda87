"""Counts the ops that a step executes and the memory that it uses, and compares a checkpointed step with a plain
step."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from rematch._in_torch import refuse_in_recorded_step
from rematch._library import LIBRARY, call, last_error
from rematch._step import left_as_it_was, loss_of
from rematch.checkpoint import Checkpoint, require_checkpoint
from rematch.planning import size_text
from rematch.recording import recording
from rematch.scopes import scopes

MAX_PLAIN_STEPS = 3


@contextlib.contextmanager
def watch(model: torch.nn.Module | None = None, *, device: str | None = None) -> Iterator[dict[str, Any]]:
    """Counts the ops that all threads execute in the `with` block, and the memory that tensors use. Fills the dict at
    the end of the block.

      - `ops`: counts by phase ("forward", "recompute", "backward", and "optimizer" for step() of torch.optim) and op
        name.
      - `before_bytes`: the bytes at the beginning; `peak_bytes`: the peak of each phase, measured between ops.
      - `holders_bytes`: by phase and holder ("parameters", "gradients", "saved_activations", ...);
        `holders_at_peak_bytes`: by holder, at the highest peak.

    Bytes on the CPU and on meta are None without rematch.count_memory(). On a GPU, the bytes come from torch's
    allocator, whose peak statistics are reset. The parameters and the device are those of `model`. Without a model, the
    device is `device` or "cpu", and parameters count as "other"."""
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
    """Returns the last four arguments of rematch_begin_watch: the addresses and number of trained parameters, and the
    addresses and number of frozen parameters."""
    learning = [] if model is None else [p for p in model.parameters() if p.requires_grad]
    frozen = [] if model is None else [p for p in model.parameters() if not p.requires_grad]
    arguments: list[Any] = []
    for tensors in (learning, frozen):
        arguments += [(ctypes.c_void_p * len(tensors))(*(tensor._cdata for tensor in tensors)), len(tensors)]
    return arguments


@contextlib.contextmanager
def _optimizers_named() -> Iterator[None]:
    """Makes the ops in step() of torch.optim count as ops of the optimizer."""
    def enter(*_: object) -> None:
        LIBRARY.rematch_set_in_optimizer(1)

    def leave(*_: object) -> None:
        LIBRARY.rematch_set_in_optimizer(0)

    handles = [register_optimizer_step_pre_hook(enter), register_optimizer_step_post_hook(leave)]
    try:
        yield
    finally:
        leave()  # needed if step() has raised an exception
        for handle in handles:
            handle.remove()


def _bits(tensor: torch.Tensor | None) -> bytes:
    if tensor is None:
        return b"none"
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    content = local.detach().cpu().contiguous()
    return ctypes.string_at(content.data_ptr(), content.numel() * content.element_size())  # numpy may be missing


def _hashes_of(model: torch.nn.Module, loss: torch.Tensor) -> dict[str, bytes]:
    """Returns hashes of the loss and of each parameter's gradient, by name."""
    content: dict[str, torch.Tensor | None] = {"the loss": loss.detach().reshape(1)}
    content |= {f"the gradient of {name}": parameter.grad for name, parameter in model.named_parameters()}
    return {name: hashlib.sha256(_bits(tensor)).digest() for name, tensor in content.items()}


def _first_difference(first: dict[str, bytes], second: dict[str, bytes]) -> str | None:
    return next((name for name in first if first[name] != second.get(name)), None)


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
        return {"hashes": _hashes_of(model, loss),
                "executed_ops": {phase: sum(ops.values()) for phase, ops in figures["ops"].items()},
                "peak_bytes": max(peaks) - figures["before_bytes"] if peaks else None}
    finally:
        model.zero_grad(set_to_none=True)


class Comparison(dict[str, Any]):
    """The result of check(). Prints as a table."""

    def _bits(self) -> str:
        if self["bits_equal"] is None:
            return "the step is not repeatable"
        return "equal" if self["bits_equal"] else "DIFFERENT"

    def __str__(self) -> str:
        def row(name: str, figures: dict[str, Any], bits: str) -> str:
            ops = "/".join(str(figures["executed_ops"].get(phase, 0)) for phase in ("forward", "recompute", "backward"))
            peak = figures["peak_bytes"]
            return f"| {name} | {ops} | {'not counted' if peak is None else size_text(peak)} | {bits} |"

        return "\n".join(["| step | ops forward/recompute/backward | peak above the start | bits |", "| --- | --- | --- | --- |",
                          row("without a plan", self["plain"], "reference"),
                          row("with the plan", self["checkpointed"], self._bits())])


def check(model: torch.nn.Module, step: Callable[[], torch.Tensor], checkpoint: Checkpoint, *,
          blocks: dict[str, list[torch.nn.Module]] | None = None, verify: bool = True) -> Comparison:
    """Compares a step without the checkpoint and a step with it, from the same seed and buffers. Restores generators
    and buffers. The result prints as a table.

      - `bits_equal`: whether the loss and every gradient have equal bits. If two steps without the checkpoint differ
        too, bits cannot be compared: `bits_equal` is None, `repeatable` is False, and check() warns.
      - `first_difference`: what differs first, such as "the loss" or "the gradient of layers.0.weight"; None if nothing
        differs.
      - `plain`, `checkpointed`: dicts with `executed_ops`, counts by phase ("forward", "recompute", "backward"), and
        `peak_bytes`, the peak minus the bytes before the step. `peak_bytes` is None without rematch.count_memory().
      - `recompute_differences`: for each region, the first op whose recomputed results differ from its results in
        forward; see Checkpoint. None without `verify`, which runs one more step and hashes the results of ops.

    `blocks` is as for scopes(). The model must have no scopes, and no recording may be open. Raises PlanError if the
    step's ops differ from the planned ops, regardless of the checkpoint's `on_mismatch`."""
    refuse_in_recorded_step("check")
    require_checkpoint(checkpoint)
    _run(model, step, contextlib.nullcontext())  # the first step may allocate caches and buffers that stay
    plain = _run(model, step, contextlib.nullcontext())
    strict = Checkpoint(checkpoint.plan, checkpoint.schedule, on_mismatch="refuse")
    with scopes(model, strict, blocks=blocks):
        checkpointed = _run(model, step, recording(strict))
        differences = _differences_of(model, step, strict) if verify else None
    expected, found = plain.pop("hashes"), checkpointed.pop("hashes")
    difference = _first_difference(expected, found)
    unrepeated = None if difference is None else _difference_of_plain_steps(model, step, expected)
    if unrepeated is not None:
        _warn_of_unrepeatable_step(model, unrepeated)
    return Comparison(bits_equal=None if unrepeated else difference is None, repeatable=unrepeated is None,
                      first_difference=unrepeated or difference, recompute_differences=differences, plain=plain, checkpointed=checkpointed)


def _differences_of(model: torch.nn.Module, step: Callable[[], torch.Tensor],
                    checkpoint: Checkpoint) -> list[dict[str, Any]]:
    _run(model, step, recording(checkpoint, verify_every=1))
    return checkpoint.take_differences()


def unrepeatable_ops(model: torch.nn.Module, step: Callable[[], torch.Tensor], plan: dict[str, Any],
                     blocks: dict[str, list[torch.nn.Module]] | None) -> list[dict[str, Any]]:
    """Returns the first op of each region that gives different results when the plan recomputes it."""
    checkpoint = Checkpoint(plan)
    with scopes(model, checkpoint, blocks=blocks):
        return _differences_of(model, step, checkpoint)


def _difference_of_plain_steps(model: torch.nn.Module, step: Callable[[], torch.Tensor],
                               expected: dict[str, bytes]) -> str | None:
    """Returns the first difference between steps without a plan, or None if all are equal. Runs several steps, because
    a race rarely shows in a single one."""
    for _ in range(MAX_PLAIN_STEPS):
        hashes = _run(model, step, contextlib.nullcontext())["hashes"]
        if difference := _first_difference(expected, hashes):
            return difference
    return None


def _warn_of_unrepeatable_step(model: torch.nn.Module, difference: str) -> None:
    remedy = "call torch.use_deterministic_algorithms(True)"
    if _device_of(model).startswith("cuda"):
        remedy += (", set CUBLAS_WORKSPACE_CONFIG=:4096:8 before CUDA starts, and choose a different attention backend than cuDNN "
                   "(torch.backends.cuda.enable_cudnn_sdp(False))")
    if difference == "the loss":
        remedy = f"step() must run the same batch each time; if it does, {remedy}"
    warnings.warn(f"rematch: two steps without a plan differ, first in {difference}, so bits cannot be compared. To make the "
                  f"step repeatable: {remedy}", stacklevel=3)
