"""Hooks in torch's own Python code, for recorded steps.

The hooks reject constructs that cannot be recorded, such as torch.utils.checkpoint inside a layer. They hide compiled
functions from the record, and make torch wait for each collective at once. Outside of recorded steps, the hooks do
nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from torch._C._dynamo.eval_frame import get_eval_frame_callback as _get_eval_frame_callback

from rematch import _distributed, _pointers, _private, _program_hooks
from rematch._library import LIBRARY, Refused, RematchError, call


class _Thread(threading.local):
    num_recorded_steps = 0  # number of recorded steps that are open; they may nest
    is_traced = False

    def __init__(self) -> None:
        self.compiled_calls: list[_CompiledCall] = []  # running calls of compiled functions, the innermost last


class _CompiledCall:
    """A call of a compiled function. Inside a layer, its ops are hidden from the record."""

    def __init__(self, frame: int) -> None:
        self.frame = frame  # id of the Python frame of the caller
        self.has_begun = False
        is_hidden = LIBRARY.rematch_is_in_scope() if _thread.is_traced else LIBRARY.rematch_is_in_region()
        self._section = call("begin_hidden") if is_hidden else None

    def is_hidden(self) -> bool:
        return self._section is not None

    def end(self) -> None:
        if self._section is not None:
            LIBRARY.rematch_end_hidden(self._section)


_thread = _Thread()
_passed_ops: list[Any] = []  # higher-order ops that already skip the engine's dispatch key
_told_of_checkpoint: list[bool] = []  # non-empty after the first warning


@contextlib.contextmanager
def recorded_step() -> Iterator[None]:
    """A context manager around forward passes that are recorded or traced. Installs the hooks."""
    _hide_compiled_functions()
    _refuse_checkpointed_functions()
    _wait_for_collectives()
    _distributed.install(_replaced, is_in_recorded_step)
    _program_hooks.install()
    of_thread = vars(_thread)  # the state of the thread that opens the step; a generator may close the step on another
                               # thread
    of_thread["num_recorded_steps"] = of_thread.get("num_recorded_steps", 0) + 1
    try:
        with _pointers.noted(_replaced):
            yield
    finally:
        of_thread["num_recorded_steps"] -= 1


@contextlib.contextmanager
def traced_step() -> Iterator[None]:
    """Like recorded_step(), but compiled functions outside of layers run eagerly, so that their ops are traced."""
    with recorded_step(), run_compiled_eagerly():
        _thread.is_traced = True
        try:
            yield
        finally:
            _thread.is_traced = False


def run_compiled_eagerly() -> contextlib.AbstractContextManager[Any]:
    """Makes compiled functions run eagerly, so that a step runs the same ops whether it is compiled or not."""
    if "torch._dynamo.eval_frame" not in sys.modules:
        return contextlib.nullcontext()  # nothing is compiled before torch._dynamo is imported
    return sys.modules["torch"].compiler.set_stance("force_eager")


def is_compiled() -> bool:
    """Returns whether the running Python code belongs to a compiled function."""
    return "torch._dynamo.eval_frame" in sys.modules and _get_eval_frame_callback() not in (None, False)


def is_in_recorded_step() -> bool:
    """Returns whether this thread's forward passes are recorded or traced."""
    return _thread.num_recorded_steps > 0


def refuse_in_recorded_step(what: str) -> None:
    """Raises Refused inside a recorded step. Called by functions that run steps themselves, because the open record
    would contain the ops of those steps."""
    if _thread.num_recorded_steps > 0:
        raise Refused(f"rematch.{what} runs its own steps, but was called in a recorded step; call it outside of recorded "
                      "steps")


def _replaced(module_name: str, path: str, make: Callable[[Any], Any]) -> None:
    """Replaces the object at `path` by make(object), unless this was done before. Does nothing until the module is
    imported."""
    if module_name not in sys.modules:
        return
    holder: Any = sys.modules[module_name]
    *owners, name = path.split(".")
    for owner in owners:
        holder = getattr(holder, owner, None)
    found = getattr(holder, name, None)
    if found is None:
        raise RematchError(_private.missing(f"{module_name}.{path}"))
    if not hasattr(found, "of_rematch"):
        setattr(holder, name, make(found))
        getattr(holder, name).of_rematch = True


def _hide_compiled_functions() -> None:
    """Detects the calls of compiled functions by the eval-frame callback that torch sets around them. A compiled
    function requests its callback, sets it, runs, and restores the previous callback. Calls nest, so each callback is
    matched to its call by the Python frame."""
    def noting(callback_from_stance: Any) -> Any:
        def note_call(callback: Any) -> Any:
            found = callback_from_stance(callback)
            if callback is not None and _thread.num_recorded_steps > 0:
                _thread.compiled_calls.append(_CompiledCall(id(sys._getframe(1))))
            return found
        return note_call

    def following(set_callback: Any) -> Any:
        def follow_call(callback: Any) -> Any:
            calls = _thread.compiled_calls
            if calls and calls[-1].frame == id(sys._getframe(1)):
                if calls[-1].has_begun:
                    calls.pop().end()
                else:
                    calls[-1].has_begun = True
            return set_callback(callback)
        return follow_call

    def keeping_hidden(force_guard: Any) -> Any:
        def force(included: Any, excluded: Any) -> Any:
            calls = _thread.compiled_calls
            if calls and calls[-1].is_hidden() and calls[-1].frame == id(sys._getframe(1)):
                excluded = excluded | sys.modules["torch"]._C.DispatchKeySet(_engine_key())
            return force_guard(included, excluded)
        return force

    _replaced("torch._dynamo.eval_frame", "_callback_from_stance", noting)
    _replaced("torch._dynamo.eval_frame", "_maybe_set_eval_frame", following)
    # Some releases, such as torch 2.13, reset the dispatch keys when a compiled function begins. So the engine's key is
    # excluded again.
    _replaced("torch._C", "_ForceDispatchKeyGuard", keeping_hidden)
    _let_pass_higher_order_ops()


def _engine_key() -> Any:
    return sys.modules["torch"]._C._dispatch_key_parse("Fake")  # see Note [Dispatch key Fake] (harness/engine/interception.h)


def _let_pass_higher_order_ops() -> None:
    """Makes higher-order ops fall through the engine's dispatch key. They are dispatched in Python, where a key without
    a kernel is an error."""
    for op in list(sys.modules["torch"]._ops._higher_order_ops.values())[len(_passed_ops):]:
        op.fallthrough(_engine_key())
        _passed_ops.append(op)


def _refuse_checkpointed_functions() -> None:
    def make(begin: Any) -> Any:
        def refusing(*arguments: Any, **keywords: Any) -> Any:
            if LIBRARY.rematch_is_in_scope():
                if _thread.is_traced:
                    raise Refused("torch.utils.checkpoint runs inside a layer of a step that is traced, where the plan decides "
                                  "what is kept; turn it off (model.gradient_checkpointing_disable())")
                _warn_of_checkpoint()
            return begin(*arguments, **keywords)
        return refusing

    _replaced("torch.utils.checkpoint", "CheckpointFunction.apply", make)
    _replaced("torch.utils.checkpoint", _private.checkpoint_beginning(), make)


def _warn_of_checkpoint() -> None:
    if _told_of_checkpoint:
        return
    _told_of_checkpoint.append(True)
    warnings.warn("rematch: torch.utils.checkpoint runs inside a layer that the plan governs, and decides there what is kept; turn "
                  "it off to follow the plan (model.gradient_checkpointing_disable())", stacklevel=4)


def _wait_for_collectives() -> None:
    """Makes DTensor wait for a collective at once. Otherwise the op that first uses the result would wait, and the
    record would not contain the wait."""
    def make(maybe_wrap_tensor: Any) -> Any:
        def waiting(tensor: Any) -> Any:
            if _thread.num_recorded_steps > 0:
                return sys.modules["torch.distributed._functional_collectives"].wait_tensor(tensor)
            return maybe_wrap_tensor(tensor)
        return waiting

    _replaced("torch.distributed._functional_collectives", "_maybe_wrap_tensor", make)
