"""Tests that the predicted bytes of a step of several micro-batches are the bytes that such a step holds, and that a
budget for it is kept."""

import unittest

import rematch

rematch.count_memory()  # before the first tensor exists

import torch  # noqa: E402
from stack import Stack, batch  # noqa: E402

MICRO_BATCHES = 3


class AccumulateTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Stack(num_layers=4)
        self.batches = [batch(size=16) * (1 + index) for index in range(MICRO_BATCHES)]

    def step(self):
        return self.model(self.batches[0]) / MICRO_BATCHES

    def measured(self, checkpoint, micro_batches):
        """Returns by how many bytes the peak of a step exceeds the bytes before it. The step has no optimizer."""
        self.model.zero_grad(set_to_none=True)
        with rematch.watch(self.model) as figures:
            for x in self.batches[:micro_batches]:
                with rematch.recording(checkpoint), rematch.scopes(self.model, checkpoint):
                    loss = self.model(x) / MICRO_BATCHES
                loss.backward()
                del loss
        self.model.zero_grad(set_to_none=True)
        return max(figures["peak_bytes"].values()) - figures["before_bytes"]

    def test_the_predicted_peak_is_the_peak_of_a_step_of_several_micro_batches(self):
        trace = rematch.trace(self.model, self.step)
        for policy in ("none", "full", "save_mm"):
            plan = rematch.resolve(trace, policy)
            peaks = []
            for micro_batches in (1, 2, MICRO_BATCHES):
                with self.subTest(policy=policy, micro_batches=micro_batches):
                    predicted = rematch.predict(trace, plan, accumulate=micro_batches)
                    peaks.append(predicted["peak_bytes"])
                    measured = self.measured(rematch.Checkpoint(plan), micro_batches)
                    self.assertEqual(predicted["peak_bytes"] - predicted["before_bytes"], measured)
            self.assertGreater(peaks[1], peaks[0])
            self.assertEqual(peaks[1], peaks[2])

    def test_a_search_finds_plans_for_all_micro_batches(self):
        trace = rematch.trace(self.model, self.step)
        once = rematch.search(trace, device="h100", optimizer="none")
        front = rematch.search(trace, device="h100", optimizer="none", accumulate=MICRO_BATCHES)
        gradients = trace["gradient_bytes"]
        for point in front["points"]:
            predicted = rematch.predict(trace, point["plan"], accumulate=MICRO_BATCHES)
            self.assertEqual(predicted["peak_bytes"], point["predicted_peak_allocated_bytes"])
            self.assertEqual(predicted["recomputed_ops"], point["predicted_recomputed_ops"])
        self.assertEqual(front["dimensions"]["accumulate"], MICRO_BATCHES)
        fastest = once["points"][-1]["predicted_step_time_ns"]
        self.assertGreater(front["points"][-1]["predicted_step_time_ns"], 2 * fastest)
        self.assertLessEqual(front["points"][-1]["predicted_step_time_ns"], MICRO_BATCHES * fastest)
        self.assertGreater(front["points"][0]["predicted_peak_allocated_bytes"],
                           once["points"][0]["predicted_peak_allocated_bytes"])
        self.assertLessEqual(front["points"][0]["predicted_peak_allocated_bytes"],
                             once["points"][0]["predicted_peak_allocated_bytes"] + gradients)

    def test_auto_keeps_the_budget_in_every_micro_batch(self):
        trace = rematch.trace(self.model, self.step)
        front = rematch.search(trace, device="h100", optimizer="none", accumulate=MICRO_BATCHES)
        budget = front["points"][len(front["points"]) // 2]["predicted_peak_allocated_bytes"]
        checkpoint = rematch.auto(self.model, self.step, budget=budget, device="h100", optimizer="none",
                                  accumulate=MICRO_BATCHES)
        before = rematch.predict(trace, checkpoint.plan)["before_bytes"]
        self.assertLessEqual(before + self.measured(checkpoint, MICRO_BATCHES), budget)
        with self.assertRaisesRegex(rematch.PlanError, "no plan fits into"):
            rematch.auto(self.model, self.step, budget=front["points"][0]["predicted_peak_allocated_bytes"] - 1,
                         device="h100", optimizer="none", accumulate=MICRO_BATCHES)

    def test_fewer_than_one_micro_batch_is_refused(self):
        trace = rematch.trace(self.model, self.step)
        with self.assertRaisesRegex(ValueError, "accumulate is 0; a step has at least 1 micro-batch"):
            rematch.predict(trace, rematch.resolve(trace, "none"), accumulate=0)


if __name__ == "__main__":
    unittest.main()
