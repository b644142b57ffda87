"""Tests the option that compares results of recompute with results of forward."""

import gc
import subprocess
import sys
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")


class State:
    """The hidden state of the ops below is their number of calls."""

    num_calls = 0


@torch.library.custom_op("rematch_verify_test::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    State.num_calls += 1
    return x * (1 + 0.1 * State.num_calls)


@torch.library.custom_op("rematch_verify_test::noisy", mutates_args=())
def noisy(x: torch.Tensor) -> torch.Tensor:
    return x * (torch.rand(x.shape) > 0.3)


for _op in (counted, noisy):
    _op.register_autograd(lambda _, gradient: gradient)


class With(torch.nn.Module):
    def __init__(self, linear, op):
        super().__init__()
        self.linear, self.op = linear, op

    def forward(self, x):
        return self.op(self.linear(x))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Model(num_layers=3)
        self.x = torch.randn(16, 32)

    def step(self):
        State.num_calls = 0
        return self.model(self.x)

    def put(self, op, layers=(1,)):
        for index in layers:
            self.model.layers[index].feed_forward[0] = With(self.model.layers[index].feed_forward[0], op)

    def checkpoint(self, policy="full", schedule="on_demand"):
        trace = rematch.trace(self.model, self.step)
        return rematch.Checkpoint(rematch.resolve(trace, policy), schedule)


class CheckTest(Case):
    def test_a_step_that_repeats_has_no_differences(self):
        for policy in ("full", "save_mm"):
            for schedule in SCHEDULES:
                found = rematch.check(self.model, self.step, self.checkpoint(policy, schedule))
                self.assertEqual((found["bits_equal"], found["recompute_differences"]), (True, []))

    def test_the_first_op_that_differs_is_named_and_kept_on_request(self):
        self.put(noisy, layers=(0, 2))
        for schedule in SCHEDULES:
            found = rematch.check(self.model, self.step, self.checkpoint("full", schedule))
            self.assertFalse(found["bits_equal"])
            expected = [(f"layers.{index}", "rematch_verify_test::noisy", f"layers.{index}.feed_forward.0") for index in (0, 2)]
            self.assertEqual([(each["region"], each["op"], each["scope"]) for each in found["recompute_differences"]], expected)
            self.assertIsNone(rematch.check(self.model, self.step, self.checkpoint(), verify=False)["recompute_differences"])
        rematch.keep_op("rematch_verify_test::noisy")
        for policy in ("full", "save_mm"):
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    trace = rematch.trace(self.model, self.step)
                    plan = rematch.resolve(trace, policy)
                    found = rematch.check(self.model, self.step, rematch.Checkpoint(plan, schedule))
                    self.assertEqual((found["bits_equal"], found["recompute_differences"]), (True, []))
                    predicted = rematch.predict(trace, plan, schedule)
                    self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
                    rise = predicted["peak_bytes"] - predicted["before_bytes"]
                    self.assertAlmostEqual(found["checkpointed"]["peak_bytes"] / rise, 1, delta=1e-4)

    def test_an_unknown_op_is_refused(self):
        with self.assertRaisesRegex(rematch.RematchError, "there is no op 'mylib::nothing'"):
            rematch.keep_op("mylib::nothing")


class MetaTest(Case):
    def test_a_custom_op_without_a_meta_kernel(self):
        library = torch.library.Library("rematch_meta_test", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        for op, name in ((counted, "rematch_verify_test::counted"), (torch.ops.rematch_meta_test.twice, "rematch_meta_test::twice")):
            model = Model(num_layers=2).to("meta")
            model.layers[0].feed_forward[0] = With(model.layers[0].feed_forward[0], op)
            with self.assertRaisesRegex(rematch.RematchError, f"{name} has no meta kernel.*register_fake") as error:
                rematch.trace(model, lambda model=model: model(self.x.to("meta")))
            self.assertNotIn("\n", str(error.exception))


class TrainingTest(Case):
    def train(self, checkpoint, num_steps, every):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(num_steps):
                with rematch.recording(checkpoint, verify_every=every):
                    loss = self.step()
                loss.backward()
        return [str(each.message) for each in said]

    def test_every_nth_step_is_verified_and_each_op_is_named_once(self):
        self.put(counted)
        checkpoint = self.checkpoint()
        with rematch.scopes(self.model, checkpoint):
            self.assertEqual(self.train(checkpoint, 1, 3), [])
            said = self.train(checkpoint, 8, 3)
            self.assertEqual(len(said), 1)
            self.assertRegex(said[0], r"region layers.1, rematch_verify_test::counted in layers.1.feed_forward.0, gave different "
                                      r"results .* rematch.keep_op\('rematch_verify_test::counted'\)")
            self.assertNotIn("\n", said[0])

    def test_the_last_step_is_reported_too(self):
        """report() reports differences, and so does destroying the checkpoint. Each op is named only once."""
        self.put(counted)
        for end in ("report", "death", "both"):
            checkpoint = self.checkpoint()
            with rematch.scopes(self.model, checkpoint):
                self.assertEqual(self.train(checkpoint, 1, 1), [])
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                if end != "death":
                    checkpoint.report()
                    self.assertEqual((len(said), said[0].filename), (1, __file__))
                    checkpoint.report()
                if end != "report":
                    del checkpoint
                    gc.collect()
            self.assertEqual(len(said), 1, end)
            self.assertIn("rematch_verify_test::counted in layers.1.feed_forward.0, gave different results", str(said[0].message))

    def test_the_last_step_is_reported_when_the_program_ends(self):
        done = subprocess.run([sys.executable, __file__, "train"], text=True, capture_output=True, check=True)
        self.assertEqual(done.stderr.count("gave different results when it was recomputed than in forward"), 1, done.stderr)

    def test_results_of_check_are_not_warned_about(self):
        self.put(counted)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(rematch.check(self.model, self.step, self.checkpoint())["recompute_differences"]), 1)
            gc.collect()

    def test_there_is_no_warning_without_a_difference_or_without_verification(self):
        checkpoint = self.checkpoint()
        with rematch.scopes(self.model, checkpoint):
            self.assertEqual(self.train(checkpoint, 3, 1), [])
        self.put(counted)
        checkpoint = self.checkpoint()
        with rematch.scopes(self.model, checkpoint):
            self.assertEqual(self.train(checkpoint, 3, 0), [])
            self.assertEqual(checkpoint.recompute_differences(), [])
        with self.assertRaisesRegex(ValueError, "verify_every is -1"), rematch.recording(checkpoint, verify_every=-1):
            pass


def train_to_the_end():
    """A program that verifies its last step. Its checkpoint is destroyed only when the program ends."""
    case = TrainingTest()
    case.setUp()
    case.put(counted)
    globals()["kept"] = checkpoint = case.checkpoint()
    with rematch.scopes(case.model, checkpoint), rematch.recording(checkpoint, verify_every=1):
        loss = case.step()
    loss.backward()


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        train_to_the_end()
    else:
        unittest.main()
