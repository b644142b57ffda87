"""Tests the order of the kernels that Inductor makes from a planned graph. Peaks are measured with torch's profiler.
The kernels themselves are left out, because compiling them takes minutes and they allocate nothing."""

import importlib.util
import unittest
import unittest.mock

import rematch
import torch
from compiled_peaks import leave_out_kernels, model_of, peak_of
from rematch.compiled.kernel_order import Arrangement

MODELS = ("stack", "head")


def compiled(name, policy, options_of=lambda partitioner: partitioner.inductor_options()):
    """Compiles a model under a policy. Returns the bytes that a step adds at its peak, and the partitioner."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, step, _ = model_of(name)
    step().backward()  # fills the model's caches
    partitioner = rematch.partitioner(policy)
    model.compile(options=options_of(partitioner))
    step().backward()
    return peak_of(model, step), partitioner


class KernelOrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from torch._functorch import config as functorch_config
        from torch._inductor import config as inductor_config
        functorch_config.enable_autograd_cache = inductor_config.fx_graph_cache = False
        leave_out_kernels()
        torch.set_num_threads(1)

    def test_measured_peaks_are_those_of_the_kernels(self):
        for name in MODELS:
            with self.subTest(name):
                peak, partitioner = compiled(name, "full")
                (option,) = partitioner.chosen
                forward, backward = partitioner.kernel_order.peaks
                expected = max(forward, backward + option.peaks.outside)
                self.assertLess(abs(peak - expected), 0.01 * expected)

    def test_the_peak_is_lower_than_in_inductors_own_order(self):
        ordered, partitioner = compiled("stack", "full")
        own, _ = compiled("stack", "full", lambda partitioner: {"custom_partitioner_fn": partitioner})
        self.assertLess(ordered, 0.95 * own)
        self.assertLess(abs(ordered - partitioner.chosen[0].peaks.step()), 0.01 * ordered)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_kernels_are_split_until_the_peak_fits(self):
        arrangements = []

        class Watched(Arrangement):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                arrangements.append((self, self.peak, len(self._nodes)))

        with unittest.mock.patch("rematch.compiled.kernel_order.Arrangement", Watched), \
                unittest.mock.patch("rematch.compiled.kernel_order.limit_of", lambda _: 1):
            peak, partitioner = compiled("zoo.llama", "full")
        backward, first_peak, num_kernels = arrangements[-1]
        self.assertLess(backward.peak, first_peak)
        self.assertGreater(len(backward._nodes), num_kernels)
        self.assertLess(abs(peak - backward.peak), 0.01 * peak)


if __name__ == "__main__":
    unittest.main()
