"""Tests the engine with common ways to train in PyTorch. Loss and gradients must be bit-identical to those without the
engine, and no memory or state may be left behind."""

import contextlib
import copy
import gc
import pathlib
import tempfile
import threading
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch._library import LIBRARY  # noqa: E402
from rematch.selftest import Model  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")
NUM_LEAK_STEPS = 20


def gradients_of(model):
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]


class Case(unittest.TestCase):
    """Runs a model with dropout from the same seed, with and without a plan."""

    def setUp(self):
        torch.manual_seed(0)
        self.model = Model()
        self.x = torch.randn(256, 32)

    def run_from_seed(self, train):
        self.model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        result = train()
        return [result, *gradients_of(self.model), torch.get_rng_state()]

    def assert_same_bits(self, expected, found):
        self.assertEqual(len(expected), len(found))
        for want, have in zip(expected, found):
            if isinstance(want, torch.Tensor):
                self.assertTrue(torch.equal(want, have))
            else:
                self.assertEqual(want, have)

    def check(self, train, step=None, policy="full"):
        """Compares training with and without a plan. `train(recorded)` calls recorded(forward) for each forward pass,
        and returns a tensor."""
        expected = self.run_from_seed(lambda: train(lambda forward: forward()))
        trace = rematch.trace(self.model, step or (lambda: self.model(self.x)))
        plan = rematch.resolve(trace, policy)
        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule), rematch.scopes(self.model):
                checkpoint = rematch.Checkpoint(plan, schedule)

                def recorded(forward):
                    with rematch.recording(checkpoint):
                        return forward()

                with rematch.watch() as figures:
                    self.assert_same_bits(expected, self.run_from_seed(lambda: train(recorded)))
                self.assertGreater(sum(figures["ops"]["recompute"].values()), 0)
                self.assert_no_leak(lambda: train(recorded))

    def assert_no_leak(self, run):
        def held_after(num_steps):
            for _ in range(num_steps):
                self.model.zero_grad(set_to_none=True)
                run()
            self.model.zero_grad(set_to_none=True)
            gc.collect()
            return rematch.allocated_bytes()

        after_one = held_after(1)
        self.assertEqual(after_one, held_after(NUM_LEAK_STEPS))


class TrainingTest(Case):
    def test_a_plain_step(self):
        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)
        self.check(train, policy="save_mm")

    def test_gradient_accumulation(self):
        def train(recorded):
            for half in self.x.chunk(2):
                (recorded(lambda: self.model(half)) / 2).backward()
            return self.x
        self.check(train, step=lambda: self.model(self.x[:128]))

    def test_batches_with_another_size_than_the_trace(self):
        def train(recorded):
            for rows in (3, 64, 256):
                recorded(lambda rows=rows: self.model(self.x[:rows])).backward()
            return self.x
        self.check(train)
        self.check(train, policy="save_mm")

    def test_retain_graph(self):
        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            loss.backward(retain_graph=True)
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_double_backward(self):
        def train(recorded):
            x = self.x.clone().requires_grad_()
            loss = recorded(lambda: self.model(x))
            (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
            gradient.square().sum().backward()
            return gradient.detach()
        self.check(train)

    def test_a_forward_without_grad_inside(self):
        def train(recorded):
            def forward():
                with torch.no_grad():
                    self.model(self.x)
                return self.model(self.x)
            loss = recorded(forward)
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_autocast(self):
        def forward():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.model(self.x)

        def train(recorded):
            loss = recorded(forward)
            loss.backward()
            return loss.detach()
        self.check(train, step=forward)

    def test_tied_weights(self):
        for layer in self.model.layers[1:]:
            layer.feed_forward[0].weight = self.model.layers[0].feed_forward[0].weight

        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_backward_on_another_thread(self):
        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
            return loss.detach()
        self.check(train)

    def test_an_exception_in_forward(self):
        def fail(*_):
            raise KeyError("in forward")

        def train(recorded):
            handle = self.model.layers[2].feed_forward[1].register_forward_pre_hook(fail)
            with self.assertRaisesRegex(KeyError, "in forward"):
                recorded(lambda: self.model(self.x))
            handle.remove()
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_an_exception_in_backward(self):
        def fail(_):
            raise KeyError("in backward")

        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            handle = self.model.layers[1].norm.weight.register_hook(fail)
            with self.assertRaisesRegex(KeyError, "in backward"):
                loss.backward()
            handle.remove()
            self.model.zero_grad(set_to_none=True)
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_an_exception_that_the_model_catches(self):
        forward = self.model.layers[2].feed_forward[1].forward

        def with_a_second_try(x):
            try:
                torch.mm(x, x)
            except RuntimeError:
                return forward(x)

        self.model.layers[2].feed_forward[1].forward = with_a_second_try

        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)

    def test_a_fused_optimizer_and_its_next_step(self):
        start = {name: value.clone() for name, value in self.model.state_dict().items()}

        def train(recorded):
            self.model.load_state_dict(start)
            optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2, fused=True)
            for _ in range(2):
                optimizer.zero_grad(set_to_none=True)
                loss = recorded(lambda: self.model(self.x))
                loss.backward()
                optimizer.step()
            return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])
        self.check(train)

    def test_a_dispatch_mode_around_the_step(self):
        from torch.utils.flop_counter import FlopCounterMode

        def train(recorded):
            with FlopCounterMode(display=False):
                loss = recorded(lambda: self.model(self.x))
                loss.backward()
            return loss.detach()
        self.check(train)

    def test_dropout_draws_the_same_mask_again(self):
        masks = []

        class Seen(torch.nn.Dropout):
            def forward(self, x):
                dropped = super().forward(x)
                masks.append((dropped == 0).detach())
                return dropped

        for layer in self.model.layers:
            layer.feed_forward[2] = Seen(0.5)

        def train(recorded):
            masks.clear()
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            self.assertEqual(len(masks), len(self.model.layers))
            self.assertTrue(all(mask.any() and not mask.all() for mask in masks))
            return torch.stack(masks)
        self.check(train)

    def test_a_grad_scaler(self):
        start = {name: value.clone() for name, value in self.model.state_dict().items()}

        def forward():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.model(self.x)

        def train(recorded):
            self.model.load_state_dict(start)
            optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
            scales = []
            for _ in range(4):  # in the first steps gradients overflow, so the scaler skips them
                optimizer.zero_grad(set_to_none=True)
                scaler.scale(recorded(forward)).backward()
                scaler.step(optimizer)
                scaler.update()
                scales.append(scaler.get_scale())
            return torch.cat([torch.tensor(scales), *(p.detach().flatten() for p in self.model.parameters())])
        self.check(train, step=forward)

    def test_compiled_functions_outside_of_layers(self):
        before = torch.compile(lambda x: x * 2 + 1, backend="aot_eager")
        after = torch.compile(lambda x: (x * x.sigmoid()).mean(), backend="aot_eager")

        def forward():
            x = before(self.x)
            for layer in self.model.layers:
                x = layer(x)
            return after(x)

        def train(recorded):
            loss = recorded(forward)
            loss.backward()
            return loss.detach()
        for policy in ("full", "segments(2)"):
            self.check(train, step=forward, policy=policy)
            trace = rematch.trace(self.model, forward)
            self.assertEqual(rematch.profile(self.model, forward, trace, num_steps=1)["source"], "measured")

    def test_two_lists_of_blocks(self):
        class TwoLists(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = Model(num_layers=2)
                self.decoder = Model(num_layers=2)

            def forward(self, x):
                for layer in [*self.encoder.layers, *self.decoder.layers]:
                    x = layer(x)
                return x.square().mean()

        self.model = TwoLists()
        self.assertEqual(list(rematch.find_blocks(self.model)), ["encoder.layers", "decoder.layers"])

        def train(recorded):
            loss = recorded(lambda: self.model(self.x))
            loss.backward()
            return loss.detach()
        self.check(train)


class ScopesTest(Case):
    def hooked(self):
        return sorted(name for name, module in self.model.named_modules() if module._forward_pre_hooks)

    def test_the_scopes_of_a_plan_are_the_ends_of_its_regions(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        plan = rematch.resolve(trace, "nth_first(2)")
        with rematch.scopes(self.model, rematch.Checkpoint(plan)):
            self.assertEqual(self.hooked(), ["layers.0", "layers.2"])
        self.assertEqual(self.hooked(), [])
        with rematch.scopes(self.model):
            self.assertEqual(len(self.hooked()), 4 * 7)

    def test_regions_inside_layers(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        front = rematch.search(trace, device="h100", optimizer="none")
        plans = [point["plan"] for point in front["points"]
                 if any(region["first_scope"].count(".") > 1 for region in point["plan"]["regions"])]
        self.assertGreater(len(plans), 0)
        for plan in plans:
            ends = {region[end] for region in plan["regions"] for end in ("first_scope", "last_scope")}
            with rematch.scopes(self.model, rematch.Checkpoint(plan)):
                self.assertEqual(self.hooked(), sorted(ends))
            # The model still has its scopes, and check() must accept this.
            found = rematch.check(self.model, lambda: self.model(self.x), rematch.Checkpoint(plan))
            self.assertTrue(found["bits_equal"])
            self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"],
                             rematch.predict(trace, plan)["recomputed_ops"])


class RefusalTest(Case):
    def setUp(self):
        super().setUp()
        self.trace = rematch.trace(self.model, lambda: self.model(self.x))
        self.plan = rematch.resolve(self.trace, "full")
        self.checkpoint = rematch.Checkpoint(self.plan)
        self.sound = Model()

    def step(self):
        return self.model(self.x)

    def loss(self):
        with rematch.scopes(self.model), rematch.recording(self.checkpoint):
            return self.model(self.x)

    def assert_refused(self, run, words, kind=RuntimeError):
        """Requires an error of one line. After the error, no bytes, gradients, scopes or hooks may be left behind, and
        a step of another model must work."""
        gc.collect()
        before = rematch.allocated_bytes()
        with self.assertRaisesRegex(kind, words) as error:
            run()
        self.assertNotIn("\n", str(error.exception).strip())
        del error
        gc.collect()
        self.assertEqual(rematch.allocated_bytes(), before)
        self.assertEqual(LIBRARY.rematch_is_in_scope(), 0)
        self.assertEqual([name for name, module in self.model.named_modules() if module._forward_pre_hooks], [])
        self.assertTrue(rematch.check(self.sound, lambda: self.sound(self.x), self.checkpoint)["bits_equal"])

    def test_a_parameter_that_changed_before_backward(self):
        def run():
            loss = self.loss()
            with torch.no_grad():
                self.model.layers[1].feed_forward[0].weight.mul_(2)
            try:
                loss.backward()
            finally:
                self.model.zero_grad(set_to_none=True)

        self.assert_refused(run, "region layers.1.*was changed in place before backward")

    def test_a_compiled_function_that_runs_the_model(self):
        compiled = torch.compile(lambda x: self.model(x) * 2, backend="eager")
        with self.assertWarnsRegex(UserWarning, "runs in a function of torch.compile|called no module that the plan governs"), \
                rematch.scopes(self.model), rematch.recording(rematch.Checkpoint(self.plan)):
            torch.manual_seed(5)  # seeds the generator from which dropout draws
            found = compiled(self.x)
        torch.manual_seed(5)
        self.assertTrue(torch.equal(found, self.model(self.x) * 2))

    def checkpoints(self, module, use_reentrant):
        forward = module.forward
        module.forward = lambda x: torch.utils.checkpoint.checkpoint(forward, x, use_reentrant=use_reentrant)

    def test_checkpointed_functions(self):
        for use_reentrant, layer in ((False, self.model.layers[0]), (True, self.model.layers[1])):
            with self.subTest(use_reentrant=use_reentrant):
                forward = layer.feed_forward.forward
                self.checkpoints(layer.feed_forward, use_reentrant)
                self.assert_refused(lambda: rematch.trace(self.model, self.step), "checkpoint runs inside a layer")
                self.model(self.x).backward()
                self.model.zero_grad(set_to_none=True)
                layer.feed_forward.forward = forward

    def test_a_trace_of_layers_inside_a_checkpoint(self):
        def step():
            return torch.utils.checkpoint.checkpoint(self.step, use_reentrant=False)

        self.assert_refused(lambda: rematch.trace(self.model, step), "scope layers.0.norm runs inside torch.utils.checkpoint")
        self.loss().backward()

    def test_a_checkpointed_loss_stays_with_the_program(self):
        target = torch.zeros_like(self.x)

        def loss(x):
            return torch.utils.checkpoint.checkpoint(torch.nn.functional.mse_loss, x, target, use_reentrant=False)

        with rematch.scopes(self.model), rematch.recording(self.checkpoint):
            x = self.x
            for layer in self.model.layers:
                x = layer(x)
            loss(x).backward()

    def test_a_plan_of_another_model(self):
        self.model.layers[2].feed_forward[1] = torch.nn.ReLU()
        self.checkpoint = rematch.Checkpoint(self.checkpoint.plan, on_mismatch="refuse")
        self.assert_refused(self.loss, "region layers.2.*the plan expects aten::gelu", rematch.RematchError)

    def test_a_model_with_fewer_layers_than_the_plan(self):
        self.model = Model(num_layers=3)
        self.assert_refused(lambda: rematch.check(self.model, self.step, self.checkpoint),
                            "the plan governs layers.3, which this Model does not have: its layers are layers.0 to layers.2;",
                            ValueError)

    def test_a_model_that_has_scopes(self):
        for run in (lambda: rematch.scopes(self.model, self.checkpoint), lambda: rematch.trace(self.model, self.step),
                    lambda: rematch.check(self.model, self.step, self.checkpoint)):
            with rematch.scopes(self.model):
                num_hooks = sum(len(module._forward_pre_hooks) for module in self.model.modules())
                with self.assertRaisesRegex(ValueError, "layers.0 has scopes already; call rematch.remove_scopes"):
                    run()
                self.assertEqual(sum(len(module._forward_pre_hooks) for module in self.model.modules()), num_hooks)

    def test_layers_of_another_model(self):
        flat = torch.nn.Linear(32, 32)
        self.assert_refused(lambda: rematch.trace(flat, lambda: flat(self.x).sum()),
                            "Linear has no list of equal layers; name them: blocks=", ValueError)
        for blocks, words in (({"layers": [flat]}, r"blocks\['layers'\]\[0\], a Linear, is not a module of this Model"),
                              ({"layers": []}, r"blocks\['layers'\] is empty")):
            self.assert_refused(lambda blocks=blocks: rematch.scopes(self.model, blocks=blocks), words, ValueError)

        def of_another_model():
            try:
                rematch.trace(self.model, lambda: self.sound(self.x))
            finally:
                self.sound.zero_grad(set_to_none=True)

        self.assert_refused(of_another_model, "step\\(\\) ran no layer of this Model")

    def test_unusable_steps_are_refused(self):
        def without_grad():
            with torch.no_grad():
                return self.step()

        def with_backward():
            self.step().backward()
            return self.step()

        for step, kind, words in ((lambda: None, TypeError, "returned a NoneType"),
                                  (lambda: self.model.layers[0](self.x), ValueError, r"it returned \[256, 32\]"),
                                  (without_grad, ValueError, "returned a loss that needs no gradient"),
                                  (with_backward, ValueError, "step\\(\\) ran backward")):
            for run in (lambda step=step: rematch.trace(self.model, step),
                        lambda step=step: rematch.check(self.model, step, self.checkpoint)):
                self.assert_refused(run, words, kind)

    def test_steps_inside_a_recorded_step(self):
        def run(name, function):
            with rematch.scopes(self.model), rematch.recording(self.checkpoint):
                self.step()
                function()

        for name, function in (("trace", lambda: rematch.trace(self.sound, self.step)),
                               ("check", lambda: rematch.check(self.sound, self.step, self.checkpoint)),
                               ("profile", lambda: rematch.profile(self.sound, self.step, self.trace))):
            self.assert_refused(lambda name=name, function=function: run(name, function),
                                f"rematch.{name} runs its own steps, but was called in a recorded step")

    def test_other_objects_than_checkpoints_are_refused(self):
        self.assert_refused(lambda: rematch.check(self.model, self.step, self.plan),
                            "a rematch.Checkpoint is needed, but this is a dict", TypeError)
        with self.assertRaisesRegex(TypeError, "a rematch.Checkpoint is needed, but this is a dict"), rematch.recording(self.plan):
            pass
        for trace in (None, [None, None]):
            with self.assertRaisesRegex(TypeError, "rematch.resolve got None for a trace"):
                rematch.resolve(trace, "full")
            with self.assertRaisesRegex(TypeError, "rematch.predict got None for a trace"):
                rematch.predict(trace, self.plan)
            with self.assertRaisesRegex(TypeError, "rematch.search got None for a trace"):
                rematch.search(trace, device="h100")
        for step in (None, [self.step, None], "loss"):
            with self.assertRaisesRegex(TypeError, "rematch.trace takes a function that runs forward"):
                rematch.trace(self.model, step)
            with self.assertRaisesRegex(TypeError, "rematch.auto takes a function that runs forward"):
                rematch.auto(self.model, step, budget="1GiB")

    def test_files_without_a_plan_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "front.json"
            for text, words in (("{", "front.json is not a JSON file"), ('{"points": [{}, {}]}', "has 2 points; name one"),
                                ("[]", "a JSON object is expected")):
                path.write_text(text, encoding="utf-8")
                self.assert_refused(lambda: rematch.Checkpoint(path), words, Exception)
            path.write_text('{"points": [{}, {}]}', encoding="utf-8")
            for number in ("2", "x", "-1"):
                self.assert_refused(lambda number=number: rematch.Checkpoint(f"{path}#{number}"), "has 2 points; name one",
                                    ValueError)

    def test_a_schedule_and_a_policy_that_do_not_exist(self):
        with self.assertRaisesRegex(rematch.RematchError, "must be whole_region or on_demand"):
            rematch.Checkpoint(self.plan, "lazily")
        with self.assertRaisesRegex(rematch.RematchError, "did you mean 'full'"):
            rematch.resolve(self.trace, "ful")
        with self.assertRaisesRegex(rematch.RematchError, "optimizer is 'adamz'; it must be one of none, .*adamw"):
            rematch.search(self.trace, device="h100", optimizer="adamz")
        with self.assertRaisesRegex(ValueError, "points is 0"):
            rematch.search(self.trace, device="h100", points=0)


class WatchTest(Case):
    """Tests what rematch.watch reports: executed ops by phase, and held bytes by holder."""

    def step_with_optimizer(self, recorded=contextlib.nullcontext):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            with recorded():
                loss = self.model(self.x)
            loss.backward()
            optimizer.step()

    def test_bytes_by_phase_and_holder(self):
        parameters = sum(p.numel() * p.element_size() for p in self.model.parameters())
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        for policy in ("none", "full"):
            with self.subTest(policy=policy), rematch.scopes(self.model):
                checkpoint = rematch.Checkpoint(rematch.resolve(trace, policy))
                with rematch.watch(self.model) as figures:
                    self.step_with_optimizer(lambda checkpoint=checkpoint: rematch.recording(checkpoint))
                self.assertEqual(set(figures["holders_bytes"]),
                                 {"forward", "backward", "optimizer"} | ({"recompute"} if policy == "full" else set()))
                self.assertGreater(figures["ops"]["optimizer"]["aten::addcdiv_"], 0)
                for phase, held in figures["holders_bytes"].items():
                    self.assertEqual(held["parameters"], parameters, phase)
                    self.assertEqual(sum(held.values()), figures["peak_bytes"][phase], phase)
                    self.assertTrue(all(size >= 0 for size in held.values()), held)
                self.assertEqual(max(figures["peak_bytes"].values()), sum(figures["holders_at_peak_bytes"].values()))
                self.assertEqual(figures["holders_bytes"]["optimizer"]["gradients"], parameters)
                self.assertGreaterEqual(figures["holders_bytes"]["optimizer"]["optimizer"], 2 * parameters)
                self.model.zero_grad(set_to_none=True)

    def test_a_step_holds_the_predicted_bytes(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        for policy in ("none", "full", "save_mm"):
            plan = rematch.resolve(trace, policy)
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule), rematch.scopes(self.model):
                    with rematch.watch(self.model) as figures:
                        with rematch.recording(rematch.Checkpoint(plan, schedule)):
                            loss = self.model(self.x)
                        loss.backward()
                    predicted = rematch.predict(trace, plan, schedule)["holders_at_peak_bytes"]
                    held = figures["holders_at_peak_bytes"]
                    for holder in ("parameters", "gradients", "optimizer"):
                        self.assertEqual(held[holder], predicted[holder], holder)
                    for holder in ("saved_activations", "recompute_transient"):
                        self.assertAlmostEqual(held[holder], predicted[holder], delta=1e-3 * sum(held.values()), msg=holder)
                    self.model.zero_grad(set_to_none=True)

    def test_parameters_count_as_other_without_a_model(self):
        with rematch.watch(self.model):
            pass  # the next watch must not use the model of this watch
        with rematch.watch() as figures:
            self.model(self.x).backward()
        self.assertEqual(figures["holders_at_peak_bytes"]["parameters"], 0)
        self.assertEqual(figures["ops"]["optimizer"], {})

    def test_a_second_watch_is_refused_and_the_first_keeps_its_holders(self):
        def held_in_a_step(before_backward):
            with rematch.watch(self.model) as figures:
                loss = self.model(self.x)
                before_backward()
                loss.backward()
            self.model.zero_grad(set_to_none=True)
            return figures

        def begin_a_second():
            with self.assertRaisesRegex(rematch.RematchError, "already active"), rematch.watch():
                self.fail("a second watch began")

        alone = held_in_a_step(lambda: None)
        self.assertGreater(alone["holders_bytes"]["backward"]["saved_activations"], 0)
        self.assertEqual(held_in_a_step(begin_a_second), alone)

    def test_a_step_that_fails_leaves_no_optimizer_behind(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

        def closure():
            raise KeyError("in step")

        with self.assertRaisesRegex(KeyError, "in step"), rematch.watch(self.model):
            optimizer.step(closure)
        with rematch.watch(self.model) as figures:
            self.model(self.x).backward()
        self.assertEqual(figures["ops"]["optimizer"], {})

    def test_a_model_on_another_device(self):
        with self.assertRaisesRegex(rematch.RematchError, "cuba"):
            with rematch.watch(device="cuba"):
                pass


class LeftAsItWasTest(Case):
    """Tests that steps run by rematch itself do not change a model with statistics and hooks."""

    def setUp(self):
        super().setUp()
        for layer in self.model.layers:
            layer.norm = torch.nn.BatchNorm1d(32)

    def runs(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        checkpoint = rematch.Checkpoint(rematch.resolve(trace, "full"))
        return (lambda: rematch.trace(self.model, lambda: self.model(self.x)),
                lambda: rematch.profile(self.model, lambda: self.model(self.x), trace, num_steps=1),
                lambda: self.assertTrue(rematch.check(self.model, lambda: self.model(self.x), checkpoint)["bits_equal"]))

    def test_buffers_and_generators(self):
        torch.manual_seed(3)
        buffers = [buffer.clone() for buffer in self.model.buffers()]
        state = torch.get_rng_state()
        for run in self.runs():
            run()
            self.assertTrue(torch.equal(torch.get_rng_state(), state))
            for before, after in zip(buffers, self.model.buffers(), strict=True):
                self.assertTrue(torch.equal(before, after))

    def test_hooks_that_the_program_set_on_its_gradients(self):
        called = []
        for parameter in self.model.parameters():
            parameter.register_post_accumulate_grad_hook(lambda _: called.append(1))
        num_parameters = sum(1 for _ in self.model.parameters())
        for run in self.runs():
            run()
            called.clear()
            self.model(self.x).backward()
            self.assertEqual(len(called), num_parameters)
            self.model.zero_grad(set_to_none=True)


class DocumentationTest(Case):
    def test_docstrings_name_the_keys_of_results(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        plan = rematch.resolve(trace, "full")
        front = rematch.search(trace, device="h100", optimizer="none", points=2)
        found = rematch.check(self.model, lambda: self.model(self.x), rematch.Checkpoint(plan))
        with rematch.watch() as figures:
            self.model(self.x)
        for function, keys in ((rematch.predict, rematch.predict(trace, plan)), (rematch.check, {**found, **found["plain"]}),
                               (rematch.watch, figures), (rematch.search, ("points", "answer", "plan"))):
            for key in keys:
                self.assertIn(f"`{key}`" if key != "answer" else '"answer"', function.__doc__, function)
        point = front["points"][0]
        for key in ("plan", "predicted_peak_allocated_bytes", "predicted_step_time_ns", "predicted_recomputed_ops", "saves"):
            self.assertIn(key, point)


class PredictionTest(Case):
    def test_counts_and_peaks_equal_the_predictions(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        for policy in ("full", "save_mm", "nth_first(2)", "segments(2)"):
            plan = rematch.resolve(trace, policy)
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    self.check_against_prediction(trace, plan, schedule)

    def test_plans_that_keep_one_op_of_layers_with_factories(self):
        """A factory such as torch.empty_like returns a new tensor object if other code holds the result of its op."""
        class Permuting(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(32, 32)

            def forward(self, x):
                y = self.linear(x)
                order = torch.argsort(y.detach()[:, 0])
                inverse = torch.empty_like(order)
                inverse[order] = torch.arange(order.size(0))
                noise = torch.zeros(y.shape)
                noise[:, ::2] = torch.rand(y.size(0), 16)
                return torch.sigmoid(y[inverse] + noise) + x * torch.randn_like(x)

        for index in range(4):
            self.model.layers[index] = Permuting()
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        full = rematch.resolve(trace, "full")
        ops = [kind["ops"] for kind in full["types"]]
        self.assertEqual({len(each) for each in ops}, {len(ops[0])})
        for op, planned in enumerate(ops[0]):
            plan = copy.deepcopy(full)
            for kind in plan["types"]:
                kind["ops"][op]["treatment"] = "save"
            for schedule in SCHEDULES:
                with self.subTest(op=planned["name"], schedule=schedule):
                    self.check_against_prediction(trace, plan, schedule)

    def check_against_prediction(self, trace, plan, schedule):
        predicted = rematch.predict(trace, plan, schedule)
        found = rematch.check(self.model, lambda: self.model(self.x), rematch.Checkpoint(plan, schedule))
        peak = predicted["peak_bytes"] - predicted["before_bytes"]
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
        self.assertAlmostEqual(found["checkpointed"]["peak_bytes"] / peak, 1, delta=1e-4)

    def test_every_searched_plan_runs_as_predicted(self):
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        front = rematch.search(trace, device="h100", optimizer="none", points=6)
        self.assertGreater(len(front["points"]), 2)
        for point in front["points"]:
            if not point["plan"]["regions"]:
                continue
            found = rematch.check(self.model, lambda: self.model(self.x), rematch.Checkpoint(point["plan"]))
            predicted = rematch.predict(trace, point["plan"])
            self.assertTrue(found["bits_equal"])
            self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])


if __name__ == "__main__":
    unittest.main()
