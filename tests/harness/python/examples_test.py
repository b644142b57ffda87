"""Runs harness/examples/own_model.py unchanged. It must stay within its budget, give results that are
bit-identical to a run without a plan, and print what its README shows. The plan depends on measured times, so the line
about the plan may differ."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "harness" / "examples" / "own_model.py"
README = (EXAMPLE.parent / "README.md").read_text(encoding="utf-8")
SHOWN = re.search(r"^```\n(\| step .*?)```$", README, re.MULTILINE | re.DOTALL)[1]


class OwnModelTest(unittest.TestCase):
    def test_own_model_trains_within_its_budget(self):
        done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, cwd=ROOT,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = re.search(r"^\| without a plan \| (\d+)/0/(\d+) \| ([\d.]+) MiB \| reference \|$", done.stdout, re.MULTILINE)
        planned = re.search(r"^\| with the plan \| (\d+)/([1-9]\d*)/(\d+) \| ([\d.]+) MiB \| equal \|$", done.stdout,
                            re.MULTILINE)
        self.assertTrue(kept and planned, done.stdout)
        self.assertEqual((kept[1], kept[2]), (planned[1], planned[3]))
        self.assertLess(float(planned[4]), float(kept[3]))
        peak = re.search(r"predicted: peak ([\d.]+) MiB instead of ([\d.]+) MiB", done.stderr)
        budget = re.search(r'budget="(\d+)MiB"', EXAMPLE.read_text(encoding="utf-8"))
        self.assertLessEqual(float(peak[1]), float(budget[1]))
        self.assertGreater(float(peak[2]), float(budget[1]))  # the model does not fit without a plan
        losses, shown_losses = (
            [float(loss) for loss in re.findall(r"^step \d: loss ([\d.]+)$", text, re.MULTILINE)] for text in (done.stdout, SHOWN))
        self.assertEqual(len(losses), 3)
        if torch.__version__.startswith("2.15."):  # other versions of torch may run different ops
            self.assertIn(SHOWN[:SHOWN.index("| with the plan")], done.stdout)
            for loss, shown in zip(losses, shown_losses, strict=True):
                self.assertAlmostEqual(loss, shown, delta=0.001)  # processors may round differently
        self.assertEqual(losses, sorted(losses, reverse=True))


if __name__ == "__main__":
    unittest.main()
