"""scripts/bench measures, searches, and ends by printing the path of an HTML page with all its results."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = "build/dev/harness/cli/rematch"
# Appends its arguments to `calls`, writes the file named after -o, and exits as the test specifies for the command.
REMATCH = """echo "$@" >>calls
command=$1
while [ $# -gt 0 ]; do
  if [ "$1" = -o ] && [ ! -e "no_$command" ]; then echo "{}" >"$2"; fi
  shift
done
[ ! -e "exit_$command" ] || exit "$(cat "exit_$command")"
"""
REPORTS = ["results/llama_small_cpu.json", "results/wan_small_cpu.json"]
FRONTS = ["results/llama_small_cpu.front.json", "results/wan_small_cpu.front.json"]


class BenchTest(unittest.TestCase):
    """A checkout with stand-ins for set-up, cmake and rematch, and without CUDA."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_bench_"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("scripts", "bin", pathlib.Path(BINARY).parent):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "bench", self.root / "scripts" / "bench")
        self.stand_in("scripts/setup", '[ "$1" != cuda ]')
        self.stand_in("bin/cmake", "exit 0")
        self.stand_in(BINARY, REMATCH)

    def stand_in(self, name, body):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run_bench(self):
        path = f"{self.root}/bin:{os.environ['PATH']}"
        done = subprocess.run([self.root / "scripts" / "bench"],
                              env={**os.environ, "PATH": path}, capture_output=True, text=True)
        calls = [call.split() for call in (self.root / "calls").read_text().splitlines()]
        return done.returncode, done.stdout.strip().splitlines(), calls

    def test_the_last_line_is_the_path_of_a_page_with_the_reports_and_the_fronts(self):
        status, lines, calls = self.run_bench()
        self.assertEqual(status, 0)
        page = f"{self.root.resolve()}/results/index.html"
        self.assertEqual(lines[-1], f"The page with the charts: {page}")
        self.assertTrue(pathlib.Path(page).is_file())
        self.assertEqual(calls[-1], ["render", *REPORTS, *FRONTS, "-o", "results/index.html"])

    def test_a_failed_search_keeps_its_exit_code_and_the_page_of_the_reports(self):
        (self.root / "no_search").touch()
        (self.root / "exit_search").write_text("3")
        status, lines, calls = self.run_bench()
        self.assertEqual(status, 3)
        self.assertEqual(calls[-1], ["render", *REPORTS, "-o", "results/index.html"])
        self.assertTrue(lines[-1].startswith("The page with the charts: "))

    def test_a_failed_page_fails_the_command_and_is_not_named(self):
        (self.root / "exit_render").write_text("1")
        status, lines, _ = self.run_bench()
        self.assertEqual(status, 1)
        self.assertFalse([line for line in lines if line.startswith("The page")])


if __name__ == "__main__":
    unittest.main()
