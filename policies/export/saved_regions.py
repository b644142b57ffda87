"""@TITLE@

Made by `rematch export --to remat`; needs torch_remat 0.2.2. @CALL@

Loss and gradients keep their bits."""

import functools

import torch
import torch_remat

# Every checkpointed module, and the parts of it that recompute skips. True: an op after the part reads its result
# again.
MODULES = {
@MODULES@}

# Bytes of one step with the plan, minus the bytes held before the step. check_plan.py compares a run with them.
PREDICTED = {
@PREDICTED@}

# Two names of one op. The first appears under a dispatch mode.
OTHER_NAMES = {"aten::_reshape_alias": "aten::view", "aten::add_.Tensor": "aten::add.Tensor"}


class Mismatch(RuntimeError):
    """The model does not have the modules that the plan was made for."""


def find_module(model, name):
    """Returns the module at this path of attribute names. In a Sequential a number is a position."""
    module = model
    for part in name.split("."):
        children = dict(module.named_children())
        if part not in children and part.isdigit() and int(part) < len(children):
            part = list(children)[int(part)]
        if part not in children:
            raise Mismatch(f"the plan checkpoints {name}, and the model has no such module: was it wrapped before?")
        module = children[part]
    return module


def run_saved(region, is_read_again, *args, **kwargs):
    result = region(*args, **kwargs)
    if is_read_again:
        leaves = result if isinstance(result, (tuple, list)) else (result,)
        torch_remat.recompute_needs_tensor(*(leaf for leaf in leaves if isinstance(leaf, torch.Tensor)))
    return result


def apply(model):
    """Checkpoints the model's modules as the plan says. Returns a function that takes it back."""
    changed = []

    def change(module, forward):
        module.forward = forward
        changed.append(module)

    found = {name: find_module(model, name) for name in MODULES}
    for name, module in found.items():
        for part, is_read_again in MODULES[name].items():
            inner = find_module(module, part)
            region = torch_remat.region(inner.forward, part, recompute=False)
            change(inner, functools.partial(run_saved, region, is_read_again))
        change(module, torch_remat.checkpoint(region_name=name)(module.forward))

    def undo():
        for module in changed:
            del module.forward

    return undo
