"""Tests exported joint graphs. Commands of rematch must accept these graphs, and compiled models must follow plans made
from them. A plan for an eager model must be rejected for a compiled model."""

import contextlib
import copy
import io
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import rematch
import torch
from stack import Layer, Stack, batch, results_of

BINARY = os.environ.get("REMATCH_BINARY")
NUM_LAYERS = 3


def made():
    torch.manual_seed(0)
    return Stack(num_layers=NUM_LAYERS)


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.path, cls.profile = cls.folder / "joint.json", cls.folder / "profile.json"
        model = made()
        with contextlib.redirect_stderr(io.StringIO()):
            rematch.export_joint(model, lambda: model(batch()), cls.path, profile=cls.profile, backend="aot_eager")
        cls.trace = json.loads(cls.path.read_text(encoding="utf-8"))

    def setUp(self):
        torch._dynamo.reset()

    def command(self, *arguments):
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def compiled_under(self, plan):
        model = made()
        made_partitioner = rematch.partitioner(plan, backend="aot_eager")
        from rematch.compiled.backends import aot_eager
        model.compile(backend=aot_eager(made_partitioner))
        return model, made_partitioner

    def test_the_file_has_the_parameters_of_the_model_and_says_that_it_is_compiled(self):
        expected = sum(parameter.nbytes for parameter in made().parameters())
        self.assertEqual((self.trace["parameter_bytes"], self.trace["constant_bytes"]), (expected, batch().nbytes))
        self.assertEqual((self.trace["model"], self.trace["dimensions"]), ("Stack (compiled)", {"compiled_graph": 1}))

    @unittest.skipUnless(BINARY, "REMATCH_BINARY names no command")
    def test_the_commands_read_it_and_a_compiled_model_follows_a_point_of_the_front(self):
        self.assertIn("Stack (compiled)", self.command("predict", "--trace", "joint.json", "--policy", "none,full"))
        self.assertIn("checkpoints 0 1 2", self.command("describe", "--trace", "joint.json", "attn_only"))
        said = self.command("search", "--trace", "joint.json", "--profile", "profile.json", "--points", "4", "-o", "front.json")
        self.assertIn("Stack (compiled)", said)
        front = json.loads((self.folder / "front.json").read_text(encoding="utf-8"))
        expected = results_of(self.compiled_under("none")[0])
        recomputed = []
        for number, point in enumerate(front["points"]):
            model, made_partitioner = self.compiled_under(f"{self.folder / 'front.json'}#{number}")
            self.assertTrue(all(map(torch.equal, results_of(model), expected)))
            (option,) = made_partitioner.chosen
            self.assertEqual(option.name, point["policy"])
            recomputed.append(option.num_recomputed)
        # the first point has the lowest peak, and the last point has the shortest step
        self.assertGreater(recomputed[0], recomputed[-1])

    def test_an_eager_model_refuses_a_plan_of_a_compiled_one_and_the_other_way_round(self):
        model = made()
        of_compiled, of_eager = (rematch.resolve(trace, "full") for trace in (
            self.trace, rematch.trace(model, lambda: model(batch()))))
        for use in (rematch.Checkpoint, lambda plan: rematch.apply(model, plan)):
            with self.assertRaisesRegex(rematch.PlanError, "^the plan is for the graph of a compiled model.*$"):
                use(of_compiled)
        with self.assertRaisesRegex(rematch.PlanError, "^the plan is for an eager model.*$"):
            rematch.partitioner(of_eager)

    def test_a_plan_of_another_graph_is_refused(self):
        plan = rematch.resolve(self.trace, "full")
        for change, message in ((lambda: plan["types"][0]["ops"].pop(), "layers.0 has other ops"),
                                (lambda: plan["regions"][0].update(first_scope="blocks.0"), "no layer blocks.0")):
            change()
            model, _ = self.compiled_under(copy.deepcopy(plan))
            with self.assertRaisesRegex(Exception, message) as raised:
                model(batch())
            self.assertIsInstance(raised.exception.inner_exception, rematch.PlanError)

    def test_a_step_with_two_graphs_is_refused(self):
        class Breaks(Layer):
            def forward(self, x):
                torch._dynamo.graph_break()
                return super().forward(x)
        model = Stack(Breaks, 2)
        with self.assertRaisesRegex(rematch.RematchError, r"step\(\) runs \d compiled graphs, but a file holds only one: "), \
                contextlib.redirect_stderr(io.StringIO()):
            rematch.export_joint(model, lambda: model(batch()), self.folder / "broken.json", backend="aot_eager")
        self.assertFalse((self.folder / "broken.json").exists())


if __name__ == "__main__":
    unittest.main()
