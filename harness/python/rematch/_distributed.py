"""Makes DTensors visible in a recorded step.

An op on a DTensor is one op of the record. But torch converts between a DTensor and its local tensor without an op. So
this module replaces the private functions of torch that convert or redistribute DTensors. In recorded steps, the
replacements run an op for each conversion. Elsewhere they behave like the originals."""

from __future__ import annotations

import copy
import ctypes
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from rematch._library import LIBRARY

_layouts: list[Any] = []             # DTensorSpecs; records contain their indices
_number_of: dict[Any, int] = {}      # index of each spec in _layouts
_installed: list[Any] = []           # kept alive as long as the process


def install(replaced: Callable[[str, str, Callable[[Any], Any]], None], is_recorded: Callable[[], bool]) -> None:
    """Installs the hooks, if torch.distributed.tensor has been imported. `replaced(module, path, make)` replaces a
    function of torch by make(function)."""
    if "torch.distributed.tensor" not in sys.modules or _installed:
        return
    _installed.extend((_define_ops(), _tell_what_is_inside()))
    replaced("torch.distributed.tensor._api", "_FromTorchTensor.forward", lambda forward: _from_local(forward, is_recorded))
    replaced("torch.distributed.tensor._api", "_ToTorchTensor.forward", lambda forward: _to_local(forward, is_recorded))
    replaced("torch.distributed.tensor._redistribute", "Redistribute.forward",
             lambda forward: _redistribute(forward, is_recorded))


def _dtensor_class() -> Any:
    return sys.modules["torch.distributed.tensor"].DTensor


def _define_ops() -> torch.library.Library:
    """Defines two ops that convert between a DTensor and its local tensor, without a copy."""
    library = torch.library.Library("rematch", "FRAGMENT")
    library.define("local_of(Tensor(a) distributed) -> Tensor(a)")
    library.define("dtensor_of(Tensor(a) local, int layout) -> Tensor(a)")
    library.impl("dtensor_of", _dtensor_of, "CompositeExplicitAutograd")
    for name in ("local_of", "dtensor_of"):
        library.impl(name, torch.library.fallthrough_kernel, "Autograd")
    _dtensor_class()._op_dispatcher._custom_op_handlers[torch.ops.rematch.local_of.default] = _local_of
    return library


def _local_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    return _without_graph(args[0]._local_tensor)


def _dtensor_of(local: torch.Tensor, layout: int) -> Any:
    return _dtensor_class()(_without_graph(local), copy.copy(_layouts[layout]), requires_grad=False)


def _without_graph(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with the same memory that autograd does not treat as a view of `tensor`."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradFunctionality) | \
        torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        return tensor.view_as(tensor)


def _number(spec: Any) -> int:
    if spec not in _number_of:
        _number_of[copy.copy(spec)] = len(_layouts)
        _layouts.append(copy.copy(spec))
    return _number_of[spec]


def _tell_what_is_inside() -> Any:
    distributed = _dtensor_class()

    def look_inside(tensor: Any) -> Any:
        return tensor._local_tensor._cdata if isinstance(tensor, distributed) else None

    callback = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(look_inside)
    LIBRARY.rematch_set_look_inside(ctypes.cast(callback, ctypes.c_void_p))
    return callback


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _unseen() -> Any:
    """Returns a guard under which ops are not recorded."""
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C._dispatch_key_parse("Fake")))


def _from_local(forward: Any, is_recorded: Callable[[], bool]) -> Any:
    def recorded(ctx: Any, local: Any, mesh: Any, placements: Any, run_check: bool, *size: Any) -> Any:
        # Two cases are not recorded: from_local() with run_check, which writes to the tensor, and a rank outside of the
        # mesh, which gets an empty tensor.
        if not is_recorded() or run_check or not _is_plain(local) or not mesh._is_current_rank_part_of_mesh():
            return forward(ctx, local, mesh, placements, run_check, *size)
        with _unseen():
            found = forward(ctx, local, mesh, placements, run_check, *size)
        return torch.ops.rematch.dtensor_of(local, _number(found._spec))
    return recorded


def _to_local(forward: Any, is_recorded: Callable[[], bool]) -> Any:
    def recorded(ctx: Any, distributed: Any, grad_placements: Any) -> Any:
        if not is_recorded() or not _is_plain(distributed._local_tensor):
            return forward(ctx, distributed, grad_placements)
        return forward(ctx, _Opened(distributed), grad_placements)
    return recorded


def _redistribute(forward: Any, is_recorded: Callable[[], bool]) -> Any:
    def recorded(ctx: Any, distributed: Any, *target: Any) -> Any:
        if not is_recorded() or not _is_plain(distributed._local_tensor):
            return forward(ctx, distributed, *target)
        found = forward(ctx, _Opened(distributed), *target)
        return torch.ops.rematch.dtensor_of(found._local_tensor, _number(found._spec))
    return recorded


class _Opened(types.SimpleNamespace):
    """A stand-in for a DTensor, with only the attributes that torch's functions read. The recorded op local_of makes
    its local tensor."""

    def __init__(self, distributed: Any):
        super().__init__(_local_tensor=torch.ops.rematch.local_of(distributed), _spec=distributed._spec,
                         shape=distributed.shape, stride=distributed.stride, requires_grad=distributed.requires_grad)
