"""The shared library and its C functions. No tensor crosses; texts are JSON."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from typing import Any

import torch

TORCH_VERSION = "2.11.0"
LIBRARY_NAME = "librematch_python.so"

_found = torch.__version__.split("+")[0]
if _found != TORCH_VERSION:
    raise ImportError(f"rematch needs torch {TORCH_VERSION}, this is torch {torch.__version__}: "
                      f"pip install torch=={TORCH_VERSION}")


class RematchError(RuntimeError):
    """What the engine, the tracer or the search refuses: one line that says what and where."""


def _load() -> ctypes.PyDLL:
    path = os.environ.get("REMATCH_PYTHON_LIBRARY") or pathlib.Path(__file__).with_name(LIBRARY_NAME)
    # PyDLL keeps the interpreter's lock: calls are short, and tensors that Python knows may die in them.
    library = ctypes.PyDLL(str(path))
    handle, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    functions: list[tuple[str, Any, list[Any]]] = [
            ("error", text, []), ("install", number, [number]), ("allocated_bytes", ctypes.c_int64, [text]),
            ("enter_scope", number, [text, number]), ("leave_scope", None, []),
            ("is_in_scope", number, []), ("is_in_region", number, []), ("begin_hidden", handle, []), ("end_hidden", None, [handle]),
            ("note_pointer_taken", number, [handle, number]), ("set_look_inside", None, [handle]),
            ("recompute_differences", text, [handle]), ("add_gathered", number, [handle, handle, number, handle]),
            ("hash", ctypes.c_uint64, [handle]), ("num_silent_writers", ctypes.c_int64, []),
            ("begin_opaque", handle, [handle, number]), ("abort_opaque", None, [handle]),
            ("end_opaque", number, [handle, text, handle, number, handle, number]), ("mark_unrepeatable", number, [text]),
            ("set_program_hooks", None, [handle, handle]),
            ("make_checkpoint", handle, [text, text, number]), ("free_checkpoint", None, [handle]),
            ("num_left", ctypes.c_int64, [handle]), ("departures", text, [handle]),
            ("begin_recording", handle, [handle, number]), ("end_recording", number, [handle, number]),
            ("begin_trace", handle, []), ("end_forward", number, [handle, text]),
            ("finish_trace", text, [handle, text]), ("free_trace", None, [handle]),
            ("begin_watch", handle, [text, handle, number, handle, number]), ("end_watch", text, [handle]),
            ("set_in_optimizer", None, [number]),
            ("resolve", text, [text, text]), ("combine", text, [text, text]), ("predict", text, [text, text, text, text]),
            ("search", text, [text, text]), ("render_front", text, [text, text]),
            ("begin_op_times", handle, [text, number]), ("watch_part", number, [handle, number]),
            ("note_step", number, [handle, ctypes.c_int64, ctypes.c_int64]),
            ("finish_op_times", text, [handle]), ("free_op_times", None, [handle])]
    for name, result, arguments in functions:
        function = getattr(library, f"rematch_{name}")
        function.restype, function.argtypes = result, arguments
    return library


LIBRARY = _load()


def call(name: str, *arguments: Any) -> Any:
    """Calls rematch_<name>; strings go as UTF-8. Raises RematchError with the library's line."""
    encoded = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    result = getattr(LIBRARY, f"rematch_{name}")(*encoded)
    if result is None or result == -1:
        raise last_error()
    return result


def last_error() -> RematchError:
    """What this thread's last call refused."""
    return RematchError(LIBRARY.rematch_error().decode())


def call_for_json(name: str, *arguments: Any) -> dict[str, Any]:
    """As call(), for functions that return JSON; arguments that are no strings or handles go as JSON."""
    if None in arguments:
        raise TypeError(f"rematch.{name} got None for a trace, a plan or a name")
    found: dict[str, Any] = json.loads(call(name, *[json.dumps(argument) if isinstance(argument, (dict, list)) else argument
                                                    for argument in arguments]))
    return found


def count_memory() -> None:
    """Counts every byte that tensors hold on the CPU and on meta, for `watch`, `check` and the bytes of a trace.

    Replaces torch's allocators of those devices: call it before the first tensor, to measure and not to train."""
    call("install", 1)


def allocated_bytes(device: str = "cpu") -> int:
    """Bytes that tensors on "cpu" or "meta" hold, after count_memory()."""
    return int(call("allocated_bytes", device))


call("install", 0)
