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

    def refused(self, *arguments):
        """Returns the only line that the command prints."""
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

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
        self.assertRegex(said, r'\nrematch\.partitioner\("front\.json#\d"\) in Python runs it\.')
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

    @unittest.skipUnless(BINARY, "REMATCH_BINARY names no command")
    def test_every_command_says_that_the_graph_is_compiled(self):
        self.command("search", "--trace", "joint.json", "--profile", "profile.json", "--points", "4", "-o", "said.json")
        self.command("render", "said.json", "-o", "said.html")
        note = "compiled graph without fusion"
        for text in (self.command("predict", "--trace", "joint.json", "--policy", "full"),
                     self.command("search", "--trace", "joint.json", "--device", "h100", "--points", "2"),
                     (self.folder / "said.html").read_text(encoding="utf-8")):
            self.assertIn("Stack (compiled)", text)
            self.assertNotIn("rematch.Checkpoint", text)
            self.assertNotIn("only rematch's engine", text)
            self.assertIn(note, " ".join(text.split()))
        for arguments in (("full",), ("--plan", "said.json#0"), ("full", "--kept"), ("full", "--json")):
            self.assertIn("only rematch.partitioner in Python can follow the plan",
                          " ".join(self.command("describe", "--trace", "joint.json", *arguments).split()))
        self.assertIn("equal: ", self.command("trace", "--check", "joint.json", "joint.json"))

    @unittest.skipUnless(BINARY, "REMATCH_BINARY names no command")
    def test_what_runs_eager_models_refuses_the_plan(self):
        self.command("plan", "--trace", "joint.json", "--policy", "full", "-o", "full.json")
        for target in ("torch", "remat", "torchtitan", "megatron"):
            self.assertRegex(self.refused("export", "full.json", "--to", target, "--trace", "joint.json"),
                             f"the plan is for the graph of a compiled model, and {target} runs the ops of an eager model: give the "
                             "plan to rematch.partitioner")
            self.assertIn("the plan is for the graph of a compiled model", self.refused(
                "search", "--trace", "joint.json", "--device", "h100", "--for", target if target != "remat" else "torch"))
        for command in (("predict", "--plan", "full.json"), ("describe", "--plan", "full.json")):
            self.assertIn("the plan is for the graph of a compiled model: give the graph's file to --trace. To run the plan, give it "
                          "to rematch.partitioner in Python", self.refused(*command))

    @unittest.skipUnless(BINARY, "REMATCH_BINARY names no command")
    def test_scopes_are_the_modules_of_the_model(self):
        kept = self.command("describe", "--trace", "joint.json", "attn_only", "--kept")
        self.assertRegex(kept, "_scaled_dot_product_flash_attention_for_cpu +attention ")
        ops = json.loads(self.command("describe", "--trace", "joint.json", "full", "--json"))["types"][0]["ops"]
        self.assertEqual([op["scope"] for op in ops if op["name"] == "aten::addmm"],
                         ["attention.qkv", "attention.out", "feed_forward.up", "feed_forward.down"])

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
                                (lambda: plan["regions"][0].update(first_scope="blocks.0"), "no layer or module blocks.0")):
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
