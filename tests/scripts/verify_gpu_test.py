#!/usr/bin/env python3
"""scripts/verify_gpu without a GPU: its stages as data, its verdicts on made-up reports, and how it
goes on after a stage that was stopped."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from gpu import carried, stages  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("verify_gpu", str(SCRIPTS / "verify_gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("verify_gpu", loader))
    loader.exec_module(module)
    return module


verify_gpu = load()


def typed(*words):
    return subprocess.run([SCRIPTS / "verify_gpu", *words], capture_output=True, text=True)


def point(policy, **changes):
    equal = {"reference": "none", "loss_bits_equal": True, "gradient_bits_equal": True,
             "parameter_hash_equal": True, "generator_hash_equal": True,
             "every_parameter_has_gradient": True, "first_different_tensor": None,
             "first_parameter_without_gradient": None}
    made = {"policy": policy, "schedule": "on_demand", "status": "ok", "reason": None, "parity": equal,
            "effect": {"counts_equal_prediction": True, "detail": None},
            "memory": {"peak_allocated_bytes": 1 << 30, "predicted_peak_allocated_bytes": 1 << 30},
            "time": {"step_median_ns": 10, "step_ratio": {"ratio": 1.1, "interval": [1.0, 1.2]}},
            "kernels": {"kernel_count": {"forward": {"attention_forward": 600}, "recompute": {}},
                        "unknown_time_ratio": 0.01, "slowdown_ratio": 1.05, "invalid": None},
            "kernels_reason": None}
    made.update(changes)
    return made


def report(*made):
    return {"environment": {"device": "Made-up GPU"}, "points": list(made)}


class TypedTest(unittest.TestCase):
    def test_list_and_dry_run_need_no_gpu(self):
        listed = typed("--list")
        self.assertEqual(listed.returncode, 0)
        for name in ("build", "gpu_tests", "sanitizer", "kernel_counts", "peaks", "wan_1_3b_0",
                     "llama3_1b_3"):
            self.assertIn(f"\n{name} ", "\n" + listed.stdout)
        dry = typed("--dry-run", "kernel_counts", "wan_1_3b_1")
        self.assertEqual(dry.returncode, 0)
        self.assertIn("--policy none,full,attn_only", dry.stdout)
        self.assertIn("--tokens 31200", dry.stdout)
        self.assertIn("--shard 1/4", dry.stdout)
        self.assertIn("--timeout 120s", dry.stdout)

    def test_what_cannot_be_packed_whole_is_not_begun(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(carried, "PACKAGES", ["bash", "no-such-package"]), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(carried.pack(pathlib.Path(folder) / "pack", SCRIPTS.parent), 2)
            self.assertIn("no-such-package is not installed", said.getvalue())
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_an_unknown_stage_is_named_with_the_known_ones(self):
        done = typed("bulid")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no stage 'bulid'", done.stderr)
        self.assertIn("kernel_counts", done.stderr)


class JudgeTest(unittest.TestCase):
    def test_bits(self):
        findings, problems = stages.judge_bits(report(point("none"), point("full")))
        self.assertEqual(problems, [])
        self.assertIn("2 of 2", findings[0])
        _, problems = stages.judge_bits(report(point("full", status="oom", reason="too much")))
        self.assertEqual(problems, ["full, on_demand: oom: too much"])

    def judged(self, **changes):
        """What each judge says of none beside a policy that ended in another way: problems by judge."""
        judges = (stages.judge_bits, stages.judge_counts, stages.judge_peaks, stages.judge_overhead,
                  stages.judge_front)
        other = point("attn_only", **changes)
        return {judge.__name__: judge(report(point("none"), other))[1] for judge in judges}

    def test_every_judge_refuses_other_bits_other_ops_and_other_peaks(self):
        for name, problems in self.judged().items():
            self.assertEqual(problems, [], name)
        equal = point("full")["parity"]
        peak = {"peak_allocated_bytes": 1 << 30, "predicted_peak_allocated_bytes": 1 << 29}
        untold = {"peak_allocated_bytes": 1 << 30, "predicted_peak_allocated_bytes": None}
        for changes, said in (
                ({"parity": dict(equal, loss_bits_equal=False, first_different_tensor="loss")},
                 "bits differ from none's at loss"),
                ({"parity": dict(equal, gradient_bits_equal=False, first_different_tensor="w")},
                 "bits differ from none's at w"),
                ({"parity": dict(equal, parameter_hash_equal=False)}, "bits differ from none's"),
                ({"parity": dict(equal, generator_hash_equal=False)}, "bits differ from none's"),
                ({"parity": dict(equal, loss_bits_equal=None)}, "bits were not compared"),
                ({"parity": None}, "was held against no reference"),
                ({"parity": dict(equal, every_parameter_has_gradient=False,
                                 first_parameter_without_gradient="w")}, "no gradient at w"),
                ({"effect": {"counts_equal_prediction": False, "detail": "aten::mm in forward"}},
                 "executed other ops than predicted: aten::mm in forward"),
                ({"effect": {"counts_equal_prediction": None, "detail": None}}, "not counted"),
                ({"effect": None}, "not counted"),
                ({"memory": peak}, f"off its prediction by {1 << 29} B"),
                ({"memory": untold}, "no peak was measured beside its prediction"),
                ({"status": "crash", "reason": "signal 11"}, "crash: signal 11"),
                ({"status": "invalid", "reason": "not finite"}, "invalid: not finite")):
            for name, problems in self.judged(**changes).items():
                with self.subTest(judge=name, said=said):
                    self.assertEqual(len(problems), 1)
                    self.assertIn(said, problems[0])
                    self.assertIn("attn_only, on_demand", problems[0])

    def test_bits_that_differed_before_memory_ran_out_are_no_result(self):
        parity = dict(point("full")["parity"], loss_bits_equal=False, first_different_tensor="loss")
        oom = point("full", status="oom", reason="too much", memory=None, time=None, parity=parity)
        self.assertEqual(stages.judge_front(report(point("none"), oom))[1],
                         ["full, on_demand: bits differ from none's at loss"])

    def test_a_report_without_points_proves_nothing(self):
        self.assertIn("the report has no points", stages.judge_bits(report())[1])

    def test_counts(self):
        twice = {"forward": {"attention_forward": 600}, "recompute": {"attention_forward": 600}}
        full = point("full", kernels=dict(point("full")["kernels"], kernel_count=twice))
        self.assertEqual(stages.judge_counts(report(point("none"), full, point("attn_only")))[1], [])
        self.assertEqual(stages.judge_counts(report(point("full")))[1],
                         ["full, on_demand: 1200 were expected"])
        none = point("none", kernels=None, kernels_reason="another tool records already")
        self.assertIn("another tool", stages.judge_counts(report(none))[1][0])
        invalid = point("none", kernels=dict(point("none")["kernels"], invalid="7 records were dropped"))
        self.assertIn("dropped", stages.judge_counts(report(invalid))[1][0])

    def test_peaks(self):
        def off_by(off, measured=1 << 34):
            memory = {"peak_allocated_bytes": measured,
                      "predicted_peak_allocated_bytes": measured - off}
            return stages.judge_peaks(report(point("none", memory=memory)))[1]
        self.assertEqual(off_by(0), [])
        self.assertEqual(off_by(17_000_000), [])  # under 0.1 % of 16 GiB
        self.assertTrue(off_by(18_000_000))
        self.assertEqual(off_by(2 << 20, 1 << 20), [])  # 2 MiB
        self.assertTrue(off_by(-(2 << 20) - 1, 1 << 20))

    def test_front_takes_out_of_memory_as_a_result_and_a_crash_not(self):
        oom = point("none", status="oom", reason="too much", memory=None, time=None)
        self.assertEqual(stages.judge_front(report(oom, point("full")))[1], [])
        self.assertEqual(stages.judge_front(report(oom))[1], ["no policy fits"])
        crash = point("none", status="crash", reason="signal 11")
        self.assertIn("crash", stages.judge_front(report(crash, point("full")))[1][0])

    def test_a_profile_has_times_and_temporaries_of_this_device(self):
        def profile(**changes):
            kind = {"times_ns": [5, 0], "temporary_bytes": [0, 64]}
            one = {"types": [kind], "segments": [0, 0]}
            return {"device": "cuda", "source": "measured", "forward": one, "backward": one, **changes}
        findings, problems = stages.judge_profile(profile())
        self.assertEqual(problems, [])
        self.assertIn("forward: 10 ns in kernels", findings)
        idle = {"types": [{"times_ns": [0], "temporary_bytes": [0]}], "segments": [0]}
        unweighed = {"types": [{"times_ns": [5], "temporary_bytes": None}], "segments": [0]}
        for changes, said in (({"forward": idle}, "forward: no op took any time"),
                              ({"backward": unweighed}, "backward: what kernels allocate inside"),
                              ({"device": "h100", "source": "roofline"}, "is roofline, of h100")):
            problems = stages.judge_profile(profile(**changes))[1]
            self.assertEqual(len(problems), 1)
            self.assertIn(said, problems[0])

    def test_every_policy_with_arguments_has_an_example(self):
        listed = {"policies": [{"name": "none"}, {"name": "nth_last"}]}
        self.assertEqual(stages.candidates(listed), ["none", "nth_last(2)"])


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name)
        self.arguments = types.SimpleNamespace(out=str(self.out), carried=None)

    def tearDown(self):
        self.folder.cleanup()

    def stage(self, code, **changes):
        return stages.Stage("build", "made up", [[sys.executable, "-c", code]], gpu=False, **changes)

    def run_it(self, stage, seconds=30):
        return verify_gpu.run_commands(stage, self.arguments, time.monotonic() + seconds)

    def test_commands_end_at_the_first_that_fails(self):
        stage = stages.Stage("x", "x", [[sys.executable, "-c", "print('said'); raise SystemExit(7)"],
                                        [sys.executable, "-c", "never"]])
        done, status = self.run_it(stage)
        self.assertEqual((len(done), done[0]["exit_code"], status), (1, 7, "failed"))
        self.assertIn("said", done[0]["tail"])
        done, status = self.run_it(self.stage("raise SystemExit(5)", ok_codes=(0, 5)))
        self.assertEqual(status, "passed")

    def test_a_stage_that_takes_too_long_is_unfinished(self):
        start = time.monotonic()
        _, status = self.run_it(self.stage("import time; time.sleep(60)"), seconds=1)
        self.assertEqual(status, "unfinished")
        self.assertLess(time.monotonic() - start, 30)

    def test_a_report_is_judged_and_its_shard_found(self):
        code = ("import json; json.dump({'environment': {'device': 'd'}, 'points': []}, "
                f"open('{self.out}/x.report.shard-1-of-4.json', 'w'))")
        stage = stages.Stage("x", "made up", [[sys.executable, "-c", code]],
                             lambda report: (["found"], ["wrong"]), gpu=False)
        verify_gpu.obstacle = lambda stage: None
        result = verify_gpu.run_stage(stage, self.arguments, "source")
        self.assertEqual((result["status"], result["findings"], result["device"]),
                         ("failed", ["found"], "d"))

    def test_a_run_that_ends_with_other_bits_never_passes(self):
        code = ("import json, sys; json.dump({'environment': {'device': 'd'}, 'points': []}, "
                f"open('{self.out}/x.report.json', 'w')); sys.exit(3)")
        stage = stages.Stage("x", "made up", [[sys.executable, "-c", code]],
                             lambda report: ([], []), (0, 3), gpu=False)
        verify_gpu.obstacle = lambda stage: None
        result = verify_gpu.run_stage(stage, self.arguments, "source")
        self.assertEqual(result["status"], "failed")
        self.assertIn("bits differ", result["problems"][0])

    def test_what_has_passed_with_this_source_is_not_run_again(self):
        path = self.out / "stage.json"
        self.assertEqual(verify_gpu.result_before(path, "a"), {})
        verify_gpu.write(path, {"status": "passed", "source_sha256": "a"})
        self.assertEqual(verify_gpu.result_before(path, "a")["status"], "passed")
        self.assertEqual(verify_gpu.result_before(path, "b"), {})
        path.write_text("{")
        self.assertEqual(verify_gpu.result_before(path, "a"), {})

    def front_stage(self, *made):
        """A stage whose command writes this report and the limit that it was given."""
        code = ("import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2]); "
                "pathlib.Path(sys.argv[1]).with_suffix('.limit').write_text(sys.argv[3])")
        return stages.Stage("x", "made up", [[sys.executable, "-c", code, "{report}",
                                              json.dumps(report(*made)), "{timeout}"]],
                            stages.judge_front, (0, 3, 5), gpu=False)

    def test_a_point_that_took_too_long_is_tried_again_with_more_time(self):
        verify_gpu.obstacle = lambda stage: None
        late = self.front_stage(point("none"), point("full", status="timeout", reason="after 120 s"))
        limits, statuses = [], []
        for _ in range(3):
            statuses.append(verify_gpu.verify([late], self.arguments))
            limits.append((self.out / "x.report.limit").read_text())
        self.assertEqual(limits, ["120s", "240s", "450s"])
        self.assertEqual(statuses, [4, 4, 3])  # type it again, type it again, failed
        result = json.loads((self.out / "x.json").read_text())
        self.assertEqual(result["problems"], ["full, on_demand: timeout: after 120 s"])
        self.assertEqual(verify_gpu.verify([self.front_stage(point("none"))], self.arguments), 0)

    def test_a_time_out_hides_no_other_problem(self):
        verify_gpu.obstacle = lambda stage: None
        wrong = dict(point("full")["parity"], loss_bits_equal=False, first_different_tensor="loss")
        stage = self.front_stage(point("none"), point("full", parity=wrong),
                                 point("root", status="timeout", reason="after 120 s"))
        result = verify_gpu.run_stage(stage, self.arguments, "source")
        self.assertEqual(result["status"], "failed")
        self.assertEqual(result["problems"], ["full, on_demand: bits differ from none's at loss",
                                              "root, on_demand: timeout: after 120 s"])


    def test_a_judge_that_raises_fails_its_stage_and_ends_no_other(self):
        verify_gpu.obstacle = lambda stage: None

        def raises(report):
            raise KeyError("kernels")

        broken = self.front_stage(point("none"))
        broken.judge, broken.name = raises, "broken"
        self.assertEqual(verify_gpu.verify([broken, self.front_stage(point("none"))], self.arguments), 3)
        result = json.loads((self.out / "broken.json").read_text())
        self.assertEqual(result["status"], "failed")
        self.assertIn("KeyError: 'kernels'", result["problems"][0])
        self.assertEqual(json.loads((self.out / "x.json").read_text())["status"], "passed")

    def test_a_program_that_is_missing_or_killed_ends_no_other_stage(self):
        verify_gpu.obstacle = lambda stage: None
        absent = stages.Stage("absent", "made up", [["/nowhere/ctest"]], gpu=False)
        killed = stages.Stage("killed", "made up", [[sys.executable, "-c",
                                                     "import os; os.kill(os.getpid(), 9)"]], gpu=False)
        after = stages.Stage("after", "made up", [[sys.executable, "-c", ""]], gpu=False)
        self.assertEqual(verify_gpu.verify([absent, killed, after], self.arguments), 3)
        results = [json.loads((self.out / f"{name}.json").read_text())
                   for name in ("absent", "killed", "after")]
        self.assertEqual([result["status"] for result in results], ["failed", "failed", "passed"])
        self.assertIn("/nowhere/ctest", results[0]["problems"][0])
        self.assertEqual(results[1]["commands"][0]["exit_code"], -9)

    def test_what_a_stage_started_ends_with_it(self):
        mark = self.out / "outlived"
        child = f"import pathlib, time; time.sleep(3); pathlib.Path({str(mark)!r}).touch()"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
        _, status = self.run_it(self.stage(code), seconds=1)
        self.assertEqual(status, "unfinished")
        time.sleep(4)
        self.assertFalse(mark.exists())

    def test_tests_that_skipped_are_no_pass(self):
        verify_gpu.obstacle = lambda stage: None
        code = "print('The following tests did not run:\\n\\t 3 - engine_cuda_test/bits (Skipped)')"
        stage = stages.Stage("gpu_tests", "made up", [[sys.executable, "-c", code]], gpu=False,
                             refuse=stages.SKIPPED_TESTS)
        result = verify_gpu.run_stage(stage, self.arguments, "source")
        self.assertEqual(result["status"], "failed")
        self.assertEqual(result["problems"], ["it says: 3 - engine_cuda_test/bits (Skipped)"])
        stage.commands = [[sys.executable, "-c", "print('No tests were found!!!')"]]
        self.assertEqual(verify_gpu.run_stage(stage, self.arguments, "source")["status"], "failed")
        stage.commands = [[sys.executable, "-c", "print('100% tests passed')"]]
        self.assertEqual(verify_gpu.run_stage(stage, self.arguments, "source")["status"], "passed")

    def test_a_machine_without_git_has_a_source_all_the_same(self):
        with_git = verify_gpu.source_hash()
        with unittest.mock.patch.object(verify_gpu.subprocess, "run", side_effect=FileNotFoundError("git")):
            without = verify_gpu.source_hash()
        self.assertEqual(len(without), len(with_git))


class ObstacleTest(unittest.TestCase):
    def test_a_driver_that_only_its_library_shows_is_a_driver(self):
        stage = stages.Stage("kernel_counts", "made up", [], gpu=True)
        with unittest.mock.patch.object(verify_gpu.Path, "exists", return_value=False), \
                unittest.mock.patch.object(verify_gpu.shutil, "which", return_value=None):
            with unittest.mock.patch.object(verify_gpu.ctypes, "CDLL", side_effect=OSError):
                self.assertEqual(load().obstacle(stage), "there is no NVIDIA driver")
            with unittest.mock.patch.object(verify_gpu.ctypes, "CDLL"):
                self.assertEqual(load().obstacle(stage), "the stage 'build' comes first")


class BinaryTest(unittest.TestCase):
    """The built command is asked for its policies before a stage can be typed."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.binary, verify_gpu.BINARY = verify_gpu.BINARY, pathlib.Path(self.folder.name) / "rematch"
        self.arguments = types.SimpleNamespace(out=self.folder.name, carried="/made/up")
        self.stage = stages.Stage("x", "made up", [["echo", "{policies}"]], gpu=False, model="--model m")
        verify_gpu.obstacle = lambda stage: None
        verify_gpu.usable_policies.cache_clear()

    def tearDown(self):
        verify_gpu.BINARY = self.binary
        verify_gpu.usable_policies.cache_clear()
        self.folder.cleanup()

    def build(self, script):
        verify_gpu.BINARY.write_text("#!/bin/sh\n" + script)
        verify_gpu.BINARY.chmod(0o755)

    def test_it_gets_the_libraries_that_stages_get(self):
        self.build('case "$LD_LIBRARY_PATH" in */made/up/usr/lib*) ;; *) exit 127;; esac\n'
                   'if [ "$1" = list ]; then echo \'{"policies": [{"name": "none"}, {"name": "full"}]}\'; '
                   'elif [ "$3" = full ]; then echo "full is refused" >&2; exit 2; fi\n')
        self.assertEqual(verify_gpu.usable_policies("--model m", "/made/up"),
                         ("none", ["full: full is refused"]))

    def test_one_that_does_not_start_fails_the_stage_in_one_line(self):
        for script, said in (
                ("echo 'cannot open shared object file' >&2; exit 127\n",
                 "`rematch list` ends with 127: cannot open shared object file; run the stage 'build'"),
                ("exit 1\n", "`rematch list` ends with 1: it says nothing"),
                ("echo no json\n", "`rematch list --json` is no JSON")):
            with self.subTest(said=said):
                self.build(script)
                result = verify_gpu.run_stage(self.stage, self.arguments, "source")
                self.assertEqual(result["status"], "failed")
                self.assertEqual(len(result["problems"]), 1)
                self.assertIn(said, result["problems"][0])
        verify_gpu.BINARY.write_text("")
        verify_gpu.BINARY.chmod(0o644)
        result = verify_gpu.run_stage(self.stage, self.arguments, "source")
        self.assertIn("cannot be started", result["problems"][0])

    def test_a_plan_that_crashes_is_no_refusal(self):
        self.build('if [ "$1" = list ]; then echo \'{"policies": [{"name": "none"}]}\'; '
                   'else echo crash >&2; exit 139; fi\n')
        result = verify_gpu.run_stage(self.stage, self.arguments, "source")
        self.assertIn("`rematch plan` ends with 139: crash", result["problems"][0])


if __name__ == "__main__":
    unittest.main()
