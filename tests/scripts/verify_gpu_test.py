#!/usr/bin/env python3
"""scripts/verify_gpu without a GPU: its stages as data, its verdicts on made-up reports, and how it
goes on after a stage that was stopped."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
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
verify_gpu.say = lambda text: None


def typed(*words):
    return subprocess.run([SCRIPTS / "verify_gpu", *words], capture_output=True, text=True)


WORKSPACE = 64 << 20


def memory(requested, predicted):
    return {"peak_requested_bytes": requested, "predicted_peak_requested_bytes": predicted,
            "workspace_bytes": WORKSPACE, "peak_allocated_bytes": requested + 4096,
            "peak_reserved_bytes": requested + (2 << 20)}


def machine_of(**changes):
    return verify_gpu.Machine(types.SimpleNamespace(**{"dry": False, "carried": None, "programs": None,
                                                       "python": "python3", **changes}))


def point(policy, **changes):
    equal = {"reference": "none", "loss_bits_equal": True, "gradient_bits_equal": True,
             "parameter_hash_equal": True, "generator_hash_equal": True,
             "every_parameter_has_gradient": True, "first_different_tensor": None,
             "first_parameter_without_gradient": None}
    made = {"policy": policy, "schedule": "on_demand", "status": "ok", "reason": None, "parity": equal,
            "effect": {"counts_equal_prediction": True, "detail": None},
            "memory": memory(1 << 30, (1 << 30) - WORKSPACE),
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
        for name in ("1 doctor", "1 kernel_counts_float32", "2 wan_1_3b", "3 llama3_1b", "3 sanitizer"):
            self.assertIn(f"\n{name} ", "\n" + listed.stdout)
        second = typed("--dry-run", "2")
        self.assertEqual(second.returncode, 0)
        self.assertIn("--policy none,full,attn_only", second.stdout)
        self.assertIn("--tokens 31200", second.stdout)
        self.assertNotIn("kernel_counts", second.stdout)

    def test_the_three_parts_fit_their_nine_minutes_each(self):
        self.assertLess(verify_gpu.DEADLINE_SECONDS, 540)
        for stage in stages.all_stages([]):
            self.assertIn(stage.part, (0, 1, 2, 3))
            self.assertLess(stage.seconds, 540)

    def test_what_cannot_be_packed_whole_is_not_begun(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(carried, "PACKAGES", ["bash", "no-such-package"]), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(carried.pack_headers(pathlib.Path(folder) / "pack", SCRIPTS.parent), 2)
            self.assertIn("no-such-package is not installed", said.getvalue())
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_an_unknown_stage_is_named_with_the_known_ones(self):
        done = typed("bulid")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no part or stage 'bulid'", done.stderr)
        self.assertIn("kernel_counts_float32", done.stderr)


class PackTest(unittest.TestCase):
    """Programs of a made-up build, packed, unpacked and used."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def build(self):
        for path in stages.DRY_PROGRAMS.values():
            program = self.root / "build" / path
            program.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile("/bin/true", program)
            program.chmod(0o755)

    def pack(self):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = carried.pack_programs(self.root / "programs.tar.xz", self.root / "build", self.root / "dry")
        return code, said.getvalue()

    def test_programs_and_dry_reports_come_out_as_they_went_in(self):
        self.build()
        (self.root / "dry").mkdir()
        (self.root / "dry/wan_1_3b.report.json").write_text(json.dumps(report(point("none"))))
        self.assertEqual(self.pack()[0], 0)
        folder = verify_gpu.unpacked(self.root / "programs.tar.xz")
        machine = machine_of(programs=folder)
        self.assertEqual(subprocess.run([machine.program("engine_cuda_test")]).returncode, 0)
        wan = stages.Stage("wan_1_3b", "made up", [])
        self.assertEqual(machine.expected(wan)["points"][0]["policy"], "none")
        self.assertIsNone(machine_of(programs=folder, dry=True).expected(wan))
        self.assertIn(f"{folder}/usr/lib/x86_64-linux-gnu", machine.environment()["LD_LIBRARY_PATH"])

    def test_what_is_not_built_or_too_large_is_not_packed(self):
        code, said = self.pack()
        self.assertEqual(code, 2)
        self.assertIn("is not built: build preset dev after scripts/setup dry", said)
        self.build()
        with unittest.mock.patch.object(carried, "MOST_PACKED_BYTES", 1000):
            self.assertEqual(self.pack()[0], 2)
        self.assertEqual(sorted(path.name for path in self.root.iterdir()), ["build"])


class JudgeTest(unittest.TestCase):
    def test_bits(self):
        findings, problems = stages.judge_bits(report(point("none"), point("full")))
        self.assertEqual(problems, [])
        self.assertIn("2 of 2", findings[0])
        _, problems = stages.judge_bits(report(point("full", status="oom", reason="too much")))
        self.assertEqual(problems, ["full, on_demand: oom: too much"])

    def judged(self, **changes):
        """What each judge says of none beside a policy that ended in another way: problems by judge."""
        judges = (stages.judge_bits, stages.judge_counts, stages.judge_overhead, stages.judge_steps)
        other = point("attn_only", **changes)
        return {judge.__name__: judge(report(point("none"), other))[1] for judge in judges}

    def test_every_judge_refuses_other_bits_other_ops_and_other_peaks(self):
        for name, problems in self.judged().items():
            self.assertEqual(problems, [], name)
        equal = point("full")["parity"]
        peak = memory(1 << 30, (1 << 29) - WORKSPACE)
        untold = memory(1 << 30, None)
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
        self.assertEqual(stages.judge_steps(report(point("none"), oom))[1],
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

    def test_peaks_are_held_to_the_prediction_and_the_workspaces(self):
        def off_by(off, measured=1 << 34):
            made = memory(measured, measured - off - WORKSPACE)
            return stages.judge_steps(report(point("none", memory=made)))[1]
        self.assertEqual(off_by(0), [])
        self.assertEqual(off_by(17_000_000), [])  # under 0.1 % of 16 GiB
        self.assertTrue(off_by(18_000_000))
        self.assertEqual(off_by(2 << 20, 1 << 20), [])  # 2 MiB
        self.assertTrue(off_by(-(2 << 20) - 1, 1 << 20))

    def test_a_device_is_held_to_what_the_dry_one_said(self):
        expected = report(point("none"), point("full"))
        findings, problems = stages.against_dry(report(point("none")), expected)
        self.assertEqual(problems, [])
        self.assertIn("none, on_demand: peak_allocated_bytes", findings[0])
        other = point("none", memory=memory((1 << 30) + 512, 1 << 30))
        self.assertEqual(stages.against_dry(report(other), expected)[1], [
            f"none, on_demand: peak_requested_bytes is {(1 << 30) + 512}, dry {1 << 30}"])
        fewer = point("none", kernels=dict(point("none")["kernels"],
                                           kernel_count={"forward": {"attention_forward": 599}}))
        self.assertEqual(stages.against_dry(report(fewer), expected)[1], [
            "none, on_demand: 599 kernels of class attention_forward, dry 600"])

    def test_the_dry_device_proves_no_bits_and_has_no_times(self):
        dry = point("none", parity=None, time=None, kernels=dict(point("none")["kernels"], slowdown_ratio=None))
        made = dict(report(dry), environment={"device": "dry h100 (no kernel runs)"})
        for judge in (stages.judge_bits, stages.judge_counts, stages.judge_overhead, stages.judge_steps):
            self.assertEqual(judge(made)[1], [], judge.__name__)
        self.assertEqual(stages.judge_bits(made)[0], ["bits are not proven on the dry device"])

    def test_front_takes_out_of_memory_as_a_result_and_a_crash_not(self):
        oom = point("none", status="oom", reason="too much", memory=None, time=None)
        self.assertEqual(stages.judge_steps(report(oom, point("full")))[1], [])
        self.assertEqual(stages.judge_steps(report(oom))[1], ["no policy fits"])
        crash = point("none", status="crash", reason="signal 11")
        self.assertIn("crash", stages.judge_steps(report(crash, point("full")))[1][0])

    def test_a_profile_has_times_and_temporaries_of_this_device(self):
        def profile(**changes):
            kind = {"times_ns": [5, 0], "temporary_bytes": [0, 64]}
            one = {"types": [kind], "spans": [0, 0]}
            return {"device": "cuda", "source": "measured", "forward": one, "backward": one, **changes}
        findings, problems = stages.judge_profile(profile())
        self.assertEqual(problems, [])
        self.assertIn("forward: 10 ns in kernels", findings)
        idle = {"types": [{"times_ns": [0], "temporary_bytes": [0]}], "spans": [0]}
        unweighed = {"types": [{"times_ns": [5], "temporary_bytes": None}], "spans": [0]}
        for changes, said in (({"forward": idle}, "forward: no op took any time"),
                              ({"backward": unweighed}, "backward: what kernels allocate inside"),
                              ({"device": "h100", "source": "roofline"}, "is roofline, of h100")):
            problems = stages.judge_profile(profile(**changes))[1]
            self.assertEqual(len(problems), 1)
            self.assertIn(said, problems[0])

    def beside_pytorch(self, *rounds, backend="cudnn", **changes):
        """What the judge says of a step of 10 ns and 20 ns for PyTorch's."""
        time = {"step_median_ns": 10, "samples_ns": [[10]], "attention_backend": "cudnn", "repeatable_bits": False}
        policies = [{"policy": "none", "schedule": "on_demand", "status": "ok", "time": dict(time, **changes)},
                    {"policy": "full", "schedule": "on_demand", "status": "oom", "time": None}]
        return stages.judge_pytorch({"torch": "2.11.0", "attention_backend": backend, "rematch": policies,
                                     "settings": {"deterministic": False},
                                     "rounds": rounds or [{"none": {"samples_ns": [20, 20]}}]})

    def test_pytorch_is_compared_where_both_finished_with_the_same_attention_and_determinism(self):
        findings, problems = self.beside_pytorch()
        self.assertEqual(problems, [])
        self.assertIn("none, on_demand: 0.500 of PyTorch eager's 0.0 ms", findings)
        self.assertIn("full, on_demand: oom, PyTorch did not finish it", findings)
        slower = self.beside_pytorch({"none": {"samples_ns": [20]}}, {"none": {"samples_ns": [2, 3]}},
                                     step_median_ns=30)[0]
        self.assertTrue(any("10.000 of PyTorch" in line and line.endswith("missed") for line in slower), slower)
        for changes in ({"backend": "flash"}, {"repeatable_bits": True}):
            problems = self.beside_pytorch(**changes)[1]
            self.assertEqual(len(problems), 1)
            self.assertIn("none, on_demand: attention and determinism are", problems[0])
        self.assertEqual(self.beside_pytorch({"none": {"samples_ns": []}})[1],
                         ["no policy was timed on both sides"])

    def test_pytorch_takes_its_turns_between_our_rounds(self):
        by_name = {stage.name: stage for stage in stages.all_stages([])}
        first, second = by_name["wan_1_3b"].commands[0], by_name["pytorch_wan_1_3b"].commands
        self.assertEqual([words[0] for words in second], ["{python}", "{rematch}", "{python}"])
        self.assertEqual(["--fresh" in words for words in second], [True, False, False])
        report = second[1][second[1].index("-o") + 1]
        self.assertEqual([words[words.index("--beside") + 1] for words in second[::2]], [report, report])
        self.assertEqual(verify_gpu.filled([report], machine_of(), by_name["pytorch_wan_1_3b"], "/out"),
                         verify_gpu.filled(["{report}"], machine_of(), by_name["wan_1_3b"], "/out"))
        # The same points: their rounds are found on disk, and one more is added.
        rounds = [words.pop(words.index("--rounds") + 1) for words in (first, second[1])]
        self.assertEqual(rounds, ["1", "2"])
        self.assertEqual(first[:first.index("-o")], second[1][:second[1].index("-o")])

    def test_a_counting_pass_that_costs_too_much_is_said(self):
        slow = point("none", kernels=dict(point("none")["kernels"], slowdown_ratio=1.3, note="two more in step 1"))
        findings, problems = stages.judge_counts(report(slow))
        self.assertEqual(problems, [])
        self.assertIn("none, on_demand: the target for counting is 10%: missed", findings)
        self.assertIn("none, on_demand: two more in step 1", findings)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name)
        self.machine = machine_of()
        self.machine.obstacle = lambda stage: None

    def stage(self, code, name="build", **changes):
        return stages.Stage(name, "made up", [[sys.executable, "-c", code]], gpu=False, **changes)

    def run_it(self, stage, seconds=30):
        return verify_gpu.run_commands(stage, self.machine, self.out, time.monotonic() + seconds)

    def run_stage(self, stage):
        return verify_gpu.run_stage(stage, self.machine, self.out, "source", 30)

    def verify(self, *wanted, **more):
        return verify_gpu.verify(wanted, self.machine, self.out, **more)

    def result(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def report_stage(self, *made, name="x", code=0, **changes):
        """A stage whose command writes this report."""
        text = ("import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2]); "
                f"sys.exit({code})")
        return stages.Stage(name, "made up", [[sys.executable, "-c", text, "{report}", json.dumps(report(*made))]],
                            **{"judge": stages.judge_steps, "ok_codes": (0, 3, 5), "gpu": False, **changes})

    def test_commands_end_at_the_first_that_fails(self):
        stage = stages.Stage("x", "x", [[sys.executable, "-c", "print('said'); raise SystemExit(7)"],
                                        [sys.executable, "-c", "never"]])
        done, status = self.run_it(stage)
        self.assertEqual((len(done), done[0]["exit_code"], status), (1, 7, "failed"))
        self.assertIn("said", done[0]["tail"])
        done, status = self.run_it(self.stage("raise SystemExit(5)", ok_codes=(0, 5)))
        self.assertEqual(status, "passed")

    def test_a_command_that_fails_has_its_last_words_for_a_problem(self):
        code = "print('\\n\\n'.join(f'line {i}' for i in range(30))); raise SystemExit(7)"
        result = self.run_stage(self.stage(code))
        self.assertEqual(result["status"], "failed")
        self.assertEqual(result["problems"], ["exit code 7, after", *(f"line {i}" for i in range(18, 30))])
        trace = "".join(f"  frame #{i}: <unknown function> + 0xecdb4\\n" for i in range(30))
        said = f"failed with message:\\n  no such device\\n  Exception raised from f at g.cpp:7\\n{trace}\\n1 failed"
        result = self.run_stage(self.stage(f"print('{said}'); raise SystemExit(1)"))
        self.assertEqual(result["problems"], ["exit code 1, after", "failed with message:", "  no such device", "1 failed"])

    def test_a_stage_that_takes_too_long_is_unfinished(self):
        start = time.monotonic()
        _, status = self.run_it(self.stage("import time; time.sleep(60)"), seconds=1)
        self.assertEqual(status, "unfinished")
        self.assertLess(time.monotonic() - start, 30)

    def test_what_a_stage_started_ends_with_it(self):
        mark = self.out / "outlived"
        child = f"import pathlib, time; time.sleep(3); pathlib.Path({str(mark)!r}).touch()"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
        _, status = self.run_it(self.stage(code), seconds=1)
        self.assertEqual(status, "unfinished")
        time.sleep(4)
        self.assertFalse(mark.exists())

    def test_a_report_is_judged_and_its_device_noted(self):
        result = self.run_stage(self.report_stage(point("none"), judge=lambda report: (["found"], ["wrong"])))
        self.assertEqual((result["status"], result["findings"], result["device"]),
                         ("failed", ["found"], "Made-up GPU"))

    def test_a_run_that_ends_with_other_bits_never_passes(self):
        result = self.run_stage(self.report_stage(point("none"), code=3, judge=lambda report: ([], [])))
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
        mark = self.out / "ran"
        stage = self.stage(f"open({str(mark)!r}, 'x')", name="once")
        self.assertEqual([self.verify(stage), self.verify(stage)], [0, 0])

    def test_a_point_that_took_too_long_hides_no_other_problem(self):
        wrong = dict(point("full")["parity"], loss_bits_equal=False, first_different_tensor="loss")
        result = self.run_stage(self.report_stage(point("none"), point("full", parity=wrong),
                                                  point("root", status="timeout", reason="after 120 s")))
        self.assertEqual(result["status"], "failed")
        self.assertEqual(result["problems"], ["full, on_demand: bits differ from none's at loss",
                                              "root, on_demand: timeout: after 120 s"])

    def test_a_judge_that_raises_fails_its_stage_and_ends_no_other(self):
        def raises(report):
            raise KeyError("kernels")

        self.assertEqual(self.verify(self.report_stage(point("none"), name="broken", judge=raises),
                                     self.report_stage(point("none"))), 3)
        self.assertEqual(self.result("broken")["status"], "failed")
        self.assertIn("KeyError: 'kernels'", self.result("broken")["problems"][0])
        self.assertEqual(self.result("x")["status"], "passed")

    def test_a_program_that_is_missing_or_killed_ends_no_other_stage(self):
        absent = stages.Stage("absent", "made up", [["/nowhere/program"]], gpu=False)
        killed = self.stage("import os; os.kill(os.getpid(), 9)", name="killed")
        self.assertEqual(self.verify(absent, killed, self.stage("", name="after")), 3)
        results = [self.result(name) for name in ("absent", "killed", "after")]
        self.assertEqual([result["status"] for result in results], ["failed", "failed", "passed"])
        self.assertIn("/nowhere/program", results[0]["problems"][0])
        self.assertEqual(results[1]["commands"][0]["exit_code"], -9)

    def test_tests_that_skipped_are_no_pass(self):
        for said, status in (("warning:\\n  gpu test: skipped", "failed"),
                             ("No test cases matched '[device]'", "failed"),
                             ("All tests passed (12 assertions in 1 test case)", "passed")):
            stage = self.stage(f"print({said!r})".replace("\\\\n", "\\n"), name="gpu_tests", refuse=stages.SKIPPED_TESTS)
            result = self.run_stage(stage)
            self.assertEqual(result["status"], status, said)
        self.assertEqual(result["problems"], [])

    def test_races_of_our_kernels_alone_fail(self):
        race = ("========= Error: Race reported between Read access at {0}+0xaf0\\n"
                "=========     and Write access at {0}+0x29b0 [80 hazards]\\n"
                "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)")
        ours = "void rematch::kernels::cuda::<unnamed>::rematch_rms_norm_forward<float, int=4>(RmsNorm)"
        for kernel, status in (("nvjet_sm90_tst_64x32_64x16_1x4_h_bz_NTT", "passed"), (ours, "failed")):
            stage = self.stage(f"print('{race.format(kernel)}')", refuse=stages.RACES, quote=stages.SUMMARY)
            result = self.run_stage(stage)
            self.assertEqual(result["status"], status, kernel)
            self.assertEqual(result["findings"], ["RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"])

    def test_a_doctor_who_cannot_use_the_device_is_no_pass(self):
        for said, status in (("device cuda   ok", "passed"), ("kernels       ok", "passed"),
                             ("device cuda   device 'cuda' cannot be used: no NVIDIA driver", "failed"),
                             ("kernels       CUPTI refuses a subscriber", "failed")):
            stage = self.stage(f"print({said!r})", refuse=stages.UNUSABLE)
            self.assertEqual(self.run_stage(stage)["status"], status, said)

    def test_no_stage_begins_when_the_time_is_over_and_each_has_its_limit(self):
        slow = self.stage("import time; time.sleep(60)", name="slow", seconds=1)
        self.assertEqual(self.verify(slow, self.stage("", name="after")), 4)
        self.assertEqual(self.result("after")["status"], "passed")
        self.assertEqual(self.verify(self.stage("", name="late"), deadline_seconds=3), 4)
        self.assertFalse((self.out / "late.json").exists())

    def test_planted_failures_leave_the_others_and_the_archive_whole(self):
        def raises(report):
            raise ValueError("planted")

        planted = [self.stage("raise SystemExit(1)", name="fails"),
                   self.stage("import os; os.kill(os.getpid(), 9)", name="killed"),
                   self.report_stage(point("none"), name="misjudged", judge=raises),
                   self.stage("import time; time.sleep(60)", name="endless", seconds=1),
                   self.report_stage(point("none"), name="sound")]
        self.assertEqual(self.verify(*planted), 3)
        with tarfile.open(self.out / "results.tar.gz") as archive:
            results = {name: json.load(archive.extractfile(name)) for name in archive.getnames()
                       if not name.endswith(".report.json")}
        self.assertEqual({name: result["status"] for name, result in results.items()},
                         {"fails.json": "failed", "killed.json": "failed", "misjudged.json": "failed",
                          "endless.json": "unfinished", "sound.json": "passed"})

    def test_the_archive_has_every_result_so_far(self):
        self.verify(self.report_stage(point("none")))
        self.verify(self.stage("", name="second"))
        with tarfile.open(self.out / "results.tar.gz") as archive:
            self.assertEqual(sorted(archive.getnames()), ["second.json", "x.json", "x.report.json"])

    def test_a_stage_that_says_nothing_dry_is_no_lack_there(self):
        self.machine = machine_of(dry=True)
        self.machine.program = lambda name: pathlib.Path(sys.executable)
        self.assertEqual(self.verify(self.stage("", name="times", dry=False), self.stage("", name="counts")), 0)
        self.assertEqual(self.result("times")["status"], "skipped")

    def test_a_machine_without_git_has_a_source_all_the_same(self):
        with_git = verify_gpu.source_hash()
        with unittest.mock.patch.object(verify_gpu.subprocess, "run", side_effect=FileNotFoundError("git")):
            without = verify_gpu.source_hash()
        self.assertEqual(len(without), len(with_git))


class ObstacleTest(unittest.TestCase):
    def test_a_driver_that_only_its_library_shows_is_a_driver(self):
        stage = stages.Stage("kernel_counts", "made up", [], gpu=True)
        machine = machine_of()
        with unittest.mock.patch.object(verify_gpu.Path, "exists", return_value=False), \
                unittest.mock.patch.object(verify_gpu.shutil, "which", return_value=None):
            with unittest.mock.patch.object(verify_gpu.ctypes, "CDLL", side_effect=OSError):
                self.assertEqual(machine.obstacle(stage), "there is no NVIDIA driver")
            machine.libtorch = lambda: pathlib.Path("/made/up")
            with unittest.mock.patch.object(verify_gpu.ctypes, "CDLL"):
                self.assertIn("no built programs", machine.obstacle(stage))

    def test_a_python_without_this_torch_takes_no_turns_and_the_reason_is_said(self):
        def obstacle(said, code=0):
            with tempfile.TemporaryDirectory() as folder:
                python = pathlib.Path(folder) / "python"
                python.write_text(f"#!/bin/sh\necho {said}; exit {code}\n")
                python.chmod(0o755)
                return machine_of(python=str(python)).torch_obstacle()

        self.assertIsNone(obstacle("2.11.0+cu130 True"))
        self.assertIn("has torch 2.10.0, not 2.11", obstacle("2.10.0 True"))
        self.assertIn("torch 2.11.0+cpu of", obstacle("2.11.0+cpu False"))
        self.assertIn("has no torch or no numpy", obstacle("", code=1))
        self.assertIn("does not start", machine_of(python="/nowhere/python").torch_obstacle())

    def test_the_libraries_that_are_carried_along_come_before_none(self):
        path = machine_of(carried="/made/up").environment()["LD_LIBRARY_PATH"]
        self.assertIn("/made/up/usr/lib/x86_64-linux-gnu", path)


if __name__ == "__main__":
    unittest.main()
