"""Identifies the program's saved-tensor hooks for the engine, which cannot compare Python functions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

from rematch._library import LIBRARY, Refused

CHECKPOINTING = -1

_autograd: Any = torch._C._autograd  # typed Any, because torch's stub file is incomplete

_number_of: dict[tuple[Any, Any], int] = {}  # key: the code objects of a pack and an unpack hook
_installed: list[Any] = []                   # kept alive as long as the process


def install() -> None:
    """Registers number_of() and _tensor_of() with the engine, before the first recorded step."""
    if _installed:
        return
    identify = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object)(number_of)
    tensor_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(_tensor_of)
    _installed.extend((identify, tensor_of))
    LIBRARY.rematch_set_program_hooks(ctypes.cast(identify, ctypes.c_void_p), ctypes.cast(tensor_of, ctypes.c_void_p))


def number_of(pack: Any, unpack: Any) -> int:
    """Returns a number that identifies a pair of hooks by its code, because programs create new function objects in
    every step. Returns CHECKPOINTING for hooks of a checkpointing library."""
    function = _function_of(pack)
    if "checkpoint" in str(getattr(function, "__module__", "")):
        return CHECKPOINTING
    return _number_of.setdefault((_code_of(pack), _code_of(unpack)), len(_number_of))


def is_enabled() -> bool:
    """Returns whether saved-tensor hooks are enabled on this thread. Plans cannot be followed without them."""
    return bool(_autograd._saved_tensors_hooks_is_enabled())


def require_enabled() -> None:
    """Raises Refused if saved-tensor hooks are disabled."""
    if not is_enabled():
        raise Refused("rematch.recording begins where saved-tensor hooks are disabled, by disable_saved_tensors_hooks or in a "
                      "transform of torch.func, so no plan can be followed; begin it outside")


def _tensor_of(packed: Any) -> int | None:
    return int(packed._cdata) if isinstance(packed, torch.Tensor) else None


def _function_of(hook: Any) -> Any:
    while isinstance(hook, functools.partial):
        hook = hook.func
    found = getattr(hook, "__func__", hook)
    return found if hasattr(found, "__code__") else getattr(type(found), "__call__", found)


def _code_of(hook: Any) -> Any:
    function = _function_of(hook)
    return getattr(function, "__code__", function)
