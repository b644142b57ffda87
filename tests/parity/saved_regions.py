"""The policies remat(save=[...]) and remat_titan(save=[...]) of policies/catalogue, as a user of torch_remat writes them:
one checkpoint around each block, and a region around each call that must not run again. Needs torch_remat 0.2.2."""

import torch_remat

import layers
from policies import Regions

VERSION = "0.2.2"


class SavedRegions(Regions):
    """`save` names the parts of a block whose results are saved, such as "attention" or "self_attention.core". `unread`
    names saved parts whose results are not read during recompute."""

    def __init__(self, *save, unread=()):
        super().__init__()
        self.saved, self.unread = frozenset(save), frozenset(unread)

    def forward_context(self):
        return layers.parts_run_by(self.run_part)

    def run_part(self, name, function, *inputs):
        if name not in self.saved:
            return function(*inputs)
        result = torch_remat.region(function, name, recompute=False)(*inputs)
        # torch_remat detects only reads inside modules. This result is read outside of modules, so torch_remat must be
        # told that recompute needs the result.
        if name not in self.unread:
            torch_remat.recompute_needs_tensor(result)
        return result

    def checkpointed(self, function, *inputs):
        return torch_remat.checkpoint()(function)(*inputs)


def saving(*regions):
    return f"remat(save=[{','.join(regions)}])", SavedRegions(*regions)


# Maps a region of torchtitan to the parts of the block that the region contains.
TITAN_REGIONS = {
    "attention.qkv_linear.wqkv.linear": ["attention.wq", "attention.wk", "attention.wv"],
    "attention.inner_attention": ["attention.core"],
    "attention.wo.linear": ["attention.wo"],
    "feed_forward.w13.linear": ["ffn.w1", "ffn.w3"],
    "feed_forward.w2.linear": ["ffn.w2"],
}


def saving_as_titan(*regions):
    """Returns the policy as torchtitan defines it: the add that ends a block is always saved, so recompute does not
    need its input, the result of w2."""
    parts = [part for region in regions for part in TITAN_REGIONS[region]]
    saved_regions = SavedRegions("last_add", *parts, unread=("last_add", "ffn.w2"))
    return f"remat_titan(save=[{','.join(regions)}])", saved_regions


SAVED_REGIONS = {
    "llama_small": dict([
        saving_as_titan(),
        saving_as_titan(*TITAN_REGIONS),
        saving_as_titan("attention.inner_attention", "attention.wo.linear"),
        saving_as_titan("feed_forward.w13.linear"),
        saving_as_titan("feed_forward.w2.linear"),
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
