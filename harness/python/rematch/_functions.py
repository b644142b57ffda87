"""Handles autograd functions whose kernels hide their writes from torch. Each call is recorded as one opaque op.

Functions are identified by name, "package.module:Class", so that a plan can refer to functions in another process."""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch
from torch.autograd import function as _function_module
from torch.utils._pytree import tree_leaves

from rematch._library import LIBRARY
from rematch._pointers import has_learned_kernels, launches_watched, never_compiled, open_steps
from rematch.opaque import run_opaque, tensors_in

# Autograd functions of these libraries write through raw pointers.
KNOWN_LIBRARIES = ("bitsandbytes", "flash_attn", "liger_kernel", "transformer_engine", "unsloth", "xformers")

_Function = type[torch.autograd.Function]
# Maps a function's name to the positions of the arguments that it overwrites. None means that no trace has observed the
# function yet, so it may overwrite any argument.
_overwrites: dict[str, frozenset[int] | None] = {}


class _Thread(threading.local):
    calls: _Calls | None = None  # calls in the step that this thread is tracing


_thread = _Thread()


def name_of(function: type) -> str:
    """ "package.module:Class"."""
    return f"{function.__module__}:{function.__qualname__}"


def declare_opaque(name: str, overwrites: Iterable[int] | None) -> None:
    """Makes each call of an autograd function a single op of a record. `name` is the result of name_of(). `overwrites`
    contains positions of arguments that the function overwrites. None means that the function may overwrite any
    argument. Positions of several declarations are merged."""
    known = _overwrites.get(name)
    _overwrites[name] = None if overwrites is None else frozenset(overwrites) | (known or frozenset())


def is_opaque(name: str) -> bool:
    """Returns whether each call of this autograd function is recorded as one op."""
    return name in _overwrites or name.partition(":")[0].partition(".")[0] in KNOWN_LIBRARIES


def _watch_functions() -> None:
    """Hooks Function.apply for the whole process. From torch 2.14 on, the hook misses calls through an `apply` that was
    bound before the hook was set."""
    own = vars(torch.autograd.Function)["apply"]
    is_of_c = isinstance(own, types.ClassMethodDescriptorType)
    holder: Any = torch.autograd.Function if is_of_c else cast(Any, _function_module)._SingleLevelFunction

    def apply(function: _Function, *arguments: Any, **keywords: Any) -> Any:
        run = own.__get__(None, function) if is_of_c else super(holder, function).apply
        if not open_steps:
            return run(*arguments, **keywords)
        if (calls := _thread.calls) is not None:
            run = calls.noticed(function, run)
        name = name_of(function)
        if not is_opaque(name):
            return run(*arguments, **keywords)
        positions = _overwrites.get(name)
        written = (tree_leaves((arguments, keywords)) if positions is None
                   else [arguments[i] for i in positions if i < len(arguments)])
        return run_opaque(run, function.__qualname__, arguments, keywords, written)

    holder.apply = classmethod(never_compiled(apply))


@contextlib.contextmanager
def calls_noticed() -> Iterator[_Calls]:
    """Watches the autograd functions of a traced step on this thread. A function that writes to an argument without
    raising its version becomes opaque."""
    _thread.calls = calls = _Calls()
    try:
        with launches_watched():
            yield calls
    finally:
        _thread.calls = None
        calls.settle()


class _Calls:
    """The autograd functions that a traced step calls, and the arguments that they write to."""

    def __init__(self) -> None:
        self.has_news = False  # True if a second trace would record a call differently
        self._written: dict[str, set[int]] = {}
        self._without_content: set[str] = set()  # functions whose arguments had no data to compare, as on device meta

    def noticed(self, function: _Function, run: Any) -> Any:
        """Wraps `run`, and records which arguments the function overwrites."""
        name = name_of(function)

        def noticing(*arguments: Any, **keywords: Any) -> Any:
            before = [_contents(each) for each in arguments]
            result = run(*arguments, **keywords)
            self._written.setdefault(name, set()).update(
                index for index, each in enumerate(arguments) if _has_silent_change(before[index], _contents(each)))
            if any(_is_without_content(each) for each in arguments):
                self._without_content.add(name)
            return result

        return noticing

    def settle(self) -> None:
        """Makes functions opaque if they overwrote an argument without raising its version. Call this after the
        step."""
        self.has_news = has_learned_kernels()
        for name, written in self._written.items():
            known = _overwrites.get(name)
            if not is_opaque(name):
                if written:
                    declare_opaque(name, written)
                    self.has_news = True
            elif known is None:
                if name not in self._without_content:
                    declare_opaque(name, written)
                    self.has_news = True
            elif not written <= known:
                declare_opaque(name, written)
                self.has_news = True

    def opaque_functions(self) -> list[dict[str, Any]]:
        """Returns the opaque functions that the step called, in the format of a trace."""
        found = sorted(name for name in self._written if is_opaque(name))
        return [{"name": name, "overwrites": None if (known := _overwrites.get(name)) is None else sorted(known)}
                for name in found]


def _contents(argument: Any) -> list[tuple[int, int]]:
    """Returns the version and the hash of each tensor in the argument."""
    return [(each._version, LIBRARY.rematch_hash(each._cdata)) for each in tensors_in(argument) if not each.is_inference()]


def _has_silent_change(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> bool:
    return any(version == old_version and content != old_content
               for (old_version, old_content), (version, content) in zip(before, after, strict=False))


def _is_without_content(argument: Any) -> bool:
    return any(each.numel() > 0 and LIBRARY.rematch_hash(each._cdata) == 0 for each in tensors_in(argument))


_watch_functions()
