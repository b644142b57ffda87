"""Tests scripts/compare_with_pytorch --package: limits, verdicts, and what happens without torch_remat. A stand-in
replaces the process that runs steps of a model."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from benchmarks import builds  # noqa: E402

# Stands in for tests/benchmarks/package_server.py. arms.json has the figures of each arm.
SERVER = """
import json, pathlib, sys
words = sys.argv[2:] if sys.argv[1] == "--count" else sys.argv[1:]
level, _, way = words[-1].partition("/")
arms = json.loads((pathlib.Path(__file__).parent / "arms.json").read_text())
arm = arms.get(f"{level}/{way}") or arms[way or "none"]
for line in sys.stdin:
    request, _, *rest = line.split()
    print({"time": lambda: arm["ns"] * int(rest[0]), "bits": lambda: arm.get("bits", "a"), "peak": lambda: arm["peak"],
           "ops": lambda: json.dumps({"forward": 10, "backward": arm["ops"]})}[request](), flush=True)
"""
# Stands in for a Python that has torch. Without a file `remat` next to it, torch_remat is missing.
PYTHON = """#!/bin/sh
here=$(dirname "$0")
if [ "$1" = -c ]; then
  case $2 in
    *importlib*) cat "$here/remat" 2>/dev/null || exit 1 ;;
    *) cat "$here/torch" ;;
  esac
  exit 0
fi
shift  # drops the path of the server that this script replaces
exec PYTHON -SE "$here/server.py" "$@"
"""
ARMS = {"none": {"ns": 1_000_000, "peak": 100, "ops": 20}, "checkpoint": {"ns": 2_000_000, "peak": 60, "ops": 35},
        "checkpoint+generator": {"ns": 2_500_000, "peak": 70, "ops": 35}, "remat": {"ns": 3_000_000, "peak": 50, "ops": 40},
        "remat+generator": {"ns": 3_500_000, "peak": 50, "ops": 40},
        "whole_region": {"ns": 1_200_000, "peak": 50, "ops": 30}, "on_demand": {"ns": 1_100_000, "peak": 40, "ops": 29}}


class PackageArmsTest(unittest.TestCase):
    """Uses a checkout that contains only the scripts, and the package's library for one version of torch."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_arms_"))
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        self.release = [release for release in builds.releases() if release != builds.default()][-1]
        library = self.root / "build" / f"torch-{self.release}" / "harness" / "python" / "librematch_python.so"
        library.parent.mkdir(parents=True)
        library.touch()
        self.put("python", PYTHON.replace("PYTHON", sys.executable)).chmod(0o755)
        self.put("server.py", SERVER)
        self.put("torch", f"{self.release}.0+cpu\n")
        self.put("remat", "0.2.2\n")

    def put(self, name, text):
        path = self.root / name
        path.write_text(text)
        return path

    def run_package(self, *words, model="dim 128", **changes):
        self.put("arms.json", json.dumps({**ARMS, **changes}))
        done = subprocess.run(
            [sys.executable, "-B", self.root / "scripts" / "compare_with_pytorch", "--package", "--rounds", "2", "--python",
             self.root / "python", "--model", model, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def rows_of(self, text, level):
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith(f"| {level} |")]

    def test_our_arms_must_be_quicker_than_every_rival_and_hold_no_more(self):
        status, text, error = self.run_package()
        self.assertEqual(status, 0, error)
        self.assertIn(f"torch {self.release}.0, torch_remat 0.2.2, threads: 1, rounds: 2", text)
        rows = self.rows_of(text, "nothing")
        self.assertEqual([row[1] for row in rows],
                         ["torch.utils.checkpoint", "torch.utils.checkpoint, generator restored", "torch_remat",
                          "rematch, whole_region", "rematch, on_demand"])
        self.assertEqual(rows[-1][2:], ["1.100x (1.100 to 1.100)", "", "9", "40 B", "equal",
                                        "quicker than every rival: met; peak no higher: met"])
        self.assertEqual(rows[2][2:], ["3.000x (3.000 to 3.000)", "", "20", "50 B", "equal", ""])

    def test_a_slower_step_and_a_higher_peak_are_missed(self):
        status, text, _ = self.run_package(on_demand={"ns": 2_000_000, "peak": 51, "ops": 30})
        self.assertEqual(status, 1)
        self.assertEqual(self.rows_of(text, "nothing")[-1][-1], "quicker than every rival: MISSED; peak no higher: MISSED")

    def test_dispatch_has_separate_limits_and_a_cost_per_op(self):
        status, text, _ = self.run_package(model="dispatch-bound", whole_region={"ns": 1_400_000, "peak": 40, "ops": 30})
        self.assertEqual(status, 1)
        row = self.rows_of(text, "nothing")[-2]  # 400 us for the 10 ops of forward
        self.assertEqual((row[3], row[-1]), (
            "40000 ns (40000 to 40000)", "quicker than every rival: met; peak no higher: met; step <= 1.3x: MISSED"))

    def test_a_rival_with_other_bits_sets_no_limit(self):
        other = {"bits": "b", "ns": 1, "peak": 1, "ops": 35}
        status, text, error = self.run_package(model="dropout", remat=other, checkpoint=other)
        self.assertEqual(status, 0, error)
        rows = self.rows_of(text, "nothing")
        self.assertEqual([row[-2] for row in rows], ["differ", "equal", "differ", "equal", "equal", "equal"])
        self.assertEqual(rows[-1][-1], "quicker than every rival: met; peak no higher: met")

    def test_our_bits_must_be_equal(self):
        status, text, _ = self.run_package(on_demand={**ARMS["on_demand"], "bits": "b"})
        self.assertEqual(status, 1)
        self.assertEqual(self.rows_of(text, "nothing")[-1][-2], "differ")

    def test_a_missing_torch_remat_is_reported_with_its_remedy_unless_it_is_left_out(self):
        (self.root / "remat").unlink()
        status, text, error = self.run_package()
        self.assertEqual((status, text), (2, ""))
        self.assertEqual(len(error.splitlines()), 1)
        self.assertIn("has no torch_remat: run '", error)
        self.assertIn("-m pip install --no-deps torch_remat==0.2.2', or leave its arms out with --without-remat", error)
        status, text, error = self.run_package("--without-remat")
        self.assertEqual(status, 0, error)
        self.assertIn("without torch_remat", text)
        self.assertEqual([row[1] for row in self.rows_of(text, "results of attention ops")],
                         ["selective checkpointing", "rematch, whole_region", "rematch, on_demand"])
        self.assertEqual(self.rows_of(text, "what the MLP saves"), [])

    def test_the_library_must_be_built_for_the_torch_of_the_python(self):
        self.put("torch", f"{builds.releases()[1]}.1\n")
        status, _, error = self.run_package()
        self.assertEqual(status, 2)
        self.assertIn(f"is not built: run 'scripts/setup --beside {builds.releases()[1]}', 'cmake --preset", error)
        self.put("torch", "2.9.0\n")
        status, _, error = self.run_package()
        self.assertEqual(status, 2)
        self.assertIn("has torch 2.9.0; it must be " + " or ".join(builds.releases()), error)


if __name__ == "__main__":
    unittest.main()
