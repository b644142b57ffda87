"""Tests rematch.apply, which makes a model follow a plan in every call. Compares the model with the same model without
a plan."""

import contextlib
import copy
import functools
import gc
import io
import json
import pathlib
import pickle
import tempfile
import threading
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402
from stack import Stack, batch  # noqa: E402

NUM_STEPS = 20
SCHEDULES = ("whole_region", "on_demand")


class Logits(Stack):
    """A model that returns logits instead of a loss."""

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Wrapped(torch.nn.Module):
    """Wraps a module and calls its method forward() directly, as adapters do."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        return self.inside.forward(x)


class Nested(torch.nn.Module):
    """A model whose forward calls its body, and then the whole model again."""

    def __init__(self):
        super().__init__()
        self.body = Stack()

    def forward(self, x, again=True):
        y = self.body(x)
        return y + self(2 * x, again=False) if again else y


def plain_step(model, x):
    loss = model(x)
    if loss.dim() > 0:
        loss = loss.square().mean()
    loss.backward()
    return loss.detach()


def train(model, step, num_steps=NUM_STEPS):
    """Trains with AdamW. Returns the losses, the parameters and the number of recomputed ops."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    with rematch.watch() as figures:
        for _ in range(num_steps):
            losses.append(step(model))
            optimizer.step()
            optimizer.zero_grad()
    return [*losses, *(parameter.detach() for parameter in model.parameters())], sum(figures["ops"]["recompute"].values())


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def through_torch_save(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = Stack(), batch()

    def tearDown(self):
        self.assert_nothing_is_recorded()

    def assert_nothing_is_recorded(self):
        """Functions of rematch that run steps themselves are rejected inside a recorded step."""
        model = Model()
        rematch.trace(model, lambda: model(torch.ones(4, 32)))

    def applied(self, model=None, plan="full", forward=None, **options):
        model = model or self.model
        forward = forward or (lambda: model(self.x).square().mean())
        return rematch.apply(model, plan, step=forward, **options)

    def num_recomputed(self, run):
        with rematch.watch() as figures:
            run()
        return sum(figures["ops"]["recompute"].values())

    def assert_equal(self, expected, found):
        for want, have in zip(expected, found, strict=True):
            self.assertTrue(torch.equal(want, have))

    def warnings_of(self, run):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
        return [str(each.message) for each in caught]

    def assert_trains(self, step, model=None, per_step=1, around=contextlib.nullcontext):
        """`step(model)` runs forward and backward, and returns the loss. Checks that the plan does not change the
        loss's bits. A step must recompute `per_step` times as many ops as predicted for one call of the model."""
        model = model or self.model
        expected, none = train(copy.deepcopy(model), step)
        self.assertEqual(none, 0)

        def forward():
            with around():
                return model(self.x).square().mean()

        trace = rematch.trace(model, forward)
        plan = rematch.resolve(trace, "full")
        for schedule in SCHEDULES:
            predicted = rematch.predict(trace, plan, schedule)["recomputed_ops"]
            with self.subTest(schedule=schedule):
                applied = rematch.apply(copy.deepcopy(model), plan, schedule=schedule)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found, num_recomputed = train(applied, step)
                self.assert_equal(expected, found)
                self.assertEqual(num_recomputed, NUM_STEPS * per_step * predicted)


class StepTest(Case):
    def test_a_step(self):
        self.assert_trains(lambda model: plain_step(model, self.x))

    def test_a_step_recomputes_the_predicted_ops(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        predicted = rematch.predict(trace, rematch.resolve(trace, "full"))["recomputed_ops"]
        self.applied()
        self.assertEqual(self.num_recomputed(lambda: plain_step(self.model, self.x)), predicted)

    def test_a_loss_outside_of_the_model(self):
        def step(model):
            target = torch.zeros(4, 16, dtype=torch.long)
            loss = torch.nn.functional.cross_entropy(model(self.x).transpose(1, 2), target)
            loss.backward()
            return loss.detach()

        self.assert_trains(step, Logits())

    def test_several_forwards_before_backward(self):
        def step(model):
            losses = [model(factor * self.x) for factor in (1, 2, 3)]
            sum(losses).backward()
            return losses[0].detach()

        self.assert_trains(step, per_step=3)

    def test_gradient_accumulation(self):
        def step(model):
            return plain_step(model, self.x) + plain_step(model, 2 * self.x)

        self.assert_trains(step, per_step=2)

    def test_nested_calls(self):
        self.assert_trains(lambda model: plain_step(model, self.x), Nested())

    def test_a_part_of_the_model_that_is_called(self):
        self.assert_trains(lambda model: plain_step(model.body, self.x), Nested(), per_step=0.5)

    def test_a_wrapper_that_calls_forward(self):
        """The wrapper calls forward() directly, so hooks of the model do not run, but hooks of its body do."""
        self.assert_trains(lambda model: plain_step(Wrapped(model), self.x), Nested())

    def test_a_gradient_scaler(self):
        half = functools.partial(torch.autocast, "cpu", torch.bfloat16)

        def step(model):
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            with half():
                loss = model(self.x)
            scaler.scale(loss).backward()
            return loss.detach()

        self.assert_trains(step, around=half)

    def test_evaluation_between_steps(self):
        def step(model):
            loss = plain_step(model, self.x)
            for around in (torch.no_grad, torch.inference_mode):
                with around():
                    model.eval()(self.x)
                    model.train()
            return loss

        self.assert_trains(step)

    def test_a_backward_that_runs_forward(self):
        """The reentrant torch.utils.checkpoint runs the model's forward again in backward."""
        def step(model):
            loss = torch.utils.checkpoint.checkpoint(model, self.x.clone().requires_grad_(), use_reentrant=True)
            loss.backward()
            return loss.detach()

        expected, _ = train(copy.deepcopy(self.model), step, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = train(self.applied(), step, 3)
        self.assert_equal(expected, found)

    def test_no_bytes_are_left_over(self):
        self.applied()
        plain_step(self.model, self.x)
        gc.collect()
        before = rematch.allocated_bytes()
        for _ in range(NUM_STEPS):
            plain_step(self.model, self.x)
            with torch.no_grad():
                self.model(self.x)
        gc.collect()
        self.assertEqual(rematch.allocated_bytes(), before)

    def test_two_models_with_layers_of_the_same_names(self):
        other = self.applied(Stack(num_layers=3))
        self.applied()
        counts = [self.num_recomputed(lambda model=model: plain_step(model, self.x)) for model in (self.model, other)]
        both = self.num_recomputed(lambda: (self.model(self.x) + other(self.x)).backward())
        self.assertEqual(both, sum(counts))

        class Teacher(torch.nn.Module):
            def forward(inner, x):
                return self.model(x) + other(x)

        inside = self.num_recomputed(lambda: plain_step(Teacher(), self.x))
        self.assertEqual(inside, sum(counts))

    def test_a_separate_thread(self):
        self.applied()
        found = []
        thread = threading.Thread(target=lambda: found.append(self.num_recomputed(lambda: plain_step(self.model, self.x))))
        thread.start()
        thread.join()
        self.assertEqual(found, [self.num_recomputed(lambda: plain_step(self.model, self.x))])

    def test_a_recording_of_the_program_around_the_call(self):
        self.applied()
        count = self.num_recomputed(lambda: plain_step(self.model, self.x))

        def recorded():
            with rematch.recording(rematch.checkpoint_of(self.model)):
                loss = self.model(self.x)
            loss.backward()

        self.assertEqual(self.num_recomputed(recorded), count)


class EndTest(Case):
    """Tests calls of forward that raise an error, are interrupted, or bypass hooks."""

    def assert_next_step_is_whole(self, expected):
        self.assertEqual(self.num_recomputed(lambda: plain_step(self.model, self.x)), expected)

    def test_a_forward_that_raises(self):
        self.applied()
        count = self.num_recomputed(lambda: plain_step(self.model, self.x))
        for error in (ValueError, KeyboardInterrupt, SystemExit):
            def fail(*_, error=error):
                raise error("stop")

            with self.subTest(error=error.__name__):
                hook = self.model.layers[2].register_forward_hook(fail)
                with self.assertRaisesRegex(error, "stop"):
                    self.model(self.x)
                hook.remove()
                self.assert_next_step_is_whole(count)

    def test_a_forward_inside_an_except_block(self):
        self.applied()
        count = self.num_recomputed(lambda: plain_step(self.model, self.x))
        try:
            raise ValueError("of the program")
        except ValueError:
            self.assert_next_step_is_whole(count)

    def test_a_model_that_is_removed_after_an_interrupt(self):
        self.applied()
        hook = self.model.layers[2].register_forward_hook(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with self.assertRaises(KeyboardInterrupt):
            self.model(self.x)
        hook.remove()
        rematch.remove(self.model)
        self.assert_nothing_is_recorded()

    def test_disabled_hooks_are_reported_once(self):
        self.applied()

        def step():
            with torch.autograd.graph.disable_saved_tensors_hooks("no hooks"):
                return plain_step(self.model, self.x)

        found = self.warnings_of(lambda: [step() for _ in range(3)])
        self.assertEqual(len(found), 1, found)
        self.assertIn("saved-tensor hooks are disabled", found[0])

    def test_a_forward_that_runs_no_hook_is_reported_once(self):
        self.applied()
        found = self.warnings_of(lambda: [self.model.forward(self.x) for _ in range(3)])
        self.assertEqual(len(found), 1, found)
        self.assertIn("layers.0 runs outside of a call of the model that rematch.apply was given", found[0])
        self.assertIn("call it as model(x)", found[0])

    def test_refuse_raises_from_the_call(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        rematch.apply(self.model, rematch.Checkpoint(rematch.resolve(trace, "full"), on_mismatch="refuse"))
        self.model.layers[1].feed_forward.forward = torch.nn.functional.gelu
        with self.assertRaisesRegex(rematch.PlanError, "region layers.1"):
            plain_step(self.model, self.x)


class PlanTest(Case):
    """Tests each form in which apply() accepts a plan."""

    def plan(self):
        return rematch.resolve(rematch.trace(self.model, lambda: self.model(self.x)), "full")

    def assert_follows(self, *arguments, **keywords):
        self.assertIs(rematch.apply(self.model, *arguments, **keywords), self.model)
        self.assertGreater(self.num_recomputed(lambda: plain_step(self.model, self.x)), 0)
        rematch.remove(self.model)
        self.assertEqual(self.num_recomputed(lambda: plain_step(self.model, self.x)), 0)
        self.assertEqual([name for name, each in self.model.named_modules() if each._forward_pre_hooks or each._forward_hooks], [])

    def test_a_plan_a_file_and_a_checkpoint(self):
        plan = self.plan()
        self.assert_follows(plan)
        self.assert_follows(rematch.Checkpoint(plan))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            path.write_text(json.dumps(plan), encoding="utf-8")
            self.assert_follows(path)
            self.assert_follows(str(path))
            path.write_text(json.dumps({"points": [{"plan": plan}]}), encoding="utf-8")
            self.assert_follows(f"{path}#0")

    def test_a_policy(self):
        def step():
            return self.model(self.x)

        self.assert_follows("full", step=step)
        self.assert_follows("nth_first(2)", step=[step], schedule="whole_region")

    def test_a_budget(self):
        def step():
            return self.model(self.x)

        trace = rematch.trace(self.model, step)
        peak = rematch.predict(trace, rematch.resolve(trace, "full"), optimizer="adamw")["peak_bytes"]
        with contextlib.redirect_stderr(io.StringIO()):
            self.assert_follows(f"{peak}B", step=step, device="h100")
            self.assert_follows(peak, step=step, device="h100")
            self.assertIsNone(rematch.apply(self.model, peak, step=step, device="h100").zero_grad())
        self.assertIsInstance(rematch.checkpoint_of(self.model), rematch.SearchedCheckpoint)
        rematch.remove(self.model)

    def test_unusable_arguments_are_refused(self):
        for plan, kind, words in (("full", ValueError, "needs step="), ("1GiB", ValueError, "needs step="),
                                  (7, ValueError, "needs step=")):
            with self.subTest(plan=plan), self.assertRaisesRegex(kind, words):
                rematch.apply(self.model, plan)
        for plan, kind, words in ((self.plan(), ValueError, "leave it out"), (1.5, TypeError, "this is a float"),
                                  ("no_such_policy", rematch.PlanError, "no_such_policy"), ("12 apples", ValueError, "not a size")):
            with self.subTest(plan=str(plan)[:20]), self.assertRaisesRegex(kind, words):
                self.applied(plan=plan)
        with self.assertRaisesRegex(ValueError, "follows no plan"):
            rematch.checkpoint_of(self.model)
        rematch.apply(self.model, self.plan())
        with self.assertRaisesRegex(ValueError, "has scopes already"):
            rematch.apply(self.model, rematch.checkpoint_of(self.model))

    def test_a_plan_of_another_model(self):
        with self.assertRaisesRegex(rematch.PlanError, "which this Stack does not have"):
            rematch.apply(Stack(num_layers=2), self.plan())
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(rematch.PlanError, "no plan fits"):
            self.applied(plan="1KiB", device="h100")


class CopyTest(Case):
    def test_copies_follow_the_plan(self):
        names = list(self.model.state_dict())
        self.applied()
        self.assertEqual(list(self.model.state_dict()), names)
        Stack().load_state_dict(self.model.state_dict())
        count = self.num_recomputed(lambda: plain_step(self.model, self.x))
        for duplicate in (copy.deepcopy, through_pickle, through_torch_save):
            with self.subTest(duplicate=duplicate.__name__):
                copied = duplicate(self.model)
                self.assertEqual(self.num_recomputed(lambda copied=copied: plain_step(copied, self.x)), count)
                both = self.num_recomputed(lambda copied=copied: (copied(self.x) + self.model(self.x)).backward())
                self.assertEqual(both, 2 * count)
                rematch.remove(copied)
                self.assertEqual(self.num_recomputed(lambda copied=copied: plain_step(copied, self.x)), 0)
        self.assertEqual(self.num_recomputed(lambda: plain_step(self.model, self.x)), count)

    def test_a_removed_model_is_unchanged(self):
        before = through_pickle(self.model).state_dict()
        self.applied()
        rematch.remove_scopes(self.model)  # removes everything that apply() added
        self.assertEqual([each for each in self.model.modules() if each._forward_pre_hooks or each._forward_hooks], [])
        self.assert_equal(before.values(), self.model.state_dict().values())


if __name__ == "__main__":
    unittest.main()
