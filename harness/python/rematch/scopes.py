"""Which modules are the model's layers, and scopes around their calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from rematch._scope import Scope, ScopeGroup, end_watch, is_of_scope, note_change, watch_calls_inside
from rematch.planning import Checkpoint, require_checkpoint

NO_INDEX = -1


def _unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside torch's data-parallel wrappers, whose names a plan does not have."""
    while isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        model = model.module
    return model


def find_blocks(model: torch.nn.Module) -> dict[str, list[torch.nn.Module]]:
    """The model's lists of layers by name: the outermost ModuleLists and Sequentials of two or more modules of one
    class which have parameters and children. A model that is such a list itself is named "layers"."""
    found: dict[str, list[torch.nn.Module]] = {}

    def visit(module: torch.nn.Module, path: str) -> None:
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and _is_block_list(list(module)):
            found[path or "layers"] = list(module)
            return
        for name, child in module.named_children():
            visit(child, f"{path}.{name}" if path else name)

    visit(_unwrapped(model), "")
    return found


def _is_block_list(modules: list[torch.nn.Module]) -> bool:
    if len(modules) < 2 or len({type(module) for module in modules}) != 1:
        return False
    return any(True for _ in modules[0].parameters()) and any(True for _ in modules[0].children())


class BlockScopes:
    """Opens a scope for each call of a block and of the modules in it, until remove().

    Modules that contain a list of blocks open none, so that blocks are top-level. With `only`, scopes of other names
    are not opened: each costs a call its two hooks."""

    def __init__(self, model: torch.nn.Module, blocks: dict[str, list[torch.nn.Module]], only: set[str] | None = None):
        self.blocks = blocks
        self._only = only
        self._opened: set[str] = set()
        self._handles: list[Any] = []
        self._group = ScopeGroup()
        _refuse_scopes_on(model)
        calls = Counter(id(child) for module in model.modules() for child in module.children())
        self._shared = {module for module, count in calls.items() if count > 1}
        self._index_of = {id(block): (path, index)
                          for path, modules in blocks.items() for index, block in enumerate(modules)}
        self._around_blocks = {".".join(path.split(".")[:count])
                               for path in blocks for count in range(path.count(".") + 2)} | {""}
        self._visit(model, "", "", "")
        note_change()
        if only is not None and not only <= self._opened:
            self.remove()
            raise ValueError(f"the plan governs {min(only - self._opened)}, which this {type(model).__name__} does not have: "
                             f"its layers are {_names_of(blocks)}; was the plan made for another model?")

    def remove(self) -> None:
        """Takes the hooks off the model."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        end_watch(self._group)
        note_change()

    def __enter__(self) -> BlockScopes:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _visit(self, module: torch.nn.Module, path: str, scope: str, name: str) -> None:
        """`scope` is around the module, `name` is the module's in it."""
        is_block = id(module) in self._index_of
        block, index = self._index_of.get(id(module), ("", NO_INDEX))
        if is_block:
            name = f"{block}.{index}"
        whole = _joined(scope, name)
        is_scope = is_block or (path not in self._around_blocks
                                and not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)))
        if is_scope and (self._only is None or whole in self._only):
            self._hook(module, Scope(whole, block if is_block else name, index, self._group), is_block)
            self._opened.add(whole)
            scope, name = whole, ""
        for child_name, child in module.named_children():
            self._visit(child, _joined(path, child_name), scope, _joined(name, child_name))

    def _hook(self, module: torch.nn.Module, scope: Scope, is_block: bool) -> None:
        # Inside the hooks of FSDP: behind its gather, before its free.
        self._handles.append(module.register_forward_pre_hook(scope.enter))
        self._handles.append(module.register_forward_hook(scope.leave, prepend=True, always_call=True))
        if is_block or self._only is not None:
            watch_calls_inside(module, scope, self._shared)


def remove_scopes(model: torch.nn.Module) -> None:
    """Takes all scopes off the model. A copy of a model with scopes has scopes, which no BlockScopes removes."""
    for module in model.modules():
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for key in [key for key, hook in hooks.items() if is_of_scope(hook)]:
                del hooks[key]
                module._forward_hooks_always_called.pop(key, None)
    note_change()


def _refuse_scopes_on(model: torch.nn.Module) -> None:
    """Scopes on scopes would name each layer twice."""
    for name, module in model.named_modules():
        if any(is_of_scope(hook) for hook in module._forward_pre_hooks.values()):
            raise ValueError(f"{name or type(model).__name__} has scopes already; take them off first, by "
                             "rematch.remove_scopes(model)")


def _names_of(blocks: dict[str, list[torch.nn.Module]]) -> str:
    return ", ".join(f"{path}.0 to {path}.{len(modules) - 1}" for path, modules in blocks.items())


def _refuse_others(model: torch.nn.Module, blocks: dict[str, list[torch.nn.Module]]) -> None:
    known = {id(module) for module in model.modules()}
    for path, modules in blocks.items():
        if not modules:
            raise ValueError(f"blocks['{path}'] is empty; it must list the model's layers")
        for index, module in enumerate(modules):
            if id(module) not in known:
                raise ValueError(f"blocks['{path}'][{index}], a {type(module).__name__}, is no module of this "
                                 f"{type(model).__name__}")


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def scopes(model: torch.nn.Module, checkpoint: Checkpoint | None = None, *,
           blocks: dict[str, list[torch.nn.Module]] | None = None) -> BlockScopes:
    """Names the stretches of the model's forward pass that a plan speaks of: `layers.3`, `layers.3.attention`.

    Once per model; the scopes stay until remove(), or for a `with` block, and a model that has them is refused. With a
    checkpoint only the scopes that its plan's regions begin and end at are opened, which costs less; other plans then
    need scopes of their own. `blocks` names the lists of layers where find_blocks() does not find them. Raises
    ValueError for layers or a plan that are not this model's."""
    model = _unwrapped(model)
    blocks = find_blocks(model) if blocks is None else blocks
    if not blocks:
        raise ValueError(f"{type(model).__name__} has no list of equal layers; name them: "
                         "blocks={'layers': [model.first, model.second]}")
    _refuse_others(model, blocks)
    only = None
    if checkpoint is not None:
        require_checkpoint(checkpoint)
        only = {region[end] for region in checkpoint.plan["regions"] for end in ("first_scope", "last_scope")}
    return BlockScopes(model, blocks, only)
