"""Tests that rematch.search gives the same front as `rematch search --trace`.

Needs torch, transformers, diffusers and the binary that REMATCH_BINARY names."""

import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import rematch
import torch
import zoo
from rematch._step import run_first_step

ROOT = pathlib.Path(__file__).parents[3]
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))
MODELS = (zoo.llama, zoo.qwen3, zoo.mixtral, zoo.gpt2, zoo.bert, zoo.vit, zoo.wan, zoo.flux, zoo.ltx, zoo.sd3)
# fields that may differ, because they say where and when the search ran
NOT_COMPARED = ("date", "git_commit", "git_dirty", "reproduce")
POINTS = 6


def trace_of(make):
    torch.manual_seed(0)
    model, step = make()
    model.train()
    run_first_step(model, step)
    return rematch.trace(model, step)


@unittest.skipUnless(os.access(BINARY, os.X_OK), f"{BINARY} is not built")
class SameFrontTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def by_command(self, trace, *flags):
        file, front = pathlib.Path(self.folder, "trace.json"), pathlib.Path(self.folder, "front.json")
        file.write_text(json.dumps(trace))
        done = subprocess.run([BINARY, "search", "--trace", file, "--device", "h100", "--points", str(POINTS), "-o", front,
                               "--overwrite", *flags], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(front.read_text())

    def test_fronts_of_ten_models(self):
        for number, make in enumerate(MODELS):
            if importlib.util.find_spec(zoo.PACKAGE_OF[make]) is None:
                continue
            schedule = ("on_demand", "whole_region")[number % 2]
            trace = trace_of(make)
            peaks = [rematch.predict(trace, rematch.resolve(trace, policy), schedule)["peak_bytes"] for policy in ("none", "full")]
            budget = (3 * peaks[0] + peaks[1]) // 4
            with self.subTest(model=make.__name__, schedule=schedule):
                expected = self.by_command(trace, "--budget", f"{budget}B", "--schedule", schedule)
                found = rematch.search(trace, device="h100", schedule=schedule, points=POINTS, budget=budget, simple=True)
                self.assertIsNotNone(found["answer"])
                self.assertEqual(*({key: value for key, value in front.items() if key not in NOT_COMPARED}
                                   for front in (found, expected)))

    def test_a_front_without_a_budget(self):
        trace = trace_of(MODELS[0])
        expected = self.by_command(trace)
        found = rematch.search(trace, device="h100", points=POINTS, simple=True)
        self.assertEqual(*({key: value for key, value in front.items() if key not in NOT_COMPARED} for front in (found, expected)))


if __name__ == "__main__":
    unittest.main()
