#!/usr/bin/env python3
"""Tests scripts/gpu_queue, which runs the commands of queue entries ("GPU measurements"), without a GPU. Tests which
changes of the sources make a result outdated, which measurements fit into the available time, and the verdicts on
made-up reports. Also tests how a run of the queue continues after a measurement that failed or was stopped."""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from benchmarks import builds  # noqa: E402
from gpu import (  # noqa: E402
    archive, carried, compiled_steps, machine, measurements, package_llama, recording, running, source, verdicts)

QUEUE = SCRIPTS.parent / "reports/results/gpu/queue.json"
running.say = lambda text: None


def typed(*words):
    return subprocess.run([SCRIPTS / "gpu_queue", *words], capture_output=True, text=True)


def measurement(name="x", code="", **changes):
    """Makes a queue entry (a "GPU measurement") whose command is Python code."""
    made = {"what": "made up", "value": 1, "seconds": 30, "lane": "times", "gpu": False,
            "commands": [[sys.executable, "-c", code]]}
    return measurements.Measurement(name, **{**made, **changes})


def queue_of(*entries):
    """Makes a queue in the format of queue.json."""
    usual = {"what": "made up", "value": 1, "seconds": 5, "lane": "times", "depends": [], "commands": [], "gpu": False,
             "answered": None}
    return {"words": {}, "paths": {}, "measurements": [{**usual, **entry} for entry in entries]}


WORKSPACE = 64 << 20


def memory(requested, predicted):
    return {"peak_requested_bytes": requested, "predicted_peak_requested_bytes": predicted,
            "workspace_bytes": WORKSPACE, "peak_allocated_bytes": requested + 4096,
            "peak_reserved_bytes": requested + (2 << 20)}


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


class JudgeTest(unittest.TestCase):
    def test_bits(self):
        findings, problems = verdicts.judge_bits(report(point("none"), point("full")))
        self.assertEqual(problems, [])
        self.assertIn("2 of 2", findings[0])
        _, problems = verdicts.judge_bits(report(point("full", status="oom", reason="too much")))
        self.assertEqual(problems, ["full, on_demand: oom: too much"])

    def judged(self, **changes):
        """Returns the problems that each verdict function finds in a report of two points: policy `none`, and a point
        with `changes`."""
        judges = (verdicts.judge_bits, verdicts.judge_counts, verdicts.judge_steps)
        other = point("attn_only", **changes)
        return {judge.__name__: judge(report(point("none"), other))[1] for judge in judges}

    def test_every_verdict_refuses_other_bits_other_ops_and_other_peaks(self):
        for name, problems in self.judged().items():
            self.assertEqual(problems, [], name)
        equal = point("full")["parity"]
        peak = memory(1 << 30, (1 << 29) - WORKSPACE)
        untold = memory(1 << 30, None)
        for changes, said in (
                ({"parity": dict(equal, loss_bits_equal=False, first_different_tensor="loss")},
                 "bits differ from reference none at loss"),
                ({"parity": dict(equal, gradient_bits_equal=False, first_different_tensor="w")},
                 "bits differ from reference none at w"),
                ({"parity": dict(equal, parameter_hash_equal=False)}, "bits differ from reference none"),
                ({"parity": dict(equal, generator_hash_equal=False)}, "bits differ from reference none"),
                ({"parity": dict(equal, loss_bits_equal=None)}, "bits were not compared"),
                ({"parity": None}, "was not compared with a reference"),
                ({"parity": dict(equal, every_parameter_has_gradient=False,
                                 first_parameter_without_gradient="w")}, "missing gradient at w"),
                ({"effect": {"counts_equal_prediction": False, "detail": "aten::mm in forward"}},
                 "executed ops differ from the prediction: aten::mm in forward"),
                ({"effect": {"counts_equal_prediction": None, "detail": None}}, "not counted"),
                ({"effect": None}, "not counted"),
                ({"memory": peak}, f"differs from its prediction by {1 << 29} B"),
                ({"memory": untold}, "no peak was both measured and predicted"),
                ({"status": "crash", "reason": "signal 11"}, "crash: signal 11"),
                ({"status": "invalid", "reason": "not finite"}, "invalid: not finite")):
            for name, problems in self.judged(**changes).items():
                with self.subTest(judge=name, said=said):
                    self.assertEqual(len(problems), 1)
                    self.assertIn(said, problems[0])
                    self.assertIn("attn_only, on_demand", problems[0])

    def test_different_bits_before_memory_ran_out_are_a_problem(self):
        parity = dict(point("full")["parity"], loss_bits_equal=False, first_different_tensor="loss")
        oom = point("full", status="oom", reason="too much", memory=None, time=None, parity=parity)
        self.assertEqual(verdicts.judge_steps(report(point("none"), oom))[1],
                         ["full, on_demand: bits differ from reference none at loss"])

    def test_a_replayed_graph_must_have_the_bits_of_the_step(self):
        def replayed(**changes):
            return report(point("none", parity=dict(point("none")["parity"], **changes)))
        self.assertEqual(verdicts.judge_graph(replayed(replay_bits_equal=True)),
                         (["1 of 1 points replayed a step"], []))
        self.assertEqual(verdicts.judge_graph(replayed(replay_bits_equal=False))[1],
                         ["none, on_demand: the replayed CUDA graph has other bits than the step op by op"])
        self.assertEqual(verdicts.judge_graph(replayed())[1], ["none, on_demand: no replay was compared"])
        refused = point("full", status="refused", reason="aten::item in forward: not permitted", parity=None)
        self.assertEqual(verdicts.judge_graph(report(refused))[1],
                         ["full, on_demand: refused: aten::item in forward: not permitted"])

    def test_a_report_without_points_proves_nothing(self):
        self.assertIn("the report has no points", verdicts.judge_bits(report())[1])

    def test_counts(self):
        twice = {"forward": {"attention_forward": 600}, "recompute": {"attention_forward": 600}}
        full = point("full", kernels=dict(point("full")["kernels"], kernel_count=twice))
        self.assertEqual(verdicts.judge_counts(report(point("none"), full, point("attn_only")))[1], [])
        self.assertEqual(verdicts.judge_counts(report(point("full")))[1],
                         ["full, on_demand: 1200 were expected"])
        none = point("none", kernels=None, kernels_reason="another tool records already")
        self.assertIn("another tool", verdicts.judge_counts(report(none))[1][0])
        invalid = point("none", kernels=dict(point("none")["kernels"], invalid="7 records were dropped"))
        self.assertIn("dropped", verdicts.judge_counts(report(invalid))[1][0])

    def test_peaks_are_compared_with_the_prediction_and_the_workspaces(self):
        def off_by(off, measured=1 << 34):
            made = memory(measured, measured - off - WORKSPACE)
            return verdicts.judge_steps(report(point("none", memory=made)))[1]
        self.assertEqual(off_by(0), [])
        self.assertEqual(off_by(17_000_000), [])  # allowed: less than 0.1 % of 16 GiB
        self.assertTrue(off_by(18_000_000))
        self.assertEqual(off_by(2 << 20, 1 << 20), [])  # allowed: a difference of 2 MiB
        self.assertTrue(off_by(-(2 << 20) - 1, 1 << 20))

    def test_a_device_is_compared_with_the_dry_device(self):
        expected = report(point("none"), point("full"))
        findings, problems = verdicts.against_dry(report(point("none")), expected)
        self.assertEqual(problems, [])
        self.assertIn("none, on_demand: peak_allocated_bytes", findings[0])
        other = point("none", memory=memory((1 << 30) + 512, 1 << 30))
        self.assertEqual(verdicts.against_dry(report(other), expected)[1], [
            f"none, on_demand: peak_requested_bytes is {(1 << 30) + 512}, dry {1 << 30}"])
        fewer = point("none", kernels=dict(point("none")["kernels"],
                                           kernel_count={"forward": {"attention_forward": 599}}))
        self.assertEqual(verdicts.against_dry(report(fewer), expected)[1], [
            "none, on_demand: 599 kernels of class attention_forward, dry 600"])

    def test_the_dry_device_proves_no_bits_and_has_no_times(self):
        dry = point("none", parity=None, time=None, kernels=dict(point("none")["kernels"], slowdown_ratio=None))
        made = dict(report(dry), environment={"device": "dry h100 (no kernel runs)"})
        for judge in (verdicts.judge_bits, verdicts.judge_counts, verdicts.judge_overhead, verdicts.judge_steps):
            self.assertEqual(judge(made)[1], [], judge.__name__)
        self.assertEqual(verdicts.judge_bits(made)[0], ["equal bits on the dry device prove nothing"])

    def test_in_a_front_out_of_memory_is_a_result_but_not_a_crash(self):
        oom = point("none", status="oom", reason="too much", memory=None, time=None)
        self.assertEqual(verdicts.judge_steps(report(oom, point("full")))[1], [])
        self.assertEqual(verdicts.judge_steps(report(oom))[1], ["no policy fits"])
        crash = point("none", status="crash", reason="signal 11")
        self.assertIn("crash", verdicts.judge_steps(report(crash, point("full")))[1][0])

    def test_a_profile_has_times_and_temporaries_of_this_device(self):
        def profile(**changes):
            kind = {"times_ns": [5, 0], "temporary_bytes": [0, 64]}
            one = {"types": [kind], "spans": [0, 0]}
            return {"device": "cuda", "source": "measured", "forward": one, "backward": one, **changes}
        findings, problems = verdicts.judge_profile(profile())
        self.assertEqual(problems, [])
        self.assertIn("forward: 10 ns in kernels", findings)
        idle = {"types": [{"times_ns": [0], "temporary_bytes": [0]}], "spans": [0]}
        unweighed = {"types": [{"times_ns": [5], "temporary_bytes": None}], "spans": [0]}
        for changes, said in (({"forward": idle}, "forward: no op took any time"),
                              ({"backward": unweighed}, "backward: the bytes that kernels allocate"),
                              ({"device": "h100", "source": "roofline"}, "is roofline, of h100")):
            problems = verdicts.judge_profile(profile(**changes))[1]
            self.assertEqual(len(problems), 1)
            self.assertIn(said, problems[0])

    def test_an_expensive_counting_pass_is_reported(self):
        slow = point("none", kernels=dict(point("none")["kernels"], slowdown_ratio=1.3, note="two more in step 1"))
        findings, problems = verdicts.judge_counts(report(slow))
        self.assertEqual(problems, [])
        self.assertIn("none, on_demand: the target for counting is 10%: missed", findings)
        self.assertIn("none, on_demand: two more in step 1", findings)

    def test_counts_without_a_slowdown_do_not_mention_it(self):
        made = report(point("none"), point("full", kernels=None))
        bare = verdicts.without_slowdowns(made)
        self.assertEqual(made["points"][0]["kernels"]["slowdown_ratio"], 1.05)
        self.assertNotIn("slowed", " ".join(verdicts.judge_counts(bare)[0] + verdicts.judge_steps(bare)[0]))
        self.assertEqual(verdicts.without_slowdowns({"forward": 1}), {"forward": 1})

    def test_kernels_without_a_class_are_named_with_their_time(self):
        times = {"short": 1_000_000, "long": 2_500_000}
        unknown = point("none", kernels=dict(point("none")["kernels"], unknown_time_ns=times))
        findings, problems = verdicts.judge_counts(report(unknown))
        self.assertEqual(problems, [])
        self.assertEqual([line for line in findings if "no class" in line],
                         ["none, on_demand: no class: long, 2.50 ms", "none, on_demand: no class: short, 1.00 ms"])

    def test_times_are_findings_and_out_of_memory_is_a_result(self):
        peaks = {"peak_allocated_bytes": 5, "peak_reserved_bytes": 6, "peak_requested_bytes": 4}
        timed = point("full", parity=None, effect=None, memory=None, kernels=None,
                      time={"step_median_ns": 10, "step_ratio": {"ratio": 1.2, "interval": [1.1, 1.3]}, **peaks})
        oom = point("none", status="oom", reason="too much", parity=None, memory=None, time=None, kernels=None)
        findings, problems = verdicts.judge_times(report(oom, timed))
        self.assertEqual(problems, [])
        self.assertIn("full, on_demand: step 10 ns, 1.200 of the reference [1.1, 1.3], peak_allocated_bytes 5, "
                      "peak_reserved_bytes 6, peak_requested_bytes 4", findings)
        self.assertEqual(verdicts.judge_times(report(oom))[1], ["no policy was timed"])
        self.assertEqual(verdicts.judge_times(report())[1], ["the report has no points"])
        crash = point("none", status="crash", reason="signal 11", time=None)
        self.assertEqual(verdicts.judge_times(report(timed, crash))[1], ["none, on_demand: crash: signal 11"])
        dry = dict(report(point("none", time=None)), environment={"device": "dry h100 (no kernel runs)"})
        self.assertEqual(verdicts.judge_times(dry), (["the dry device has no times"], []))

    def test_overhead_needs_a_ratio(self):
        time = {"step_median_ns": 10, "step_ratio": {"ratio": 1.03, "interval": None}}
        kept = point("keep_all", time=time, parity=None, effect=None, memory=None, kernels=None)
        findings, problems = verdicts.judge_overhead(report(kept))
        self.assertEqual(problems, [])
        self.assertIn("keep_all, on_demand: step 10 ns, 1.030 of the reference [None, None]", findings[0])
        self.assertEqual(verdicts.judge_overhead(report(dict(kept, time=dict(time, step_ratio=None))))[1],
                         ["no ratio was measured"])

    def test_a_front_without_measured_points_is_a_problem(self):
        self.assertEqual(verdicts.judge_front({"measurement": None})[1], ["no point was measured"])
        measured = {"measurement": {"num_measured": 4, "num_equal_peaks": 4, "median_step_time_error_ratio": 0.02}}
        findings, problems = verdicts.judge_front(measured)
        self.assertEqual(problems, [])
        self.assertIn("off by 2.0% in the median", findings[0])

    def test_points_of_a_front_that_ran_out_of_time(self):
        late = {"policy": "search(0)", "measured": {"status": "timeout", "reason": "it ran longer than 9 s"}}
        front = {"schedule": "on_demand", "points": [late, {"policy": "search(1)", "measured": None},
                                                     {"policy": "search(2)", "measured": {"status": "ok"}}]}
        said = verdicts.timed_out(front)
        self.assertEqual(said, ["search(0), on_demand: timeout: it ran longer than 9 s"])
        self.assertEqual([each["policy"] for each in verdicts.without(front, said)["points"]], ["search(1)", "search(2)"])

    def test_the_package_fails_on_other_bits_on_no_effect_and_on_a_higher_peak(self):
        def judged(bits=True, recomputed=3, peak=5):
            found = {"bits_equal": bits, "checkpointed": {"executed_ops": {"recompute": recomputed}}}
            turns = {False: [([0.1, 0.1], 9)], True: [([0.12, 0.12], peak)]}
            made = package_llama.report_of("Made-up GPU", 3.0, {"predicted_peak_allocated_bytes": 5}, found, turns)
            return verdicts.judge_package(made)

        findings, problems = judged()
        self.assertEqual(problems, [])
        self.assertIn("ratio: 1.200", findings)
        for changes, said in (({"bits": False}, "loss or gradients differ"), ({"bits": None}, "not repeatable"), ({"recomputed": 0}, "nothing was recomputed"),
                              ({"peak": 9}, "does not lower the peak"), ({"peak": 6}, "peak 6 B, predicted 5 B")):
            self.assertIn(said, judged(**changes)[1][0])
        self.assertEqual(judged(peak=None)[1], [])

    def test_a_compiled_model_fails_on_an_error_on_other_gradients_and_on_a_wrong_prediction(self):
        row = {"arm": "rematch, full", "median_seconds": 0.1, "compile_seconds": 3, "largest_difference": 1e-3,
               "peak_allocated_bytes": 1000, "predicted_peak_bytes": 1005}

        def judged(**changes):
            return verdicts.judge_package(compiled_steps.report_of("Made-up GPU", [row, row | changes], ["torch.compile again"]))

        findings, problems = judged()
        self.assertEqual(problems, [])
        self.assertIn("not run, for lack of time: torch.compile again", findings)
        for changes, said in (({"error": "PlanError: too small"}, "too small"), ({"largest_difference": 0.5}, "gradients differ by 0.5"),
                              ({"predicted_peak_bytes": 1100}, "peak 1000 B, predicted 1100 B")):
            self.assertIn(said, judged(**changes)[1][0])
        self.assertEqual(judged(predicted_peak_bytes=None)[1], [])

    def test_ceilings(self):
        made = {"device": "Made-up GPU", "copy_gb_per_second": 3000.4, "matmul_tflop_per_second": 798.0}
        self.assertEqual(verdicts.judge_ceilings(made), (["Made-up GPU: copy 3000 GB/s, bf16 matmul 798 TFLOP/s"], []))
        self.assertEqual(verdicts.judge_ceilings({**made, "copy_gb_per_second": 0})[1],
                         ["copy_gb_per_second is not positive"])


class QueueTest(unittest.TestCase):
    """Checks the committed queue."""

    def setUp(self):
        self.asked = measurements.read(QUEUE)
        self.text = QUEUE.read_text()

    def test_every_path_verdict_and_pattern_exists(self):
        for one in self.asked:
            with self.subTest(measurement=one.name):
                self.assertTrue(one.commands)
                self.assertTrue(one.depends)
                for path in one.depends:
                    self.assertTrue((SCRIPTS.parent / path).exists(), path)
                self.assertIn(one.judge, [None, *verdicts.JUDGES])
                for name in (one.quote, one.refuse):
                    self.assertIn(name, [None, *verdicts.PATTERNS])
                self.assertIn(one.kind, [None, *measurements.KINDS])
                self.assertLess(one.limit(), 600)

    def test_no_placeholder_remains(self):
        made = machine.Machine()
        for one in self.asked:
            for command in one.commands:
                filled = " ".join(made.filled(command, one, "/out"))
                self.assertNotRegex(filled, r"[{}]", one.name)

    def test_measurements_of_every_run_are_not_taken_from_an_earlier_run(self):
        for measurement in self.asked:
            for command in measurement.commands:
                if measurement.always and command[:2] == ["{rematch}", "run"]:
                    self.assertIn("--fresh", command, measurement.name)

    def test_a_judged_report_is_written(self):
        for one in self.asked:
            if one.judge:
                self.assertIn("{report}", one.commands[0], one.name)

    def test_run_a_fits_one_command_on_a_machine_with_16_cores(self):
        fresh = [measurement for measurement in self.asked if measurements.fits_kind(measurement, "h100")]
        chosen = measurements.choose(fresh, 560, running.value_workers(16))
        names = {measurement.name for measurement in chosen}
        for measurement in self.asked:
            if measurement.run == "A" or measurement.always:
                self.assertIn(measurement.name, names)
        self.assertLessEqual(measurements.cost(chosen, 5), 560)

    def test_print_says_the_same_without_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            fresh = json.loads(self.text)
            for entry in fresh["measurements"]:
                entry["answered"] = None
            path = pathlib.Path(folder) / "queue.json"
            path.write_text(json.dumps(fresh))
            done = typed("--queue", path, "next", "--seconds", "560", "--kind", "h100", "--cores", "16", "--print",
                         "--out", folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for measurement in self.asked:
            if measurement.run == "A":
                self.assertIn(f"\n{measurement.name}: ", "\n" + done.stdout)
        self.assertIn("--tokens 31200", done.stdout)
        self.assertRegex(done.stdout, r"measurements, \d+ s of 560 s by estimate")

    def test_a_measurement_follows_the_measurements_whose_reports_it_needs(self):
        by_name = {measurement.name: measurement for measurement in self.asked}
        for measurement in self.asked:
            for needed in measurement.needs:
                self.assertGreater(by_name[needed].value, measurement.value)

    def test_recording_keeps_the_layout_of_the_file(self):
        self.assertEqual(json.dumps(json.loads(self.text), indent=2) + "\n", self.text)

    def test_results_name_commits_and_files_that_exist(self):
        repository = measurements.Repository(SCRIPTS.parent)
        if not repository.has_history():
            self.skipTest("no git history here")
        answered = [measurement for measurement in self.asked if measurement.answered]
        known = [repository.has(measurement.answered["commit"]) for measurement in answered]
        if not any(known):
            self.skipTest("another history, or a shallow one")
        for measurement, is_known in zip(answered, known):
            self.assertTrue(is_known, measurement.name)
            self.assertTrue((SCRIPTS.parent / measurement.answered["report"]).exists(), measurement.name)


class ReadTest(unittest.TestCase):
    def read(self, *entries, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "queue.json"
            path.write_text(json.dumps({**queue_of(*entries), **more}))
            return measurements.read(path)

    def test_words_and_groups_of_paths_are_replaced(self):
        [one] = self.read({"name": "x", "depends": ["@step", "d"], "commands": ["{run} {model} 'a b' {report}"]},
                          words={"run": "{rematch} run", "model": "--model m"}, paths={"step": ["a", "b"]})
        self.assertEqual(one.depends, ["a", "b", "d"])
        self.assertEqual(one.commands, [["{rematch}", "run", "--model", "m", "a b", "{report}"]])

    def test_contradictory_measurements_are_refused(self):
        for entries, said in (([{"name": "x"}, {"name": "x"}], "two measurements have the name 'x'"),
                              ([{"name": "x", "lane": "fast"}], "lane is 'fast'"),
                              ([{"name": "x", "needs": ["y"]}], "x needs 'y'"),
                              ([{"name": "x", "depends": ["@nothing"]}], "nothing"),
                              ([{"name": "x", "colour": "red"}], "colour")):
            with self.subTest(said=said), self.assertRaisesRegex(measurements.QueueError, said):
                self.read(*entries)


class ReopenTest(unittest.TestCase):
    """Uses a repository with one commit for each change."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.repository = measurements.Repository(self.root)
        self.git("init", "-q")
        self.git("config", "user.email", "a@b")
        self.git("config", "user.name", "a")
        self.commit("code/a.cpp")
        self.commit("other/b.cpp")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)

    def commit(self, name, text="1"):
        self.change(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", name)

    def change(self, name, text):
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(text)

    def answered(self, **changes):
        return measurement(depends=["code"], answered={"commit": self.repository.head(), "card": "c"}, **changes)

    def test_only_a_change_to_its_own_paths_reopens_a_measurement(self):
        asked = self.answered()
        self.assertIsNone(measurements.why_open(asked, self.repository))
        self.commit("other/b.cpp", "2")
        self.commit("code/README.md", "a document")
        self.assertIsNone(measurements.why_open(asked, self.repository))
        self.commit("code/a.cpp", "2")
        self.assertRegex(measurements.why_open(asked, self.repository), "^changed since [0-9a-f]{8}: code/a.cpp$")
        self.commit("code/c.cpp")
        self.assertRegex(measurements.why_open(asked, self.repository), "code/a.cpp and 1 more$")

    def test_a_result_of_an_unknown_commit_does_not_count(self):
        asked = measurement(answered={"commit": "0" * 40, "card": "c"})
        self.assertIn("which this git repository lacks", measurements.why_open(asked, self.repository))
        self.assertEqual(measurements.why_open(measurement(), self.repository), "never measured")

    def test_a_result_of_another_kind_of_card_counts_unless_the_measurement_requires_a_kind(self):
        commit = self.repository.head()
        for kind, card, reason in ((None, "NVIDIA H200", None), (None, "Made-up GPU", None), ("h200", "NVIDIA H200", None),
                                   ("h200", "NVIDIA H100 80GB HBM3", "measured on NVIDIA H100 80GB HBM3, which is not of kind h200")):
            asked = measurement(kind=kind, answered={"commit": commit, "card": card})
            self.assertEqual(measurements.why_open(asked, self.repository), reason)

    def test_the_packed_list_names_uncommitted_files(self):
        asked = [self.answered(name="same"), measurement("new", depends=["other"])]
        self.change("code/a.cpp", "3")
        found = source.from_git(asked, self.repository)
        self.assertEqual(found.open, {"new": "never measured"})
        self.assertEqual(found.uncommitted, {"same": ["code/a.cpp"]})
        self.assertEqual(found.fields(asked[0]), {"commit": self.repository.head(), "uncommitted": ["code/a.cpp"]})

    def test_a_machine_without_history_uses_the_packed_list(self):
        bare = self.root / "bare"
        bare.mkdir()
        (bare / carried.OPEN_FILE).write_text(json.dumps({"commit": "c", "open": {"x": "why"}, "uncommitted": {}}))
        asked = [measurement("x"), measurement("y"), measurement("always", always=True)]
        repository = unittest.mock.Mock(has_history=lambda: False)
        found = source.found(asked, repository, bare)
        self.assertEqual([found.is_open(one) for one in asked], [True, False, True])
        unknown = source.found(asked, repository)
        self.assertTrue(unknown.is_open(asked[1]))
        self.assertIsNone(unknown.commit)


class ChooseTest(unittest.TestCase):
    def names(self, asked, seconds, workers=5, reports=()):
        return [one.name for one in measurements.choose(asked, seconds, workers, reports)]

    def test_the_most_valuable_measurements_that_fit_are_chosen(self):
        asked = [measurement("small", value=1, seconds=10), measurement("large", value=9, seconds=95),
                 measurement("middle", value=5, seconds=20)]
        self.assertEqual(self.names(asked, 100), ["large"])
        self.assertEqual(self.names(asked, 105), ["large", "small"])
        self.assertEqual(self.names(asked, 30), ["middle", "small"])
        self.assertEqual(self.names(asked, 9), [])

    def test_measurements_of_values_run_in_parallel_but_never_with_times(self):
        values = [measurement(f"v{i}", seconds=seconds, lane="values") for i, seconds in enumerate((50, 30, 20))]
        times = [measurement("t", seconds=40, lane="times")]
        self.assertEqual([measurements.cost(values, workers) for workers in (1, 2, 5)], [100, 50, 50])
        self.assertEqual(measurements.cost(values + times, 2), 90)

    def test_a_measurement_whose_report_is_missing_waits(self):
        asked = [measurement("needy", value=9, needs=["first"]), measurement("first", value=5, seconds=1)]
        self.assertEqual(self.names(asked, 100), ["first"])
        self.assertEqual(self.names(asked, 100, reports=["first"]), ["needy", "first"])
        asked[0].value = 1
        self.assertEqual(self.names(asked, 100), ["first", "needy"])

    def test_the_number_of_workers_follows_the_cores(self):
        self.assertEqual([running.value_workers(cores) for cores in (1, 2, 6, 15, 16, 64)], [1, 1, 2, 5, 5, 5])


class ArchiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        (self.out / "x.report.points").mkdir(parents=True)
        for name in ("x.json", "x.report.json", "x.report.points/a.json", "y.partial"):
            (self.out / name).write_text(name)

    def members(self, path):
        with tarfile.open(path) as archived:
            return archived.getnames()

    def test_verdicts_come_first_then_reports_then_points(self):
        self.assertEqual(archive.write(self.out), [])
        self.assertEqual(self.members(self.out / "results.tar.gz"), ["x.json", "x.report.json", "x.report.points/a.json"])

    def test_unpacked_files_are_the_same(self):
        apart = self.out.parent / "came_back/archives"
        archive.write(self.out, apart)
        self.assertEqual([path.name for path in apart.iterdir()], ["results.tar.gz"])
        back = self.out.parent / "back"
        back.mkdir()
        archive.unpack(apart.parent, back)
        self.assertEqual((back / "x.report.points/a.json").read_text(), "x.report.points/a.json")

    def test_large_results_make_several_archives_and_the_rest_is_named(self):
        self.assertEqual(archive.shared_out({"a": 6, "b": 6, "c": 11, "d": 4}, 10, 2), ([["a"], ["b", "d"]], ["c"]))
        with unittest.mock.patch.object(archive, "MAX_BYTES", 1100):
            archive.write(self.out)
            self.assertEqual(sorted(path.name for path in self.out.glob("results*")),
                             ["results-1.tar.gz", "results-2.tar.gz", "results-3.tar.gz"])
        with unittest.mock.patch.object(archive, "MAX_BYTES", 10):
            self.assertEqual(len(archive.write(self.out)), 3)
        self.assertEqual(self.members(self.out / "results.tar.gz"), ["left_out.json"])


class PackTest(unittest.TestCase):
    """Packs, unpacks and runs programs of a made-up build."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def build(self):
        for path in [*machine.DRY_PROGRAMS.values(), carried.PACKAGE_LIBRARY]:
            program = self.root / "build" / path
            program.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile("/bin/true", program)
            program.chmod(0o755)

    def pack(self):
        open_list = {"commit": "c", "open": {"x": "never measured"}, "uncommitted": {}}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = carried.pack(self.root / "programs.tar.xz", self.root / "build", self.root / "dry", open_list)
        return code, said.getvalue()

    def test_programs_and_dry_reports_are_unpacked_unchanged(self):
        self.build()
        (self.root / "dry").mkdir()
        for name, status in (("x", "passed"), ("y", "failed")):
            (self.root / f"dry/{name}.json").write_text(json.dumps({"status": status}))
            (self.root / f"dry/{name}.report.json").write_text(json.dumps(report(point("none"))))
        self.assertEqual(self.pack(), (0, ""))
        folder = carried.unpacked(self.root / "programs.tar.xz")
        there = machine.Machine(programs=folder)
        self.assertEqual(subprocess.run([there.program("engine_cuda_test")]).returncode, 0)
        self.assertEqual(there.expected(measurement("x"))["points"][0]["policy"], "none")
        self.assertIsNone(there.expected(measurement("y")))
        self.assertIsNone(machine.Machine(dry=True, programs=folder).expected(measurement("x")))
        self.assertIn(f"{folder}/usr/lib/x86_64-linux-gnu", there.environment()["LD_LIBRARY_PATH"])
        self.assertTrue(there.python_environment()["PYTHONPATH"].startswith(f"{folder}/python:"))
        for file in ("__init__.py", "compiled/__init__.py", "librematch_python.so"):
            self.assertTrue((folder / "python/rematch" / file).exists(), file)
        self.assertEqual(source.from_programs(folder).open, {"x": "never measured"})

    def test_carried_programs_need_the_torch_that_they_were_built_for(self):
        self.build()
        with unittest.mock.patch.object(builds, "chosen", return_value="2.13"):
            self.pack()
        there = machine.Machine(programs=carried.unpacked(self.root / "programs.tar.xz"))
        python = self.root / "python"
        python.write_text("#!/bin/sh\necho 2.15.0 True\n")
        python.chmod(0o755)
        there.python = str(python)
        self.assertIn("has torch 2.15.0, not 2.13", there.torch_obstacle())
        there.libtorch = lambda: None
        self.assertIn("no LibTorch 2.13:", there.obstacle(measurement(gpu=False)))

    def test_a_newer_file_is_unpacked_again(self):
        self.build()
        self.pack()
        folder = carried.unpacked(self.root / "programs.tar.xz")
        (folder / "old").touch()
        self.assertEqual(carried.unpacked(self.root / "programs.tar.xz"), folder)
        self.assertTrue((folder / "old").exists())
        time.sleep(0.02)
        self.pack()
        carried.unpacked(self.root / "programs.tar.xz")
        self.assertFalse((folder / "old").exists())

    def test_programs_older_than_their_sources_are_built(self):
        if not shutil.which("ninja"):
            self.skipTest("no ninja here")
        folder = self.root / "build"
        folder.mkdir()
        self.assertRegex(carried.build(folder), "does not build .*run scripts/setup dry, then build preset dev")
        self.build()
        targets = [*machine.DRY_PROGRAMS.values(), carried.PACKAGE_LIBRARY]
        (folder / "build.ninja").write_text("rule make\n  command = cp source $out\n"
                                            + "".join(f"build {name}: make source\n" for name in targets))
        (folder / "source").write_text("newer")
        self.assertIsNone(carried.build(folder))
        self.assertEqual([(folder / name).read_text() for name in targets], ["newer"] * len(targets))
        (folder / "source").unlink()
        self.assertRegex(carried.build(folder), "does not build .*'source'.*missing and no known rule")

    def test_missing_or_too_large_programs_are_not_packed(self):
        code, said = self.pack()
        self.assertEqual(code, 2)
        self.assertIn("is not built: run scripts/setup dry, then build preset dev", said)
        self.build()
        with unittest.mock.patch.object(carried, "MAX_PACKED_BYTES", 1000):
            self.assertEqual(self.pack()[0], 2)
        self.assertEqual(sorted(path.name for path in self.root.iterdir()), ["build"])


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name)
        self.machine = machine.Machine()
        self.machine.obstacle = lambda measurement: None
        self.machine.card_found = ("Made-up GPU", "GPU-1")

    def run_of(self, *asked, seconds=100, **more):
        return running.Run(list(asked), self.machine, self.out, seconds, source.Source("c"), **more)

    def go(self, *asked, **more):
        return self.run_of(*asked, **more).go()

    def result(self, name="x"):
        return json.loads((self.out / f"{name}.json").read_text())

    def ran(self, asked):
        self.go(asked)
        return self.result(asked.name)

    def test_too_little_time_is_refused_but_an_empty_queue_is_not(self):
        said = []
        with unittest.mock.patch.object(running, "say", said.append):
            self.assertEqual(self.go(measurement("x", seconds=40), measurement("y", seconds=30), seconds=20), 2)
            self.assertEqual(self.go(measurement("x", seconds=5), seconds=3), 2)
            self.assertEqual(self.go(seconds=300), 0)
        self.assertFalse(list(self.out.glob("*.json")))
        self.assertEqual([line.rpartition("; ")[2] for line in said], [
            "give --seconds 31 or more", "give --seconds 11 or more", "no measurement is open"])

    def test_estimates_for_a_gpu_do_not_limit_the_dry_device(self):
        with unittest.mock.patch.object(measurements.Measurement, "limit", return_value=1):
            for dry, status in ((False, "unfinished"), (True, "passed")):
                self.machine.dry = dry
                slow = measurement(f"slow_{dry}", code="import time; time.sleep(2)")
                self.assertEqual(self.ran(slow)["status"], status)

    def test_points_that_the_end_of_the_run_cut_off_are_unfinished(self):
        late, wrong = point("none", status="timeout", reason="no result"), point("full", effect=None)
        for points, seconds, status in (((late,), 20, "unfinished"), ((late,), 1000, "failed"), ((late, wrong), 20, "failed")):
            asked = self.reporting(*points, seconds=15)
            self.go(asked, seconds=seconds)
            self.assertEqual(self.result()["status"], status)

    def test_parallel_measurements_report_no_slowdown(self):
        for lane, says in (("values", False), ("times", True)):
            result = self.ran(self.reporting(point("none"), name=f"x_{lane}", lane=lane))
            self.assertEqual(result["status"], "passed")
            self.assertEqual("counting slowed" in " ".join(result["findings"]), says)

    def reporting(self, *made, name="x", code=0, **changes):
        """Makes a measurement whose command writes this report."""
        text = ("import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2]); "
                f"sys.exit({code})")
        command = [sys.executable, "-c", text, "{report}", json.dumps(report(*made))]
        return measurement(name, **{"judge": "steps", "ok_codes": (0, 3, 5), "commands": [command], **changes})

    def test_commands_stop_at_the_first_failure(self):
        asked = measurement(commands=[[sys.executable, "-c", "print('said'); raise SystemExit(7)"],
                                   [sys.executable, "-c", "never"]])
        result = self.ran(asked)
        self.assertEqual((len(result["commands"]), result["commands"][0]["exit_code"], result["status"]), (1, 7, "failed"))
        self.assertIn("said", result["commands"][0]["tail"])
        self.assertEqual(self.ran(measurement("y", "raise SystemExit(5)", ok_codes=(0, 5)))["status"], "passed")

    def test_the_last_words_of_a_failed_command_are_the_problem(self):
        code = "print('\\n\\n'.join(f'line {i}' for i in range(30))); raise SystemExit(7)"
        result = self.ran(measurement(code=code))
        self.assertEqual(result["problems"], ["exit code 7, after", *(f"line {i}" for i in range(18, 30))])
        trace = "".join(f"  frame #{i}: <unknown function> + 0xecdb4\\n" for i in range(30))
        said = f"failed with message:\\n  no such device\\n  Exception raised from f at g.cpp:7\\n{trace}\\n1 failed"
        result = self.ran(measurement(code=f"print('{said}'); raise SystemExit(1)"))
        self.assertEqual(result["problems"], ["exit code 1, after", "failed with message:", "  no such device", "1 failed"])

    def test_a_measurement_and_its_processes_end_at_its_limit(self):
        mark = self.out / "outlived"
        child = f"import pathlib, time; time.sleep(3); pathlib.Path({str(mark)!r}).touch()"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
        asked = measurement(code=code)
        asked.limit = lambda: 1
        start = time.monotonic()
        self.assertEqual(self.go(asked, measurement("after")), 4)
        self.assertLess(time.monotonic() - start, 3)
        self.assertEqual([self.result(name)["status"] for name in ("x", "after")], ["unfinished", "passed"])
        time.sleep(4)
        self.assertFalse(mark.exists())

    def test_the_deadline_ends_a_measurement_that_takes_longer_than_its_estimate(self):
        start = time.monotonic()
        with unittest.mock.patch.object(running, "MIN_SECONDS", 0.5):
            self.assertEqual(self.go(measurement(code="import time; time.sleep(60)", seconds=1), seconds=2), 4)
        self.assertLess(time.monotonic() - start, 10)

    def test_a_program_is_told_to_end_before_it_is_killed(self):
        asked = measurement(commands=[[sys.executable, "-c", "import sys; print(*sys.argv[1:])", "{seconds}", "{timeout}"]])
        for limit, seconds, most in ((50, 100, 40), (200, 100, 90)):
            asked.limit = lambda: limit
            self.go(asked, seconds=seconds)
            told, timeout = self.result()["commands"][0]["tail"].split()
            self.assertTrue(most - 30 <= int(told) <= most, told)
            self.assertEqual(timeout, f"{told}s")
            (self.out / "x.json").unlink()

    def test_a_measurement_that_does_not_fit_is_not_started(self):
        self.assertEqual(self.go(measurement("large", seconds=99), measurement("small", seconds=1), seconds=50), 0)
        self.assertFalse((self.out / "large.json").exists())
        self.assertEqual(self.result("small")["status"], "passed")

    def test_a_measurement_of_values_without_time_left_is_not_started(self):
        def takes_all_time(run, *_):
            run.deadline = time.monotonic() + 40
            return [], "passed"

        late, slow = measurement("late", lane="values", seconds=45), measurement("slow", lane="values", seconds=50)
        with unittest.mock.patch.object(running.Run, "run_commands", takes_all_time):
            self.assertEqual(self.go(late, slow, seconds=300), 4)
        self.assertTrue((self.out / "slow.json").exists())
        self.assertFalse((self.out / "late.json").exists())

    def test_a_report_is_judged(self):
        result = self.ran(self.reporting(point("none", status="crash", reason="signal 11")))
        self.assertEqual((result["status"], result["card"], result["card_uuid"], result["commit"]),
                         ("failed", "Made-up GPU", "GPU-1", "c"))
        self.assertIn("crash", result["problems"][0])

    def test_a_run_with_other_bits_never_passes(self):
        result = self.ran(self.reporting(point("none"), code=3))
        self.assertEqual(result["status"], "failed")
        self.assertIn("bits differ", result["problems"][0])

    def test_passed_measurements_of_this_source_are_not_run_again(self):
        mark = self.out / "ran"
        asked = measurement(code=f"open({str(mark)!r}, 'x')")
        self.assertEqual([self.go(asked), self.go(asked)], [0, 0])
        other = self.run_of(asked)
        other.source = source.Source("another commit")
        self.assertEqual(other.go(), 3)

    def test_a_run_resumes_from_an_unpacked_archive(self):
        apart = self.out / "elsewhere"
        self.go(measurement(), archives=apart)
        unpacked = self.out.parent / (self.out.name + ".back")
        self.addCleanup(shutil.rmtree, unpacked)
        unpacked.mkdir()
        archive.unpack(apart, unpacked)
        self.out = unpacked
        self.assertEqual(self.go(measurement(code="raise SystemExit(1)")), 0)

    def test_every_run_asks_for_ceilings_and_anchor(self):
        mark = self.out / "ran"
        asked = measurement(code=f"open({str(mark)!r}, 'a').write('1')", always=True)
        self.go(asked)
        self.go(asked)
        self.assertEqual(mark.read_text(), "11")

    def test_a_result_has_the_rates_that_the_card_reached_in_its_run(self):
        always = measurement("ceilings", "print('bandwidth: 3000 GB/s')", quote="bandwidth", always=True, value=9)
        self.go(always, measurement("y"))
        self.assertEqual(self.result("y")["reached"], {"ceilings": ["3000 GB/s"]})
        self.assertEqual(self.result("ceilings")["reached"], {})

    def test_a_point_that_took_too_long_hides_no_other_problem(self):
        wrong = dict(point("full")["parity"], loss_bits_equal=False, first_different_tensor="loss")
        result = self.ran(self.reporting(point("none"), point("full", parity=wrong),
                                         point("root", status="timeout", reason="after 120 s")))
        self.assertEqual(result["problems"], ["full, on_demand: bits differ from reference none at loss",
                                              "root, on_demand: timeout: after 120 s"])

    def test_planted_failures_do_not_affect_others_or_the_archive(self):
        def raises(report):
            raise ValueError("planted")

        endless = measurement("endless", "import time; time.sleep(60)")
        endless.limit = lambda: 1
        planted = [measurement("fails", "raise SystemExit(1)"), measurement("killed", "import os; os.kill(os.getpid(), 9)"),
                   measurement("absent", commands=[["/nowhere/program"]]),
                   self.reporting(point("none"), name="misjudged", judge="planted"), endless,
                   self.reporting(point("none"), name="sound")]
        for lane in running.measurements.LANES:
            with self.subTest(lane=lane), unittest.mock.patch.dict(verdicts.JUDGES, planted=raises):
                for one in planted:
                    one.lane = lane
                self.assertEqual(self.go(*planted, workers=3), 3)
                with tarfile.open(self.out / "results.tar.gz") as archived:
                    results = {name: json.load(archived.extractfile(name)) for name in archived.getnames()
                               if not name.endswith(".report.json")}
                self.assertEqual({name: result["status"] for name, result in results.items()},
                                 {"fails.json": "failed", "killed.json": "failed", "misjudged.json": "failed",
                                  "absent.json": "failed", "endless.json": "unfinished", "sound.json": "passed"})
                self.assertIn("ValueError: planted", results["misjudged.json"]["problems"][0])
                self.assertIn("/nowhere/program", results["absent.json"]["problems"][0])
                for path in self.out.iterdir():
                    path.unlink()

    def test_lanes_never_overlap_and_values_share_the_machine(self):
        times = {}
        original = running.Run.run_commands

        def timed(run, asked, deadline, workers):
            begin = time.monotonic()
            found = original(run, asked, deadline, workers)
            times[asked.name] = (begin, time.monotonic(), threading.get_ident())
            return found

        # Each of the four programs of lane "values" waits until all four have started.
        code = ("import pathlib, sys, time\nfolder, own = sys.argv[1:]\n(pathlib.Path(folder) / own).touch()\n"
                "while len(list(pathlib.Path(folder).glob('v?'))) < 4: time.sleep(0.01)")
        asked = [measurement(f"v{i}", lane="values", commands=[[sys.executable, "-c", code, "{out}", f"v{i}"]])
                 for i in range(4)] + [measurement(f"t{i}") for i in range(2)]
        with unittest.mock.patch.object(running.Run, "run_commands", timed):
            self.assertEqual(self.go(*asked, workers=4, seconds=300), 0)
        for alone in ("t0", "t1"):
            for name, (begin, end, _) in times.items():
                if name != alone:
                    self.assertTrue(end <= times[alone][0] or begin >= times[alone][1], (alone, name))

    def test_on_the_dry_device_both_lanes_share_the_machine(self):
        self.machine.dry = True
        # Each program waits until the other program has started, so the run succeeds only if both run in parallel.
        code = ("import pathlib, sys, time\nown, other = map(pathlib.Path, sys.argv[1:])\nown.touch()\n"
                "while not other.exists(): time.sleep(0.01)")
        marks = [str(self.out / name) for name in ("a", "b")]
        asked = [measurement("v", lane="values", commands=[[sys.executable, "-c", code, *marks]]),
                 measurement("t", lane="times", commands=[[sys.executable, "-c", code, *reversed(marks)]])]
        self.assertEqual(self.go(*asked, workers=running.dry_workers(8)), 0)

    def test_an_interrupted_run_ends_its_programs(self):
        run = self.run_of(measurement("a", "import time; time.sleep(60)", lane="values"),
                          measurement("b", "import time; time.sleep(60)", lane="values"), workers=2)

        def interrupt(*_):
            raise KeyboardInterrupt

        start = time.monotonic()
        before = running.signal.signal(running.signal.SIGALRM, interrupt)
        self.addCleanup(running.signal.signal, running.signal.SIGALRM, before)
        running.signal.setitimer(running.signal.ITIMER_REAL, 1)
        with self.assertRaises(KeyboardInterrupt):
            run.go()
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual([self.result(name)["status"] for name in "ab"], ["unfinished", "unfinished"])

    def test_skipped_tests_do_not_pass(self):
        for said, status in (("warning:\\n  gpu test: skipped", "failed"),
                             ("No test cases matched '[device]'", "failed"),
                             ("All tests passed (12 assertions in 1 test case)", "passed")):
            code = f"print({said!r})".replace("\\\\n", "\\n")
            self.assertEqual(self.ran(measurement(code=code, refuse="skipped_tests"))["status"], status, said)

    def test_only_races_of_our_kernels_fail(self):
        race = ("========= Error: Race reported between Read access at {0}+0xaf0\\n"
                "=========     and Write access at {0}+0x29b0 [80 hazards]\\n"
                "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)")
        ours = "void rematch::kernels::cuda::<unnamed>::rematch_rms_norm_forward<float, int=4>(RmsNorm)"
        for name, kernel, status in (("cublas", "nvjet_sm90_tst_64x32_64x16_1x4_h_bz_NTT", "passed"),
                                     ("ours", ours, "failed")):
            result = self.ran(measurement(name, f"print('{race.format(kernel)}')", refuse="races", quote="summary"))
            self.assertEqual(result["status"], status, kernel)
            self.assertEqual(result["findings"], ["RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"])

    def test_doctor_does_not_pass_if_it_cannot_use_the_device(self):
        for said, status in (("device cuda   ok", "passed"), ("kernels       ok", "passed"),
                             ("device cuda   device 'cuda' cannot be used: no NVIDIA driver", "failed"),
                             ("kernels       CUPTI refuses a subscriber", "failed")):
            asked = measurement(code=f"print({said!r})", refuse="unusable", always=True)
            self.assertEqual(self.ran(asked)["status"], status, said)

    def test_impossible_measurements_are_skipped_with_the_reason(self):
        self.machine.obstacle = lambda measurement: "no torch here" if measurement.torch else None
        self.assertEqual(self.go(measurement("ceilings", torch=True), measurement("y")), 2)
        self.assertEqual(self.result("ceilings")["problems"], ["no torch here"])
        self.assertEqual(self.result("y")["status"], "passed")
        self.machine.dry = True
        self.assertEqual(self.go(measurement("ceilings", torch=True)), 0)

    def test_all_measurements_start_on_the_dry_device_or_the_run_is_unfinished(self):
        self.machine.dry = True
        self.assertEqual(self.go(measurement(seconds=1000)), 0)
        self.assertEqual(self.go(measurement("y", seconds=1000), seconds=1), 4)


class RecordTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.source, self.target = self.root / "source", self.root / "target"
        self.source.mkdir()
        self.queue = self.root / "queue.json"
        self.queue.write_text(json.dumps(queue_of({"name": "x"}, {"name": "x_more"})))

    def came_back(self, name="x", **changes):
        result = {"question": name, "status": "passed", "commit": "c1", "uncommitted": [], "dry": False,
                  "date": "2026-01-02", "card": "Made-up GPU", "card_uuid": "GPU-1", "problems": []}
        out = self.root / "out"
        out.mkdir(exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps({**result, **changes}))
        (out / f"{name}.report.json").write_text("{}")
        archive.write(out, self.source)

    def record(self, commit=None):
        return recording.record(self.source, self.queue, self.target, commit)

    def answer(self, name="x"):
        entries = json.loads(self.queue.read_text())["measurements"]
        return next(entry["answered"] for entry in entries if entry["name"] == name)

    def test_a_result_names_its_commit_card_and_report(self):
        self.came_back()
        self.assertEqual(self.record(), ["x: recorded x.json, x.report.json"])
        self.assertEqual(self.answer(), {"commit": "c1", "date": "2026-01-02", "card": "Made-up GPU",
                                         "card_uuid": "GPU-1", "report": "reports/results/gpu/other/x.report.json"})
        self.assertIsNone(self.answer("x_more"))
        self.assertEqual(sorted(path.name for path in (self.target / "other").iterdir()), ["x.json", "x.report.json"])

    def test_a_card_of_another_kind_does_not_count(self):
        self.queue.write_text(json.dumps(queue_of({"name": "x", "kind": "h200"})))
        self.came_back(card="NVIDIA H100 80GB HBM3")
        self.assertEqual(self.record(), ["x: not recorded: it needs an h200, but ran on NVIDIA H100 80GB HBM3"])
        self.assertFalse(self.target.exists())
        self.came_back(card="NVIDIA H200")
        self.assertEqual(self.record(), ["x: recorded x.json, x.report.json"])

    def test_each_kind_of_card_has_a_folder(self):
        for card, kind in (("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100")):
            self.came_back(card=card)
            self.record()
            self.assertEqual(self.answer()["report"], f"reports/results/gpu/{kind}/x.report.json")
        self.assertTrue((self.target / "h200/x.report.json").exists())

    def test_recorded_results_name_no_folder_of_the_machine(self):
        self.came_back(problems=[], findings=["/a/b/bin/rematch run -o /tmp/x/report.json, 16/0/16, see https://a/b"])
        self.record()
        kept = json.loads((self.target / "other/x.json").read_text())["findings"]
        self.assertEqual(kept, ["rematch run -o report.json, 16/0/16, see https://a/b"])

    def test_an_unusable_result_leaves_the_measurement_open(self):
        for changes, said in (({"status": "failed", "problems": ["bits differ"]}, "failed: bits differ"),
                              ({"dry": True}, "the measurement ran on the dry device"),
                              ({"commit": None}, "the commit of the programs is unknown"),
                              ({"uncommitted": ["kernels/a.cu"]}, "kernels/a.cu was not committed")):
            with self.subTest(said=said):
                self.came_back(**changes)
                self.assertIn(said, self.record()[0])
                self.assertIsNone(self.answer())
                self.assertFalse(self.target.exists())

    def test_the_commit_with_the_code_can_be_named(self):
        self.came_back(uncommitted=["kernels/a.cu"])
        self.record("c2")
        self.assertEqual(self.answer()["commit"], "c2")


class TypedTest(unittest.TestCase):
    def test_list_needs_no_gpu(self):
        listed = typed("list")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        for name in ("doctor", "wan_1_3b_72k_times", "sanitizer"):
            self.assertIn(f" {name} ", listed.stdout)

    def test_a_dry_run_without_programs_does_not_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bin").mkdir()
            asked = typed("next", "--dry", "--seconds", "20", "--programs", folder, "--out", f"{folder}/out")
        self.assertEqual(asked.returncode, 2)
        self.assertEqual(asked.stderr.count("\n"), 1)
        self.assertIn("build preset dev", asked.stderr)

    def test_help_has_examples(self):
        self.assertIn("scripts/gpu_queue next --seconds 560 --kind h100 --programs", typed("--help").stdout)

    def test_errors_are_one_line_and_exit_code_2(self):
        for words, said in ((("run", "bulid"), "there is no measurement 'bulid'; measurements are"),
                            (("next", "--programs", "/nowhere"), "--programs /nowhere does not exist"),
                            (("record", "/nowhere"), "/nowhere has no results"),
                            (("--queue", "/nowhere", "list"), "/nowhere")):
            with self.subTest(words=words):
                done = typed(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(len(done.stderr.strip().splitlines()), 1)
                self.assertIn(said, done.stderr)

    def test_a_failing_measurement_in_the_queue_makes_the_dry_run_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            queue = pathlib.Path(folder) / "queue.json"
            (pathlib.Path(folder) / "bin").mkdir()
            (pathlib.Path(folder) / "bin/rematch").touch()  # never started; the real program may not be built
            for code, expected in (("raise SystemExit(1)", 3), ("pass", 0)):
                queue.write_text(json.dumps(queue_of(
                    {"name": "sound", "commands": [f"{sys.executable} -c pass"]},
                    {"name": "planted", "commands": [f"{sys.executable} -c '{code}'"]})))
                done = typed("--queue", queue, "next", "--dry", "--seconds", "60", "--programs", folder, "--out",
                             folder)
                self.assertEqual(done.returncode, expected, done.stderr)
                self.assertEqual(json.loads((pathlib.Path(folder) / "sound.json").read_text())["status"], "passed")
                (pathlib.Path(folder) / "planted.json").unlink()


class ObstacleTest(unittest.TestCase):
    def test_a_driver_is_found_by_its_library_alone(self):
        asked = measurement(gpu=True)
        here = machine.Machine()
        with unittest.mock.patch.object(machine.Path, "exists", return_value=False), \
                unittest.mock.patch.object(machine.shutil, "which", return_value=None):
            with unittest.mock.patch.object(machine.ctypes, "CDLL", side_effect=OSError):
                self.assertEqual(here.obstacle(asked), "there is no NVIDIA driver")
            here.libtorch = lambda: pathlib.Path("/made/up")
            with unittest.mock.patch.object(machine.ctypes, "CDLL"):
                self.assertIn("no built programs", here.obstacle(asked))

    def test_a_python_without_this_torch_is_refused_with_the_reason(self):
        def obstacle(said, code=0):
            with tempfile.TemporaryDirectory() as folder:
                python = pathlib.Path(folder) / "python"
                python.write_text(f"#!/bin/sh\necho {said}; exit {code}\n")
                python.chmod(0o755)
                return machine.Machine(python=str(python)).torch_obstacle()

        release = builds.chosen()
        self.assertIsNone(obstacle(f"{release}.0+cu130 True"))
        self.assertIn(f"has torch 2.10.0, not {release}", obstacle("2.10.0 True"))
        self.assertIn(f"torch {release}.0+cpu of", obstacle(f"{release}.0+cpu False"))
        self.assertIn("has no torch or no numpy", obstacle("", code=1))
        self.assertIn("does not start", machine.Machine(python="/nowhere/python").torch_obstacle())

    def test_torch_is_asked_once(self):
        here = machine.Machine(dry=True)
        here.torch_obstacle = unittest.mock.Mock(return_value="no torch here")
        asked = measurement(torch=True)
        self.assertEqual([here.obstacle(asked), here.obstacle(asked)], ["no torch here"] * 2)
        here.torch_obstacle.assert_called_once_with()

    def test_the_dry_device_times_one_step_with_a_supported_attention(self):
        def filled(command, **more):
            return machine.Machine(**more).filled(command, measurement(), "/out")

        timed = ["run", "--times-only", "--timed-steps", "3", "--rounds", "6"]
        self.assertEqual(filled(timed), timed)
        self.assertEqual(filled(timed, dry=True), ["run", "--times-only", "--timed-steps", "1", "--rounds", "1",
                                                   "--attention", "efficient"])
        narrow = ["run", "--times-only", "--dtype", "bfloat16"]
        self.assertEqual(filled(narrow, dry=True), [*narrow, "--attention", "flash"])
        chosen = ["run", "--times-only", "--attention", "cudnn"]
        self.assertEqual(filled(chosen, dry=True), chosen)
        counted = ["run", "--steps", "10", "--rounds", "0"]
        self.assertEqual(filled(counted, dry=True), counted)

    def test_the_dry_device_simulates_the_card_of_the_measurement(self):
        dry = machine.Machine(dry=True)
        self.assertEqual(dry.environment(measurement(kind="h200"))["DRY_CUDA_CARD"], "h200")
        self.assertNotIn("DRY_CUDA_CARD", machine.Machine().environment(measurement(kind="h200")))


if __name__ == "__main__":
    unittest.main()
