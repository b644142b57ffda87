"""Autograd functions whose kernels hide their writes from torch. A call of such a function is one op of the record.

A function is known by its name, "package.module:Class". So a plan can name it in another process, and a function that is
imported in the middle of a step is recognized when it is called."""

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
# Maps a function's name to the positions of the arguments that it writes to. None: no trace has compared the arguments
# yet, so the function may write to any of them.
_overwrites: dict[str, frozenset[int] | None] = {}


class _Thread(threading.local):
    calls: _Calls | None = None  # the calls of the step that this thread traces


_thread = _Thread()


def name_of(function: type) -> str:
    """ "package.module:Class"."""
    return f"{function.__module__}:{function.__qualname__}"


def declare_opaque(name: str, overwrites: Iterable[int] | None) -> None:
    """Makes each call of an autograd function a single op of a record. `name` is what name_of() returns for the
    function. `overwrites` has positions of arguments that the function writes to. The new positions are added to the
    known positions. None means that the function may write to any argument."""
    known = _overwrites.get(name)
    _overwrites[name] = None if overwrites is None else frozenset(overwrites) | (known or frozenset())


def is_opaque(name: str) -> bool:
    """Returns whether calls of this autograd function are one op."""
    return name in _overwrites or name.partition(":")[0].partition(".")[0] in KNOWN_LIBRARIES


def _watch_functions() -> None:
    """Installs the hook on Function.apply, for the process.

    Up to torch 2.13 each call of Function.apply looks up the apply of its base class. So a hook on the base class also
    sees calls through an `apply` that was bound earlier. From 2.14 on Function.apply is a method of C, and the hook
    does not see such calls."""
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
    """Watches the autograd functions of a traced step on this thread. The step must run once, on real content. A function
    that writes to an argument without raising its version is opaque afterwards."""
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
        self.has_news = False  # True if a later trace would record some call differently.
        self._written: dict[str, set[int]] = {}
        self._without_content: set[str] = set()  # functions whose writes could not be observed, for example on device
                                                 # meta

    def noticed(self, function: _Function, run: Any) -> Any:
        """Wraps `run` so that it notes which arguments the function writes to."""
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
        """Declares the functions that were found to write. Call it after the step."""
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
        """Returns the opaque functions that the step called, in the form that a trace stores."""
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
