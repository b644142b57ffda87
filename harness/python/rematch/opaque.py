"""Makes functions opaque: each call is one op of a record. Meant for functions whose kernels hide writes or state from
torch."""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch
from torch.utils._pytree import tree_leaves

from rematch._library import LIBRARY, RematchError, call, last_error
from rematch._pointers import open_steps

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Module = TypeVar("_Module")


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open_modules: list[_OpenCall | None] = []


_thread = _Thread()


def opaque(function: _Function | None = None, *, overwrites: Sequence[str | int] = ()) -> Any:
    """Makes a function opaque: a recorded step treats each call as one op. Use `rematch.opaque(function)`, or a
    decorator.

    The results of a call, and the tensors that autograd saves during it, are kept and never recomputed. `overwrites`
    names the tensor arguments that the function's kernels overwrite, by name or position; the written content is kept
    too. Outside of recorded steps the function runs as before. Raises ValueError if the function lacks an argument in
    `overwrites`."""
    if function is None:
        return functools.partial(opaque, overwrites=overwrites)
    signature = _signature_of(function)
    overwritten = [_argument_of(function, signature, each) for each in overwrites]

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> Any:
        if not open_steps:
            return function(*arguments, **keywords)
        written = _written(signature, overwritten, arguments, keywords)
        return run_opaque(function, _name_of(function), arguments, keywords, written)
    return run


def opaque_module(module: _Module) -> _Module:
    """Like opaque(), for a module or for all modules of a class. Returns the module or the class."""
    if isinstance(module, type):
        cast(Any, module).forward = opaque(cast(Any, module).forward)
    elif isinstance(module, torch.nn.Module):
        hooks = _ModuleHooks(type(module).__name__)
        module.register_forward_pre_hook(hooks.enter, with_kwargs=True)
        module.register_forward_hook(hooks.leave, with_kwargs=True, always_call=True)
    else:
        raise TypeError(f"opaque_module takes a torch.nn.Module or a subclass of torch.nn.Module; this is a {type(module).__name__}")
    return module


def keep_op(name: str) -> None:
    """Declares that an op of another library ("mylib::noisy") must be kept and never recomputed. Use this for an op
    with state or random numbers that torch does not see. The declaration applies to this process, and to plans from
    later traces in any process. auto() finds such ops itself. Raises RematchError if no op has this name."""
    if call("mark_unrepeatable", name) == 0:
        raise RematchError(f"there is no op {name!r}; write its name as 'library::op', after the library is imported")


class _OpenCall:
    """An opaque call that has begun in the engine."""

    def __init__(self, handle: int, tensors: list[torch.Tensor]):
        self._handle, self._tensors = handle, tensors

    def end(self, name: str, result: Any) -> None:
        call("end_opaque", self._handle, name, *_addresses(self._tensors), *_addresses(tensors_in(result)))

    def abort(self) -> None:
        LIBRARY.rematch_abort_opaque(self._handle)


def _begin(tensors: list[torch.Tensor], written: list[torch.Tensor]) -> _OpenCall | None:
    handle = LIBRARY.rematch_begin_opaque(*_addresses(written))
    if handle is None:
        if LIBRARY.rematch_error():
            raise last_error()
        return None
    return _OpenCall(handle, tensors)


def run_opaque(function: Callable[..., Any], name: str, arguments: Any, keywords: Any, written: list[Any]) -> Any:
    """Calls the function. If this thread is recording, records the call as one op that may overwrite the tensors in
    `written`."""
    begun = _begin(tensors_in((arguments, keywords)), tensors_in(written))
    if begun is None:
        return function(*arguments, **keywords)
    try:
        result = function(*arguments, **keywords)
    except BaseException:
        begun.abort()
        raise
    begun.end(name, result)
    return result


class _ModuleHooks:
    """The two hooks of an opaque module. A copy of the module gets a copy of the hooks."""

    def __init__(self, name: str):
        self._name = name

    def enter(self, _: torch.nn.Module, arguments: Any, keywords: Any) -> None:
        begun = _begin(tensors_in((arguments, keywords)), []) if open_steps else None
        _thread.open_modules.append(begun)

    def leave(self, _: torch.nn.Module, __: Any, ___: Any, result: Any) -> None:
        begun = _thread.open_modules.pop() if _thread.open_modules else None
        if begun is None:
            return
        if result is None:  # the call raised an exception
            begun.abort()
        else:
            begun.end(self._name, result)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except ValueError:
        return None  # C++ functions have no signature


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _argument_of(function: Callable[..., Any], signature: inspect.Signature | None, argument: str | int) -> str | int:
    """Returns the name of an argument that is given by name or position. If the argument has no name, returns its
    position."""
    parameters = {} if signature is None else signature.parameters
    by_position = [each for each in parameters.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    takes_more = signature is None or any(each.kind == each.VAR_POSITIONAL for each in parameters.values())
    if isinstance(argument, str) and argument in parameters:
        return argument
    if isinstance(argument, int) and 0 <= argument < len(by_position):
        return by_position[argument].name
    if isinstance(argument, int) and argument >= 0 and takes_more:
        return argument
    raise ValueError(f"{_name_of(function)} has no argument {argument!r}; overwrites takes names of arguments, or positions "
                     "from 0")


def _written(signature: inspect.Signature | None, overwritten: Sequence[str | int], arguments: tuple[Any, ...],
             keywords: dict[str, Any]) -> list[Any]:
    bound = signature.bind(*arguments, **keywords).arguments if signature is not None and overwritten else {}
    return [bound.get(each) if isinstance(each, str) else arguments[each:each + 1] for each in overwritten]


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """Returns the tensors in nested lists, tuples and dicts."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _addresses(tensors: list[torch.Tensor]) -> tuple[Any, int]:
    return (ctypes.c_void_p * len(tensors))(*(tensor._cdata for tensor in tensors)), len(tensors)
