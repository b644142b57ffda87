"""Checks the types of the package, and of a user's program that imports the package, with mypy."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

from readme_test import programs

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "harness" / "python" / "rematch"
MISTAKES = """
rematch.auto(model, step, budget=None)
rematch.Checkpoint({}, schedule=3)
rematch.recording({})
rematch.render(None, "page.html")
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class TypingTest(unittest.TestCase):
    def test_every_function_has_types(self):
        """Runs mypy with all checks of --strict except two, because torch does not annotate backward() and the result
        of a module."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--allow-untyped-calls", "--no-warn-return-any", "--no-error-summary",
                 "--cache-dir", folder, PACKAGE], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_only_a_users_mistakes_are_reported(self):
        ((program, _),) = [each for each in programs() if "from transformers import" in each[0]]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(program + MISTAKES, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--no-error-summary", "--ignore-missing-imports", "--cache-dir", folder, PACKAGE,
                 path], capture_output=True, text=True, check=False)
        found = [line.removeprefix(str(path)).split(": ")[:2] for line in done.stdout.splitlines()]
        first = len(program.splitlines()) + 2
        self.assertEqual(found, [[f":{number}", "error"] for number in range(first, first + 4)], done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
