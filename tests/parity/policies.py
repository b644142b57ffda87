"""The named policies of policies/catalogue, as a Python user writes them: torch.utils.checkpoint, non-reentrant, with
selective contexts."""

import contextlib
import dataclasses

import torch
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    noop_context_fn,
    set_checkpoint_early_stop,
)

aten = torch.ops.aten

# The only op of class attention_forward that these models run.
ATTENTION = [aten._scaled_dot_product_flash_attention_for_cpu.default]
MATMUL = [aten.mm.default, aten.addmm.default, aten.bmm.default]
COMPUTE = [
    *MATMUL,
    aten._scaled_mm.default,
    aten.convolution.default,
    aten.convolution_overrideable.default,
    aten.upsample_bilinear2d.default,
    aten.upsample_bilinear2d.vec,
    *ATTENTION,
]


def no_block(layer, num_layers):
    return False


def every_block(layer, num_layers):
    return True


@dataclasses.dataclass
class Stretch:
    layers: list
    chosen: bool


class Regions:
    """A policy: which layers are checkpointed, how many layers form a region, and which ops a region keeps."""

    def __init__(self, chosen=every_block, save=(), run=1, is_root=False, early_stop=True):
        self.chosen = chosen
        self.save = frozenset(save)
        self.run = run
        self.is_root = is_root
        self.early_stop = early_stop
        # Called before each op in a selective context. make_golden.py sets it, so that these ops are counted too.
        self.before_op = lambda: None

    def contexts(self):
        """Like create_selective_checkpoint_contexts for a list of ops, but also calls before_op."""

        def policy(ctx, op, *args, **kwargs):
            self.before_op()
            saved = op in self.save
            return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    def forward_context(self):
        return contextlib.nullcontext() if self.early_stop else set_checkpoint_early_stop(False)

    def root(self, function, *inputs):
        return self.checkpointed(function, *inputs) if self.is_root else function(*inputs)

    def stretches(self, num_layers):
        """Divides the layers into groups: up to `run` consecutive chosen layers, or one layer that is not chosen."""
        runs = []
        for layer in range(num_layers):
            chosen = not self.is_root and self.chosen(layer, num_layers)
            if chosen and runs and runs[-1].chosen and len(runs[-1].layers) < self.run:
                runs[-1].layers.append(layer)
            else:
                runs.append(Stretch([layer], chosen))
        return runs

    def blocks(self, stretch, function, moved, *context):
        """Calls `function(layers, moved, *context)`, with checkpointing if the group is chosen. `moved` is a list with
        the only reference to the input, so that a block can free the input."""
        layers = stretch.layers
        if not stretch.chosen:
            return function(layers, moved, *context)
        return self.checkpointed(
            lambda x, *inputs: function(layers, [x], *inputs), moved.pop(), *context
        )

    def checkpointed(self, function, *inputs):
        return checkpoint(
            function,
            *inputs,
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=self.contexts if self.save else noop_context_fn,
        )


POLICIES = {
    "none": Regions(no_block),
    "full": Regions(),
    "full_nostop": Regions(early_stop=False),
    "nth_first(2)": Regions(lambda layer, _: layer % 2 == 0),
    "nth_last(2)": Regions(lambda layer, _: (layer + 1) % 2 == 0),
    "skip_nth(2)": Regions(lambda layer, _: layer % 2 != 0),
    "first_n(3)": Regions(lambda layer, _: layer < 3),
    "last_n(3)": Regions(lambda layer, num_layers: layer >= num_layers - 3),
    "skip_list([0,2])": Regions(lambda layer, _: layer not in (0, 2)),
    "only_list([1])": Regions(lambda layer, _: layer == 1),
    "attn_only": Regions(save=ATTENTION),
    "save_mm": Regions(save=MATMUL),
    "save_compute": Regions(save=COMPUTE),
    "segments(2)": Regions(run=2),
    "root": Regions(is_root=True),
}
