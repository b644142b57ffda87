"""Tests the order of the kernels that Inductor makes from a planned graph. Peaks are measured with torch's profiler.
The kernels themselves are left out, because compiling them takes minutes and they allocate nothing."""

import contextlib
import dataclasses
import importlib.util
import io
import unittest
import unittest.mock

import rematch
import torch
from compiled_peaks import leave_out_kernels, model_of, peak_of, phase_peaks
from rematch.compiled.graph_plans import GraphPlans
from rematch.compiled.kernel_order import Arrangement

MODELS = ("stack", "head", "attention")
BATCH_BYTES = 4 * 64 * 64 * 4  # the batch of model "stack"; only budgets and predicted peaks include it
# Bert's attention has dropout, so many of its kernels share a C++ function. ViT saves copies of a convolution's inputs.
# Mixtral concatenates gradients at its peak.
ZOO = ("zoo.bert", "zoo.vit", "wide.mixtral")


def compiled(name, policy, options_of=lambda partitioner: partitioner.inductor_options()):
    """Compiles a model under a policy. Returns the bytes that a step adds at the peaks of forward and backward, and the
    partitioner."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, step, _ = model_of(name)
    step().backward()  # fills the model's caches
    partitioner = rematch.partitioner(policy)
    model.compile(options=options_of(partitioner))
    step().backward()
    return phase_peaks(model, step), partitioner


class KernelOrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from torch._functorch import config as functorch_config
        from torch._inductor import config as inductor_config
        functorch_config.enable_autograd_cache = inductor_config.fx_graph_cache = False
        leave_out_kernels()
        torch.set_num_threads(1)

    def require_peaks_of_kernels(self, name):
        peaks, partitioner = compiled(name, "full")
        (option,) = partitioner.chosen
        forward, backward = partitioner.kernel_order.peaks
        for peak, expected in zip(peaks, (forward, backward + option.peaks.outside), strict=True):
            self.assertLess(abs(peak - expected), 0.01 * expected)

    def test_measured_peaks_are_those_of_the_kernels(self):
        for name in MODELS:
            with self.subTest(name):
                self.require_peaks_of_kernels(name)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_measured_peaks_of_models_of_transformers_are_those_of_the_kernels(self):
        for name in ZOO:
            with self.subTest(name):
                self.require_peaks_of_kernels(name)

    def test_the_peak_is_lower_than_in_inductors_own_order(self):
        ordered, partitioner = compiled("stack", "full")
        own, _ = compiled("stack", "full", lambda partitioner: {"custom_partitioner_fn": partitioner})
        self.assertLess(max(ordered), 0.95 * max(own))
        self.assertLess(abs(max(ordered) - partitioner.chosen[0].peaks.step()), 0.01 * max(ordered))

    def test_the_budget_is_kept_if_kernels_need_more_than_predicted(self):
        def too_low(plans, found):
            option = option_of(plans, found)
            peaks = option.peaks
            return dataclasses.replace(option, peaks=dataclasses.replace(peaks, forward=peaks.forward * 4 // 5,
                                                                         backward=peaks.backward * 4 // 5))

        option_of = GraphPlans._option
        torch._dynamo.reset()
        model, step, _ = model_of("stack")
        budget, said = int(2.9 * 2**20), io.StringIO()
        with unittest.mock.patch.object(GraphPlans, "_option", too_low), contextlib.redirect_stderr(said):
            rematch.compile(model, step, budget=budget, optimizer="none")
        first = rematch.compiled_plan_of(model)
        step().backward()
        plan = rematch.compiled_plan_of(model)
        measured = peak_of(model, step) + sum(parameter.nbytes for parameter in model.parameters()) + BATCH_BYTES
        self.assertLessEqual(measured, budget)
        self.assertLess(abs(measured - plan.predicted_peak_allocated_bytes), 0.01 * measured)
        self.assertNotEqual(plan.graphs[0].policy, first.graphs[0].policy)
        self.assertNotEqual(plan.uuid, first.uuid)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_kernels_are_split_until_the_peak_fits(self):
        arrangements = []

        class Watched(Arrangement):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                arrangements.append((self, self.peak, len(self._nodes)))

        with unittest.mock.patch("rematch.compiled.kernel_order.Arrangement", Watched), \
                unittest.mock.patch("rematch.compiled.kernel_order.limit_of", lambda _: 1):
            peaks, _ = compiled("zoo.llama", "full")
        backward, first_peak, num_kernels = arrangements[-1]
        self.assertLess(backward.peak, first_peak)
        self.assertGreater(len(backward._nodes), num_kernels)
        self.assertLess(abs(max(peaks) - backward.peak), 0.01 * backward.peak)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_kernels_with_several_inner_loops_are_split(self):
        """For the CPU, Inductor computes a softmax, its dropout and the dropout of the other layer's values in one kernel,
        with an inner loop for each. It then holds all three results."""
        peaks, partitioner = compiled("wide.bert", "none")
        (option,) = partitioner.chosen
        self.assertLessEqual(partitioner.kernel_order.peaks[0], option.peaks.forward)
        self.assertLess(abs(peaks[0] - option.peaks.forward), 0.01 * peaks[0])


if __name__ == "__main__":
    unittest.main()
