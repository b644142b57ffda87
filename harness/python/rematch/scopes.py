"""Opens scopes around the calls of a model's layers and of the modules in them."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import torch

from rematch._library import PlanError, Refused
from rematch._recorder import remove_recorders
from rematch._scope import Scope, ScopeGroup, end_group, note_change, scope_of, watch_calls_inside, watch_model
from rematch.blocks import Blocks, children_of, find_blocks, unwrapped
from rematch.checkpoint import Checkpoint, require_checkpoint

NO_INDEX = -1


class BlockScopes:
    """Opens a scope for each call of a block and of the modules in it, until remove().

    Modules that contain a list of blocks open no scope, so that the scopes of blocks are top-level. With a checkpoint,
    opens only the scopes that its plan needs."""

    def __init__(self, model: torch.nn.Module, blocks: Blocks, checkpoint: Checkpoint | None = None):
        self.blocks = blocks
        only = None if checkpoint is None else set(checkpoint.scope_names())
        self._only = only
        self._opened: set[str] = set()
        self._handles: list[Any] = []
        self.group = ScopeGroup(checkpoint)
        self.group.model = weakref.ref(model)
        _refuse_scopes_on(model)
        calls = Counter(id(child) for module in model.modules() for child in module.children())
        self._shared = {module for module, count in calls.items() if count > 1}
        self._index_of = {id(block): (path, index)
                          for path, modules in blocks.items() for index, block in enumerate(modules)}
        self._block_names = {f"{path}.{index}" for path, index in self._index_of.values()}
        self._visited: set[int] = set()
        self._scope: Scope | None = None  # any one of the scopes; they share a group
        self._visit(model, "", "", None)
        if self._scope is not None:
            watch_model(model, self._scope)
        note_change()
        if only is not None and not only <= self._opened:
            self.remove()
            raise PlanError(f"the plan governs {min(only - self._opened)}, which this {type(model).__name__} does not have: "
                            f"its layers are {_names_of(blocks)}; was the plan made for another model?")

    def remove(self) -> None:
        """Removes the hooks from the model."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        end_group(self.group)
        note_change()

    def __enter__(self) -> BlockScopes:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _visit(self, module: torch.nn.Module, scope: str, name: str, parent: Scope | None) -> None:
        """Sets hooks on the module and on the modules in it. `scope` is the path of the innermost scope around the
        module. `parent` is the object of that scope, or None if the scope is not opened. `name` is the path from that
        scope to the module."""
        is_block = id(module) in self._index_of
        block, index = self._index_of.get(id(module), ("", NO_INDEX))
        if is_block:
            name = f"{block}.{index}"
        whole = _joined(scope, name)
        if self._is_scope(module, whole) and (self._only is None or whole in self._only):
            self._opened.add(whole)
            if id(module) not in self._visited:  # a module that two layers share opens only one scope
                parent = Scope(whole, block if is_block else name, index, self.group, None if is_block else parent)
                self._hook(module, parent, is_block)
            scope, name = whole, ""
        self._visited.add(id(module))
        for child_name, child in children_of(module):
            self._visit(child, scope, _joined(name, child_name), parent)

    def _is_scope(self, module: torch.nn.Module, whole: str) -> bool:
        if id(module) in self._index_of:
            return True
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)) or whole in self._block_names:
            return False  # lists are never called, and another module must not use a layer's name
        return not any(id(each) in self._index_of for each in module.modules())

    def _hook(self, module: torch.nn.Module, scope: Scope, is_block: bool) -> None:
        self._scope = scope
        self.group.module_of[scope.whole] = module
        # Our hooks must run after FSDP has gathered parameters and before it frees them.
        self._handles.append(module.register_forward_pre_hook(scope.enter))
        self._handles.append(module.register_forward_hook(scope.leave, prepend=True, always_call=True))
        if is_block or self._only is not None:
            watch_calls_inside(module, scope, self._shared)


def remove_scopes(model: torch.nn.Module) -> None:
    """Removes all scopes from the model, and the hooks of apply(). Also works on a copy of a model;
    BlockScopes.remove() removes only the scopes of the original."""
    remove_recorders(model)
    for module in model.modules():
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for key, hook in list(hooks.items()):
                if (scope := scope_of(hook)) is not None:
                    del hooks[key]
                    module._forward_hooks_always_called.pop(key, None)
                    end_group(scope.group)
    note_change()


def _refuse_scopes_on(model: torch.nn.Module) -> None:
    """Raises ValueError if the model already has scopes, because each call would open two scopes."""
    for name, module in model.named_modules():
        if any(scope_of(hook) for hook in module._forward_pre_hooks.values()):
            raise ValueError(f"{name or type(model).__name__} has scopes already; call "
                             "rematch.remove_scopes(model) first")


def _names_of(blocks: Blocks) -> str:
    return ", ".join(f"{path}.0 to {path}.{len(modules) - 1}" for path, modules in blocks.items())


def _refuse_others(model: torch.nn.Module, blocks: Blocks) -> None:
    known = {id(module) for module in model.modules()}
    for path, modules in blocks.items():
        if not modules:
            raise ValueError(f"blocks['{path}'] is empty; it must list the model's layers")
        for index, module in enumerate(modules):
            if id(module) not in known:
                raise ValueError(f"blocks['{path}'][{index}], a {type(module).__name__}, is not a module of this "
                                 f"{type(model).__name__}")


def _refuse_ungathered(model: torch.nn.Module, checkpoint: Checkpoint) -> None:
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "ds_id") and not checkpoint.is_gathered(parameter):
            raise Refused(f"{name} is a parameter of DeepSpeed ZeRO-3, whose content may be freed between forward and backward; "
                          "before rematch.scopes(), call checkpoint.gathered_by(lambda p: p.ds_status.name == 'AVAILABLE', "
                          "model.parameters())")


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def scopes(model: torch.nn.Module, checkpoint: Checkpoint | None = None, *,
           blocks: Blocks | None = None) -> BlockScopes:
    """Opens scopes around the parts of the model's forward pass to which plans refer, such as `layers.3` or
    `layers.3.attention`.

    Call this once per model. The scopes stay until remove(), or until the end of a `with` block. `blocks` names the
    lists of layers, if find_blocks() does not find them.

    With a checkpoint, only the scopes where its plan's regions begin or end are opened, which costs less. Another plan
    then needs new scopes. Other models may have scopes for other checkpoints. Those stay closed while this checkpoint
    is recorded, even if layers have the same names.

    Raises PlanError if the plan does not belong to this model. Raises ValueError if the layers do not belong to it, or
    if the model already has scopes."""
    model = unwrapped(model)
    blocks = find_blocks(model) if blocks is None else blocks
    if not blocks:
        raise ValueError(f"{type(model).__name__} has no list of equal layers; name them: "
                         "blocks={'layers': [model.first, model.second]}")
    _refuse_others(model, blocks)
    blocks = {path: [unwrapped(module) for module in modules] for path, modules in blocks.items()}
    if checkpoint is not None:
        require_checkpoint(checkpoint)
        _refuse_ungathered(model, checkpoint)
    return BlockScopes(model, blocks, checkpoint)
