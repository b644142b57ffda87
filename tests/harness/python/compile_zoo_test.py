"""Tests ten models of transformers and diffusers under Inductor: measured peaks against predicted peaks and budgets, and
losses and gradients against PyTorch's partitioner. All ten models run if REMATCH_SEEDS is at least 3000, as in scripts/test
--deep, with the oldest and the newest supported torch. Otherwise, only the peaks of two models are compared."""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).with_name("compiled_peaks.py")
RELEASES = sorted((path.name for path in (SCRIPT.parents[3] / "scripts" / "libtorch").glob("2.*")), key=lambda name: int(name[2:]))
IS_DEEP = int(os.environ.get("REMATCH_SEEDS", "0")) >= 3000 and any(
    importlib.metadata.version("torch").startswith(f"{release}.") for release in (RELEASES[0], RELEASES[-1]))
TRANSFORMERS, DIFFUSERS = ("llama", "vit", "qwen3", "mixtral", "gpt2", "bert"), ("wan", "flux", "ltx", "sd3")
# Budgets as shares of the peak of the eager step, without its batch. The smallest ones may be below what any plan needs. sd3 has
# a large batch, which budgets count, so only the two largest fit.
BUDGETS = (0.5, 0.65, 0.8, 1.0, 1.2, 1.4)
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-5
MIB = 2**20


def rows_of(model, *budgets, compiles_kernels=False):
    """Compiles the model under each budget. Leaves out budgets that no plan fits."""
    done = subprocess.run([sys.executable, SCRIPT, f"zoo.{model}", "inductor", *map(str, budgets)], capture_output=True, text=True,
                          check=False, env=os.environ | {"OMP_NUM_THREADS": "1", "REMATCH_COMPILE_KERNELS": str(int(compiles_kernels))})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row for row in rows if "error" not in row]


@unittest.skipUnless(importlib.util.find_spec("transformers") and importlib.util.find_spec("diffusers"),
                     "transformers or diffusers is not installed")
class ZooTest(unittest.TestCase):
    def test_peaks_are_as_predicted_and_within_the_budget(self):
        for model in (*TRANSFORMERS, *DIFFUSERS) if IS_DEEP else TRANSFORMERS[:2]:
            with self.subTest(model):
                rows = rows_of(model, *BUDGETS)
                self.assertGreaterEqual(len(rows), 2)
                before = 0
                for row in rows:
                    measured = row["measured_peak_bytes"] + row["batch_bytes"]
                    self.assertLessEqual(measured, row["budget_bytes"])
                    predicted = row["predicted_peak_mib"] * MIB
                    self.assertLess(abs(measured - predicted), 0.01 * predicted)
                    self.assertGreaterEqual(measured, before)  # a lower budget gives no higher peak
                    before = measured

    @unittest.skipUnless(IS_DEEP, "takes long, because kernels are compiled; set REMATCH_SEEDS=3000")
    def test_losses_and_gradients(self):
        for model in (*TRANSFORMERS, *DIFFUSERS):
            with self.subTest(model):
                row, *_ = rows_of(model, 0.75, 1.2, compiles_kernels=True)
                self.assertLess(row["loss_difference"], LOSS_TOLERANCE)
                self.assertLess(row["gradient_difference"], GRADIENT_TOLERANCE)


if __name__ == "__main__":
    unittest.main()
