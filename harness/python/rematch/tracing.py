"""Traces the model's own training step."""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import torch

from rematch._functions import calls_noticed
from rematch._in_torch import refuse_in_recorded_step, traced_step
from rematch._library import LIBRARY, RematchError, call
from rematch._scope import warn_of_bypassed_scopes
from rematch._sharding import is_fully_sharded
from rematch._step import left_as_it_was, loss_of
from rematch.scopes import scopes

MAX_TRACES = 4


def steps_of(name: str, step: Any) -> list[Callable[[], torch.Tensor]]:
    """Returns one step or several steps as a list. `name` is the name of the calling function, for errors."""
    steps = [step] if callable(step) else step
    if not isinstance(steps, list | tuple) or not all(callable(each) for each in steps):
        raise TypeError(f"rematch.{name} takes a function that runs forward and returns the loss, or a list of such functions; "
                        f"this is {step!r}")
    return list(steps)


@overload
def trace(model: torch.nn.Module, step: Callable[[], torch.Tensor], *, name: str | None = None,
          dimensions: dict[str, int] | None = None,
          blocks: dict[str, list[torch.nn.Module]] | None = None) -> dict[str, Any]: ...


@overload
def trace(model: torch.nn.Module, step: Sequence[Callable[[], torch.Tensor]], *, name: str | None = None,
          dimensions: dict[str, int] | None = None,
          blocks: dict[str, list[torch.nn.Module]] | None = None) -> list[dict[str, Any]]: ...


def trace(model: torch.nn.Module, step: Callable[[], torch.Tensor] | Sequence[Callable[[], torch.Tensor]], *,
          name: str | None = None, dimensions: dict[str, int] | None = None,
          blocks: dict[str, list[torch.nn.Module]] | None = None) -> dict[str, Any] | list[dict[str, Any]]:
    """Records one training step without checkpointing, as a dict of schema rematch.trace.

    `step()` runs forward and returns the loss; trace() runs backward. For a list of steps that run different ops, such
    as one with a padded batch, returns a list of traces. Clears gradients before and after, and restores generators and
    buffers. `blocks` is as for scopes(). The model must have no scopes, and no recording may be open. Raises
    RematchError if step() runs no layer."""
    if not callable(step):
        return [trace(model, each, name=name, dimensions=dimensions, blocks=blocks) for each in steps_of("trace", step)]
    refuse_in_recorded_step("trace")
    if is_fully_sharded(model):
        warnings.warn("rematch: the model is under fully_shard, whose gathered parameters are not in the trace: predicted peaks "
                      "are wrong; trace the model before fully_shard", stacklevel=2)
    model.zero_grad(set_to_none=True)
    try:
        with left_as_it_was(model), scopes(model, blocks=blocks):
            text = _traced(model, step, {
                "model": name or type(model).__name__, "dimensions": dimensions or {}, "dtype": _most_common_dtype(model),
                "constant_bytes": constant_bytes_of(model), **parameters_of(model)})
    finally:
        model.zero_grad(set_to_none=True)
    traced: dict[str, Any] = json.loads(text)
    if not traced["blocks"]:
        raise RematchError(f"step() ran no layer of this {type(model).__name__}; does it call another model, or layers by "
                           "module.forward(x), which runs no hooks?")
    return traced


def distributed_parameter(model: torch.nn.Module) -> str | None:
    """Returns the name of the first parameter that is a DTensor, or None."""
    return next((name for name, parameter in model.named_parameters() if hasattr(parameter, "to_local")), None)


def _held(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the local tensor of a DTensor, and any other tensor unchanged."""
    return tensor._local_tensor if hasattr(tensor, "_local_tensor") else tensor


def _traced(model: torch.nn.Module, step: Callable[[], torch.Tensor], head: dict[str, Any]) -> bytes:
    """Traces the step. Traces it again if the trace has discovered hidden writes, because later traces record them."""
    for _ in range(MAX_TRACES):
        num_writers = LIBRARY.rematch_num_silent_writers()
        with _trace_begun() as handle:
            with calls_noticed() as calls:
                _run_step(handle, model, step)
            text = bytes(call("finish_trace", handle, json.dumps(head | {"opaque_functions": calls.opaque_functions()})))
        if not calls.has_news and num_writers == LIBRARY.rematch_num_silent_writers():
            break
        model.zero_grad(set_to_none=True)
    return text


@contextlib.contextmanager
def _trace_begun() -> Iterator[Any]:
    handle = call("begin_trace")
    try:
        yield handle
    finally:
        LIBRARY.rematch_free_trace(handle)


def _run_step(handle: Any, model: torch.nn.Module, step: Callable[[], torch.Tensor]) -> None:
    with traced_step(), _missing_meta_kernels_named():
        loss = loss_of(model, step)
    warn_of_bypassed_scopes()
    call("end_forward", handle, str(loss.device))
    loss.backward()


@contextlib.contextmanager
def _missing_meta_kernels_named() -> Iterator[None]:
    """If a model on device meta runs an op without a meta kernel, raises an error that names the op."""
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:
        match = re.match(r"There was no fake impl registered for <CustomOpDef\((.+?)\)>|(\S+): attempted to run this operator with "
                         r"Meta tensors|Could not run '(\S+)' with arguments from the 'Meta' backend", str(error))
        if match is None:
            raise
        raise RematchError(f"{match[1] or match[2] or match[3]} has no meta kernel, so a model on meta cannot be traced; register "
                           "one (torch.library.register_fake), or trace the model on the device that it trains on") from error


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _most_common_dtype(model: torch.nn.Module) -> str:
    return Counter(_dtype_name(parameter) for parameter in model.parameters()).most_common(1)[0][0]


def parameters_of(model: torch.nn.Module) -> dict[str, Any]:
    """Returns the trace's fields that describe the trained parameters."""
    trained = [_held(parameter) for parameter in model.parameters() if parameter.requires_grad]
    kinds = Counter((parameter.numel(), _dtype_name(parameter)) for parameter in trained)
    return {"parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in trained),
            "parameters": [{"elements": elements, "dtype": dtype, "count": count}
                           for (elements, dtype), count in kinds.items()]}


def constant_bytes_of(model: torch.nn.Module) -> int:
    """Returns the bytes of buffers and frozen parameters, counting each storage once."""
    constants = [_held(tensor) for tensor in
                 (*model.buffers(), *(p for p in model.parameters() if not p.requires_grad))]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in constants}
    return sum(storages.values())
