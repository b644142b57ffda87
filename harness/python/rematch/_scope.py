"""The hooks that open a scope around a module's calls. They also warn once about each mistake that silently
disables checkpointing, such as a forgotten call of rematch."""

from __future__ import annotations

import threading
import warnings
import weakref
from typing import Any

import torch

from rematch._in_torch import is_compiled, is_in_recorded_step
from rematch._library import LIBRARY, last_error
from rematch._pointers import never_compiled

_enter_scope, _leave_scope = LIBRARY.rematch_enter_scope, LIBRARY.rematch_leave_scope
_scopes: weakref.WeakSet[Scope] = weakref.WeakSet()
_groups: weakref.WeakSet[ScopeGroup] = weakref.WeakSet()
# groups that still have their hooks registered; the hooks detect calls of module.forward(x)
_watched_groups: weakref.WeakSet[ScopeGroup] = weakref.WeakSet()
_num_changes = 0  # number of times that scopes were set or removed


class _Thread(threading.local):
    recorded: object = None  # the checkpoint of the current recording; None if no scopes were set for this checkpoint


_thread = _Thread()


class ScopeGroup:
    """State that the scopes of one model share, such as their checkpoint. A copy of the model gets its own group."""

    def __init__(self, checkpoint: object = None, is_applied: bool = False) -> None:
        self.checkpoint = checkpoint
        self.is_applied = is_applied  # set by rematch.apply, which records without rematch.recording
        self.is_recorded = False
        self.is_told_to_record = False
        self.is_told_of_compiled_code = False
        self.has_model_run = False  # True once a recorded step has called the model or one of its children
        self.model: weakref.ref[torch.nn.Module] | None = None
        # keyed by Scope.whole
        self.module_of: weakref.WeakValueDictionary[str, torch.nn.Module] = weakref.WeakValueDictionary()
        self.bypassed: set[Scope] = set()  # scopes whose module was called as module.forward(x)
        self.watch_handles: list[Any] = []
        _groups.add(self)
        _watched_groups.add(self)

    def is_closed(self) -> bool:
        """Returns whether this thread records with a checkpoint of another model, whose layers may have the same
        names."""
        return _thread.recorded is not None and self.checkpoint is not None and self.checkpoint is not _thread.recorded

    def __deepcopy__(self, memo: dict[int, Any]) -> ScopeGroup:
        return memo.setdefault(id(self), ScopeGroup(self.checkpoint, self.is_applied))

    def __reduce__(self) -> tuple[Any, ...]:
        return ScopeGroup, (self.checkpoint, True) if self.is_applied else ()


class Scope:
    """The two hooks of one scope. A copy of the module, made by deepcopy or pickle, gets its own scope."""

    __slots__ = ("__weakref__", "_encoded", "_index", "_num_entered", "_parent", "group", "was_recorded", "whole")

    def __init__(self, whole: str, name: str, index: int, group: ScopeGroup, parent: Scope | None = None):
        self.whole = whole
        self._parent = parent  # the scope to which the name is relative; None if the name is absolute
        self.group = group
        self.was_recorded = False
        self._encoded = name.encode()
        self._index = index
        self._num_entered = 0  # 0 if forward failed before it entered the scope; leave() then does nothing
        _scopes.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scope, (self.whole, self._encoded.decode(), self._index, self.group, self._parent)

    # This must be fast, because every step calls enter() and leave() for every layer.
    def enter(self, module: torch.nn.Module, *_: object) -> None:
        if self.group.is_closed() or (is_compiled() and self._is_told_to_stay_closed()):
            return
        parent = self._parent
        is_inside = parent is None or parent._num_entered > 0
        result = _enter_scope(self._encoded if is_inside else self._name_in_running_scope(), self._index)
        if result == 0:
            self.was_recorded = self.group.is_recorded = True
        elif result < 0:
            raise last_error()
        elif torch.is_grad_enabled():
            self._notice_unrecorded_call(module)
        self._num_entered += 1

    def _name_in_running_scope(self) -> bytes:
        """Returns the name of this scope relative to the innermost open scope. A container that is never called opens
        no scope, so its name becomes part of the result."""
        name, parent = self._encoded, self._parent
        while parent is not None and parent._num_entered == 0:
            name, parent = parent._encoded + b"." + name, parent._parent
        return name

    def leave(self, *_: object) -> None:
        if self._num_entered > 0:
            self._num_entered -= 1
            _leave_scope()

    def notice_call_inside(self, *_: object) -> None:
        """A hook on the modules inside this module. If an inner module is called, this module's forward is running."""
        if self._num_entered == 0 and is_in_recorded_step() and not self.group.is_closed():
            self.group.bypassed.add(self)

    def notice_model(self, *_: object) -> None:
        """A hook on the model and its children."""
        if is_in_recorded_step() and not is_compiled():
            self.group.has_model_run = True

    def _is_told_to_stay_closed(self) -> bool:
        """Warns once that plans do not apply to a layer inside compiled code. Returns True."""
        if is_in_recorded_step() and not self.group.is_told_of_compiled_code:
            self.group.is_told_of_compiled_code = True
            warnings.warn(f"rematch: {self.whole} runs in a function of torch.compile, where the compiler decides what is kept; do not "
                          "compile whole layers if they should follow the plan. Functions and modules inside them may be compiled", stacklevel=3)
        return True

    def _notice_unrecorded_call(self, module: torch.nn.Module) -> None:
        group = self.group
        if group.is_recorded or group.is_told_to_record or not module.training:
            return
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return
        group.is_told_to_record = True
        if group.is_applied:
            advice = ("outside of a call of the model that rematch.apply was given, so nothing is checkpointed; call it as "
                      "model(x), not as model.forward(x), or call rematch.remove(model) to train without a plan")
        else:
            advice = ("and runs outside of rematch.recording, so nothing is checkpointed; put the forward pass of each step into "
                      "`with rematch.recording(checkpoint):`, or call rematch.remove_scopes(model) to train without a plan")
        warnings.warn(f"rematch: {self.whole} {'runs' if group.is_applied else 'has scopes'} {advice}", stacklevel=2)


def never_compile(hook: Any) -> None:
    """Excludes the hook from torch.compile, like torch._dynamo.disable, which takes seconds to import."""
    hook._torchdynamo_disable = True
    never_compiled(hook)


for _hook in (Scope.enter, Scope.leave, Scope.notice_call_inside, Scope.notice_model, Scope._is_told_to_stay_closed,
              Scope._name_in_running_scope, Scope._notice_unrecorded_call):
    never_compile(_hook)


def scope_of(hook: object) -> Scope | None:
    """Returns the scope to which a hook belongs; None for other hooks."""
    owner = getattr(hook, "__self__", None)
    return owner if isinstance(owner, Scope) else None


def note_change() -> None:
    """Call this after setting or removing scopes."""
    global _num_changes
    _num_changes += 1


def num_changes() -> int:
    return _num_changes


def set_recorded(checkpoint: object) -> None:
    """Sets the checkpoint with which this thread records from now on. Scopes for other checkpoints stay closed."""
    _thread.recorded = checkpoint if any(group.checkpoint is checkpoint for group in _groups) else None


def names_of_scopes() -> set[str]:
    """Returns the names of all scopes in this process."""
    return {scope.whole for scope in _scopes}


def modules_of_scopes(checkpoint: object) -> list[tuple[torch.nn.Module, dict[str, torch.nn.Module]]]:
    """Returns each model whose scopes open when the checkpoint is recorded, with its modules by scope name."""
    served = [(group.model(), dict(group.module_of)) for group in _groups
              if group.model is not None and group.checkpoint in (None, checkpoint)]
    return [(model, module_of) for model, module_of in served if model is not None]


def watch_calls_inside(module: torch.nn.Module, scope: Scope, shared: set[int]) -> None:
    """Detects calls of module.forward(x), which skip the module's hooks, until the first recorded step ends. Ignores
    inner modules whose id is in `shared`, because other modules call them too."""
    for child in module.children():
        if isinstance(child, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            watch_calls_inside(child, scope, shared)
        elif id(child) not in shared:
            scope.group.watch_handles.append(child.register_forward_hook(scope.notice_call_inside))


def watch_model(model: torch.nn.Module, scope: Scope) -> None:
    """Detects calls of the model, until a recorded step has called a module with a scope."""
    for module in (model, *model.children()):
        scope.group.watch_handles.append(module.register_forward_hook(scope.notice_model))


def has_model_run(checkpoint: object) -> bool:
    """Returns whether a recorded step has called a model whose scopes open when the checkpoint is recorded."""
    return any(group.has_model_run for group in _groups if group.checkpoint in (None, checkpoint))


def has_watched_groups() -> bool:
    return len(_watched_groups) > 0


def warn_of_bypassed_scopes() -> list[str]:
    """Warns of the scopes whose module was called as module.forward(x) in a recorded step, and returns their names.
    Call this at the end of the step. Later steps are not checked."""
    found: list[str] = []
    for group in list(_watched_groups):
        if group.is_recorded or group.bypassed:
            found += sorted(scope.whole for scope in group.bypassed if not scope.was_recorded)
            end_watch(group)
    if found:
        warnings.warn(f"rematch: {listed(found)} ran through module.forward(x), which opens no scope, so no plan can govern it; "
                      "call it as module(x)", stacklevel=4)
    return found


def end_group(group: ScopeGroup) -> None:
    """Call this after removing the group's scopes."""
    _groups.discard(group)
    end_watch(group)


def end_watch(group: ScopeGroup) -> None:
    """Removes the hooks that detect calls of module.forward(x)."""
    _watched_groups.discard(group)
    group.bypassed.clear()
    for handle in group.watch_handles:
        handle.remove()
    group.watch_handles.clear()


def listed(names: list[str]) -> str:
    """ Returns a text such as "layers.0, layers.1 and 4 more"."""
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
