"""Autograd functions whose kernels write without telling torch: calls of them are one op of the record.

They are known by name, "package.module:Class", so a plan can carry them to another process, and a function that is imported
in the middle of a step is recognized when it is called."""

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
from rematch._pointers import launches_watched, never_compiled, open_steps
from rematch.opaque import run_opaque, tensors_in

# Libraries whose autograd functions write through raw pointers.
KNOWN_LIBRARIES = ("bitsandbytes", "flash_attn", "liger_kernel", "transformer_engine", "unsloth", "xformers")

_Function = type[torch.autograd.Function]
# Function's name -> positions of the arguments that it writes to. None: no trace has looked, so it may write to any.
_overwrites: dict[str, frozenset[int] | None] = {}


class _Thread(threading.local):
    calls: _Calls | None = None  # of the step that this thread traces


_thread = _Thread()


def name_of(function: type) -> str:
    """ "package.module:Class"."""
    return f"{function.__module__}:{function.__qualname__}"


def declare_opaque(name: str, overwrites: Iterable[int] | None) -> None:
    """Calls of this autograd function are one op of a record from here on, see name_of(). `overwrites` are positions of its
    arguments, added to those known before; None: any argument may be written to."""
    known = _overwrites.get(name)
    _overwrites[name] = None if overwrites is None else frozenset(overwrites) | (known or frozenset())


def is_opaque(name: str) -> bool:
    """Whether calls of this autograd function are one op."""
    return name in _overwrites or name.partition(":")[0].partition(".")[0] in KNOWN_LIBRARIES


def _watch_functions() -> None:
    """Puts the hook in place, for the process.

    Up to torch 2.13 Function.apply looks up the apply of its base class in each call, so the hook there sees calls through an
    `apply` that was bound earlier too. From 2.14 on Function.apply is a method of C: what was bound before is not seen."""
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
    """Around a traced step on this thread, which runs once and with real content. An autograd function that writes to an
    argument without raising its version is opaque afterwards."""
    _thread.calls = calls = _Calls()
    try:
        with launches_watched():
            yield calls
    finally:
        _thread.calls = None
        calls.settle()


class _Calls:
    """The autograd functions that a traced step calls, and what they write to."""

    def __init__(self) -> None:
        self.has_news = False  # whether a call would be recorded in another way from here on
        self._written: dict[str, set[int]] = {}
        self._without_content: set[str] = set()  # they ran on meta, for example, where nobody sees a write

    def noticed(self, function: _Function, run: Any) -> Any:
        """`run`, and a look at what it writes to."""
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
        """After the step."""
        for name, written in self._written.items():
            known = _overwrites.get(name)
            if not is_opaque(name):
                if written:
                    declare_opaque(name, written)
                    self.has_news = True
            elif known is None:
                if name not in self._without_content:
                    declare_opaque(name, written)
            elif not written <= known:
                declare_opaque(name, written)
                self.has_news = True

    def opaque_functions(self) -> list[dict[str, Any]]:
        """Returns the opaque functions that the step called, in the form that a trace stores."""
        found = sorted(name for name in self._written if is_opaque(name))
        return [{"name": name, "overwrites": None if (known := _overwrites.get(name)) is None else sorted(known)}
                for name in found]


def _contents(argument: Any) -> list[tuple[int, int]]:
    """Version and hash of each tensor in it."""
    return [(each._version, LIBRARY.rematch_hash(each._cdata)) for each in tensors_in(argument) if not each.is_inference()]


def _has_silent_change(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> bool:
    return any(version == old_version and content != old_content
               for (old_version, old_content), (version, content) in zip(before, after, strict=False))


def _is_without_content(argument: Any) -> bool:
    return any(each.numel() > 0 and LIBRARY.rematch_hash(each._cdata) == 0 for each in tensors_in(argument))


_watch_functions()
