"""Tests kernels that write to results of a region through raw pointers. No op and no version counter shows such
writes."""

import ctypes
import sys
import types
import unittest

import rematch
import torch
from beside_torch import SCHEDULES, BesideTorch
from rematch.selftest import Model
from stack import WIDTH, Layer, Stack, batch

try:
    import numpy
except ImportError:
    numpy = None

NUM_ELEMENTS = 16 * 128


def halve_at(address, num_elements=NUM_ELEMENTS):
    """Halves float32 numbers through a raw pointer, as a kernel of an external library may do."""
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
    """Asks each argument for its address, as Triton does."""
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
    def test_writes_through_a_pointer_are_kept(self):
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

    def test_pointers_into_outside_tensors_cost_nothing(self):
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

    def test_the_patched_functions_behave_as_before(self):
        self.found("full", "on_demand")
        x = torch.arange(3.0)
        self.assertEqual(torch.Tensor.data_ptr.__name__, "data_ptr")
        self.assertEqual(x.data_ptr(), x.untyped_storage().data_ptr())
        self.assertTrue(torch.equal(torch.from_dlpack(x), x))
        with self.assertRaises(TypeError):
            torch.to_dlpack(None)
        compiled = torch.compile(lambda y: y + y.untyped_storage().nbytes(), backend="eager")
        self.assertTrue(torch.equal(compiled(x), x + 12))


class Rotate(torch.autograd.Function):
    """Rotates its first argument in place and returns it. Does not tell torch about the write, like many rotary
    kernels."""

    @staticmethod
    def forward(context, x, cos, sin):
        context.angles = cos, sin
        array, half = x.detach().numpy(), x.shape[-1] // 2
        first, second = array[..., :half].copy(), array[..., half:].copy()
        array[..., :half] = first * cos.numpy() - second * sin.numpy()
        array[..., half:] = second * cos.numpy() + first * sin.numpy()
        return x

    @staticmethod
    def backward(context, gradient):
        cos, sin = context.angles
        first, second = gradient.chunk(2, -1)
        return torch.cat([first * cos + second * sin, second * cos - first * sin], -1), None, None


class HalveAndTell(torch.autograd.Function):
    """Halves its argument in place, and calls mark_dirty() to tell torch."""

    @staticmethod
    def forward(context, x):
        halve_by_numpy(x.detach())
        context.mark_dirty(x)
        return x

    @staticmethod
    def backward(_, gradient):
        return gradient * 0.5


BATCH_SIZE, LENGTH = 32, 8  # so large that the peak is in the last layer, not in the gradients
NUM_TOKENS = BATCH_SIZE * LENGTH


class Writing(Layer):
    """A layer whose functions `rotated(q)` and `activated(h)` may write to their arguments through pointers. The plan
    therefore keeps these arguments, which take `kept_bytes`."""

    def __init__(self):
        super().__init__()
        angles = 0.3 * torch.arange(8)[:, None] + torch.zeros(8, WIDTH // 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotated(self, q):
        return q

    def activated(self, h):
        return h

    def forward(self, x):
        q, k, v = self.attention.qkv(self.attention_norm(x)).chunk(3, -1)
        x = x + self.attention.out((self.rotated(q) @ k.transpose(-1, -2)).softmax(-1) @ v)
        return x + self.feed_forward.down(torch.nn.functional.gelu(self.activated(self.feed_forward.up(x))))


class WritesToView(Writing):
    kept_bytes = 4 * NUM_TOKENS * 3 * WIDTH

    def rotated(self, q):
        return Rotate.apply(q, self.cos, self.sin)


class WritesToResult(Writing):
    kept_bytes = 4 * NUM_TOKENS * WIDTH

    def rotated(self, q):
        return Rotate.apply(q.contiguous(), self.cos, self.sin)


class WritesToCopy(Writing):
    kept_bytes = 4 * NUM_TOKENS * WIDTH

    def rotated(self, q):
        return Rotate.apply(q.clone(), self.cos, self.sin)


class CountsIntoZeros(Writing):
    kept_bytes = 4 * (NUM_TOKENS + 1) * 4 * WIDTH

    def activated(self, h):
        counts = torch.zeros(h.shape[-1])
        counts.numpy()[:] = (h.detach().numpy() > 0).mean((0, 1))
        return h * counts


class ActivatesInPlace(Writing):
    kept_bytes = 4 * NUM_TOKENS * 4 * WIDTH

    def activated(self, h):
        array = h.detach().numpy()
        numpy.maximum(array, 0, out=array)
        return h


class MarksDirty(Writing):
    kept_bytes = 4 * NUM_TOKENS * 4 * WIDTH

    def activated(self, h):
        h = HalveAndTell.apply(h.clone())
        return h * h


class IncrementsVersion(Writing):
    """Calls torch.autograd.graph.increment_version() after its write, as PyTorch's documentation requires."""

    kept_bytes = 4 * NUM_TOKENS * 4 * WIDTH

    def activated(self, h):
        h = h.detach()
        with torch.no_grad():
            halve_by_numpy(h)
            torch.autograd.graph.increment_version(h)
        return h * self.feed_forward.up.bias


@unittest.skipUnless(numpy, "numpy is not installed")
class LayersTest(BesideTorch):
    def test_layers_that_write_to_their_own_results(self):
        for kind in (WritesToView, WritesToResult, WritesToCopy, CountsIntoZeros, ActivatesInPlace, MarksDirty, IncrementsVersion):
            with self.subTest(kind=kind.__name__):
                torch.manual_seed(0)
                model, x = Stack(kind, num_layers=3), batch(LENGTH, BATCH_SIZE)

                def train(around, model=model, x=x):
                    with around():
                        loss = model(x)
                    loss.backward()
                    return loss

                plans = self.plans_of(model, lambda model=model, x=x: model(x), ["full", "save_mm"])
                self.compare(model, train, plans, leaves=False, beyond_bytes=len(model.layers) * kind.kept_bytes)


if __name__ == "__main__":
    unittest.main()
