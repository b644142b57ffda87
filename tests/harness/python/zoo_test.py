"""Tests models of other packages, with small configurations and random weights. Runs every policy and a searched front
under both schedules, and checks bits, executed ops and peaks."""

import importlib.util
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch._step import run_first_step  # noqa: E402
from zoo import PACKAGE_OF, albert  # noqa: E402

POLICIES = ("full", "save_mm", "nth_first(2)", "only_list([1])", "segments(2)")
POLICIES_OF_ONE_LAYER = ("full", "save_mm")
SCHEDULES = ("whole_region", "on_demand")
# Autograd saves a Python number, such as 0.5 in 0.5 * x, as a tensor of 8 bytes. Saved-tensor hooks do not see this
# tensor, so traces do not contain it.
PEAK_TOLERANCE = 1e-4
NUM_FRONT_POINTS = 5


class ZooTest(unittest.TestCase):
    def check(self, make):
        if importlib.util.find_spec(PACKAGE_OF[make]) is None:
            self.skipTest(f"{PACKAGE_OF[make]} is not installed")
        torch.manual_seed(0)
        model, step = make()
        model.train()
        run_first_step(model, step)
        trace = rematch.trace(model, step)
        for policy in POLICIES_OF_ONE_LAYER if make is albert else POLICIES:
            plan = rematch.resolve(trace, policy)
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    self.check_plan(model, step, trace, plan, schedule)
        for schedule in SCHEDULES:
            front = rematch.search(trace, device="h100", schedule=schedule, optimizer="none", points=NUM_FRONT_POINTS)
            self.assertGreater(len(front["points"]), 2)
            for point in front["points"]:
                with self.subTest(policy=point["policy"], schedule=schedule):
                    self.check_plan(model, step, trace, point["plan"], schedule)

    def check_plan(self, model, step, trace, plan, schedule):
        if not plan["regions"]:
            return
        predicted = rematch.predict(trace, plan, schedule)
        found = rematch.check(model, step, rematch.Checkpoint(plan, schedule))
        peak = predicted["peak_bytes"] - predicted["before_bytes"]
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
        self.assertLessEqual(abs(found["checkpointed"]["peak_bytes"] - peak), PEAK_TOLERANCE * peak)


def add_tests():
    for make in PACKAGE_OF:
        setattr(ZooTest, f"test_{make.__name__}", lambda self, make=make: self.check(make))


add_tests()

if __name__ == "__main__":
    unittest.main()
