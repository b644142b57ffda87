"""scripts/test_python runs every test of the package, names the tests that are skipped, and fails if any test
failed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Stands in for a Python that has torch 2.11, or the version in its folder's name. Logs each install and test.
PYTHON = r"""release=$(expr "$0" : '.*\.python-\(2.*\)/bin/') || release=2.11
case "$2" in
  *torch*) echo "$release" ;;
  pip) for last; do :; done; echo "$release pip $last" >>log ;;
  rematch.selftest | unittest) echo "$release $2" >>log; [ "$release" != "$BROKEN" ] ;;
  *) exec python3 "$@" ;;
esac"""
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
        for folder in ("scripts/libtorch/2.9", "scripts/libtorch/2.11", "tests/harness/python", "bin", ".python-2.9/bin",
                       ".python/bin"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "scripts/libtorch/default.txt").write_text("2.11\n")
        shutil.copy(ROOT / "scripts/test_python", self.root / "scripts")
        for name, body in (("bin/python", PYTHON), (".python-2.9/bin/python", PYTHON), (".python/bin/python", PYTHON),
                           ("bin/cmake", ""), ("scripts/setup", 'echo "setup $*" >>log'),
                           ("scripts/build_wheel", 'echo "build_wheel $*" >>log; touch x.whl; echo x.whl')):
            path = self.root / name
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)

    def run_script(self, *arguments, **more):
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", **more}
        return subprocess.run([self.root / "scripts/test_python", *arguments], env=environment, capture_output=True, text=True)

    def log(self):
        return (self.root / "log").read_text().splitlines()

    def run_with(self, *tests):
        for index, test in enumerate(tests):
            (self.root / f"tests/harness/python/thing_{index}_test.py").write_text(test)
        return self.run_script("--python", self.root / "bin/python")

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

    def test_all_versions_are_tested_with_one_wheel(self):
        (self.root / "tests/harness/python/thing_test.py").write_text(TEST.format("", ""))
        self.assertEqual(self.run_script("--all").returncode, 0)
        of_each = ["pip x.whl", "rematch.selftest", "unittest"]
        self.assertEqual(self.log(), ["setup versions", "build_wheel --torch 2.9 2.11",
                                      *[f"{release} {done}" for release in ("2.9", "2.11") for done in of_each]])

    def test_a_version_that_fails_does_not_keep_the_next_one_from_being_tested(self):
        (self.root / "tests/harness/python/thing_test.py").write_text(TEST.format("", ""))
        done = self.run_script("--all", BROKEN="2.9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_python: failed or skipped with torch 2.9\n", done.stderr)
        self.assertEqual(self.log()[2:], ["2.9 pip x.whl", "2.9 rematch.selftest", "2.11 pip x.whl", "2.11 rematch.selftest",
                                          "2.11 unittest"])

    def test_a_wheel_that_is_not_there_is_refused(self):
        done = self.run_script("--torch", "2.9", "--wheel", "y.whl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--wheel takes a file of scripts/build_wheel, not 'y.whl'", done.stderr)


if __name__ == "__main__":
    unittest.main()
