"""Tests the package in a fresh process: its self-test, and traces without memory counting."""

import json
import re
import shutil
import subprocess
import sys
import unittest

import rematch
from rematch._library import LIBRARY


class LibraryTest(unittest.TestCase):
    def test_the_loader_needs_torch_but_not_python(self):
        readelf = shutil.which("readelf")
        if readelf is None:
            self.skipTest("no readelf here")
        done = subprocess.run([readelf, "-d", LIBRARY._name], capture_output=True, text=True, check=True)
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))
        self.assertLessEqual({"libtorch_cpu.so", "libc10.so"}, needed)
        self.assertEqual([name for name in needed if "python" in name or "cuda" in name], [])
        self.assertNotRegex(done.stdout, "RPATH|RUNPATH")


class SelfTestTest(unittest.TestCase):
    def test_the_self_test_passes_without_numpy(self):
        """The self-test must run without numpy, because a new virtual environment with torch does not have it."""
        script = "import sys; sys.modules['numpy'] = None; from rematch.selftest import main; sys.exit(main())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line[:3] for line in done.stdout.splitlines()], ["ok:"] * 6)

    def test_a_trace_does_not_depend_on_memory_counting(self):
        """Without memory counting, training uses torch's own allocators. A trace must still contain the bytes of
        backward, and torch's allocators must be active again after the trace."""
        script = """
import json, sys, rematch
if sys.argv[1] == "counted":
    rematch.count_memory()
import torch
torch.manual_seed(0)
layers = [torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32)) for _ in range(3)]
model, x = torch.nn.Sequential(*layers), torch.randn(64, 32)
step = lambda: model(x).square().mean()
traces = [rematch.trace(model, step) for _ in range(2)]
assert traces[0] == traces[1]
with rematch.watch() as figures:
    step().backward()
print(json.dumps([traces[0], figures["before_bytes"] is None]))
"""
        found = []
        for how in ("counted", "not counted"):
            done = subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(json.loads(done.stdout))
        self.assertEqual([is_uncounted for _, is_uncounted in found], [False, True])
        self.assertEqual(found[0][0], found[1][0])


if __name__ == "__main__":
    unittest.main()
