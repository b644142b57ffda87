"""Tests the comparison with PyTorch's steps, and how pytorch_steps.py handles child processes that finish, crash or
hang. Also runs small models if a Python with torch is found."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "scripts/gpu"))

import pytorch_steps  # noqa: E402
from gpu import rivals  # noqa: E402

GIB = 1 << 30


def our_point(policy="none", **changes):
    time_of = {"step_median_ns": 10_000_000, "samples_ns": [[10_000_000]], "attention_backend": "cudnn",
               "repeatable_bits": False, "peak_allocated_bytes": 3 * GIB}
    return {"policy": policy, "schedule": "on_demand", "ops": "eager", "status": "ok", "reason": None,
            "time": time_of, "memory": {"peak_allocated_bytes": 9 * GIB}, **changes}


def turn(variant, policy, samples, round_index=0, peak=4 * GIB):
    return {"round": round_index, "variant": variant, "policy": policy, "status": "ok", "reason": None,
            "samples_ns": samples, "peak_allocated_bytes": peak, "peak_reserved_bytes": None, "last_loss": 1.0}


def rival(variant, policy, status="ok", **changes):
    return {"variant": variant, "policy": policy, "status": status, "reason": None, "compile": None,
            "first_loss": 5.0, **changes}


def made(**changes):
    """Makes a report in which PyTorch eager takes 20 ms, torch.compile 8 ms and rematch 10 ms."""
    compiled = {"form": "compile(block), one graph", "first_step_seconds": 12.34, "graph_breaks": 0}
    report = {"format": 2, "torch": "2.11.0", "attention_backend": "cudnn", "settings": {"deterministic": False},
              "failure": None, "environment": {"device": "NVIDIA H100", "device_uuid": "GPU-1"},
              "rematch_environment": {"device": "NVIDIA H100", "device_uuid": "GPU-1"},
              "rivals": [rival("eager", "none"), rival("compile", "none", compile=compiled)],
              "turns": [turn("eager", "none", [20_000_000, 22_000_000]),
                        turn("compile", "none", [8_000_000], peak=2 * GIB),
                        turn("compile", "none", [8_000_000], 1, peak=2 * GIB),
                        turn("eager", "none", [20_000_000], 1)],
              "rematch": [our_point()]}
    return {**copy.deepcopy(report), **changes}


class JudgeTest(unittest.TestCase):
    def test_ratios_and_peaks_of_both_variants_are_findings(self):
        findings, problems = rivals.judge_pytorch(made())
        self.assertEqual(problems, [])
        self.assertEqual(findings[0], "PyTorch 2.11.0, cudnn attention, 2 rounds")
        self.assertIn("torch.compile, none: compile(block), one graph, first step 12.3 s, 0 graph breaks", findings)
        self.assertIn("none, on_demand: 0.500 of PyTorch eager's 20.0 ms", findings)
        self.assertIn("none, on_demand: 1.250 of torch.compile's 8.0 ms, the target is 1.0: missed", findings)
        self.assertIn("none, on_demand: allocated 3,072 MiB, PyTorch eager 4,096 MiB", findings)
        self.assertIn("none, on_demand: allocated 3,072 MiB, torch.compile 2,048 MiB", findings)

    def test_fused_ops_are_named_and_the_peak_of_the_exact_pass_replaces_a_missing_one(self):
        point = our_point(ops="fused")
        del point["time"]["peak_allocated_bytes"]
        findings, _ = rivals.judge_pytorch(made(rematch=[point]))
        self.assertIn("none, on_demand, fused ops: allocated 9,216 MiB, PyTorch eager 4,096 MiB", findings)

    def test_a_rival_that_fails_is_a_finding_with_its_reason(self):
        report = made()
        report["rivals"] += [rival("compile", "full", "failed", reason="Unsupported: lambda"),
                             rival("eager", "full", "oom", reason="CUDA out of memory"),
                             rival("eager", "save_mm", "not_run", reason="the time limit was reached")]
        findings, problems = rivals.judge_pytorch(report)
        self.assertEqual(problems, [])
        self.assertIn("torch.compile, full: failed: Unsupported: lambda", findings)
        self.assertIn("PyTorch eager, full: oom: CUDA out of memory", findings)
        self.assertIn("PyTorch eager, save_mm: not run: the time limit was reached", findings)

    def test_a_variant_without_any_time_is_a_problem(self):
        report = made(turns=[turn("eager", "none", [20_000_000])])
        report["rivals"][1].update(status="failed", reason="no C compiler")
        self.assertEqual(rivals.judge_pytorch(report)[1],
                         ["torch.compile was not timed under any policy: failed: no C compiler"])

    def test_another_kernel_determinism_or_card_cannot_be_compared(self):
        for changes in ({"attention_backend": "flash"}, {"settings": {"deterministic": True}}):
            findings, problems = rivals.judge_pytorch(made(**changes))
            self.assertEqual(len(problems), 1)
            self.assertIn("none, on_demand: timed with attention and determinism", problems[0])
            self.assertFalse([line for line in findings if " of PyTorch eager's " in line])
        other = made(rematch_environment={"device": "NVIDIA H100", "device_uuid": "GPU-2"})
        self.assertEqual(rivals.judge_pytorch(other)[1], ["our steps ran on GPU-2, PyTorch's on GPU-1"])

    def test_another_loss_is_another_model(self):
        report = made()
        report["rivals"][1]["first_loss"] = 5.2
        self.assertEqual(rivals.judge_pytorch(report)[1],
                         ["torch.compile, none: first loss 5.2, PyTorch eager's is 5.0"])
        report["rivals"][1]["first_loss"] = 5.05
        self.assertEqual(rivals.judge_pytorch(report)[1], [])
        report["turns"][0]["last_loss"] = "nan"
        findings, problems = rivals.judge_pytorch(report)
        self.assertEqual(problems, [])
        self.assertIn("PyTorch eager, none: the last loss of round 0 is nan", findings)

    def test_points_and_runs_without_a_time_are_reported(self):
        findings, problems = rivals.judge_pytorch(made(rematch=[our_point(status="oom", time=None)]))
        self.assertIn("none, on_demand: not compared, because rematch has no step time (status: oom)", findings)
        self.assertEqual(problems, ["no policy was timed on both sides"])
        self.assertIn("no torch here", rivals.judge_pytorch(made(failure="no torch here"))[1])

    def test_the_first_format_is_read(self):
        full = {"status": "ok", "reason": None, "samples_ns": [20_000_000], "peak_allocated_bytes": 4 * GIB}
        lost = {"status": "oom", "reason": "CUDA out of memory", "samples_ns": [], "peak_allocated_bytes": None}
        point = {"policy": "full", "schedule": "on_demand", "status": "ok", "time": {
            "step_median_ns": 19_000_000, "samples_ns": [[19_000_000]], "attention_backend": "cudnn",
            "repeatable_bits": False}}
        findings, problems = rivals.judge_pytorch({
            "torch": "2.11.0", "attention_backend": "cudnn", "settings": {"deterministic": False},
            "environment": {"device": "NVIDIA H100"}, "rounds": [{"none": lost, "full": full}] * 2, "rematch": [point]})
        self.assertEqual(problems, [])
        self.assertIn("full, on_demand: 0.950 of PyTorch eager's 20.0 ms", findings)
        self.assertIn("PyTorch eager, none: oom: CUDA out of memory", findings)


CHILD = """
import json, os, sys, time
sys.path.insert(0, {folder!r})
from pytorch_steps import turn_order, write_atomically
path = sys.argv[1]
state = json.load(open(path))
for round_index in range(state["num_rounds"]):
    for rival in turn_order(state["rivals"], round_index):
        key = [rival["variant"], rival["policy"]]
        taken = [t for t in state["turns"] if t["round"] == round_index and [t["variant"], t["policy"]] == key]
        if taken or rival["status"] not in ("ok", "not_run"):
            continue
        state["running"] = {{"rival": key, "round": round_index, "since": time.time()}}
        write_atomically(path, state)
        {fault}
        rival["status"] = "ok"
        state["turns"].append({{"round": round_index, "variant": key[0], "policy": key[1], "status": "ok",
                               "samples_ns": [1]}})
        state["running"] = None
        write_atomically(path, state)
"""


def report_of(*policies):
    identity = {"model": "llama_small", "dimensions": {}, "dtype": "float32", "optimizer": "adamw", "ops": "eager"}
    return {"environment": {"device": "cpu", "device_uuid": None},
            "points": [{"policy": policy, "schedule": "on_demand", "device": "cpu", "identity": identity,
                        "status": "ok", "reason": None, "time": None, "memory": None} for policy in policies]}


class SuperviseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "out.json"

    def supervised(self, fault="", seconds=60, turn_seconds=60, policies=("none", "full")):
        state = pytorch_steps.fresh_state(report_of(*policies), ["eager", "compile"], 2, 1)
        pytorch_steps.write_atomically(self.path, state)
        child = CHILD.format(folder=str(ROOT / "scripts/gpu"), fault=fault)
        pytorch_steps.supervise([sys.executable, "-c", child, str(self.path)], self.path, time.time() + seconds,
                                turn_seconds)
        return json.loads(self.path.read_text())

    def statuses(self, state):
        return {(r["variant"], r["policy"]): r["status"] for r in state["rivals"]}

    def test_rivals_take_turns_forward_and_backward(self):
        state = self.supervised()
        self.assertTrue(state["complete"])
        order = [(t["variant"], t["policy"]) for t in state["turns"]]
        self.assertEqual(order[:4], [("eager", "none"), ("eager", "full"), ("compile", "none"), ("compile", "full")])
        self.assertEqual(order[4:], order[3::-1])

    def test_a_rival_that_kills_its_process_fails_alone(self):
        state = self.supervised('if key == ["compile", "none"]: print("boom", file=sys.stderr); '
                                "sys.stderr.flush(); os.kill(os.getpid(), 11)")
        self.assertEqual(self.statuses(state), {("eager", "none"): "ok", ("eager", "full"): "ok",
                                                ("compile", "none"): "failed", ("compile", "full"): "ok"})
        failed = next(r for r in state["rivals"] if r["status"] == "failed")
        self.assertEqual(failed["reason"], "the process ended with exit code -11: boom")
        self.assertEqual(len(state["turns"]), 6)

    def test_a_rival_that_hangs_fails_alone(self):
        state = self.supervised('if key == ["eager", "full"]: time.sleep(600)', turn_seconds=1)
        self.assertEqual(self.statuses(state)["eager", "full"], "failed")
        self.assertIn("the rival's turn took longer than 1 s", [r["reason"] for r in state["rivals"]])
        self.assertEqual(len(state["turns"]), 6)

    def test_turns_beyond_the_time_limit_are_not_run(self):
        state = self.supervised('if key == ["eager", "full"]: time.sleep(600)', seconds=2)
        self.assertFalse(state["complete"])
        self.assertEqual([(r["status"], r["reason"]) for r in state["rivals"]], [
            ("ok", None), ("not_run", "the time limit was reached during the rival's first turn"),
            ("not_run", "the time limit was reached"), ("not_run", "the time limit was reached")])
        self.assertEqual(len(state["turns"]), 1)

    def test_a_child_that_cannot_start_ends_the_run_with_its_message(self):
        state = pytorch_steps.fresh_state(report_of("none"), ["eager"], 1, 1)
        pytorch_steps.write_atomically(self.path, state)
        state = pytorch_steps.supervise([sys.executable, "-c", "raise SystemExit('no torch here')"], self.path,
                                        time.time() + 60)
        self.assertEqual(state["failure"], "the process ended with exit code 1: no torch here")
        self.assertEqual(state["rivals"][0]["reason"], state["failure"])

    def test_the_reason_of_a_crash_names_its_place(self):
        text = "pytorch_steps: round 0, eager none: ok\nFatal Python error: Segmentation fault\n  File a\n" + "tail\n" * 9
        self.assertTrue(pytorch_steps.last_words(text).startswith("Fatal Python error: Segmentation fault File a"))
        self.assertEqual(pytorch_steps.last_words("a\nb\nc\nd\n"), "b c d")

    def test_a_child_gets_only_a_few_new_processes(self):
        state = self.supervised("os._exit(75)")
        self.assertEqual(state["failure"], f"{pytorch_steps.MAX_CHILDREN} processes all ended early")


class CommandTest(unittest.TestCase):
    def test_wrong_input_is_one_line_and_exit_code_2(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.json"
            bad.write_text("{}")
            for words, said in (([], "is not a report of rematch run"), (["--variants", "jit"], "is not a variant"),
                                (["--rounds", "0"], "must be a whole number, 1 or more, not '0'")):
                ran = subprocess.run([sys.executable, str(ROOT / "scripts/gpu/pytorch_steps.py"), "--beside", str(bad),
                                      "-o", str(bad) + ".out", *words], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(said, ran.stderr)


def python_with_torch():
    """Finds a Python in the same way as scripts/test_python."""
    python = os.environ.get("REMATCH_PYTHON", str(ROOT / ".python/bin/python"))
    asked = "import numpy, torch"
    try:
        return python if subprocess.run([python, "-c", asked], capture_output=True).returncode == 0 else None
    except OSError:
        return None


SMALL = {"layers": 2, "dim": 32, "heads": 4, "kv_heads": 2, "ffn": 48, "vocab": 256, "batch": 1, "tokens": 16,
         "tied": 1}
TWIN = """
import sys
sys.path.insert(0, sys.argv[1])
import data, json, llama, torch
from policies import POLICIES
dimensions = json.loads(sys.argv[2])
torch.set_num_threads(1)
print(llama.Llama(dimensions, torch.float32).loss(data.text_batch(dimensions, 0, 0), POLICIES["none"]).item())
"""


@unittest.skipUnless(python_with_torch(), "no Python with torch; name one with REMATCH_PYTHON")
class TorchTest(unittest.TestCase):
    def test_small_rivals_run_with_the_loss_of_the_twin(self):
        python = python_with_torch()
        twin = subprocess.run([python, "-c", TWIN, str(ROOT / "tests/parity"), json.dumps(SMALL)],
                              capture_output=True, text=True, check=True)
        report = report_of("none", "attn_only")
        for point in report["points"]:
            point["identity"]["dimensions"] = SMALL
        with tempfile.TemporaryDirectory() as folder:
            beside, out = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "out.json"
            beside.write_text(json.dumps(report))
            subprocess.run([python, str(ROOT / "scripts/gpu/pytorch_steps.py"), "--beside", str(beside), "-o",
                            str(out), "--rounds", "1", "--steps", "1", "--seconds", "250"],
                           capture_output=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            state = json.loads(out.read_text())
        self.assertTrue(state["complete"], state)
        for found in state["rivals"]:
            digits = 12 if found["variant"] == "eager" else 4
            self.assertAlmostEqual(found["first_loss"], float(twin.stdout), digits, found)
        forward, backward = state["rivals"][-1]["compile"]["graphs"]  # attn_only keeps attention but no matmuls
        self.assertEqual([len(forward["attention"]), len(backward["attention"])], [1, 1])
        self.assertEqual(forward["num_matmuls"], 7)
        self.assertGreater(backward["num_matmuls"], 14)


if __name__ == "__main__":
    unittest.main()
