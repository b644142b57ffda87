"""Raw pointers that a recorded step takes into tensors.

A kernel that is called without torch's dispatcher may write through such a pointer, and no version counter changes. The
record keeps a copy of the content that the kernel may have written. See Note [Hidden writes] in
harness/engine/record/record.h."""

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

# The results of these functions outlive the call, so the program may write through them at any time. __array__,
# __cuda_array_interface__ and storage() call one of these functions.
_LASTING = (("torch", "Tensor.numpy"), ("torch", "Tensor.data_ptr"), ("torch", "Tensor.untyped_storage"),
            ("torch", "Tensor.__dlpack__"), ("torch", "to_dlpack"), ("torch.utils.dlpack", "to_dlpack"))

_NEVER_COMPILED = _eval_frame._FrameExecStrategy(_eval_frame._FrameAction.SKIP, _eval_frame._FrameAction.DEFAULT)
open_steps: list[None] = []  # one entry for each open recorded step of any thread; hooks return at once if it is empty
# Maps a Triton kernel to the arguments that it wrote to in a trace, by position or name.
_written_by_kernel: weakref.WeakKeyDictionary[Any, set[int | str]] = weakref.WeakKeyDictionary()


class _Thread(threading.local):
    is_watching = False  # a trace is watching which arguments Triton kernels write to
    is_launching = False  # a Triton kernel is starting, and calls data_ptr() of its arguments
    is_known = False  # a trace knows the arguments to which the starting kernel writes
    has_learned = False  # the watched trace saw a write by a kernel that no earlier trace had seen


_thread = _Thread()


@contextlib.contextmanager
def launches_watched() -> Iterator[None]:
    """Watches which arguments Triton kernels write to. Use it as a context manager around a traced step."""
    _thread.is_watching, _thread.has_learned = True, False
    try:
        yield
    finally:
        _thread.is_watching = False


def has_learned_kernels() -> bool:
    """Whether another record of the last watched step would now differ, because new writes were found."""
    return _thread.has_learned


@contextlib.contextmanager
def noted(replace: Replace) -> Iterator[None]:
    """Notes raw pointers that a recorded step takes. Replaces the functions that return pointers once for the process.
    Replacing them in each step would use up the type's attribute cache, which Python 3.13 refills only a limited number
    of times."""
    for module, path in _LASTING:
        replace(module, path, _noting)
    replace("triton.runtime.jit", "JITFunction.run", _launching)
    open_steps.append(None)
    try:
        yield
    finally:
        open_steps.pop()


def never_compiled(function: Any) -> Any:
    """Returns the function, and keeps torch.compile from compiling it inside a compiled caller."""
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
