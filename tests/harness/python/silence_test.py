"""Tests steps in which a plan has no effect. In evaluation rematch must print nothing. A mistake in the program must be
reported once."""

import contextlib
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402


class DirectModel(Model):
    """Calls the method forward() of some layers directly, which bypasses their hooks."""

    direct = (1, 3)

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            x = layer.forward(x) if index in self.direct else layer(x)
        return x.square().mean()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Model()
        self.x = torch.randn(256, 32)
        self.trace = rematch.trace(self.model, lambda: self.model(self.x))
        self.checkpoint = self.checkpoint_of("full")

    def checkpoint_of(self, policy):
        return rematch.Checkpoint(rematch.resolve(self.trace, policy))

    def step(self, checkpoint=None, model=None):
        with rematch.recording(checkpoint or self.checkpoint):
            loss = (model or self.model)(self.x)
        loss.backward()

    def warnings_of(self, run):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
        return [str(each.message) for each in caught]

    def assert_silent(self, run):
        self.assertEqual(self.warnings_of(run), [])

    def assert_said_once(self, run, *words):
        """Makes the same mistake three times, and requires a single warning of one line."""
        found = self.warnings_of(lambda: [run() for _ in range(3)])
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("rematch: "), found)
        self.assertNotIn("\n", found[0])
        for each in words:
            self.assertIn(each, found[0])


class FaultTest(Case):
    def test_a_step_without_faults(self):
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_silent(lambda: [self.step() for _ in range(3)])
        with rematch.scopes(self.model):
            self.assert_silent(lambda: [self.step() for _ in range(3)])

    def test_scopes_of_another_plan(self):
        for other, planned, missing in (("nth_first(2)", "full", "layers.1, layers.3"),
                                        ("nth_first(2)", "segments(3)", "layers.3")):
            with self.subTest(other=other), rematch.scopes(self.model, self.checkpoint_of(other)):
                checkpoint = self.checkpoint_of(planned)
                self.assert_said_once(lambda checkpoint=checkpoint: self.step(checkpoint),
                                      f"no module has the scope {missing}", "rematch.scopes(model, checkpoint)")

    def test_scopes_that_get_another_plan(self):
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_silent(self.step)
        with rematch.scopes(self.model, self.checkpoint_of("nth_first(2)")):
            self.assert_said_once(self.step, "no module has the scope layers.1")

    def test_missing_scopes(self):
        with rematch.scopes(self.model):
            self.assert_silent(lambda: self.step(self.checkpoint_of("nth_first(2)")))

    def test_no_scopes(self):
        self.assert_said_once(self.step, "no model has scopes", "call rematch.scopes(model, checkpoint) once")
        self.assertIsNotNone(self.model.layers[0].norm.weight.grad)

    def test_scopes_on_another_model(self):
        other = Model()
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_said_once(lambda: self.step(model=other), "called no module that the plan governs (layers.0, layers.1 "
                                  "and 2 more)", "check that the model has these scopes")

    def test_a_model_that_never_runs_its_layers(self):
        class Skipping(Model):
            def forward(self, x):
                return self.head(x).square().mean()

        self.model.head = torch.nn.Linear(32, 32)
        self.model.__class__ = Skipping
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_silent(lambda: [self.step() for _ in range(19)])
            self.assert_said_once(self.step, "20 recorded steps ran the model and called no module that the plan governs "
                                  "(layers.0, layers.1 and 2 more)")

    def test_a_forgotten_recording(self):
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_said_once(lambda: self.model(self.x).backward(), "layers.0 has scopes and runs outside of",
                                  "with rematch.recording(checkpoint):")

    def test_an_unrecorded_step_among_recorded_ones(self):
        with rematch.scopes(self.model, self.checkpoint):
            self.step()
            self.assert_silent(lambda: self.model(self.x).backward())

    def test_layers_whose_forward_is_called_directly(self):
        self.model.__class__ = DirectModel
        for only in (None, self.checkpoint):
            with self.subTest(only=only), rematch.scopes(self.model, only):
                checkpoint = self.checkpoint_of("full")
                self.assert_said_once(lambda checkpoint=checkpoint: self.step(checkpoint),
                                      "layers.1, layers.3 ran through module.forward(x)", "call it as module(x)")

    def test_a_model_that_calls_every_forward_directly(self):
        self.model.__class__ = DirectModel
        self.model.direct = range(4)
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_said_once(self.step, "layers.0, layers.1 and 2 more ran through module.forward(x)")

    def test_direct_calls_in_a_traced_step(self):
        self.model.__class__ = DirectModel
        self.assertIn("layers.1, layers.3 ran through module.forward(x)",
                      "".join(self.warnings_of(lambda: rematch.trace(self.model, lambda: self.model(self.x)))))
        self.model.direct = range(4)
        with self.assertRaisesRegex(rematch.RematchError, "ran no layer of this DirectModel.*module.forward"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rematch.trace(self.model, lambda: self.model(self.x))

    def test_a_skipped_layer_with_a_module_that_others_call(self):
        class Skipping(Model):
            def forward(self, x):
                x = self.head(x)
                for layer in self.layers[:3]:
                    x = layer(x)
                return x.square().mean()

        self.model.head = self.model.layers[3].head = torch.nn.Linear(32, 32)
        self.model.__class__ = Skipping
        with rematch.scopes(self.model):
            self.assert_silent(self.step)

    def test_the_watch_for_direct_calls_ends_with_the_first_step(self):
        hooks = lambda: sum(len(module._forward_hooks) for module in self.model.modules())  # noqa: E731
        with rematch.scopes(self.model, self.checkpoint):
            self.assertGreater(hooks(), 4)
            self.step()
            self.assertEqual(hooks(), 4)
        with rematch.scopes(self.model, self.checkpoint):
            pass
        self.assertEqual(hooks(), 0)


class TwoModelsTest(unittest.TestCase):
    """Tests two models in one step. Their layers have the same names, but run different ops."""

    def setUp(self):
        torch.manual_seed(0)
        self.models = [Model(num_layers=4), Model(dim=64, num_layers=3)]
        for layer in self.models[1].layers:
            layer.feed_forward[1] = torch.nn.SiLU()
        self.inputs = [torch.randn(64, 32), torch.randn(64, 64)]
        traces = [rematch.trace(model, lambda model=model, x=x: model(x))
                  for model, x in zip(self.models, self.inputs, strict=True)]
        plans = [rematch.resolve(trace, "full") for trace in traces]
        self.num_recomputed = [rematch.predict(trace, plan)["recomputed_ops"]
                               for trace, plan in zip(traces, plans, strict=True)]
        self.checkpoints = [rematch.Checkpoint(plan) for plan in plans]

    def losses(self, *indices):
        return sum(self.models[index](self.inputs[index]) for index in indices)

    def run_step(self, forward):
        """Returns the number of recomputed ops, the loss and the gradients."""
        for model in self.models:
            model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        with rematch.watch() as figures:
            loss = forward()
            loss.backward()
        gradients = [parameter.grad.clone() for model in self.models for parameter in model.parameters()]
        return sum(figures["ops"]["recompute"].values()), [loss.detach(), *gradients]

    def test_each_plan_governs_its_own_model(self):
        def one_after_the_other():
            with rematch.recording(self.checkpoints[0]):
                loss = self.losses(0)
            with rematch.recording(self.checkpoints[1]):
                return loss + self.losses(1)

        def one_inside_the_other():
            with rematch.recording(self.checkpoints[0]):
                loss = self.losses(0)
                with rematch.recording(self.checkpoints[1]):
                    return loss + self.losses(1)

        def only(index):
            with rematch.recording(self.checkpoints[index]):
                return self.losses(0, 1)

        first, second = self.num_recomputed
        _, expected = self.run_step(lambda: self.losses(0, 1))
        steps = ((one_after_the_other, first + second), (one_inside_the_other, first + second), (lambda: only(0), first),
                 (lambda: only(1), second))
        with rematch.scopes(self.models[0], self.checkpoints[0]), rematch.scopes(self.models[1], self.checkpoints[1]):
            for step, count in steps:
                num_recomputed, found = self.run_step(step)
                self.assertEqual(num_recomputed, count)
                for want, have in zip(expected, found, strict=True):
                    self.assertTrue(torch.equal(want, have))

    def test_removing_scopes_does_not_close_others(self):
        kept = rematch.scopes(self.models[0], self.checkpoints[0])
        kept.remove()
        other = rematch.Checkpoint(self.checkpoints[0].plan)
        for remove in (lambda scopes: scopes.remove(), lambda _: rematch.remove_scopes(self.models[0])):
            scopes = rematch.scopes(self.models[0], other)
            with rematch.recording(self.checkpoints[0]):
                loss = self.losses(0)
            with rematch.watch() as figures:
                loss.backward()
            self.assertEqual(sum(figures["ops"]["recompute"].values()), self.num_recomputed[0])
            remove(scopes)


class EvaluationTest(Case):
    """Tests recordings without grad mode, in which there is nothing to checkpoint and nothing to report."""

    def bare_evaluation(self, around):
        with around(), rematch.recording(self.checkpoint):
            self.model(self.x)

    def test_is_silent_and_records_nothing(self):
        for around in (torch.no_grad, torch.inference_mode):
            with self.subTest(around=around.__name__), rematch.scopes(self.model, self.checkpoint):
                self.model.eval()
                self.assert_silent(lambda around=around: self.bare_evaluation(around))
                self.model.train()
                before = rematch.allocated_bytes()
                self.assert_silent(lambda around=around: self.bare_evaluation(around))
                self.assertEqual(rematch.allocated_bytes(), before)
                self.assert_silent(self.step)

    def test_before_scopes_are_set(self):
        self.assert_silent(lambda: self.bare_evaluation(torch.no_grad))
        self.assertEqual(len(self.warnings_of(self.step)), 1)  # a later training step must still warn

    def test_grad_mode_off_inside_the_recording(self):
        def generate():
            with rematch.recording(self.checkpoint), torch.no_grad():
                self.model(self.x)

        with rematch.scopes(self.model, self.checkpoint):
            self.assert_silent(generate)

    def test_outside_of_recordings(self):
        with rematch.scopes(self.model, self.checkpoint):
            with torch.no_grad():
                self.assert_silent(lambda: self.model(self.x))
            self.model.eval()
            self.assert_silent(lambda: self.model(self.x))

    def test_a_model_whose_parameters_are_frozen(self):
        self.model.requires_grad_(False)
        with rematch.scopes(self.model, self.checkpoint):
            self.assert_silent(lambda: self.model(self.x))

    def test_executes_the_ops_of_a_step_without_a_plan(self):
        def ops_of(around):
            with rematch.watch() as figures, torch.no_grad(), around:
                self.model(self.x)
            return figures["ops"]

        plain = ops_of(contextlib.nullcontext())
        with rematch.scopes(self.model, self.checkpoint):
            self.assertEqual(ops_of(rematch.recording(self.checkpoint)), plain)

    def test_a_recording_around_no_step(self):
        def skip():
            with rematch.recording(self.checkpoint):
                pass

        with rematch.scopes(self.model, self.checkpoint):
            self.step()
            self.assert_silent(skip)


if __name__ == "__main__":
    unittest.main()
