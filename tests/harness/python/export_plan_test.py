"""Tests files of `rematch export --to torch` on models of torch and transformers. Results must be bit-identical to
those without checkpointing, and recomputed ops and the peak must be as predicted. Needs torch and the binary that
REMATCH_BINARY names."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "harness" / "python")]

import check_plan  # noqa: E402
from torch_alone.model_file import Refused, load_exported  # noqa: E402
from torch_alone.op_times import measure_profile  # noqa: E402
from torch_alone.trace_file import record_trace  # noqa: E402
from torch_alone.watched_step import NOT_COUNTED  # noqa: E402
from zoo import llama, wan  # noqa: E402

MLP_POLICY = "mlp.json"  # makes the feed-forward of every layer a region
POLICIES = ("full", "save_mm", "nth_first(2)", MLP_POLICY)
# Recompute may not read every saved value. The engine frees such a value early, as predicted. Torch frees it only at
# the end of the region, so measured peaks may be higher.
PEAK_TOLERANCE = 0.03


class Layer(torch.nn.Module):
    """A layer with biases and two dropouts, in which the attention heads are not contiguous in memory."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, 3 * dim), torch.nn.Linear(dim, dim)
        self.mlp = torch.nn.Sequential(torch.nn.LayerNorm(dim), torch.nn.Linear(dim, 4 * dim), torch.nn.GELU(),
                                       torch.nn.Linear(4 * dim, dim), torch.nn.Dropout(0.1))
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(attended.transpose(1, 2).flatten(2)))
        return x + self.mlp(x)


class Network(torch.nn.Module):
    def __init__(self, dim=32, num_layers=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(dim, 2) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


def own_model():
    torch.manual_seed(0)
    model, x = Network(), torch.randn(4, 64, 32)
    return model, lambda: model(x)


def rematch(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class ExportedPlanTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.trace_file = self.folder / "trace.json"

    def record(self, model, step):
        step()
        self.trace = record_trace(model, step)
        self.trace_file.write_text(json.dumps(self.trace))
        (self.folder / MLP_POLICY).write_text(json.dumps(
            {"schema": "rematch.policy/1.0", "name": "mlp", "regions": {"scopes": ["mlp"]}}))

    def must(self, *arguments):
        code, out, err = rematch(*arguments)
        self.assertEqual(code, 0, err)
        return out

    def exported(self, plan):
        path = self.folder / "exported.py"
        self.must("export", plan, "--to", "torch", "--trace", self.trace_file, "-o", path)
        return load_exported(path)

    def check_run(self, model, step, plan):
        figures = check_plan.measure(model, step, plan, num_steps=1)
        plain, planned = figures
        self.assertEqual(plain["hash"], planned["hash"])
        executed = [check_plan.by_one_name(arm["watched"][0], plan, NOT_COUNTED) for arm in figures]
        self.assertEqual(check_plan.recomputed_ops(*executed),
                         check_plan.by_one_name(plan.PREDICTED["recomputed_ops"], plan, NOT_COUNTED))
        self.assertEqual(plain["watched"][1], plan.PREDICTED["peak_bytes_without"])
        predicted = plan.PREDICTED["peak_bytes"]
        self.assertLessEqual(abs(planned["watched"][1] - predicted), PEAK_TOLERANCE * predicted)

    def check_policies(self, model, step, policies=POLICIES):
        self.record(model, step)
        for policy in policies:
            with self.subTest(policy=policy):
                file = self.folder / "plan.json"
                self.must("plan", "--trace", self.trace_file, "--policy", self.folder / policy if policy == MLP_POLICY else policy,
                          "-o", file)
                self.check_run(model, step, self.exported(file))

    def test_policies_of_own_model(self):
        self.check_policies(*own_model())

    def test_policies_of_llama(self):
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("transformers is not installed")
        torch.manual_seed(0)
        self.check_policies(*llama())

    def test_policies_of_wan(self):
        if importlib.util.find_spec("diffusers") is None:
            self.skipTest("diffusers is not installed")
        torch.manual_seed(0)
        self.check_policies(*wan(), policies=("full", "save_mm", "nth_first(2)"))

    def check_lines(self, model, step, target, take_back, policies):
        """Runs the lines that `rematch export` prints for a trainer, on a model of that trainer."""
        self.record(model, step)
        for policy in policies:
            with self.subTest(policy=policy):
                file = self.folder / "plan.json"
                self.must("plan", "--trace", self.trace_file, "--policy", policy, "-o", file)
                lines = self.must("export", file, "--to", target, "--trace", self.trace_file)
                plan = self.exported(file)

                def apply(model, lines=lines):
                    exec(lines, {"model": model})
                    return take_back

                plan.apply = apply
                self.check_run(model, step, plan)

    def test_lines_for_transformers(self):
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("transformers is not installed")
        torch.manual_seed(0)
        model, step = llama()
        policies = ("full", "nth_first(2)") if hasattr(model, "activation_checkpointing_enable") else ("full",)
        self.check_lines(model.train(), step, "transformers", model.gradient_checkpointing_disable, policies)

    def test_lines_for_diffusers(self):
        if importlib.util.find_spec("diffusers") is None:
            self.skipTest("diffusers is not installed")
        torch.manual_seed(0)
        model, step = wan()
        self.check_lines(model.train(), step, "diffusers", model.disable_gradient_checkpointing, ("full",))

    def test_a_plan_beyond_a_systems_modes_gets_the_file_for_torch(self):
        model, step = own_model()
        self.record(model, step)
        file = self.folder / "plan.json"
        self.must("plan", "--trace", self.trace_file, "--policy", "save_mm", "-o", file)
        expected = self.exported(file)
        for target in ("transformers", "diffusers", "torchtitan", "torchtune", "fastvideo", "modalities", "axolotl"):
            with self.subTest(target=target):
                path = self.folder / f"for_{target}.py"
                self.must("export", file, "--to", target, "--trace", self.trace_file, "-o", path)
                plan = load_exported(path)
                self.assertIn(f"for_{target}.apply(", plan.__doc__)
                self.assertEqual((plan.KINDS, plan.MODULES, plan.PREDICTED),
                                 (expected.KINDS, expected.MODULES, expected.PREDICTED))
        self.check_run(model, step, plan)

    def test_every_point_of_a_search_for_torch(self):
        model, step = own_model()
        self.record(model, step)
        profile, front = self.folder / "profile.json", self.folder / "front.json"
        profile.write_text(json.dumps(measure_profile(model, step, self.trace, num_steps=2)))
        self.must("search", "--trace", self.trace_file, "--profile", profile, "--for", "torch", "--optimizer", "none",
                  "--points", "6", "-o", front)
        points = json.loads(front.read_text())["points"]
        self.assertGreater(len(points), 2)
        for number, point in enumerate(points):
            if point["plan"]["regions"]:
                with self.subTest(point=number):
                    self.check_run(model, step, self.exported(f"{front}#{number}"))

    def test_a_plan_on_demand_is_refused_with_its_region(self):
        self.record(*own_model())
        front = self.folder / "front.json"
        self.must("search", "--trace", self.trace_file, "--device", "h100", "--points", "2", "-o", front)
        code, out, err = rematch("export", f"{front}#0", "--to", "torch", "--trace", self.trace_file)
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^rematch: region layers\.\d.*search with --for torch\n$")

    def test_the_report_names_the_plan(self):
        model, step = own_model()
        self.record(model, step)
        self.must("plan", "--trace", self.trace_file, "--policy", "nth_first(2)", "-o", self.folder / "plan.json")
        plan = self.exported(self.folder / "plan.json")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertTrue(check_plan.report(plan, check_plan.measure(model, step, plan, num_steps=1)))
        self.assertTrue(printed.getvalue().startswith("The plan 'nth_first(2)' for Network, float32"), printed.getvalue())

    def test_an_existing_file_is_read(self):
        path = self.folder / "exported.py"
        with unittest.mock.patch.object(sys, "dont_write_bytecode", False):
            # Both files have the same size and modification time, so Python would wrongly reuse the first file's
            # bytecode.
            for name in ("one", "two"):
                path.write_text(f"NAME = '{name}'\n\ndef apply(model):\n    pass\n")
                os.utime(path, (1, 1))
                self.assertEqual(load_exported(path).NAME, name)
        with self.assertRaisesRegex(Refused, r"gone\.py is not a file; create it with rematch export"):
            load_exported(self.folder / "gone.py")

    def test_ops_that_differ_from_the_plan_raise(self):
        model, step = own_model()
        self.record(model, step)
        file = self.folder / "plan.json"
        self.must("plan", "--trace", self.trace_file, "--policy", "save_mm", "-o", file)
        plan = self.exported(file)
        model.layers[0].mlp[2] = torch.nn.ReLU()
        plan.apply(model)
        with self.assertRaisesRegex(plan.Mismatch, r"layers\.0, op \d+: the plan was made for aten::gelu"):
            step()
        for other, found in ((torch.nn.Linear(1, 1), "none"), (torch.nn.Sequential(model), "0")):
            with self.assertRaisesRegex(plan.Mismatch, f"no such module; .* the model has {found}; make the plan"):
                plan.apply(other)


if __name__ == "__main__":
    unittest.main()
