"""Predicts what DistributedDataParallel and fully_shard add to a compiled step.

DistributedDataParallel copies gradients into buckets, which it allocates before the first step.

fully_shard shards gradients, and gathers the parameters of a unit, such as a layer, before the unit's forward and
before its backward. In backward, up to three copies of a unit's size are in memory: the parameters of the unit that
runs, those of the next unit, which are gathered ahead, and the gradients of the previous unit, which are being
reduced."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from rematch._sharding import frees_parameters, units_in
from rematch.compiled.graph_plans import Option

MAX_UNITS_IN_MEMORY = 3


def gathered_bytes(model: torch.nn.Module) -> int:
    """Returns the bytes of gathered parameters at the peak of backward: 0 without fully_shard."""
    bytes_of_unit: dict[Any, int] = defaultdict(int)
    for module, unit in units_in(model, None):
        if unit is not None:
            bytes_of_unit[unit] += sum(parameter.numel() * _gathered_size(parameter, unit)
                                       for parameter in module.parameters(recurse=False))
    kept = sum(size for unit, size in bytes_of_unit.items() if not frees_parameters(unit))
    freed = [size for unit, size in bytes_of_unit.items() if frees_parameters(unit)]
    return kept + sum(sorted(freed)[-MAX_UNITS_IN_MEMORY:])


def bucket_bytes(model: torch.nn.Module) -> int:
    """Returns the bytes of DistributedDataParallel's buckets."""
    return sum(parameter.numel() * parameter.element_size() for module in model.modules()
               if isinstance(module, torch.nn.parallel.DistributedDataParallel)
               for parameter in module.parameters() if parameter.requires_grad)


def _gathered_size(parameter: torch.Tensor, unit: Any) -> int:
    """Returns the bytes of one element of the gathered parameter."""
    state = unit._get_fsdp_state()
    policy = getattr(state, "_mp_policy", None)
    dtype = getattr(policy, "param_dtype", None)
    return torch.empty((), dtype=dtype).element_size() if dtype is not None else parameter.element_size()


def sharded_ratio(model: torch.nn.Module) -> float:
    """Returns the share of all trained parameters that this rank holds: 1 without sharding."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    total = sum(parameter.numel() for parameter in trained)
    held = sum(parameter._local_tensor.numel() if hasattr(parameter, "_local_tensor") else parameter.numel()
               for parameter in trained)
    return held / max(1, total)


def with_sharded_gradients(options: Sequence[Option], ratio: float) -> list[Option]:
    """Returns the options with the bytes of gradients that stay after a graph's backward."""
    return [dataclasses.replace(option, peaks=dataclasses.replace(
        option.peaks, gradients=round(option.peaks.gradients * ratio))) for option in options]
