"""PyTorch's own options for a model: checkpointing of layers, with or without a list of ops to save, and the memory
budget of its compiler's partitioner. Runs each option, and counts its repeated ops by name and shape."""

import contextlib
import functools
from collections import Counter

import torch
import torch._dynamo
import torch._functorch.config
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts, noop_context_fn

from fronts.pricing import CountedOps, ops_of_graph
from torch_alone.fake_step import as_with_data

aten = torch.ops.aten
ATTENTION = [aten._scaled_dot_product_flash_attention_for_cpu.default, aten._scaled_dot_product_flash_attention.default,
             aten._scaled_dot_product_efficient_attention.default]
MATMULS = [aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default]
# Budget 0 is left out, because it needs more memory than no checkpointing.
BUDGETS = (0.1, 0.3, 0.5, 0.6, 0.7, 1)


def every_second_matmul():
    """Returns torchtitan's save list: attention, and the first, third, fifth, ... matmul."""
    seen = {False: 0, True: 0}  # number of matmuls seen in forward (False) and in recompute (True)

    def policy(context, func, *_, **__):
        if func in MATMULS:
            seen[context.is_recompute] += 1
            is_saved = seen[context.is_recompute] % 2 == 1
        else:
            is_saved = func in ATTENTION
        return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def saving(ops):
    return functools.partial(create_selective_checkpoint_contexts, ops)


# Maps each save list to its context function.
LISTS = {"attention": saving(ATTENTION), "matmuls": saving(MATMULS), "both": saving(ATTENTION + MATMULS),
         "every second matmul": every_second_matmul}


@contextlib.contextmanager
def checkpointed(layers, contexts, draws_random):
    # torch.compile does not support noop_context_fn, although it is the default. So it is not passed.
    of_contexts = {} if contexts is noop_context_fn else {"context_fn": contexts}
    for layer in layers:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=draws_random,
                                          **of_contexts)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def checkpointed_offers(blocks, draws_random):
    """Yields (family, name, function that applies it): checkpointing of every layer, of every second layer, and of
    every layer with each save list."""
    layers = [layer for of_list in blocks.values() for layer in of_list]
    second = [layer for of_list in blocks.values() for layer in of_list[::2]]
    yield "full", "full", functools.partial(checkpointed, layers, noop_context_fn, draws_random)
    yield "full", "full, every second layer", functools.partial(checkpointed, second, noop_context_fn, draws_random)
    for name, contexts in LISTS.items():
        yield "lists", f"list: {name}", functools.partial(checkpointed, layers, contexts, draws_random)


def counted_step(model, step):
    model.zero_grad(set_to_none=True)
    with CountedOps() as counted:
        step().backward()
    model.zero_grad(set_to_none=True)
    return counted.counts


@contextlib.contextmanager
def within_budget(step, budget):
    """Yields the compiled step and the counts of the ops that the partitioner repeats. The step runs its graphs without
    code generation. The counts are complete after one run of the step."""
    recomputed = Counter()

    def partition(joint, inputs, **keywords):
        before = ops_of_graph(joint)
        parts = min_cut_rematerialization_partition(joint, inputs, **keywords)
        recomputed.update(ops_of_graph(parts[0]) + ops_of_graph(parts[1]) - before)
        return parts

    def run():
        # Without as_with_data(), transformers would build a different attention mask under torch.compile, and would
        # also repeat keys and values.
        with torch._functorch.config.patch(activation_memory_budget=budget), as_with_data():
            return compiled()

    torch._dynamo.reset()
    compiled = torch.compile(step, backend=aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop,
                                                        partition_fn=partition))
    yield run, recomputed
    torch._dynamo.reset()
