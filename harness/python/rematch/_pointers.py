"""Tracks the raw pointers that a recorded step takes into tensors.

A kernel that is launched without torch's dispatcher may write through such a pointer without raising a version counter.
See Note [Hidden writes] in harness/engine/record/record.h."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch._C._dynamo import eval_frame as _eval_frame

from rematch._library import LIBRARY

Replace = Callable[[str, str, Callable[[Any], Any]], None]

# The pointers that these functions return outlive the call, so the program may write through them at any time.
# __array__, __cuda_array_interface__ and storage() call one of these functions.
_LASTING = (("torch", "Tensor.numpy"), ("torch", "Tensor.data_ptr"), ("torch", "Tensor.untyped_storage"),
            ("torch", "Tensor.__dlpack__"), ("torch", "to_dlpack"), ("torch.utils.dlpack", "to_dlpack"))

_NEVER_COMPILED = _eval_frame._FrameExecStrategy(_eval_frame._FrameAction.SKIP, _eval_frame._FrameAction.DEFAULT)
open_steps: list[None] = []  # one entry for each open recorded step of any thread; if empty, hooks do nothing
# Maps a Triton kernel to the arguments that it wrote in a trace, by position or name.
_written_by_kernel: weakref.WeakKeyDictionary[Any, set[int | str]] = weakref.WeakKeyDictionary()


class _Thread(threading.local):
    is_watching = False  # True while a trace watches which arguments Triton kernels write
    is_launching = False  # True while a Triton kernel is launched, which calls data_ptr() of its arguments
    is_known = False  # True if a trace has observed which arguments this kernel writes
    has_learned = False  # True once the trace has observed a new kernel, or a write to another argument


_thread = _Thread()


@contextlib.contextmanager
def launches_watched() -> Iterator[None]:
    """A context manager around a traced step. Watches which arguments Triton kernels write."""
    _thread.is_watching, _thread.has_learned = True, False
    try:
        yield
    finally:
        _thread.is_watching = False


def has_learned_kernels() -> bool:
    """Returns whether the last traced step must be traced again, because kernels made writes that were unknown
    before."""
    return _thread.has_learned


@contextlib.contextmanager
def noted(replace: Replace) -> Iterator[None]:
    """A context manager around a recorded step. Reports to the engine the raw pointers that the step takes. Replaces
    the functions that return pointers, once per process: Python 3.13 stops caching a type's attributes after a limited
    number of changes."""
    for module, path in _LASTING:
        replace(module, path, _noting)
    replace("triton.runtime.jit", "JITFunction.run", _launching)
    open_steps.append(None)
    try:
        yield
    finally:
        open_steps.pop()


def never_compiled(function: Any) -> Any:
    """Excludes the function from torch.compile, even where a compiled function calls it. Returns the function."""
    _eval_frame.set_code_exec_strategy(function.__code__, _NEVER_COMPILED)
    return function


def _noting(take: Any) -> Any:
    def noting(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        if open_steps and not _thread.is_known:
            LIBRARY.rematch_note_pointer_taken(getattr(tensor, "_cdata", None), int(not _thread.is_launching))
        return take(tensor, *arguments, **keywords)

    return functools.update_wrapper(never_compiled(noting), take)


def _launching(run: Any) -> Any:
    @functools.wraps(run)
    def launching(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        if not open_steps:
            return run(kernel, *arguments, **keywords)
        named: list[tuple[int | str, Any]] = [*enumerate(arguments), *keywords.items()]
        tensors = {key: each for key, each in named if hasattr(each, "_cdata")}
        written = _written_by_kernel.get(kernel)
        hashes = _hashes(tensors) if _thread.is_watching else {}
        for key in written or ():
            if key in tensors:
                LIBRARY.rematch_note_pointer_taken(tensors[key]._cdata, 0)
        before = _thread.is_launching, _thread.is_known
        _thread.is_launching, _thread.is_known = True, written is not None
        try:
            return run(kernel, *arguments, **keywords)
        finally:
            _thread.is_launching, _thread.is_known = before
            if _thread.is_watching:
                changed = {key for key, content in _hashes(tensors).items() if content != hashes[key]}
                _thread.has_learned |= written is None or not changed <= written
                _written_by_kernel.setdefault(kernel, set()).update(changed)
    return launching


def _hashes(tensors: dict[int | str, Any]) -> dict[int | str, int]:
    return {key: LIBRARY.rematch_hash(each._cdata) for key, each in tensors.items()}
