"""@TITLE@

Made by `rematch export --to remat`; needs torch_remat 0.2.2. @CALL@

Loss and gradients keep their bits."""

import functools

import torch
import torch_remat

# Maps each checkpointed module to the submodules that recompute skips. A submodule's value is True if recompute reads
# its result later.
MODULES = {
@MODULES@}

# Predicted bytes of one step with the plan, without the bytes held before the step. check_plan.py compares them with a
# run.
PREDICTED = {
@PREDICTED@}

@APPLY@


def run_saved(region, is_read_again, *args, **kwargs):
    result = region(*args, **kwargs)
    if is_read_again:
        leaves = result if isinstance(result, (tuple, list)) else (result,)
        torch_remat.recompute_needs_tensor(*(leaf for leaf in leaves if isinstance(leaf, torch.Tensor)))
    return result


def forwards(name, module):
    """Returns the modules that are changed for a checkpointed module, each with its new forward."""
    changes = []
    for part, is_read_again in MODULES[name].items():
        inner = find_module(module, part)
        region = torch_remat.region(inner.forward, part, recompute=False)
        changes.append((inner, functools.partial(run_saved, region, is_read_again)))
    return [*changes, (module, torch_remat.checkpoint(region_name=name)(module.forward))]
