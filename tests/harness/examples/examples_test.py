"""Tests that the examples run as their README says and give the promised results."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "harness" / "examples"
MAX_LINES = 60


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rematch_examples_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def rematch(self, *arguments):
        return self.start(ROOT / "scripts" / "rematch", *arguments)

    def read(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def assert_page(self, name):
        self.assertTrue((self.folder / name).read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))

    def test_own_policy_keeps_the_named_ops(self):
        self.assertIn("checkpoints 0 2 4 6, keeps 1 3 5 7",
                      self.rematch("describe", "llama_small", EXAMPLES / "own_policy.json"))
        self.rematch("run", "--model", "llama_small", "--policy", f"none,{EXAMPLES / 'own_policy.json'}", "--schedule",
                     "on_demand", "--steps", "1", "--rounds", "0", "-o", "report.json")
        none, mine = self.read("report.json")["points"]
        self.assertEqual((mine["status"], mine["policy"]), ("ok", "mine"))
        self.assertTrue(mine["parity"]["loss_bits_equal"] and mine["parity"]["gradient_bits_equal"])
        # 4 of 8 blocks are recomputed. Recompute runs 5 of a block's 7 matmuls: the first matmul of the feed-forward is
        # kept, and backward does not need the result of the last one. Attention is kept.
        recomputed = mine["counts"]["recompute"]
        self.assertEqual((recomputed["matmul"], recomputed.get("attention_forward", 0)), (4 * 5, 0))
        self.assertLess(mine["memory"]["peak_allocated_bytes"], none["memory"]["peak_allocated_bytes"])

    def test_the_gate_passes_and_writes_its_report_and_page(self):
        printed = self.start(EXAMPLES / "gate_in_ci.sh", "results")
        self.assertEqual(re.findall(r"^PASS: .*$", printed, re.MULTILINE),
                         [f"PASS: {count} of {count} points pass." for count in (2, 1, 1)])
        self.assertEqual([point["policy"] for point in self.read("results/gate.json")["points"]],
                         ["none", "full", "attn_only"])
        self.assert_page("results/gate.html")

    def test_the_gate_ends_at_the_first_failure_with_its_exit_code(self):
        copy = self.folder / "harness" / "examples" / "gate_in_ci.sh"
        copy.parent.mkdir(parents=True)
        shutil.copy(EXAMPLES / "gate_in_ci.sh", copy)
        stand_in = self.folder / "scripts" / "rematch"
        stand_in.parent.mkdir()
        stand_in.write_text('#!/bin/bash\necho "$1" >>calls\n[[ $* != *max-peak-bytes* ]] || exit 3\n')
        stand_in.chmod(0o755)
        done = subprocess.run([copy], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual((self.folder / "calls").read_text().split(), ["run", "gate"])

    def test_two_workers_measure_the_whole_sweep(self):
        self.assertIn("4 comparisons, 12 points", self.rematch("sweep", "plan", EXAMPLES / "sweep.json", "small"))
        (self.folder / "job.sh").write_text(self.rematch("sweep", "emit", "small", "--engine", "local", "--workers", "2"))
        self.start("bash", "job.sh")
        self.assertIn("4 done, 0 failed", self.rematch("sweep", "status", "small"))
        self.rematch("sweep", "merge", "small", "-o", "small.json")
        points = self.read("small.json")["points"]
        self.assertEqual([point["status"] for point in points], ["ok"] * 12)
        shapes = [point["identity"]["dimensions"] for point in points]
        self.assertEqual({(shape["tokens"], shape["batch"]) for shape in shapes}, {(32, 1), (32, 2), (64, 1), (64, 2)})
        self.rematch("render", "small.json", "-o", "small.html")
        self.assert_page("small.html")

    def test_files_are_valid(self):
        self.rematch("validate", EXAMPLES / "own_policy.json", EXAMPLES / "sweep.json")


class FilesTest(unittest.TestCase):
    """Every example must be short, and the READMEs must link it."""

    def test_every_example_is_short_and_linked(self):
        here = (EXAMPLES / "README.md").read_text(encoding="utf-8")
        top = (ROOT / "README.md").read_text(encoding="utf-8")
        examples = [path for path in EXAMPLES.iterdir() if path.name not in ("README.md", "CMakeLists.txt")]
        self.assertGreaterEqual(len(examples), 5)
        for path in examples:
            with self.subTest(path.name):
                self.assertLessEqual(len(path.read_text(encoding="utf-8").splitlines()), MAX_LINES)
                self.assertIn(f"[{path.name}]({path.name})", here)
                self.assertIn(f"(harness/examples/{path.name})", top)


if __name__ == "__main__":
    unittest.main()
