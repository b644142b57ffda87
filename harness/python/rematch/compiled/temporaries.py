"""Measures the memory that an op allocates and frees while it runs, such as the workspace of attention.

Only ops that Inductor does not compile into kernels have such memory, because it calls torch's implementation of them. To
measure it, such an op runs once by itself, on zeros. Ops with equal arguments are measured once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from rematch.compiled.joint_graph import must_be_kept, size_hint, tensor_bytes

_measured: dict[str, int] = {}


@dataclasses.dataclass(frozen=True)
class _Argument:
    """A tensor that an op reads."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def zeros(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device).zero_()


def temporary_bytes(node: fx.Node, strides: Sequence[Sequence[int]] = ()) -> int:
    """Returns the bytes that the node's op needs at its peak besides its results. Returns 0 for an op that cannot be
    measured: ops with effects, and all ops while the program runs torch's profiler. `strides` are those of the tensors
    that the op reads, in order, if they differ from the node's."""
    if not allocates(node) or must_be_kept(node) or torch._C._autograd._profiler_enabled():
        return 0
    given = iter(strides)
    arguments: Any = fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta.get("val"))
    arguments = _mapped(arguments, lambda value: _argument(value, next(given, None)) if isinstance(value, torch.Tensor) else _number(value))
    key = f"{node.target} {arguments} {torch.get_num_threads()}"
    if key not in _measured:
        _measured[key] = max(0, _peak_of(node.target, arguments) - _result_bytes(node.meta["val"]))
    return _measured[key]


def allocates(node: fx.Node) -> bool:
    """Returns whether Inductor calls torch's implementation of the node's op, and this implementation allocates
    memory. Matrix products do not, because they write into given memory."""
    return node.op == "call_function" and node.target in _called_ops()


@functools.cache
def _called_ops() -> set[Any]:
    from torch._inductor import lowering

    return {*lowering.fallbacks, torch.ops.aten.convolution.default}


def _argument(tensor: torch.Tensor, stride: Sequence[int] | None) -> _Argument:
    shape = tuple(map(size_hint, tensor.shape))
    if stride is None or len(stride) != len(shape):
        stride = tuple(map(size_hint, tensor.stride()))
    return _Argument(shape, tuple(stride), tensor.dtype, tensor.device)


def _mapped(arguments: Any, function: Callable[[Any], Any]) -> Any:
    """Returns arguments of the same structure, with each leaf replaced."""
    return fx.node.map_aggregate(arguments, function)


def _number(value: Any) -> Any:
    return size_hint(value) if isinstance(value, torch.SymInt) else value


def _peak_of(target: Any, arguments: Any) -> int:
    """Runs the op on zeros. Returns the most bytes that it had allocated at once, or 0 if it does not run alone."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.utils._python_dispatch import _disable_current_modes

    try:
        with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad():
            args, kwargs = _mapped(arguments, lambda each: each.zeros() if isinstance(each, _Argument) else each)
            return _peak_while(lambda: target(*args, **kwargs))
    except Exception:  # the prediction then leaves out what the op allocates
        return 0


def _peak_while(run: Callable[[], Any]) -> int:
    """Returns the most bytes that were allocated at once while `run` ran. The legacy profiler sees torch's allocators
    of all devices, and prints nothing."""
    from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

    torch._C._autograd._enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()))
    try:
        results = run()
    finally:
        recorded: Any = torch._C._autograd._disable_profiler_legacy()
    del results
    live = peak = 0
    for event in (event for of_thread in recorded for event in of_thread):
        if event.kind() == "memory_alloc":
            live += event.cpu_memory_usage() + event.cuda_memory_usage()
            peak = max(peak, live)
    return peak


def _result_bytes(value: Any) -> int:
    results = value if isinstance(value, (list, tuple)) else [value]
    return sum(tensor_bytes(each) for each in results if isinstance(each, torch.Tensor))
