"""Kernels that write through raw pointers into results of a region, where no op and no version counter tells."""

import ctypes
import sys
import types
import unittest

import rematch

rematch.count_memory()  # before the first tensor

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

SCHEDULES = ("whole_region", "on_demand")
NUM_ELEMENTS = 16 * 128


def halve_at(address, num_elements=NUM_ELEMENTS):
    """The kernel of a library: it halves float32 numbers in memory."""
    numbers = (ctypes.c_float * num_elements).from_address(address)
    for index in range(num_elements):
        numbers[index] *= 0.5


def halve_by_data_ptr(x):
    halve_at(x.data_ptr())


def halve_by_storage(x):
    halve_at(x.untyped_storage().data_ptr())


def halve_by_numpy(x):
    array = x.numpy()
    array *= 0.5


def halve_by_array(x):
    array = numpy.asarray(x)
    array *= 0.5


def halve_by_dlpack(x):
    torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)).mul_(0.5)


def halve_by_dlpack_protocol(x):
    halve_at(numpy.from_dlpack(x).ctypes.data)


def halve_as_triton(x):
    """A launcher of Triton asks each argument for its address."""
    sys.modules["triton.runtime.jit"].JITFunction().run(x, grid=(1,), warmup=False)


class JITFunction:
    def run(self, *arguments, grid, warmup):
        del self, grid, warmup
        for argument in arguments:
            halve_at(argument.data_ptr())


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(_, x, halve):
        halve(x.detach())
        return x.view_as(x)

    @staticmethod
    def backward(_, gradient):
        return gradient * 0.5, None


class Halved(torch.nn.Module):
    """A linear layer whose result a kernel halves in place."""

    def __init__(self, linear, halve):
        super().__init__()
        self.linear, self.halve = linear, halve

    def forward(self, x):
        return Halve.apply(self.linear(x), self.halve)


@torch.library.custom_op("rematch_test::halved_copy", mutates_args=())
def halved_copy(x: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(x)
    ctypes.memmove(result.data_ptr(), x.data_ptr(), 4 * x.numel())
    halve_at(result.data_ptr(), x.numel())
    return result


halved_copy.register_fake(torch.empty_like)
halved_copy.register_autograd(lambda _, gradient: gradient * 0.5)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Model(num_layers=2)
        self.x = torch.randn(16, 32)

    def step(self):
        return self.model(self.x)

    def found(self, policy, schedule):
        trace = rematch.trace(self.model, self.step)
        plan = rematch.resolve(trace, policy)
        found = rematch.check(self.model, self.step, rematch.Checkpoint(plan, schedule))
        return found, rematch.predict(trace, plan, schedule)


class WriteTest(Case):
    def test_what_is_written_through_a_pointer_is_kept(self):
        ways = [halve_by_data_ptr, halve_by_storage, halve_by_dlpack, halve_as_triton]
        ways += [halve_by_numpy, halve_by_array, halve_by_dlpack_protocol] if numpy else []
        sys.modules["triton.runtime.jit"] = types.ModuleType("triton.runtime.jit")
        self.addCleanup(sys.modules.pop, "triton.runtime.jit")
        sys.modules["triton.runtime.jit"].JITFunction = JITFunction
        for halve in ways:
            self.model = Model(num_layers=2)
            for layer in self.model.layers:
                layer.feed_forward[0] = Halved(layer.feed_forward[0], halve)
            for policy in ("full", "save_mm"):
                for schedule in SCHEDULES:
                    with self.subTest(way=halve.__name__, policy=policy, schedule=schedule):
                        found, _ = self.found(policy, schedule)
                        self.assertTrue(found["bits_equal"])
                        self.assertGreater(found["checkpointed"]["executed_ops"]["recompute"], 0)

    def test_pointers_that_the_kernel_of_an_op_takes_cost_nothing(self):
        class Op(torch.nn.Module):
            def __init__(self, linear):
                super().__init__()
                self.linear = linear

            def forward(self, x):
                return halved_copy(self.linear(x))

        for layer in self.model.layers:
            layer.feed_forward[0] = Op(layer.feed_forward[0])
        for schedule in SCHEDULES:
            found, predicted = self.found("full", schedule)
            self.assertTrue(found["bits_equal"])
            self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
            self.assertEqual(found["checkpointed"]["peak_bytes"], predicted["peak_bytes"] - predicted["before_bytes"])

    def test_pointers_into_what_is_from_outside_cost_nothing(self):
        class Looking(torch.nn.Module):
            def __init__(self, linear):
                super().__init__()
                self.linear = linear

            def forward(self, x):
                self.address = self.linear.weight.data_ptr()
                return self.linear(x)

        for layer in self.model.layers:
            layer.feed_forward[0] = Looking(layer.feed_forward[0])
        found, predicted = self.found("full", "on_demand")
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])

    def test_a_kernel_of_triton_that_writes_nothing_costs_nothing(self):
        class Reader(JITFunction):
            def run(self, *arguments, grid, warmup):
                del grid, warmup
                self.addresses = [argument.data_ptr() for argument in arguments]

        sys.modules["triton.runtime.jit"] = types.ModuleType("triton.runtime.jit")
        self.addCleanup(sys.modules.pop, "triton.runtime.jit")
        sys.modules["triton.runtime.jit"].JITFunction = Reader
        kernel = Reader()

        def read(x):
            kernel.run(x, grid=(1,), warmup=False)

        for layer in self.model.layers:
            layer.feed_forward[0] = Halved(layer.feed_forward[0], read)
        found, predicted = self.found("full", "on_demand")
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
        self.assertEqual(found["checkpointed"]["peak_bytes"], predicted["peak_bytes"] - predicted["before_bytes"])

    def test_the_functions_stay_what_they_are(self):
        self.found("full", "on_demand")
        x = torch.arange(3.0)
        self.assertEqual(torch.Tensor.data_ptr.__name__, "data_ptr")
        self.assertEqual(x.data_ptr(), x.untyped_storage().data_ptr())
        self.assertTrue(torch.equal(torch.from_dlpack(x), x))
        with self.assertRaises(TypeError):
            torch.to_dlpack(None)
        compiled = torch.compile(lambda y: y + y.untyped_storage().nbytes(), backend="eager")
        self.assertTrue(torch.equal(compiled(x), x + 12))


if __name__ == "__main__":
    unittest.main()
