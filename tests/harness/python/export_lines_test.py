"""Tests the lines that `rematch export` prints for trainers. Stand-ins for the trainers apply these lines to a model.
Results must be bit-identical to those without checkpointing, and recomputed ops and the peak must be as predicted.
Needs torch and the binary that REMATCH_BINARY names."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import types
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "harness" / "python")]

import check_plan  # noqa: E402
import stand_ins  # noqa: E402
from torch_alone.trace_file import record_trace  # noqa: E402
from torch_alone.watched_step import NOT_COUNTED  # noqa: E402
from zoo import llama  # noqa: E402

# Recompute may not read every saved value. The engine frees such a value early, as predicted. Torch frees it only at
# the end of the region, so measured peaks may be higher.
PEAK_TOLERANCE = 0.03
VIEWS = {"aten::as_strided", "aten::t", "aten::transpose.int", "aten::view", "aten::slice.Tensor", "aten::unsqueeze",
         "aten::expand", "aten::split.Tensor", "aten::_unsafe_view"}
# ops that copy a tensor to the stand-in for a host and back
COPIES = {"aten::lift_fresh", "aten::clone", "aten::resolve_conj", "aten::resolve_neg", "aten::to.dtype_layout"}
HAS_YAML = importlib.util.find_spec("yaml") is not None


def from_yaml(apply):
    import yaml
    return lambda lines, *others: apply(yaml.safe_load(lines), *others)


def from_toml(apply):
    return lambda lines, model: apply(tomllib.loads(lines), model)


def decoder(**options):
    torch.manual_seed(0)
    model, ids = stand_ins.Decoder(**options), torch.randint(0, 64, (4, 32))
    return model, lambda: model(ids).square().mean()


def blocks_of(lines):
    """Splits the printed lines into pairs (comment, lines). Each pair is for one version of the trainer."""
    blocks = []
    for line in lines.splitlines():
        if not line.startswith("#"):
            blocks[-1][1].append(line)
        elif blocks and not blocks[-1][1]:
            blocks[-1] = (line, [])
        else:
            blocks.append((line, []))
    return [(comment, "\n".join(block) + "\n") for comment, block in blocks]


class ExportedLinesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.trace_file, self.plan_file = self.folder / "trace.json", self.folder / "plan.json"
        self.other_names, self.not_counted, self.unseen_bytes = {}, NOT_COUNTED, 0
        self.resident = None  # the same policy without offloading, if the trainer also offloads the last layer's results

    def must(self, *arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def predict(self, *arguments):
        return json.loads(self.must("predict", "--trace", self.trace_file, *arguments, "--schedule", "whole_region",
                                    "--optimizer", "none", "--json"))[0]

    def check_modes(self, target, model_and_step, modes, apply, wanted=".*"):
        """Exports each mode, and applies the printed lines for each version of the trainer to a model. Skips versions
        whose comment does not match `wanted`, because the stand-in imitates only one version."""
        model, step = model_and_step
        step()
        self.trace_file.write_text(json.dumps(record_trace(model, step)))
        for mode in modes:
            self.must("plan", "--trace", self.trace_file, "--policy", mode, "-o", self.plan_file)
            lines = self.must("export", self.plan_file, "--to", target, "--trace", self.trace_file)
            blocks = [block for block in blocks_of(lines) if re.search(wanted, block[0])]
            self.assertGreater(len(blocks), 0, lines)
            for comment, block in blocks:
                with self.subTest(target=target, mode=mode, comment=comment):
                    self.check_run(model, step, types.SimpleNamespace(
                        OTHER_NAMES=self.other_names, apply=lambda model, block=block: apply(block, model)))

    def check_run(self, model, step, plan):
        plain, planned = check_plan.measure(model, step, plan, num_steps=1)
        self.assertEqual(plain["hash"], planned["hash"])
        executed = [check_plan.by_one_name(arm["watched"][0], plan, self.not_counted) for arm in (plain, planned)]
        predicted, without = self.predict("--plan", self.plan_file), self.predict("--policy", "none")
        self.assertEqual(check_plan.recomputed_ops(*executed),
                         check_plan.by_one_name(predicted["predicted_ops"]["recompute"], plan, self.not_counted))
        peaks = [step["predicted_memory"]["peak_allocated_bytes"] for step in (predicted, without)]
        wanted = plain["watched"][1] + peaks[0] - peaks[1] + self.unseen_bytes
        last_layer_bytes = self.moved_bytes(self.resident) if self.resident else 0
        self.assertLessEqual(planned["watched"][1], wanted + PEAK_TOLERANCE * wanted)
        self.assertGreaterEqual(planned["watched"][1], wanted - last_layer_bytes - PEAK_TOLERANCE * wanted)

    def check_offloading(self, target, model_and_step, modes, apply, not_counted=(), wanted=".*"):
        """`modes` maps a mode to three values: the same policy without offloading, the number of layers that offload
        tensors, and bytes per layer that are offloaded and also kept on the device by another module. A plan does not
        offload the last layer, because backward starts there. Trainers other than Megatron offload it too."""
        host = stand_ins.Host()

        def apply_and_count(lines, model):
            host.copied_bytes = 0
            return apply(lines, model, host)

        self.not_counted = {*NOT_COUNTED, *not_counted, *COPIES}
        for mode, (resident, num_layers, also_held_bytes) in modes.items():
            self.check_modes(target, model_and_step, (mode,), apply_and_count, wanted)
            with self.subTest(target=target, mode=mode):
                self.assertGreater(host.copied_bytes, 0)
                self.assertEqual(host.copied_bytes, num_layers * (self.moved_bytes(resident) + also_held_bytes))

    def moved_bytes(self, resident):
        """Returns the bytes that the plan offloads in each layer. `resident` is the same policy without offloading."""
        plan = json.loads(self.plan_file.read_text())
        (region_type,) = plan["types"]
        moved = sum(op["bytes"] for op in region_type["ops"] if op["treatment"] == "offload")
        # A region's inputs are counted separately, because its ops do not make them. After forward, all inputs except
        # those of the last region have been offloaded.
        if region_type.get("offload_inputs"):
            held = [self.predict("--policy", policy)["predicted_memory"]["after_forward_bytes"]
                    for policy in (resident, plan["policy"])]
            moved += (held[0] - held[1]) // (len(plan["regions"]) - 1)
        return moved

    def test_torchtitan(self):
        modes = ("titan:full", "titan(selective_ac_option=2)", "titan:selective")
        self.check_modes("torchtitan", decoder(), modes, from_toml(stand_ins.torchtitan), wanted="until")

    @unittest.skipUnless(importlib.util.find_spec("torch_remat"), "torch_remat is not installed")
    def test_torchtitan_on_torch_remat(self):
        modes = ("titan:FullActivationRematConfig",
                 "titan:ActivationRematConfig(save_regions=[attention.*])",
                 "titan:ActivationRematConfig(save_regions=[feed_forward.w13.linear])",
                 "titan:ActivationRematConfig(save_regions=[feed_forward.w2.linear])",
                 "titan:ActivationRematConfig(save_regions=[*],recompute_regions=[feed_forward.w13.*])",
                 "titan:SelectiveActivationRematConfig")
        # torch_remat runs additional views, and moves recomputed data into the tensors that backward reads.
        self.not_counted = {*NOT_COUNTED, *VIEWS, "aten::set_.source_Storage_storage_offset"}
        self.check_modes("torchtitan", decoder(), modes, stand_ins.torchtitan_on_remat, wanted="since July 2026")

    def test_offloading_of_torchtitan(self):
        """The plan recomputes the same ops as torchtitan and offloads as many bytes. It offloads the input of the first
        layer instead of the output of the last but one; the note of the mode says so."""
        host = stand_ins.Host()
        mode = "titan(memory_policy=sac_and_offload)"
        model, step = decoder(rotary=True)
        step()
        self.trace_file.write_text(json.dumps(record_trace(model, step)))
        self.must("plan", "--trace", self.trace_file, "--policy", mode, "-o", self.plan_file)
        lines = self.must("export", self.plan_file, "--to", "torchtitan", "--trace", self.trace_file)
        ((_, block),) = (one for one in blocks_of(lines) if "graph trainer" in one[0])

        def apply(model):
            host.copied_bytes = 0
            return stand_ins.torchtitan_graph_trainer(block, model, host)
        plan = types.SimpleNamespace(OTHER_NAMES={}, apply=apply)
        plain, planned = check_plan.measure(model, step, plan, num_steps=1)
        self.assertEqual(plain["hash"], planned["hash"])
        self.not_counted = {*NOT_COUNTED, *COPIES}
        executed = [check_plan.by_one_name(arm["watched"][0], plan, self.not_counted) for arm in (plain, planned)]
        predicted = self.predict("--plan", self.plan_file)
        self.assertEqual(check_plan.recomputed_ops(*executed),
                         check_plan.by_one_name(predicted["predicted_ops"]["recompute"], plan, self.not_counted))
        # The bytes of a projection's result, and of the result of w1 or w3, which is three times as wide.
        narrow, wide = 4 * 32 * 32 * 4, 4 * 32 * 96 * 4
        # Backward reads v, w1 and w3. Only the rotary embedding reads q and k, and only an add reads the output
        # projection. The result of attention is not contiguous. Each layer but the last also moves its output.
        self.assertEqual(host.copied_bytes, 3 * (narrow + 2 * wide + narrow))
        self.assertEqual(predicted["predicted_memory"]["host"]["copied_out_bytes"], host.copied_bytes)
        self.assertIn("rematch offloads the input of the first layer instead of", self.must("list", "--systems"))

    @unittest.skipUnless(HAS_YAML, "PyYAML is not installed")
    def test_torchtune(self):
        modes = ("full", "nth_last(2)", "torchtune(ac_mode=full)", "torchtune(ac_mode=selective,ac_option=3)")
        self.check_modes("torchtune", decoder(), modes, from_yaml(stand_ins.torchtune))

    @unittest.skipUnless(HAS_YAML, "PyYAML is not installed")
    def test_offloading_of_torchtune(self):
        mode = "torchtune(enable_activation_checkpointing=true,enable_activation_offloading=true)"
        self.check_offloading("torchtune", decoder(), {mode: ("full", 4, 0)}, from_yaml(stand_ins.torchtune))

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_offloading_of_transformers(self):
        torch.manual_seed(0)
        model, step = llama()
        modes = {"huggingface(offload=true)": ("full", 4, 0),
                 "huggingface(every_n_layers=3,offload=true)": ("nth_first(3)", 2, 0)}
        self.check_offloading("transformers", (model.train(), step), modes, stand_ins.transformers, wanted="since 5.23")

    @unittest.skipUnless(HAS_YAML, "PyYAML is not installed")
    def test_modalities(self):
        keys = "ops.aten.mm.default,ops.aten._scaled_dot_product_flash_attention.default"
        modes = ("full", "nth_last(2)", "modalities:selective_op(ops.aten.mm.default)", f"modalities:selective_op({keys})")
        self.check_modes("modalities", decoder(keyed=True), modes, from_yaml(stand_ins.modalities))

    @unittest.skipUnless(HAS_YAML and importlib.util.find_spec("transformers"), "PyYAML or transformers is not installed")
    def test_axolotl(self):
        torch.manual_seed(0)
        model, step = llama()
        modes = ("full", "axolotl(gradient_checkpointing=true,selective_checkpointing=true)")
        self.check_modes("axolotl", (model.train(), step), modes, from_yaml(stand_ins.axolotl))
        modes = {"axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)": ("full", 4, 0)}
        self.check_offloading("axolotl", (model, step), modes, from_yaml(stand_ins.axolotl))
        modes = {"axolotl(gradient_checkpointing=true,selective_checkpointing.offload=true)": ("ops_block", 4, 0)}
        self.resident = "ops_block"
        self.check_offloading("axolotl", (model, step), modes, from_yaml(stand_ins.axolotl))

    def test_fastvideo(self):
        self.check_modes("fastvideo", decoder(), ("fastvideo:full", "fastvideo:ops"), stand_ins.fastvideo)

    def test_pull_requests_of_fastvideo(self):
        modes = ("fastvideo:attn_only",)
        self.check_modes("fastvideo", decoder(), modes, stand_ins.fastvideo, wanted="1410")
        self.check_modes("fastvideo", decoder(), modes, stand_ins.fastvideo_1716, wanted="1716")

    def test_a_call_for_fastvideo(self):
        def apply(lines, model):
            undo = []
            exec(lines, {"transformer": model, "apply_activation_checkpointing": lambda *arguments, **keywords: undo.append(
                stand_ins.apply_activation_checkpointing(*arguments, **keywords))})
            return undo[0]

        self.check_modes("fastvideo", decoder(), ("nth_first(2)", "nth_first(3)"), apply)

    def test_megatron(self):
        full, selective = "recompute_granularity=full,recompute_method", "recompute_granularity=selective,recompute_modules"
        modes = (f"megatron({full}=uniform,recompute_num_layers=2)", f"megatron({full}=uniform,recompute_num_layers=3)",
                 f"megatron({full}=block,recompute_num_layers=3)", f"megatron({selective}=[mlp])",
                 f"megatron({selective}=[core_attn,mlp])", "megatron(recompute_granularity=selective)")
        # Inside a reentrant checkpoint, backward sums gradients in place and makes a view of the result.
        self.other_names, self.not_counted = {"aten::add_.Tensor": "aten::add.Tensor"}, {*NOT_COUNTED, "aten::view"}
        self.check_modes("megatron", decoder(), modes, stand_ins.megatron)

    def test_offloading_of_megatron(self):
        # The attention kernel and the output projection both save the result of attention. With core_attn alone, the
        # output projection still holds the result on the device.
        result_bytes = 4 * 32 * 32 * 4
        modes = {"megatron(offload_modules=[qkv_linear])": ("none", 3, 0),
                 "megatron(offload_modules=[core_attn])": ("none", 3, result_bytes),
                 # Both modules offload the result, but the plan offloads it only once. The plan also offloads 4 * 2 *
                 # 32 sums of the kernel.
                 "megatron(offload_modules=[core_attn,attn_proj])": ("none", 3, result_bytes - 4 * 2 * 32 * 4)}
        self.check_offloading("megatron", decoder(rotary=True), modes, stand_ins.megatron, not_counted=VIEWS)

    def test_outputs_of_norms_of_megatron(self):
        modes = ("megatron(recompute_granularity=selective,recompute_modules=[layernorm])",)
        # Megatron wraps a norm in one autograd function, copies recomputed data into the freed storage, and does not
        # repeat views. LayerNorm is a single op, so the order in which autograd sums gradients does not change.
        self.not_counted = {*NOT_COUNTED, *VIEWS, "aten::copy_", "aten::set_.source_Storage"}
        # Shrinking a tensor's storage does not change the byte count of a step. The count therefore still includes two
        # outputs of each of four layers whose storage Megatron has freed.
        self.unseen_bytes = 2 * 4 * (4 * 32 * 32) * 4
        self.check_modes("megatron", decoder(norm=torch.nn.LayerNorm), modes, stand_ins.megatron)


if __name__ == "__main__":
    unittest.main()
