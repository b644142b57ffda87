"""scripts/test_python runs every test of the package, names the tests that are skipped, and fails if any test
failed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A Python that says that it has torch 2.11, and installs nothing.
PYTHON = 'case "$2" in *torch*) echo 2.11 ;; pip | rematch.selftest) ;; *) exec python3 "$@" ;; esac'
SKIPPED = '@unittest.skip("noisy is not installed")'
TEST = """
import os, unittest
class ThingTest(unittest.TestCase):
    {}
    def test_a_thing(self):
        self.assertTrue(os.path.isabs(os.environ["PYTHONPATH"]))
        {}
"""


class TestPythonTest(unittest.TestCase):
    """A checkout whose Python, cmake and wheel are stand-ins."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_test_python_"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("scripts/libtorch/2.11", "tests/harness/python", "bin"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "scripts/libtorch/default.txt").write_text("2.11\n")
        shutil.copy(ROOT / "scripts/test_python", self.root / "scripts")
        for name, body in (("bin/python", PYTHON), ("bin/cmake", ""), ("scripts/build_wheel", "echo x.whl")):
            path = self.root / name
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)

    def run_with(self, *tests):
        for index, test in enumerate(tests):
            (self.root / f"tests/harness/python/thing_{index}_test.py").write_text(test)
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        return subprocess.run([self.root / "scripts/test_python", "--python", self.root / "bin/python"], env=environment,
                              capture_output=True, text=True)

    def test_a_skipped_test_is_named_with_its_reason(self):
        done = self.run_with(TEST.format("", ""), TEST.format(SKIPPED, ""))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("test_python: skipped thing_1_test.ThingTest.test_a_thing: noisy is not installed\n", done.stderr)
        self.assertEqual(done.stderr.count("test_python: skipped"), 1)

    def test_a_failed_test_fails_the_command(self):
        self.assertEqual(self.run_with(TEST.format("", ""), TEST.format("", "self.fail()")).returncode, 1)

    def test_a_test_file_that_cannot_be_imported_fails_the_command(self):
        self.assertEqual(self.run_with(TEST.format("", ""), "import there_is_no_such_module").returncode, 1)

    def test_no_tests_at_all_fail_the_command(self):
        self.assertEqual(self.run_with().returncode, 1)


if __name__ == "__main__":
    unittest.main()
