"""The policy remat(save=[...]) of policies/catalogue, as a user of torch_remat writes it: one checkpoint around each
block, and a region around each call that must not run again. Needs torch_remat 0.2.2."""

import torch_remat

import layers
from policies import Regions

VERSION = "0.2.2"


class SavedRegions(Regions):
    """`save` names scopes below a block, such as "attention" or "self_attention.core"."""

    def __init__(self, *save):
        super().__init__()
        self.saved = frozenset(save)

    def forward_context(self):
        return layers.parts_run_by(self.run_part)

    def run_part(self, name, function, *inputs):
        if name not in self.saved:
            return function(*inputs)
        result = torch_remat.region(function, name, recompute=False)(*inputs)
        # Outside modules, torch_remat does not see which ops read a tensor. The op that reads this result is outside,
        # so torch_remat must be told that recompute needs the result.
        torch_remat.recompute_needs_tensor(result)
        return result

    def checkpointed(self, function, *inputs):
        return torch_remat.checkpoint()(function)(*inputs)


def saving(*regions):
    return f"remat(save=[{','.join(regions)}])", SavedRegions(*regions)


SAVED_REGIONS = {
    "llama_small": dict([
        saving(),
        saving("attention"),
        saving("ffn"),
        saving("attention.core"),
        saving("attention.output", "ffn"),
        saving("attention", "ffn"),
    ]),
    "wan_small": dict([
        saving(),
        saving("self_attention"),
        saving("ffn"),
        saving("self_attention.core", "cross_attention.core"),
        saving("cross_attention", "ffn"),
        saving("self_attention", "cross_attention", "ffn"),
    ]),
}
