"""Tests that scripts/drive generates the same run from the same seed, finds every planted fault, and prints commands
that reproduce the fault in a smaller run."""

import copy
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from driving import verdict  # noqa: E402
from driving.afterwards import COMMANDS  # noqa: E402
from driving.case import Case, FrontPoint, PlanOf  # noqa: E402
from driving.draw import draw_case  # noqa: E402
from driving.execute import Execution  # noqa: E402
from driving.models import draw_model  # noqa: E402
from driving.policies import ARGUMENTS, Catalogue  # noqa: E402
from driving.shrink import shrink  # noqa: E402
from driving.tool import Done, Failed, Tool  # noqa: E402

# Stands in for the binary. Usually its report is correct. The environment variable FAULT describes a fault in the
# report, exit code or output. The fault occurs only if the command line contains the text under "where".
STAND_IN = '''#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
fault = json.loads(os.environ.get("FAULT", "{}"))
if fault and fault["where"] not in " ".join(words):
    fault = {}
def value_of(flag, otherwise=""):
    return words[words.index(flag) + 1] if flag in words else otherwise
def point(policy, schedule, steps):
    recomputed = 0 if policy == "none" else steps
    counts = {"forward": {"matmul": 4 * steps}, "recompute": {"matmul": recomputed}}
    return {"policy": policy, "status": "ok", "reason": "", "counted_steps": steps,
            "plan_sha256": policy, "schedule": schedule,
            "identity": {"plan_sha256": policy, "schedule": schedule},
            "counts": counts, "predicted_counts": counts, "ops": {"recompute": {"aten::mm": recomputed}},
            "effect": {"counts_equal_prediction": True},
            "memory": {key: 100 for key in ("peak_allocated_bytes", "predicted_peak_allocated_bytes",
                       "after_forward_bytes", "predicted_after_forward_bytes", "baseline_bytes")},
            "parity": {"compared_steps": steps, "loss_bits_equal": True, "gradient_bits_equal": True,
                       "parameter_hash_equal": True, "generator_hash_equal": True,
                       "every_parameter_has_gradient": True}}
if "report" in fault:
    open(value_of("-o"), "w").write(fault["report"])
    sys.exit(0)
if "line" in fault:
    print(fault["line"], file=sys.stderr)
    sys.exit(fault["code"])
if words[:2] == ["list", "--json"]:
    names = {"none": "", "full": "", "nth_last": "(N)"}
    print(json.dumps({"policies": [{"name": n, "parameters": p} for n, p in names.items()]}))
elif words[:2] == ["list", "--systems"]:
    print(json.dumps({"modes": [{"mode": "titan(option=N)", "policy": "nth_last({N})"}]}))
elif words[0] == "trace":
    print(json.dumps({"types": [{"ops": [{"name": "aten::mm", "class": "matmul", "scope": 1}],
                                 "scopes": [{"path": path} for path in ("embed", ".", ".ffn")]}]}))
elif words[0] == "search":
    points = [{"policy": "front", "plan_sha256": "front", "predicted_peak_allocated_bytes": 100,
               "predicted_after_forward_bytes": 100, "predicted_recomputed_ops": 1}]
    json.dump({"points": points}, open(value_of("-o"), "w"))
elif words[0] == "plan":
    json.dump({"policy": value_of("-o")}, open(value_of("-o"), "w"))
elif words[0] == "predict":
    print(json.dumps([]))
elif words[0] == "run":
    steps = int(value_of("--steps"))
    schedules = {"both": ["whole_region", "on_demand"]}.get(value_of("--schedule"),
                                                            [value_of("--schedule")])
    names = [value_of("--reference", "none"), *filter(None, value_of("--policy").split(","))]
    names += ["front" if "front" in word else word for word in words if ".json#" in word]
    names += [word for word in words if "/plan" in word]
    report = {"points": [point(name, schedule, steps) for name in dict.fromkeys(names)
                         for schedule in schedules]}
    if fault:
        report["points"][-1]["memory"][fault["key"]] += 1
    json.dump(report, open(value_of("-o"), "w"))
'''


OPS = [{"name": name, "class": kind, "scope": scope}
       for name, kind, scope in (("aten::embedding", "embedding", 0), ("aten::mm", "matmul", 2),
                                 ("rematch::rope", "elementwise", 1), ("aten::add.Tensor", "elementwise", None))]


class StandIn:
    """Stands in for the rematch command. Answers the calls that draw_case() makes, without starting a process."""

    def json(self, *words):
        if "--systems" in words:
            return {"modes": [{"mode": "titan(option=N)", "policy": "nth_last({N})"},
                              {"mode": "tune(freq=N,keys=K)", "policy": "sac_modalities({K})"}]}
        forms = {"none": "", "nth_last": "(N)", "only_list": "([I,...])", **dict.fromkeys(ARGUMENTS, "(X)")}
        return {"policies": [{"name": name, "parameters": form} for name, form in forms.items()]}

    def start(self, *words):
        scopes = [{"path": path} for path in ("embed", ".", ".ffn")]
        return Done(words, 0, json.dumps({"types": [{"ops": OPS, "scopes": scopes}]}), "")


class DrawTest(unittest.TestCase):
    def draw(self, seed):
        return draw_case(seed, 0, Catalogue(StandIn()), StandIn())

    def test_a_seed_always_draws_the_same_case_and_seeds_draw_different_ones(self):
        self.assertEqual(self.draw(3), self.draw(3))
        self.assertEqual(len({repr(self.draw(seed)) for seed in range(40)}), 40)

    def test_a_hundred_seeds_draw_every_family_dtype_and_source_of_policies(self):
        cases = [self.draw(seed) for seed in range(100)]
        text = "\n".join(map(repr, cases))
        for word in ("llama_small", "moe_small", "deepseek_small", "wan_small", "ltx_small", "bfloat16",
                     "'--ops': 'fused'", "--dropout-percent", "--frozen-layers", "--adapter-rank",
                     "--video", "'--heads': '1'", "'--tokens': '1'", "'--batch': '1'", "math", "adamw(",
                     "on_demand", "whole_region", "FrontPoint", "PlanOf", "policy0.json", "titan(option="):
            with self.subTest(word=word):
                self.assertIn(word, text)

    # The command rejects a model whose sizes break one of these rules.
    def test_extents_fit_together(self):
        for seed in range(300):
            _, flags = draw_model(random.Random(seed))
            number = {name: int(value) for name, value in flags.items() if value.isdigit()}
            with self.subTest(seed=seed, flags=flags):
                if "--latent-dim" not in flags:
                    self.assertEqual(number["--dim"] % (2 * number["--heads"]), 0)
                self.assertEqual(number["--heads"] % number.get("--kv-heads", 1), 0)
                self.assertLessEqual(number.get("--top-k", 0), number.get("--experts", 0))

    def test_an_entry_without_written_arguments_stops_the_driver(self):
        tool = StandIn()
        tool.json = lambda *words: ({"modes": []} if "--systems" in words
                                    else {"policies": [{"name": "fresh", "parameters": "(WORDS)"}]})
        with self.assertRaisesRegex(Failed, "no arguments for fresh"):
            Catalogue(tool)


    @unittest.skipUnless("REMATCH_BINARY" in os.environ, "REMATCH_BINARY names no binary")
    def test_the_built_command_lists_what_the_catalogue_draws_from(self):
        catalogue = Catalogue(Tool(os.environ["REMATCH_BINARY"], ROOT))
        drawn = {catalogue.draw(random.Random(seed), layers=4) for seed in range(200)}
        self.assertTrue(any(name.startswith("fastvideo:") for name in drawn), drawn)
        self.assertTrue(any(name.startswith("nth_last(") for name in drawn), drawn)


def good_point(policy, schedule):
    recomputed = 0 if policy == "none" else 2
    counts = {"forward": {"matmul": 4}, "recompute": {"matmul": recomputed}}
    memory = {"peak_allocated_bytes": 90, "after_forward_bytes": 50, "baseline_bytes": 8}
    memory.update({"predicted_" + key: value for key, value in memory.items()})
    parity = dict.fromkeys(("loss_bits_equal", "gradient_bits_equal", "parameter_hash_equal",
                            "generator_hash_equal"), True)
    return {"policy": policy, "status": "ok", "reason": "", "counted_steps": 2,
            "identity": {"plan_sha256": f"{policy}'s", "schedule": schedule},
            "counts": counts, "predicted_counts": copy.deepcopy(counts),
            "ops": {"forward": {"aten::mm": 4}, "recompute": {"aten::mm": recomputed}},
            "effect": {"counts_equal_prediction": True, "detail": ""}, "memory": memory,
            "parity": {"compared_steps": 2, **parity}}


class VerdictTest(unittest.TestCase):
    case = Case(0, {}, {"--steps": "2", "--schedule": "both"}, policies=["full"])
    figures = {("full's", "on_demand"): {"predicted_peak_allocated_bytes": 90,
                                         "predicted_after_forward_bytes": 50,
                                         "predicted_recomputed_ops": 1}}

    def report(self):
        return {"points": [good_point("none", "whole_region"), good_point("full", "whole_region"),
                           good_point("full", "on_demand")]}

    def kinds(self, report):
        found = verdict.judge_report(report, self.case, ["full"], self.figures)
        return {failure.split(":")[0] for failure in found}

    def test_a_correct_report_has_no_failures(self):
        self.assertEqual(self.kinds(self.report()), set())

    def test_each_edit_of_a_report_is_found_with_its_kind(self):
        # The last point has policy `full` and schedule on_demand. The point before it has schedule whole_region.
        edits = [
            ("status", ("status",), "invalid"),
            ("parity", ("parity", "loss_bits_equal"), False),
            ("parity", ("parity", "gradient_bits_equal"), None),
            ("parity", ("parity", "parameter_hash_equal"), False),
            ("parity", ("parity", "generator_hash_equal"), False),
            ("parity", ("parity", "compared_steps"), 1),
            ("parity", ("parity",), None),
            ("counts", ("effect", "counts_equal_prediction"), False),
            ("counts", ("predicted_counts", "forward", "matmul"), 3),
            ("counts", ("counted_steps",), 1),
            ("bytes", ("memory", "predicted_peak_allocated_bytes"), 91),
            ("bytes", ("memory", "predicted_after_forward_bytes"), 51),
            ("bytes", ("memory", "predicted_peak_allocated_bytes"), None),
            ("baseline", ("memory", "baseline_bytes"), 9),
            ("schedules", ("memory", "peak_allocated_bytes"), 91),
            ("schedules", ("ops", "forward", "aten::mm"), 5),
            ("front", ("memory", "peak_allocated_bytes"), 89),
            ("front", ("memory", "after_forward_bytes"), 49),
            ("front", ("ops", "recompute", "aten::mm"), 1),
        ]
        for kind, path, value in edits:
            report = self.report()
            place = report["points"][-1]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            with self.subTest(path=path, value=value):
                self.assertIn(kind, self.kinds(report))

    def test_missing_and_repeated_points_are_found(self):
        points = self.report()["points"]
        none, eager, lazy = points
        self.assertEqual(self.kinds({"points": [eager, lazy]}), {"reference", "points"})
        self.assertEqual(self.kinds({"points": [none]}), {"points"})
        self.assertEqual(self.kinds({"points": [none, lazy]}), {"points"})
        self.assertEqual(self.kinds({"points": [none, eager]}), {"points"})
        self.assertEqual(self.kinds({"points": [*points, copy.deepcopy(none)]}), {"points"})

    def test_a_plan_from_a_file_appears_under_its_policy(self):
        found = verdict.judge_report(self.report(), self.case, ["none", "search(1)"], {})
        self.assertEqual(found, ["points: none of search(1)"])

    def test_a_reference_with_a_wrong_name_is_found(self):
        report = self.report()
        report["points"][0]["ops"]["recompute"]["aten::mm"] = 1
        self.assertIn("reference", self.kinds(report))

    def test_a_refusal_is_one_line_and_nothing_on_stdout(self):
        def failures(err, out=""):
            return len(verdict.judge_refusal(Done([], 2, out, err)))
        self.assertEqual(failures("rematch: N is 5, use 1 to 4\n"), 0)
        self.assertEqual(failures("rematch: note: a grid\nrematch: N is 5, use 1 to 4\n"), 0)
        self.assertEqual(failures(""), 1)
        self.assertEqual(failures("rematch: one\nrematch: two\n"), 1)
        self.assertEqual(failures("Exception raised from here\n"), 1)
        self.assertEqual(failures("rematch: " + "a selector, " * 100 + "\n"), 1)
        self.assertEqual(failures("rematch: N is 5, use 1 to 4\n", "half a table"), 1)

    def test_other_exit_codes_crashes_and_hangs_are_failures(self):
        def failures(code, err=""):
            return [failure.split(":")[0] for failure in verdict.judge_ending(Done(["run"], code, "", err))]
        self.assertEqual(failures(0), [])
        self.assertEqual(failures(1, "rematch: file not found"), ["exit code"])
        self.assertEqual(failures(5), ["exit code"])
        self.assertEqual(failures(139), ["exit code"])
        self.assertEqual(failures(0, "terminate called after throwing"), ["crash"])
        self.assertEqual(failures(None), ["hung"])


    def test_a_run_that_goes_on_without_a_policy_has_a_refused_point(self):
        with tempfile.TemporaryDirectory() as folder:
            execution = Execution(mock.Mock(), Case(0, {"--model": "llama_small"}, {}), pathlib.Path(folder))
            self.assertFalse(execution.has_refused_point(Done([], 5, "", "")))  # there is no report yet
            for status, is_refused in (("refused", True), ("oom", False)):
                execution.report_file.write_text(json.dumps({"points": [{"status": "ok"}, {"status": status}]}))
                self.assertIs(execution.has_refused_point(Done([], 5, "", "")), is_refused)
                self.assertFalse(execution.has_refused_point(Done([], 0, "", "")))


class AfterwardsTest(unittest.TestCase):
    """Tests the checks that run other commands on a finished report. The commands are stand-ins that answer as each
    case specifies."""

    def failures(self, name, code=0, out="", second=None, gradients=True):
        report = {"points": [good_point("full", "on_demand")]}
        report["points"][0].update(plan_sha256="full's", schedule="on_demand")
        report["points"][0]["parity"]["every_parameter_has_gradient"] = gradients
        execution = mock.Mock(folder=pathlib.Path("."), case=Case(0, {"--model": "llama_small"}, {}))
        execution.model_words.return_value = execution.flag_words.return_value = []
        execution.policies, execution.plan_words, execution.policy_words = ["full"], [], []
        execution.start.side_effect = lambda *words: Done(words, code, out, "")
        execution.read_report.return_value = second or report
        found = COMMANDS[name](execution, report, ["run"])
        return [failure.split(":")[0] for failure in found]

    def predicted(self, **memory):
        memory = {"peak_allocated_bytes": 90, "after_forward_bytes": 50, **memory}
        return json.dumps([{"plan_sha256": "full's", "schedule": "on_demand", "predicted_memory": memory}])

    def test_each_command_ends_with_0(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                self.assertEqual(self.failures(name, out=self.predicted()), [])
                self.assertEqual(self.failures(name, code=1), ["exit code"])
                self.assertEqual(self.failures(name, code=4), ["exit code"])

    def test_a_gate_need_not_pass_where_gradients_are_missing(self):
        for code in (0, 3, 4):
            self.assertEqual(self.failures("gate", code=code, gradients=False), [])
        self.assertEqual(self.failures("gate", code=5, gradients=False), ["exit code"])

    def test_a_prediction_is_compared_with_the_run(self):
        self.assertEqual(self.failures("predict", out=self.predicted(peak_allocated_bytes=91)), ["predict"])
        self.assertEqual(self.failures("predict", out=self.predicted(after_forward_bytes=51)), ["predict"])

    def test_the_same_command_gives_the_same_points(self):
        self.assertEqual(self.failures("run_again", second={"points": []}), ["again"])


class ShrinkTest(unittest.TestCase):
    def test_shrinking_keeps_only_what_the_failure_needs(self):
        case = Case(0, {"--model": "llama_small", "--layers": "4", "--dim": "16", "--dtype": "bfloat16"},
                    {"--schedule": "both", "--steps": "3", "--seed": "7"},
                    policies=["none", "{folder}/mine.json"],
                    plans=[PlanOf("full"), FrontPoint((), 0.5)],
                    files={"mine.json": {"schema": "s", "name": "mine", "early_stop": False,
                                         "save": ["matmul", "view", "copy"]}})

        def fails(candidate):
            saves = candidate.files["mine.json"].get("save", [])
            holds = ("{folder}/mine.json" in candidate.policies and "view" in saves
                     and int(candidate.model["--layers"]) >= 2)
            return {"bytes"} if holds else {"refusal"}

        smallest = shrink(case, {"bytes"}, fails)
        self.assertEqual(smallest.policies, ["{folder}/mine.json"])
        self.assertEqual(smallest.plans, [])
        self.assertEqual(smallest.model, {"--model": "llama_small", "--layers": "2", "--dim": "1"})
        self.assertEqual(smallest.flags, {"--schedule": "on_demand", "--steps": "1"})
        self.assertEqual(smallest.files["mine.json"], {"schema": "s", "name": "mine", "save": ["view"]})


class CommandTest(unittest.TestCase):
    """Runs the script with a stand-in for the binary."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_drive_"))
        self.addCleanup(shutil.rmtree, self.root)
        self.binary = self.root / "rematch"
        self.binary.write_text(STAND_IN)
        self.binary.chmod(0o755)

    def drive(self, *words, **fault):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "1"}
        if fault:
            environment["FAULT"] = json.dumps(fault)
        done = subprocess.run(
            [ROOT / "scripts" / "drive", "--binary", self.binary, "--folder", self.root / "runs", *words],
            env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_passing_runs_are_counted_and_leave_no_files(self):
        status, lines, errors = self.drive("--runs", "6")
        self.assertEqual((status, lines[-1], errors), (0, "runs: 6 passed, 0 failed, 0 skipped", ""))
        self.assertRegex(lines[-2], r"[1-9]\d* points, every parameter has a nonzero gradient in [1-9]\d*; ")
        self.assertEqual(list((self.root / "runs").iterdir()), [])

    def test_a_failure_prints_the_command_that_repeats_it_and_a_smaller_one(self):
        status, lines, _ = self.drive("--runs", "2", where="--policy", key="peak_allocated_bytes")
        self.assertEqual(status, 1)
        self.assertRegex(lines[-1], r"^runs: \d+ passed, [1-9]\d* failed, 0 skipped$")
        failed = [line for line in lines if "failed: bytes" in line]
        self.assertTrue(failed)
        self.assertRegex(failed[0], r"drive: seed \d+ failed: bytes: .*peak_allocated_bytes 101, predicted 100")
        self.assertTrue([line for line in lines if "again:   scripts/rematch run --model " in line])
        smaller = [line for line in lines if "smaller: scripts/rematch run --model " in line]
        self.assertIn("--layers 1 ", smaller[0])
        self.assertIn("--steps 1 ", smaller[0])
        self.assertGreater(len(list((self.root / "runs").iterdir())), 0)

    def test_a_crash_and_a_refusal_of_a_model_that_fits_are_failures(self):
        status, lines, _ = self.drive("--runs", "2", "--no-shrink", where="run --model", code=139,
                                      line="terminate called")
        self.assertEqual((status, lines[-1]), (1, "runs: 0 passed, 2 failed, 0 skipped"))
        status, lines, _ = self.drive("--runs", "2", "--no-shrink", where="run --model", code=2,
                                      line="rematch: heads 1 does not divide dim 4")
        self.assertEqual((status, lines[-1]), (1, "runs: 0 passed, 2 failed, 0 skipped"))

    def test_a_model_without_a_trace_and_a_malformed_report_fail_only_their_runs(self):
        for fault in ({"where": "trace", "code": 1, "line": "rematch: no trace"},
                      {"where": "run --model", "code": 0, "line": "rematch: nothing written"},
                      {"where": "run --model", "code": 0, "report": "{"},
                      {"where": "run --model", "code": 0, "report": "{}"}):
            status, lines, errors = self.drive("--runs", "5", "--no-shrink", **fault)
            with self.subTest(fault=fault):
                self.assertEqual((status, errors), (fault["where"] != "trace", ""))
                self.assertRegex(lines[-1], "^runs: . passed, . failed, 0 skipped$")

    def test_a_missing_binary_is_reported_in_one_line(self):
        self.binary.unlink()
        status, lines, errors = self.drive()
        self.assertEqual((status, lines), (2, []))
        self.assertRegex(errors, "^drive: .*rematch is not built; run 'cmake --workflow --preset dev'\n$")


if __name__ == "__main__":
    unittest.main()
