"""Tests functions and modules of torch.compile in a recorded step. Inside a layer, each call of a compiled function is
one opaque op. Outside of layers, compiled functions run as usual. Loss and gradients must equal those of a step without
a plan."""

import contextlib
import gc
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from beside_torch import BesideTorch  # noqa: E402
from torch.nn.attention.flex_attention import flex_attention  # noqa: E402

NUM_LEAK_STEPS = 50
BACKEND = "aot_eager"  # captures the same graphs as Inductor, but runs them op by op
SCHEDULES = ("whole_region", "on_demand")
POLICIES = ("full", "save_mm")


def activation(x):
    return torch.nn.functional.gelu(x) * 1.5


class Layer(torch.nn.Module):
    activation = staticmethod(activation)

    def __init__(self, width=16):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.mix = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh())

    def forward(self, x):
        return x + self.mix(x) + self.down(self.activation(self.up(self.norm(x))))


class WritesIntoResult(Layer):
    def forward(self, x):
        y = self.activation(self.up(self.norm(x)))
        y += 1.0
        y *= self.up(x)
        return x + self.mix(x) + self.down(y)


class Model(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = torch.nn.ModuleList(layer() for _ in range(4))
        self.head = torch.nn.Linear(16, 16)

    def rotate(self, x):
        return x.roll(1, -1) * 0.5 + x

    def loss_of(self, x):
        return self.head(x).square().mean()

    def forward(self, x):
        x = self.rotate(x)
        for layer in self.layers:
            x = layer(x)
        return self.loss_of(x)


def made(layer=Layer):
    torch.manual_seed(0)
    return Model(layer)


def compiled_activation():
    return type("Compiled", (Layer,), {"activation": staticmethod(torch.compile(activation, backend=BACKEND))})


def with_function():
    return made(compiled_activation())


def with_result_that_is_written_to():
    return made(type("Compiled", (WritesIntoResult,), {"activation": staticmethod(torch.compile(activation, backend=BACKEND))}))


def with_module():
    model = made()
    for layer in model.layers:
        layer.mix = torch.compile(layer.mix, backend=BACKEND)
    return model


def with_module_in_place():
    model = made()
    for layer in model.layers:
        layer.mix.compile(backend=BACKEND)
    return model


def with_what_is_outside_of_layers():
    model = made()
    model.rotate = torch.compile(model.rotate, backend=BACKEND)
    model.loss_of = torch.compile(model.loss_of, backend=BACKEND)
    return model


MODELS = (with_function, with_result_that_is_written_to, with_module, with_module_in_place, with_what_is_outside_of_layers)


def equal(found, expected):
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


class BesideTorchTest(BesideTorch):
    """Tests compiled functions only outside of layers. Inside layers, their saved tensors are always kept."""

    def test_compiled_functions_outside_of_layers(self):
        torch.compiler.reset()
        model, x = with_what_is_outside_of_layers(), torch.randn(2, 8, 16)

        def train(around):
            with around():
                loss = model(x)
            loss.backward()
            return loss

        self.compare(model, train, self.plans_of(model, lambda: model(x), POLICIES), leaves=False)


class CompiledTest(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()
        self.x = torch.randn(2, 8, 16)

    def step(self, model, checkpoint=None):
        with rematch.recording(checkpoint) if checkpoint else contextlib.nullcontext():
            loss = model(self.x)
        loss.backward()
        found = [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
        model.zero_grad(set_to_none=True)
        return found

    def test_every_step_has_equal_bits_and_leaves_nothing_behind(self):
        for make in MODELS:
            model = make()
            expected = self.step(model)
            trace = rematch.trace(model, lambda model=model: model(self.x))
            for policy in POLICIES:
                for schedule in SCHEDULES:
                    with self.subTest(model=make.__name__, policy=policy, schedule=schedule):
                        checkpoint = rematch.Checkpoint(rematch.resolve(trace, policy), schedule, on_mismatch="refuse")
                        with rematch.scopes(model, checkpoint):
                            self.assertTrue(equal(self.step(model, checkpoint), expected))
                            gc.collect()
                            before = rematch.allocated_bytes()
                            for _ in range(NUM_LEAK_STEPS):
                                self.assertTrue(equal(self.step(model, checkpoint), expected))
                            gc.collect()
                            self.assertLessEqual(rematch.allocated_bytes(), before)

    def test_applied_models(self):
        for make in MODELS:
            with self.subTest(model=make.__name__):
                model = make()
                expected = self.step(model)
                rematch.apply(model, "full", step=lambda model=model: model(self.x))
                for _ in range(3):
                    with rematch.watch() as figures:
                        self.assertTrue(equal(self.step(model), expected))
                    self.assertGreater(sum(figures["ops"]["recompute"].values()), 0)

    def test_an_applied_model_that_is_compiled_whole(self):
        model = made()
        expected = self.step(model)
        rematch.apply(model, "full", step=lambda: model(self.x))
        compiled = torch.compile(model, backend=BACKEND)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                self.assertTrue(equal(self.step(compiled), expected))
        found = [str(each.message) for each in said]
        self.assertEqual(len([each for each in found if each.startswith("rematch: ")]), 1, found)
        self.assertIn("the model runs in a function of torch.compile", "".join(found))

    def test_the_ops_of_a_function_that_stays_eager_are_recorded(self):
        def predicted(function):
            model = made(type("Calls", (Layer,), {"activation": staticmethod(function)}))
            expected = self.step(model)
            trace = rematch.trace(model, lambda: model(self.x))
            plan = rematch.resolve(trace, "full")
            checkpoint = rematch.Checkpoint(plan, on_mismatch="refuse")
            with rematch.scopes(model, checkpoint):
                self.assertTrue(equal(self.step(model, checkpoint), expected))
            return rematch.predict(trace, plan)["recomputed_ops"]

        self.assertEqual(predicted(torch.compiler.disable(activation)), predicted(activation))

    def test_an_exception_in_a_function_that_stays_eager(self):
        def fail(x):
            raise ValueError("the function failed")

        model = made()
        expected = self.step(model)
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"),
                                        on_mismatch="refuse")
        with rematch.scopes(model, checkpoint):
            model.layers[1].activation = torch.compiler.disable(fail)
            with self.assertRaises(ValueError):
                self.step(model, checkpoint)
            del model.layers[1].activation
            self.assertTrue(equal(self.step(model, checkpoint), expected))

    def test_check(self):
        model = with_function()
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        self.assertTrue(rematch.check(model, lambda: model(self.x), checkpoint)["bits_equal"])

    def test_the_first_call_of_a_function_compiles_it_in_a_recorded_step(self):
        model = with_function()
        expected = self.step(model)
        plan = rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full")
        torch.compiler.reset()
        with rematch.scopes(model), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertTrue(equal(self.step(model, rematch.Checkpoint(plan)), expected))
        self.assertEqual([each for each in said if "rematch" in str(each.message)], [])

    def test_an_exception_in_a_compiled_function(self):
        def fail(x):
            raise ValueError("the function failed")

        model = with_function()
        expected = self.step(model)
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        with rematch.scopes(model, checkpoint):
            model.layers[1].activation = torch.compile(fail, backend=BACKEND)
            for _ in range(2):
                with self.assertRaises(ValueError):
                    self.step(model, checkpoint)
            del model.layers[1].activation
            self.assertTrue(equal(self.step(model, checkpoint), expected))

    def test_compiled_layers_are_reported_once(self):
        model = made()
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        expected = self.step(model)
        for layer in model.layers:
            layer.compile(backend=BACKEND)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                self.assertTrue(equal(self.step(model, checkpoint), expected))
        self.assertEqual(len([each for each in said if "in a function of torch.compile" in str(each.message)]), 1,
                         [str(each.message) for each in said])

    def test_flex_attention_in_a_layer(self):
        """Gradients of flex attention need a GPU, so this test does not compute gradients."""
        class Attends(Layer):
            def forward(self, x):
                heads = x.detach().reshape(2, 2, 8, 8)
                scores = flex_attention(heads, heads, heads, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1)
                return super().forward(x) + scores.reshape(x.shape)

        model = made(Attends)
        expected = self.step(model)
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        with rematch.scopes(model, checkpoint):
            for _ in range(2):
                self.assertTrue(equal(self.step(model, checkpoint), expected))


if __name__ == "__main__":
    unittest.main()
