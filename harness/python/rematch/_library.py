"""Loads the shared library and declares its C functions. Tensors are passed by address; plans, traces and fronts as
JSON."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
from typing import Any

import torch

from rematch._private import require

# A wheel contains one library for each torch release, such as "2.11". A build for one machine may contain a single
# library, whose name contains no release.
LIBRARY_NAME = "librematch_python-{}.so"
SINGLE_LIBRARY_NAME = "librematch_python.so"
OVERRIDE = "REMATCH_PYTHON_LIBRARY"


class RematchError(RuntimeError):
    """The base class of errors of the engine, the tracer and the search. The message is one line that says what is
    wrong and where."""


class Refused(RematchError):
    """The program does something that no plan can support without changing results. Ops of a recorded step and backward
    may raise this too."""


class PlanError(RematchError, ValueError):
    """A plan, policy or trace is malformed or does not belong to the model, or no plan fits the budget."""


def _release_of(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _library_path() -> pathlib.Path:
    """Returns the path of the library for the imported torch. Raises ImportError with one line that says what to do."""
    if os.environ.get(OVERRIDE):
        return pathlib.Path(os.environ[OVERRIDE])
    folder = pathlib.Path(__file__).parent
    for name in (LIBRARY_NAME.format(_release_of(torch.__version__)), SINGLE_LIBRARY_NAME):
        if (folder / name).exists():
            return folder / name
    releases = sorted((path.stem.rpartition("-")[2] for path in folder.glob(LIBRARY_NAME.format("*"))),
                      key=lambda release: int(release.rpartition(".")[2]))
    if not releases:
        raise ImportError(f"this copy of rematch has no library: install the wheel of scripts/build_wheel, or name a library "
                          f"with {OVERRIDE}")
    raise ImportError(f"rematch has libraries for torch {', '.join(releases)}; this is torch {torch.__version__}: "
                      f"pip install 'torch=={releases[-1]}.*', or use scripts/export_trace.py, which needs no library")


def _load() -> ctypes.PyDLL:
    path = _library_path()
    # PyDLL holds the interpreter's lock during a call, because calls may free tensors that have Python objects.
    try:
        library = ctypes.PyDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded into torch {torch.__version__}; was the library built for another torch? "
                          f"{error}") from None
    library.rematch_torch_version.restype = ctypes.c_char_p
    built_for = library.rematch_torch_version().decode()
    if _release_of(built_for) != _release_of(torch.__version__):
        raise ImportError(f"{path} is built for torch {built_for}, this is torch {torch.__version__}: "
                          f"build the library for this torch (scripts/build_wheel), or name another library with {OVERRIDE}")
    _declare(library)
    return library


def _declare(library: ctypes.PyDLL) -> None:
    """Declares the argument and result types of the C functions."""
    handle, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    nodes = ctypes.POINTER(ctypes.c_int32)
    functions: list[tuple[str, Any, list[Any]]] = [
            ("error", text, []), ("error_class", number, []), ("set_error_types", None, [handle, handle]),
            ("install", number, [number]), ("allocated_bytes", ctypes.c_int64, [text]),
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
            ("accumulate", text, [text, ctypes.c_int64]),
            ("require_policy", number, [text]), ("resolve", text, [text, text]), ("combine", text, [text, text]),
            ("predict", text, [text, text, text, text]),
            ("search", text, [text, text]), ("render_front", text, [text, text]),
            ("make_joint", handle, [text]), ("free_joint", None, [handle]),
            ("joint_options", text, [handle, nodes, number]),
            ("joint_option", text, [handle, nodes, number]), ("joint_schedule", text, [handle, nodes, number, number]),
            ("begin_op_times", handle, [text, number, text, text]), ("watch_part", number, [handle, number]),
            ("note_step", number, [handle, ctypes.c_int64, ctypes.c_int64]),
            ("finish_op_times", text, [handle]), ("free_op_times", None, [handle])]
    for name, result, arguments in functions:
        function = getattr(library, f"rematch_{name}")
        function.restype, function.argtypes = result, arguments


require()
LIBRARY = _load()


def call(name: str, *arguments: Any) -> Any:
    """Calls the C function rematch_<name>. Encodes strings as UTF-8. Raises the error that the library reports."""
    encoded = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    result = getattr(LIBRARY, f"rematch_{name}")(*encoded)
    if result is None or result == -1:
        raise last_error()
    return result


def last_error() -> RematchError:
    """Returns the error of this thread's last call."""
    error_class = (RematchError, Refused, PlanError)[LIBRARY.rematch_error_class()]
    return error_class(LIBRARY.rematch_error().decode())


class Document(dict[str, Any]):
    """A JSON document that does not change. It is encoded once, however often it is passed to the library."""

    @functools.cached_property
    def text(self) -> str:
        return json.dumps(self)


def call_for_json(name: str, *arguments: Any) -> dict[str, Any]:
    """Like call(), for functions that return JSON. Dicts and lists are passed as JSON."""
    if any(argument is None for argument in arguments):
        raise TypeError(f"rematch.{name} got None for a trace, a plan or a name")
    found: dict[str, Any] = json.loads(call(name, *map(_encoded, arguments)))
    return found


def _encoded(argument: Any) -> Any:
    if isinstance(argument, Document):
        return argument.text
    return json.dumps(argument) if isinstance(argument, (dict, list)) else argument


def count_memory() -> None:
    """Counts the memory of tensors on the CPU and on device meta, for `watch`, `check` and the bytes of a trace.
    Replaces torch's allocators of both devices, so call this before the first tensor exists, and only for
    measurements."""
    call("install", 1)


def allocated_bytes(device: str = "cpu") -> int:
    """Returns the memory in use by tensors on "cpu" or "meta", in bytes. Requires count_memory()."""
    return int(call("allocated_bytes", device))


LIBRARY.rematch_set_error_types(id(Refused), id(PlanError))
try:
    call("install", 0)
except RematchError as error:
    raise ImportError(str(error)) from None
