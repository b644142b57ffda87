"""Tests calls that the engine records as a single op: opaque functions, modules, and the autograd functions of known
libraries."""

import copy
import ctypes
import sys
import types
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")


def scale_unseen(x, factor):
    """Scales float32 numbers in memory, like a kernel of a library. Neither torch nor Python sees the writes."""
    address = torch._C._to_dlpack(x)
    capsule = ctypes.pythonapi.PyCapsule_GetPointer
    capsule.restype, capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    data = ctypes.c_void_p.from_address(capsule(address, b"dltensor")).value
    numbers = (ctypes.c_float * x.numel()).from_address(data)
    for index in range(x.numel()):
        numbers[index] *= factor


class ScaleInPlace(torch.autograd.Function):
    """Scales its argument in place without telling torch, and returns it."""

    @staticmethod
    def forward(_, x):
        scale_unseen(x.detach(), 0.5)
        return x.view_as(x)

    @staticmethod
    def backward(_, gradient):
        return gradient * 0.5


def rotated(q, k):
    """A stand-in for a rotary kernel: overwrites k, and returns a new tensor and views of its arguments."""
    scale_unseen(k.detach(), 0.25)
    halves = (q * k.detach()).sin()
    return halves, k.view(-1, k.shape[-1]), halves[..., ::2], {"none": None, "q": q}


class Layer(torch.nn.Module):
    def __init__(self, dim, call):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, 2 * dim), torch.nn.Linear(2 * dim, dim)
        self.call = call

    def forward(self, x):
        return x + self.down(self.call(self.up(self.norm(x))))


class Stack(torch.nn.Module):
    def __init__(self, call, dim=8, num_layers=3):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(dim, call) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


class Counting(torch.nn.Module):
    """A module with state that is not in a tensor."""

    num_calls = 0

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        Counting.num_calls += 1
        return torch.tanh(self.linear(x)) * (1 + 0.1 * Counting.num_calls)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(4, 8, 8)

    def check(self, call, policies=("full", "save_mm")):
        """Checks bits, counts and peaks under several policies. Returns the trace."""
        model = call if isinstance(call, torch.nn.Module) and hasattr(call, "layers") else Stack(call)

        def step():
            Counting.num_calls = 0
            return model(self.x)

        trace = rematch.trace(model, step)
        for policy in policies:
            plan = rematch.resolve(trace, policy)
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    found = rematch.check(model, step, rematch.Checkpoint(plan, schedule))
                    self.assertTrue(found["bits_equal"])
                    predicted = rematch.predict(trace, plan, schedule)
                    run = found["checkpointed"]
                    self.assertEqual(run["executed_ops"]["recompute"], predicted["recomputed_ops"])
        return trace

    def ops_of(self, trace):
        return [op["name"] for each in trace["types"] for op in each["ops"]]


class FunctionTest(Case):
    def test_a_function_is_one_op_whose_results_are_kept(self):
        @rematch.opaque
        def activated(x):
            return torch.tanh(x) * torch.sigmoid(x)

        trace = self.check(activated)
        ops = self.ops_of(trace)
        self.assertIn("rematch::opaque", ops)
        self.assertNotIn("aten::tanh", ops)

    def test_overwritten_arguments_are_kept(self):
        for overwrites in (("k",), (1,)):
            rotate = rematch.opaque(rotated, overwrites=overwrites)
            for give in (lambda x, k, rotate=rotate: rotate(x, k), lambda x, k, rotate=rotate: rotate(q=x, k=k)):
                def call(x, give=give):
                    k = x * 2
                    before = k.sin()
                    halves, flat, evens, others = give(x, k)
                    return before * halves * k.cos() * flat.view_as(k).exp() + evens.repeat(1, 1, 2) * others["q"]

                with self.subTest(overwrites=overwrites):
                    self.check(call)
        self.check(lambda x: rematch.opaque(overwrites=[0])(ScaleInPlace.apply)(x * 2).sin())

    def test_results_that_are_written_in_place(self):
        def call(x):
            h = rematch.opaque(lambda y: y.tanh() + 1)(x)
            y = (h * 1.5).cos()
            h += x
            return h * y

        self.check(call)

    def test_calls_outside_of_a_step_and_failing_calls(self):
        calls = []

        @rematch.opaque
        def failing(x):
            calls.append(x)
            if len(calls) == 2:
                raise KeyError("second")
            return x.sin()

        self.assertTrue(torch.equal(failing(self.x), self.x.sin()))
        model = Stack(lambda x: x.sin())
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        model.layers[1].call = failing
        with rematch.scopes(model, checkpoint):
            with self.assertRaisesRegex(KeyError, "second"), rematch.recording(checkpoint):
                model(self.x)
            with rematch.recording(checkpoint):  # works, because the failed call left no state behind
                model(self.x).backward()

    def test_unknown_arguments_are_refused(self):
        with self.assertRaisesRegex(ValueError, "rotated has no argument 'v'"):
            rematch.opaque(rotated, overwrites=("v",))
        for position in (2, -1):
            with self.assertRaisesRegex(ValueError, f"rotated has no argument {position}"):
                rematch.opaque(rotated, overwrites=(position,))
        with self.assertRaisesRegex(TypeError, "opaque_module takes a torch.nn.Module"):
            rematch.opaque_module(lambda x: x)


class ModuleTest(Case):
    def test_a_module_with_a_hidden_state(self):
        model = Stack(Counting())
        for layer in model.layers:
            layer.call = rematch.opaque_module(Counting())
        trace = self.check(model)
        self.assertNotIn("aten::tanh", self.ops_of(trace))
        self.check(copy.deepcopy(model))

    def test_a_class_of_modules(self):
        @rematch.opaque_module
        class Counted(Counting):
            def forward(self, x):
                return super().forward(x)

        model = Stack(None)
        for layer in model.layers:
            layer.call = Counted()
        self.check(model)


class KnownLibraryTest(Case):
    def test_autograd_functions_of_a_known_library_are_opaque(self):
        module = types.ModuleType("liger_kernel.ops.rope")
        module.Rope = type("Rope", (torch.autograd.Function,), {
            "forward": staticmethod(lambda _, x: x.tanh()), "backward": staticmethod(lambda _, gradient: gradient),
            "__module__": "liger_kernel.ops.rope"})
        sys.modules["liger_kernel.ops.rope"] = module
        self.addCleanup(sys.modules.pop, "liger_kernel.ops.rope")
        trace = self.check(lambda x: module.Rope.apply(x * 2).sin())
        self.assertIn("rematch::opaque", self.ops_of(trace))
        self.assertNotIn("aten::tanh", self.ops_of(trace))


@torch.library.custom_op("rematch_test::scale_silently", mutates_args=())
def scale_silently(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Also writes to y, although the op's schema does not say so."""
    scale_unseen(y, 0.5)
    return x * y


scale_silently.register_fake(lambda x, _: torch.empty_like(x))


class SilentWriterTest(Case):
    def test_an_autograd_function_that_writes_without_telling_becomes_opaque(self):
        class Rotate(ScaleInPlace):
            pass

        def call(x):
            q = x * 2
            before = q.cos()
            return Rotate.apply(q).sin() * before * q.exp()

        trace = self.check(call)
        self.assertIn("rematch::opaque", self.ops_of(trace))
        name = f"{__name__}:{Rotate.__qualname__}"
        self.assertEqual(trace["opaque_functions"], [{"name": name, "overwrites": [0]}])
        # Outside of recorded steps, the function runs as usual.
        self.assertTrue(torch.equal(Rotate.apply(torch.ones(2)), torch.full((2,), 0.5)))

    def test_an_autograd_function_that_writes_nothing_is_recomputed(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(_, x):
                return x * 2

            @staticmethod
            def backward(_, gradient):
                return gradient * 2

        trace = self.check(lambda x: Twice.apply(x).sin())
        self.assertNotIn("rematch::opaque", self.ops_of(trace))
        self.assertNotIn("opaque_functions", trace)

    def test_a_custom_op_that_writes_to_an_argument_of_the_region(self):
        def call(x):
            y = x.detach() * 3
            before = y + 1
            made = scale_silently(x.detach(), y)
            return x * made.cos() * before * y.sin()

        self.check(call)

    def test_a_custom_op_that_writes_to_an_argument_from_outside(self):
        counts = torch.ones(4, 8, 16)

        def call(x):
            counts.fill_(1)
            return x * scale_silently(x.detach(), counts)

        self.check(call)


class PeakTest(Case):
    def test_peaks_are_predicted(self):
        """The results of opaque calls must be included in the predicted peak of a deep model."""
        model = Model()
        self.x = torch.randn(256, 32)
        for layer in model.layers:
            layer.feed_forward[1].forward = rematch.opaque(torch.tanh)
        trace = rematch.trace(model, lambda: model(self.x))
        for policy in ("full", "save_mm"):
            plan = rematch.resolve(trace, policy)
            found = rematch.check(model, lambda: model(self.x), rematch.Checkpoint(plan))
            predicted = rematch.predict(trace, plan)
            self.assertTrue(found["bits_equal"])
            rise = predicted["peak_bytes"] - predicted["before_bytes"]
            self.assertAlmostEqual(found["checkpointed"]["peak_bytes"] / rise, 1, delta=0.05)


if __name__ == "__main__":
    unittest.main()
