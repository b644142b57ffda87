"""Checks models under fully_shard, which gathers a unit's parameters before its forward and backward, and frees them
afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

from rematch._library import Refused
from rematch._scope import modules_of_scopes
from rematch.checkpoint import Checkpoint


def is_fully_sharded(model: torch.nn.Module) -> bool:
    """Returns whether fully_shard was called on the model or on a module in it."""
    return any(_is_unit(module) for module in model.modules())


def refuse_split_regions(checkpoint: Checkpoint) -> None:
    """Raises Refused for a region that spans several units of fully_shard. Backward gathers each unit only for its own
    backward, so recompute of such a region would read freed parameters."""
    if "torch.distributed.fsdp" not in sys.modules:
        return
    for model, module_of in modules_of_scopes(checkpoint):
        unit_of = dict(units_in(model, None))
        for region in (region for shape in checkpoint.shapes() for region in shape["regions"]):
            first, last = region["first_scope"], region["last_scope"]
            ends = {name: module_of[name] for name in (first, last) if name in module_of}
            units = {unit_of[part] for end in ends.values() for part in end.modules() if part in unit_of}
            if len(units) > 1 and any(unit is not None and frees_parameters(unit) for unit in units):
                raise Refused(f"region {first if first == last else f'{first}..{last}'} spans several units of fully_shard, which "
                              "free their parameters after forward, so backward could not recompute the region; use a plan without "
                              "such regions, or fully_shard(..., reshard_after_forward=False)")


def _is_unit(module: torch.nn.Module) -> bool:
    sharding = sys.modules.get("torch.distributed.fsdp")
    return sharding is not None and isinstance(module, sharding.FSDPModule)


def units_in(module: torch.nn.Module, unit: Any) -> Iterator[tuple[torch.nn.Module, Any]]:
    """Yields each module with parameters of its own, and the unit that gathers them."""
    unit = module if _is_unit(module) else unit
    if any(True for _ in module.parameters(recurse=False)):
        yield module, unit
    for child in module.children():
        yield from units_in(child, unit)


def frees_parameters(unit: Any) -> bool:
    """Returns whether the unit frees its parameters after forward. Returns true if this release of torch does not
    say."""
    state = unit._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    return any(getattr(group, "post_forward_mesh_info", True) is not None for group in groups)
