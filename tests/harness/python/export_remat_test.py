"""Tests files of `rematch export --to remat` on models of torch and transformers. Results must be bit-identical to
those without checkpointing, and recomputed ops and the peak must be as predicted. Needs torch, torch_remat and the
binary that REMATCH_BINARY names."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))
sys.path.insert(0, str(ROOT / "scripts"))

import check_plan  # noqa: E402
from torch_alone.model_file import load_exported  # noqa: E402
from torch_alone.trace_file import record_trace  # noqa: E402
from torch_alone.watched_step import NOT_COUNTED  # noqa: E402
from zoo import llama  # noqa: E402

# Views cost nothing, so they are not compared. torch_remat runs additional views. Predictions assume that the views in
# saved regions run again.
VIEWS = ("aten::as_strided", "aten::t", "aten::transpose.int", "aten::view", "aten::slice.Tensor", "aten::unsqueeze",
         "aten::expand", "aten::split.Tensor", "aten::_unsafe_view")
# Predictions are made for the engine. torch_remat holds more memory, for two reasons:
# - torch_remat holds all arguments of a layer. Llama's layers get position ids, although none of their ops reads them.
POSITION_ID_BYTES = 128 * 8
# - In a saved region, autograd holds saved tensors until it has computed the gradient of a Linear's bias.
BIAS_BYTES = 32 * 4


class Layer(torch.nn.Module):
    def __init__(self, dim, last_has_bias):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.mixer = torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.Tanh(), torch.nn.Linear(dim, dim))
        self.mlp = torch.nn.Sequential(torch.nn.Linear(dim, 4 * dim), torch.nn.GELU(),
                                       torch.nn.Linear(4 * dim, dim, bias=last_has_bias))

    def forward(self, x):
        x = x + self.mixer(self.norm(x))
        return x + self.mlp(x).sigmoid()


class Network(torch.nn.Module):
    def __init__(self, last_has_bias, dim=32, num_layers=3):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(dim, last_has_bias) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


def own_model(last_has_bias=True):
    torch.manual_seed(0)
    model, x = Network(last_has_bias), torch.randn(64, 32)
    return model, lambda: model(x)


def without_position_ids(layer, args, kwargs):
    return args, kwargs | {"position_ids": None}


def without_views(counts):
    return {name: count for name, count in counts.items() if name not in VIEWS}


@unittest.skipIf(importlib.util.find_spec("torch_remat") is None, "torch_remat is not installed")
class ExportedRegionsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.trace_file = self.folder / "trace.json"
        self.plan_file = self.folder / "plan.json"

    def rematch(self, *arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stderr

    def must(self, *arguments):
        code, err = self.rematch(*arguments)
        self.assertEqual(code, 0, err)

    def plan(self, policy):
        self.must("plan", "--trace", self.trace_file, "--policy", policy, "-o", self.plan_file)

    def exported(self, policy):
        self.plan(policy)
        path = self.folder / "exported.py"
        self.must("export", self.plan_file, "--to", "remat", "--trace", self.trace_file, "-o", path)
        return load_exported(path)

    def check_policies(self, model, step, policies, extra_bytes=0):
        """Requires that the peak under torch_remat is exactly `extra_bytes` higher than predicted."""
        step()
        self.trace_file.write_text(json.dumps(record_trace(model, step)))
        for policy in policies:
            with self.subTest(policy=policy):
                plan = self.exported(policy)
                plain, planned = check_plan.measure(model, step, plan, num_steps=1)
                self.assertEqual(plain["hash"], planned["hash"])
                executed = [check_plan.by_one_name(arm["watched"][0], plan, NOT_COUNTED) for arm in (plain, planned)]
                predicted = check_plan.by_one_name(plan.PREDICTED["recomputed_ops"], plan, NOT_COUNTED)
                self.assertEqual(without_views(check_plan.recomputed_ops(*executed)), without_views(predicted))
                self.assertEqual(planned["watched"][1], plan.PREDICTED["peak_bytes"] + extra_bytes)

    def test_regions_of_own_model(self):
        model, step = own_model()
        self.check_policies(model, step, ("remat(save=[])", "remat(save=[mixer])", "remat(save=[mlp.0])"))

    def test_saved_linears_are_held_until_their_bias_has_its_gradient(self):
        for last_has_bias, extra_bytes in ((True, BIAS_BYTES), (False, 0)):
            model, step = own_model(last_has_bias)
            self.check_policies(model, step, ("remat(save=[mlp])", "remat(save=[mixer,mlp])"), extra_bytes)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_regions_of_llama(self):
        for with_position_ids, extra_bytes in ((True, POSITION_ID_BYTES), (False, 0)):
            torch.manual_seed(0)
            model, step = llama()
            if not with_position_ids:
                for layer in model.model.layers:
                    layer.register_forward_pre_hook(without_position_ids, with_kwargs=True)
            self.check_policies(model, step, ("remat(save=[])", "remat(save=[self_attn])", "remat(save=[mlp])",
                                              "remat(save=[self_attn,mlp])", "remat(save=[self_attn.o_proj])"), extra_bytes)

    def test_a_plan_that_is_not_made_of_regions_is_refused_with_its_layers(self):
        model, step = own_model()
        self.trace_file.write_text(json.dumps(record_trace(model, step)))
        self.plan("save_mm")
        code, err = self.rematch("export", self.plan_file, "--to", "remat", "--trace", self.trace_file)
        self.assertEqual(code, 2)
        self.assertIn("layers 0-2 are not regions of torch_remat; region layers.0: the recompute stops early", err)
        self.assertEqual(len(err.strip().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
