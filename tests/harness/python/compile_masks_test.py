"""Tests that compiled graphs save boolean masks as bytes, which Inductor's kernels for the CPU store faster."""

import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.graph_plans import Option, PhasePeaks
from rematch.compiled.partitioner import Partitioner
from torch._dynamo.backends.debugging import boxed_nop
from torch._inductor.compile_fx import compile_fx


class SavesAll(Partitioner):
    """Saves the inputs and all results of forward that are booleans. Has the types of what forward saved."""

    def __init__(self, *, fuses=True):
        super().__init__(lambda joint: self._all_of(joint, fuses), f"all {fuses}")
        self.saved_types = []

    def _all_of(self, joint, fuses):
        masks = [node for op in joint.forward for node in joint.results(op) if node.meta["val"].dtype == torch.bool]
        saved = tuple(joint.order[node] for node in (*joint.inputs, *masks))
        return Option("all", saved, False, PhasePeaks(0, 0, 0, 0, 0), 0, 0, fuses)

    def __call__(self, gm, joint_inputs, **kwargs):
        forward, backward = super().__call__(gm, joint_inputs, **kwargs)
        results = forward.graph.find_nodes(op="output")[0].args[0][kwargs["num_fwd_outputs"]:]
        self.saved_types = [node.meta["val"].dtype for node in results if node.op != "placeholder"]
        return forward, backward


def run(function, x, partitioner=None):
    """Runs forward and backward of the function, compiled under the partitioner. Leaves out Inductor's lowering, so
    that the compiled graphs have the bits of eager ops. Returns the results and the gradient."""
    torch._dynamo.reset()
    x = x.clone().requires_grad_()

    def backend(module, inputs):
        return compile_fx(module, inputs, inner_compile=lambda graph, inputs, **_: boxed_nop(graph, inputs),
                          config_patches={"custom_partitioner_fn": partitioner, "fx_graph_cache": False})
    results = (torch.compile(function, backend=backend) if partitioner else function)(x)
    results[0].sum().backward()
    return *results, x.grad


class ReadsSortedMask(torch.autograd.Function):
    """Multiplies by a mask. Its backward sorts the mask, which is no kernel of Inductor."""

    @staticmethod
    def forward(context, x):
        mask = x > 0
        context.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(context, gradient):
        (mask,) = context.saved_tensors
        return gradient * mask.sort(dim=0, stable=True).values


class SavedMasksTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(64, 64)

    def saved_types(self, function, **keywords):
        """Returns the types of what the function saves, after comparing its results with those of eager ops."""
        partitioner = SavesAll(**keywords)
        for result, expected in zip(run(function, self.x, partitioner), run(function, self.x), strict=True):
            self.assertTrue(torch.equal(result, expected))
        return partitioner.saved_types

    def test_a_mask_is_saved_as_bytes(self):
        self.assertEqual(self.saved_types(lambda x: (torch.where(x > 0, x.sin(), 0.0),)), [torch.uint8])

    def test_a_mask_with_several_readers_is_saved_once(self):
        def function(x):
            mask = x > 0
            return (torch.where(mask, x.sin(), x.cos()) * mask,)
        self.assertEqual(self.saved_types(function), [torch.uint8])

    def test_a_mask_of_the_program_is_saved_as_it_is(self):
        def function(x):
            mask = x > 0
            return torch.where(mask, x.sin(), 0.0), mask
        self.assertEqual(self.saved_types(function), [torch.bool])

    def test_a_mask_that_an_extern_kernel_of_forward_reads_is_saved_as_it_is(self):
        def function(x):
            mask = x > 0
            return torch.where(mask, x.sin(), 0.0), mask.sort(dim=0, stable=True).indices
        self.assertEqual(self.saved_types(function), [torch.bool])

    def test_a_mask_that_an_extern_kernel_of_backward_reads_is_saved_as_it_is(self):
        self.assertEqual(self.saved_types(lambda x: (ReadsSortedMask.apply(x),)), [torch.bool])

    def test_backends_without_kernels_save_masks_as_they_are(self):
        self.assertEqual(self.saved_types(lambda x: (torch.where(x > 0, x.sin(), 0.0),), fuses=False), [torch.bool])


if __name__ == "__main__":
    unittest.main()
