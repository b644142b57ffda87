"""Tests that errors in forward, in backward and on other threads are raised in Python as the right exception class."""

import threading
import unittest
import warnings

import rematch
import torch
from stack import Stack, batch


class ErrorsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = Stack(), batch()
        self.trace = rematch.trace(self.model, lambda: self.model(self.x))
        self.plan = rematch.resolve(self.trace, "full")

    def assert_raises(self, kind, words, run):
        with self.assertRaisesRegex(kind, words) as caught:
            run()
        self.assertIs(type(caught.exception), kind)
        self.assertNotIn("\n", str(caught.exception))

    def test_classes(self):
        self.assertTrue(issubclass(rematch.Refused, rematch.RematchError))
        self.assertTrue(issubclass(rematch.PlanError, (rematch.RematchError, ValueError)))
        self.assertTrue(issubclass(rematch.RematchError, RuntimeError))

    def test_refused_in_backward(self):
        rematch.apply(self.model, self.plan)
        loss = self.model(self.x)
        with torch.no_grad():
            self.model.layers[2].feed_forward.up.weight.zero_()
        self.assert_raises(rematch.Refused, "region layers.2: .* was changed in place", loss.backward)

    def test_refused_in_backward_on_another_thread(self):
        rematch.apply(self.model, self.plan)
        loss, found = self.model(self.x), []
        with torch.no_grad():
            self.model.layers[2].feed_forward.up.weight.zero_()

        def run():
            try:
                loss.backward()
            except RuntimeError as error:
                found.append(type(error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertEqual(found, [rematch.Refused])

    def test_refused_in_an_op_of_forward(self):
        def refill(module, arguments, result):
            saved = result.sigmoid()
            saved.exp().data = torch.zeros_like(saved)
            saved.data = torch.zeros_like(saved)
            return saved * saved

        self.model.layers[1].feed_forward_norm.register_forward_hook(refill)
        rematch.apply(self.model, self.plan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignores the warning that the model does not run the planned ops
            self.assert_raises(rematch.Refused, "region layers.1: .* was given different data", lambda: self.model(self.x))

    def test_other_ops_than_the_plan_has(self):
        checkpoint = rematch.Checkpoint(self.plan, on_mismatch="refuse")
        rematch.scopes(self.model, checkpoint)
        self.model.layers[1].feed_forward.forward = torch.nn.functional.gelu

        def step():
            with rematch.recording(checkpoint):
                self.model(self.x)

        self.assert_raises(rematch.PlanError, "region layers.1, op", step)
        # The layer runs fewer ops than planned, which is detected at its end.
        self.model.layers[1].feed_forward.forward = lambda x: x
        self.assert_raises(rematch.PlanError, "region layers.1", step)

    def test_plans(self):
        self.assert_raises(rematch.PlanError, "rematch.plan", lambda: rematch.Checkpoint({"schema": "something"}))
        self.assert_raises(rematch.PlanError, "unknown policy 'fulll'", lambda: rematch.resolve(self.trace, "fulll"))
        self.assert_raises(rematch.PlanError, "trace", lambda: rematch.resolve({}, "full"))
        other = Stack(num_layers=2)
        self.assert_raises(rematch.PlanError, "does not have", lambda: rematch.scopes(other, rematch.Checkpoint(self.plan)))

    def test_other_arguments_are_type_errors(self):
        self.assert_raises(rematch.RematchError, "no_such_card", lambda: rematch.search(self.trace, device="no_such_card"))
        self.assert_raises(rematch.RematchError, "schedule is 'never'", lambda: rematch.Checkpoint(self.plan, "never"))

    def test_nested_steps(self):
        rematch.apply(self.model, self.plan)
        other = Stack()
        self.model.layers[0].register_forward_hook(lambda *_: rematch.trace(other, lambda: other(self.x)) and None)
        self.assert_raises(rematch.Refused, "runs its own steps", lambda: self.model(self.x))

    def test_errors_of_the_program_stay_unchanged(self):
        def fail(*_):
            raise RuntimeError("region of the program")

        rematch.apply(self.model, self.plan)
        self.model.layers[1].register_forward_hook(fail)
        self.assert_raises(RuntimeError, "region of the program", lambda: self.model(self.x))


if __name__ == "__main__":
    unittest.main()
