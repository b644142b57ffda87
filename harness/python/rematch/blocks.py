"""Finds the layers of a model, which are the units that a plan governs."""

from __future__ import annotations

from collections.abc import Iterator

import torch

Blocks = dict[str, list[torch.nn.Module]]

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
_FSDP_INSIDE = "_fsdp_wrapped_module"


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """Returns the module inside torch's data-parallel wrappers, which do not appear in the names of a plan."""
    while True:
        if isinstance(module, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
            module = module.module
        elif isinstance(inside := module._modules.get(_FSDP_INSIDE), torch.nn.Module):
            module = inside
        else:
            return module


def children_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yields the module's children by name, each without its wrappers."""
    for name, child in module.named_children():
        yield name, unwrapped(child)


def find_blocks(model: torch.nn.Module) -> Blocks:
    """Returns the model's lists of layers by name, in the order of its modules. These lists are the outermost
    ModuleLists, ModuleDicts and Sequentials of two or more modules that have parameters and children.

      - Modules of a Sequential or a ModuleDict must be of one class, because such containers also hold parts that are
        not layers.
      - A list of towers, such as a vision and a text encoder, is skipped; the lists of layers in the towers are taken
        instead.
      - A module outside of these lists is also a layer if it consists of the same parts as the layers in the lists. An
        example is the middle of a U-Net.
      - If no list has two modules, a list with a single module is taken, because that module may run many times.
      - If the model itself is a list, the list is named "layers"."""
    return choose_blocks(model)[0]


def choose_blocks(model: torch.nn.Module) -> tuple[Blocks, Blocks]:
    """Returns two dicts of lists by name: the lists that find_blocks() returns, and the other lists that a caller may
    choose."""
    model = unwrapped(model)
    name_of = {module: name for name, module in model.named_modules()}
    for min_size in (2, 1):
        passed_over: Blocks = {}
        taken = _blocks_in(model, "", min_size, passed_over)
        if taken:
            break
    for modules in taken.values():
        for module in modules:
            for name, child in children_of(module):
                passed_over |= _blocks_in(child, f"{name_of[module]}.{name}", 2, passed_over)
    return taken, passed_over


def _blocks_in(module: torch.nn.Module, path: str, min_size: int, passed_over: Blocks) -> Blocks:
    layers = _layers_of(module)
    is_one_layer_repeated = len(layers) == 1 and len(module._modules) > len(list(module.children()))
    if len(layers) >= min_size or is_one_layer_repeated:
        if not _is_list_of_towers(layers):
            return {path or "layers": layers}
        passed_over[path] = layers
    found: dict[torch.nn.Module, Blocks] = {}
    for name, child in children_of(module):
        # In a list of stages, a stage may have a single layer.
        is_stage = isinstance(module, torch.nn.ModuleList) and isinstance(child, torch.nn.ModuleList)
        found[child] = _blocks_in(child, f"{path}.{name}" if path else name, 1 if is_stage else min_size, passed_over)
    parts = {type(part) for child in found if isinstance(child, _CONTAINERS) for blocks in found[child].values()
             for block in blocks for part in block.modules()}
    taken: Blocks = {}
    for (name, child), blocks in zip(children_of(module), found.values(), strict=True):
        is_layer = not isinstance(child, _CONTAINERS) and {type(layer) for each in blocks.values() for layer in each} <= parts
        taken |= {f"{path}.{name}" if path else name: [child]} if blocks and is_layer else blocks
    return taken


def _layers_of(module: torch.nn.Module) -> list[torch.nn.Module]:
    """Returns the layers in a container, each once. Returns an empty list if the container is not a list of layers."""
    if not isinstance(module, _CONTAINERS):
        return []
    children = [child for _, child in children_of(module)]
    layers = [child for child in children if _is_layer(child)]
    if isinstance(module, torch.nn.ModuleList):
        return layers
    has_other_parts = len(layers) != len(children) or len({type(layer) for layer in layers}) > 1
    return [] if has_other_parts else layers


def _is_layer(module: torch.nn.Module) -> bool:
    if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
        return False  # a list is never called, so it cannot be a layer
    return any(True for _ in module.parameters()) and any(True for _ in module.children())


def _is_list_of_towers(layers: list[torch.nn.Module]) -> bool:
    """Returns whether the modules are towers, such as a vision and a text encoder. Each tower contains a list of layers
    that is longer than `layers`, and different towers share no class of layers. The blocks of a U-Net are not towers,
    because they share classes of layers."""
    if len(layers) < 2 or len({type(layer) for layer in layers}) < len(layers):
        return False
    lists_of = [[_layers_of(each) for each in tower.modules()] for tower in layers]
    kinds = [kind for lists in lists_of for kind in {type(layer) for each in lists for layer in each}]
    return all(max(map(len, lists)) > len(layers) for lists in lists_of) and len(kinds) == len(set(kinds))
