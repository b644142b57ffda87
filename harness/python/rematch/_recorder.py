"""The hooks that rematch.apply sets on a model to record its calls."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import AbstractContextManager

import torch

from rematch._in_torch import is_compiled
from rematch._program_hooks import is_enabled
from rematch._scope import ScopeGroup, never_compile
from rematch.blocks import Blocks, unwrapped
from rematch.checkpoint import Checkpoint
from rematch.recording import is_recorded, recording

_CALL_CODE = torch.nn.Module._call_impl.__code__


class _Call:
    """A recorded call of a module."""

    def __init__(self, recorder: Recorder, module: torch.nn.Module, step: AbstractContextManager[None]):
        self.recorder = recorder
        self.module = module
        self.depth = 1  # nesting depth of calls of the module
        self._step = step
        self._handled = sys.exc_info()[1]  # the exception that the program is handling, if any
        step.__enter__()

    def end(self) -> None:
        """Ends the recording at the end of forward. torch calls the hook even if forward raised."""
        error = sys.exc_info()[1]
        if error is None or error is self._handled:
            self._step.__exit__(None, None, None)
        else:
            self._step.__exit__(type(error), error, error.__traceback__)

    def abandon(self) -> None:
        """Ends the recording of an interrupted call, whose hooks did not run."""
        error = KeyboardInterrupt()
        self._step.__exit__(type(error), error, None)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.calls: list[_Call] = []  # recorded calls, the innermost last


_thread = _Thread()


class Recorder:
    """Two hooks on each module that contains layers of the plan. Only the outermost call of such modules is recorded.
    Hooks on the model alone would miss calls of model.forward(x) and of parts of the model. A copy of the model gets
    its own recorder."""

    def __init__(self, checkpoint: Checkpoint, group: ScopeGroup, verify_every: int):
        self.checkpoint = checkpoint
        self._group = group
        self._verify_every = verify_every

    def begin(self, module: torch.nn.Module, *_: object) -> None:
        calls = _thread.calls
        while calls and not _is_running(calls[-1].module, module):
            calls.pop().abandon()
        if calls and calls[-1].recorder is self and calls[-1].module is module:
            calls[-1].depth += 1
        elif not is_recorded(self.checkpoint) and self._can_record():
            calls.append(_Call(self, module, recording(self.checkpoint, verify_every=self._verify_every)))

    def end(self, module: torch.nn.Module, *_: object) -> None:
        calls = _thread.calls
        if not calls or calls[-1].recorder is not self or calls[-1].module is not module:
            return
        calls[-1].depth -= 1
        if calls[-1].depth == 0:
            calls.pop().end()

    def _can_record(self) -> bool:
        """Returns whether the call can be recorded. If not, warns once with the reason."""
        if is_compiled():
            self._tell("runs in a function of torch.compile, where the compiler decides what is kept; leave the layers eager to follow the "
                       "plan. Functions and modules inside them may be compiled")
            return False
        if not is_enabled():
            self._tell("is called where saved-tensor hooks are disabled, by disable_saved_tensors_hooks or in a transform of "
                       "torch.func, so its plan is not followed there")
            return False
        return True

    def _tell(self, what: str) -> None:
        if not self._group.is_told_to_record and torch.is_grad_enabled():
            self._group.is_told_to_record = True
            warnings.warn(f"rematch: the model {what}", stacklevel=4)


for _hook in (Recorder.begin, Recorder.end):
    never_compile(_hook)


def _is_running(module: torch.nn.Module, called: torch.nn.Module) -> bool:
    """Returns whether an earlier call of `module` is still running when `called` is called. Searches the stack,
    because a call that Ctrl-C has interrupted did not run its hooks."""
    num_module, num_called = 0, 0
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is _CALL_CODE:
            num_module += frame.f_locals["self"] is module
            num_called += frame.f_locals["self"] is called
        frame = frame.f_back
    # If even the current call is missing from the stack, the stack is incomplete. Then assumes that the earlier call is
    # still running.
    return num_module > (module is called) or num_called == 0


def record_calls(model: torch.nn.Module, blocks: Blocks, recorder: Recorder) -> None:
    """Sets the hooks on each module that contains layers."""
    layers = {id(unwrapped(module)) for modules in blocks.values() for module in modules}
    inside = {id(part) for module in model.modules() if id(module) in layers for part in module.modules()}
    for module in model.modules():
        if id(module) not in inside and any(id(part) in layers for part in module.modules()):
            module.register_forward_pre_hook(recorder.begin, prepend=True)
            module.register_forward_hook(recorder.end, always_call=True)


def recorder_of(model: torch.nn.Module) -> Recorder | None:
    for module in model.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(owner := getattr(hook, "__self__", None), Recorder):
                return owner
    return None


def remove_recorders(model: torch.nn.Module) -> None:
    """Removes the hooks, and ends the recorded calls of the model on this thread."""
    removed = set()
    for module in model.modules():
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for key, hook in list(hooks.items()):
                if isinstance(owner := getattr(hook, "__self__", None), Recorder):
                    removed.add(owner)
                    del hooks[key]
                    module._forward_hooks_always_called.pop(key, None)
    while _thread.calls and _thread.calls[-1].recorder in removed:
        _thread.calls.pop().abandon()
