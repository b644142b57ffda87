"""Tests steps of several shapes, such as padded and unpadded batches, under one plan for all of them."""

import contextlib
import copy
import importlib.util
import io
import pickle
import unittest
import warnings
from unittest import mock

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from follow_test import DEVICE, PLAIN, are_equal, batches, made, train  # noqa: E402

NUM_STEPS = 6
SCHEDULES = ("whole_region", "on_demand")
KINDS = [PLAIN, {"mask": True}]
PAIRS = [("full", "save_mm"), ("save_mm", "full"), ("full", "none"), ("none", "full"), ("segments(2)", "full"),
         ("nth_first(2)", "segments(2)")]


def step_of(model, kind):
    return lambda: model(batches()[0], kind)


def steps_of(model):
    return [step_of(model, kind) for kind in range(len(model.kinds))]


def combined(kinds, policies):
    """Makes one plan for several shapes. Returns the plan, and the trace of each shape."""
    model = made(kinds)
    traces = rematch.trace(model, steps_of(model))
    return rematch.combine(traces, [rematch.resolve(trace, policy) for trace, policy in zip(traces, policies, strict=True)]), traces


def figures_of(model, kind, checkpoint):
    torch.manual_seed(0)
    with rematch.watch(model) as figures:
        with rematch.recording(checkpoint):
            loss = model(batches()[0], kind)
        loss.backward()
    model.zero_grad(set_to_none=True)
    return sum(figures["ops"]["recompute"].values()), max(figures["peak_bytes"].values()) - figures["before_bytes"]


class ShapesTest(unittest.TestCase):
    def test_bits_counts_and_bytes_of_both_shapes(self):
        expected = train(made(KINDS), None, batches()[:NUM_STEPS])
        for policies in PAIRS:
            plan, traces = combined(KINDS, policies)
            for schedule in SCHEDULES:
                with self.subTest(policies=policies, schedule=schedule):
                    checkpoint = rematch.Checkpoint(plan, schedule)
                    model = made(KINDS)
                    with rematch.scopes(model, checkpoint), warnings.catch_warnings():
                        warnings.simplefilter("error")
                        self.assertTrue(are_equal(expected, train(model, checkpoint, batches()[:NUM_STEPS])))
                        for kind in (1, 0, 1):
                            predicted = rematch.predict(traces, plan, schedule)[kind]
                            recomputed, peak = figures_of(model, kind, checkpoint)
                            self.assertEqual(recomputed, predicted["recomputed_ops"])
                            if DEVICE == "cpu":
                                self.assertEqual(peak, predicted["peak_bytes"] - predicted["before_bytes"])
                    self.assertEqual({row["left"] for row in checkpoint.report()}, {0})
                    self.assertEqual({row["shape"] for row in checkpoint.report()}, {0, 1})

    def test_check_proves_the_counts_of_each_shape(self):
        plan, traces = combined(KINDS, ("full", "save_mm"))
        checkpoint = rematch.Checkpoint(plan)
        for kind in (0, 1):
            model = made(KINDS)
            found = rematch.check(model, step_of(model, kind), checkpoint)
            self.assertTrue(found["bits_equal"])
            self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"],
                             rematch.predict(traces[kind], plan)["recomputed_ops"])
        third = [*KINDS, {"scale": True}]
        model = made(third)
        with self.assertRaisesRegex(rematch.RematchError, "the plan expects"):
            rematch.check(model, step_of(model, 2), checkpoint)

    def test_a_step_of_an_unknown_shape_is_reported_and_counted(self):
        third = [*KINDS, {"scale": True}]
        plan, _ = combined(KINDS, ("full", "save_mm"))
        checkpoint = rematch.Checkpoint(plan)
        model = made(third)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(model, checkpoint, batches()[:NUM_STEPS])
        self.assertEqual(len(caught), 1, [str(each.message) for each in caught])
        self.assertIn("take a list of steps", str(caught[0].message))
        self.assertEqual(sum(row["left"] for row in checkpoint.report()), NUM_STEPS // 3 * 4)
        self.assertIn("| shape | region type | passes |", str(checkpoint.report()))

    def test_the_scopes_of_all_shapes(self):
        plan, _ = combined(KINDS, ("none", "full"))
        checkpoint = rematch.Checkpoint(plan)
        self.assertEqual(checkpoint.scope_names(), [f"layers.{index}" for index in range(4)])
        self.assertEqual(len(checkpoint.shapes()), 2)
        self.assertIs(copy.deepcopy(checkpoint), checkpoint)
        self.assertEqual(pickle.loads(pickle.dumps(checkpoint)).plan, plan)

    def test_steps_that_skip_layers(self):
        kinds = [PLAIN, {"order": [0, 2]}]
        expected = train(made(kinds), None, batches()[:NUM_STEPS])
        plan, traces = combined(kinds, ("full", "save_mm"))
        checkpoint = rematch.Checkpoint(plan)
        model = made(kinds)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(are_equal(expected, train(model, checkpoint, batches()[:NUM_STEPS])))

    def test_counts_and_bytes_of_steps_that_skip_layers(self):
        kinds = [PLAIN, {"order": [0, 2]}]
        for policies in (("full", "save_mm"), ("save_mm", "full"), ("none", "full"), ("full", "nth_first(2)")):
            plan, traces = combined(kinds, policies)
            for schedule in SCHEDULES:
                with self.subTest(policies=policies, schedule=schedule):
                    checkpoint = rematch.Checkpoint(plan, schedule)
                    model = made(kinds)
                    with rematch.scopes(model, checkpoint):
                        for kind in (1, 0, 1):
                            predicted = rematch.predict(traces, plan, schedule)[kind]
                            recomputed, peak = figures_of(model, kind, checkpoint)
                            self.assertEqual(recomputed, predicted["recomputed_ops"])
                            if DEVICE == "cpu":
                                self.assertEqual(peak, predicted["peak_bytes"] - predicted["before_bytes"])

    def test_lists_of_traces(self):
        model = made(KINDS)
        traces = rematch.trace(model, steps_of(model))
        self.assertEqual(len(traces), 2)
        plan = rematch.resolve(traces, "full")
        self.assertEqual(plan["other_shapes"][0]["policy"], "full")
        fronts = rematch.search(traces, device="h100", optimizer="none", points=2, budget="1GiB")
        self.assertEqual(len(fronts), 2)
        self.assertEqual([front["answer"]["plan"]["trace_sha256"] for front in fronts],
                         [plan["trace_sha256"], plan["other_shapes"][0]["trace_sha256"]])
        self.assertEqual(rematch.combine(traces[:1], [plan]), plan)
        for refused in (lambda: rematch.combine(traces, [rematch.resolve(traces[0], "full")] * 2),
                        lambda: rematch.combine(traces, [plan])):
            with self.assertRaisesRegex(rematch.RematchError, r"was made for a different trace than trace 1|1 plans for 2 traces"):
                refused()
        with self.assertRaisesRegex(ValueError, "2 traces; profile must be a list with one profile for each"):
            rematch.search(traces, profile=[{}])

    def test_auto_searches_again_if_one_plan_exceeds_the_budget(self):
        for kinds in ([PLAIN, {"mask": True}, {"scale": True}], [PLAIN, {"order": [0, 2]}]):
            num_lower = 0
            for budget in range(24000, 36000, 3000):
                model = made(kinds)
                with contextlib.redirect_stderr(io.StringIO()):
                    checkpoint = rematch.auto(model, steps_of(model), budget=budget, device="h100", optimizer="none")
                peaks = [each["peak_bytes"] for each in
                         rematch.predict(rematch.trace(model, steps_of(model)), checkpoint.plan, optimizer="none")]
                self.assertLessEqual(max(peaks), budget)
                num_lower += any(front["budget_bytes"] < budget for front in checkpoint.fronts)
            self.assertGreater(num_lower, 0, kinds)

    def test_auto_says_that_no_plan_serves_all_steps(self):
        model = made([PLAIN, {"order": [0, 2]}])
        with mock.patch("rematch.automatic._search_lower", return_value=False), contextlib.redirect_stderr(io.StringIO()), \
                self.assertRaisesRegex(rematch.RematchError, "no plan for all steps fits into .*; the smallest plan found needs"):
            rematch.auto(model, steps_of(model), budget=30500, device="h100", optimizer="none")

    def test_auto(self):
        model = made(KINDS)
        traces = rematch.trace(model, steps_of(model))
        full = rematch.predict(traces, rematch.resolve(traces, "full"), optimizer="adamw")
        budget = max(each["peak_bytes"] for each in full) + 2048
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            checkpoint = rematch.auto(model, steps_of(model), budget=budget, device="h100")
        self.assertEqual(len(checkpoint.fronts), 2)
        for number in (1, 2):
            for line in ("plans worth having", "predicted: peak", "ran the plan once: bits equal"):
                self.assertRegex(said.getvalue(), f"step {number} of 2: .*{line}")
        self.assertRegex(said.getvalue(), "one plan for all steps, predicted peaks: .*, ")
        for each in rematch.predict(traces, checkpoint.plan, optimizer="adamw"):
            self.assertLessEqual(each["peak_bytes"], budget)
        expected = train(made(KINDS), None, batches()[:NUM_STEPS])
        model = made(KINDS)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(are_equal(expected, train(model, checkpoint, batches()[:NUM_STEPS])))
        with self.assertRaisesRegex(rematch.RematchError, "step 1 of 2: no plan fits into"):
            rematch.auto(model, steps_of(model), budget=10, device="h100")
        with self.assertRaisesRegex(ValueError, "empty list of steps"):
            rematch.auto(model, [], budget=10)


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class LlamaTest(unittest.TestCase):
    """Tests Llama, whose attention runs different ops for a padded batch."""

    def setUp(self):
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        self.model = LlamaForCausalLM(LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=64, use_cache=False))
        ids = torch.randint(0, 64, (2, 16))
        mask = torch.ones_like(ids)
        mask[0, 10:] = 0
        self.steps = [self.step(ids, None), self.step(ids, mask)]

    def step(self, ids, mask):
        return lambda: self.model(input_ids=ids, attention_mask=mask, labels=ids).loss

    def run_steps(self, checkpoint):
        found = []
        for step in (0, 1, 1, 0):
            with rematch.recording(checkpoint) if checkpoint else contextlib.nullcontext():
                loss = self.steps[step]()
            loss.backward()
            found += [loss.detach()] + [parameter.grad.clone() for parameter in self.model.parameters()]
            self.model.zero_grad(set_to_none=True)
        return found

    def test_padded_and_unpadded_batches(self):
        expected = self.run_steps(None)
        traces = rematch.trace(self.model, self.steps)
        for policies in (("full", "full"), ("full", "save_mm"), ("none", "full")):
            plan = rematch.combine(traces, [rematch.resolve(trace, policy)
                                            for trace, policy in zip(traces, policies, strict=True)])
            for schedule in SCHEDULES:
                with self.subTest(policies=policies, schedule=schedule):
                    checkpoint = rematch.Checkpoint(plan, schedule)
                    for step, trace in zip(self.steps, traces, strict=True):
                        found = rematch.check(self.model, step, checkpoint)
                        self.assertTrue(found["bits_equal"])
                        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"],
                                         rematch.predict(trace, plan, schedule)["recomputed_ops"])
                    with rematch.scopes(self.model, checkpoint), warnings.catch_warnings():
                        warnings.simplefilter("error")
                        self.assertTrue(are_equal(expected, self.run_steps(checkpoint)))
                    self.assertEqual({row["left"] for row in checkpoint.report()}, {0})


if __name__ == "__main__":
    unittest.main()
