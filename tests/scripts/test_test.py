"""scripts/test adds up the counts of ctest, scripts/check and scripts/drive, and fails if any part failed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
JUNIT = ('<?xml version="1.0"?>\n<testsuite name="x" tests="{}" failures="{}" disabled="{}" '
         'skipped="{}" time="7">\n<testcase name="a tests=&quot;9&quot;" time="1"/>\n</testsuite>\n')


class TestCommandTest(unittest.TestCase):
    """A checkout whose set-up, cmake and checks are stand-ins that report given counts."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_test_"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "scripts").mkdir()
        (self.root / "bin").mkdir()
        shutil.copy(ROOT / "scripts" / "test", self.root / "scripts" / "test")
        for version in ("2.9", "2.11"):
            (self.root / "scripts/libtorch" / version).mkdir(parents=True)
        (self.root / "scripts/libtorch/default.txt").write_text("2.9\n")
        self.stand_in("scripts/setup", "exit 0")
        self.stand_in("scripts/check", "echo 'checks: 5 passed, 0 failed, 0 skipped'")
        self.stand_in("scripts/test_page", "exit 0")
        self.stand_in("scripts/test_cluster", "exit 0")
        self.stand_in("scripts/test_python", "exit 0")
        self.stand_in("scripts/drive", "echo \"$*\" > drive_arguments\n"
                                       "echo 'runs: 100 passed, 0 failed, 0 skipped'")
        self.presets(lite=(10, 0, 0, 1), dev=(20, 0, 1, 3))

    def stand_in(self, name, body):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def presets(self, status=0, **counts):
        for preset, numbers in counts.items():
            (self.root / f"{preset}.xml").write_text(JUNIT.format(*numbers))
        self.stand_in("bin/cmake", "mkdir -p build/$3 && cp $3.xml build/$3/ctest.xml\n"
                                   f"exit {status}")

    def log(self, text):
        log = self.root / "build/dev/Testing/Temporary/LastTest.log"
        log.parent.mkdir(parents=True)
        log.write_text(text)

    def run_test(self, *arguments):
        path = f"{self.root}/bin:{os.environ['PATH']}"
        done = subprocess.run([self.root / "scripts" / "test", *arguments],
                              env={**os.environ, "PATH": path}, capture_output=True, text=True)
        return done.returncode, done.stdout.strip().splitlines()

    def test_the_last_line_adds_up_the_preset_the_checks_and_the_runs(self):
        # 16 tests of preset dev, 5 checks, page, cluster, Python and 100 runs; dev skips 3 tests and disables 1
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (0, "124 passed, 0 failed, 4 skipped"))

    def test_a_failed_test_fails_the_command(self):
        self.presets(status=8, dev=(20, 2, 0, 0))
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "126 passed, 2 failed, 0 skipped"))

    def test_the_test_cases_in_a_test_count(self):
        # Four tests: a has 3 passed cases; b has 2 passed and 1 skipped; c has 3 passed and 2 failed; d has 2 skipped.
        self.log("1/4 Testing: a\nAll tests passed (9 assertions in 3 test cases)\n2/4 Testing: b\n"
                 "warning:\n  no GPU\n  device test: skipped\nAll tests passed (7 assertions in 3 test cases)\n"
                 "3/4 Testing: c\ntest cases:  5 |  3 passed | 2 failed\nassertions: 12 | 10 passed | 2 failed\n"
                 "4/4 Testing: d\n  no GPU\n  gpu test: skipped\n  no GPU\n  gpu test: skipped\n"
                 "test cases: 2 | 2 passed\nassertions: - none -\n")
        self.presets(status=8, dev=(4, 1, 0, 1))
        status, lines = self.run_test()
        self.assertIn("preset dev: 8 passed, 2 failed, 3 skipped", [line.split(" in ")[0] for line in lines])

    def test_a_test_without_totals_counts_as_one(self):
        self.log("1/3 Testing: a\nOK\n2/3 Testing: b\n  device test: skipped\nSegmentation fault\n"
                 "3/3 Testing: c\nAll tests passed (9 assertions in 3 test cases)\n")
        self.presets(status=8, dev=(3, 1, 0, 0))
        status, lines = self.run_test()
        self.assertIn("preset dev: 4 passed, 1 failed, 0 skipped", [line.split(" in ")[0] for line in lines])

    def test_a_ctest_that_fails_without_a_failing_test_is_a_failure(self):
        self.presets(status=8, dev=(20, 0, 0, 0))
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "128 passed, 1 failed, 0 skipped"))

    def test_a_build_without_a_report_is_a_failure_even_if_an_older_report_exists(self):
        self.run_test()
        self.stand_in("bin/cmake", "exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "108 passed, 1 failed, 0 skipped"))

    def test_a_failed_check_fails_the_command(self):
        self.stand_in("scripts/check", "echo 'checks: 4 passed, 1 failed, 0 skipped'; exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "123 passed, 1 failed, 4 skipped"))

    def test_checks_that_crash_are_a_failure(self):
        self.stand_in("scripts/check", "exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "119 passed, 1 failed, 4 skipped"))

    def test_a_missing_browser_skips_the_pages_and_a_bad_page_fails(self):
        self.stand_in("scripts/test_page", "exit 77")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (0, "123 passed, 0 failed, 5 skipped"))
        self.stand_in("scripts/test_page", "exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "123 passed, 1 failed, 4 skipped"))

    def test_a_cluster_that_cannot_start_is_skipped_and_a_failed_sweep_fails(self):
        self.stand_in("scripts/test_cluster", "exit 77")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (0, "123 passed, 0 failed, 5 skipped"))
        self.stand_in("scripts/test_cluster", "exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "123 passed, 1 failed, 4 skipped"))

    def test_a_missing_python_is_skipped_and_a_failed_package_fails(self):
        self.stand_in("scripts/test_python", "[ \"$1\" = --small ] && exit 77")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (0, "123 passed, 0 failed, 5 skipped"))
        self.stand_in("scripts/test_python", "exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "123 passed, 1 failed, 4 skipped"))

    def test_the_oldest_libtorch_is_tested_beside_a_newer_one_that_was_chosen(self):
        (self.root / ".libtorch-version").write_text("2.11\n")
        self.presets(**{"dev": (20, 0, 0, 0), "torch-2.9": (5, 1, 0, 0)})
        self.stand_in("scripts/test_python", "echo $* >>python_arguments")
        self.stand_in("scripts/setup", "echo $* >>setup_arguments")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "133 passed, 1 failed, 0 skipped"))
        self.assertEqual((self.root / "python_arguments").read_text(), "--small\n--small --torch 2.9\n")
        self.assertEqual((self.root / "setup_arguments").read_text(), "dry\n--beside 2.9\n")

    def test_deep_tests_every_version_and_the_package_with_one_wheel(self):
        (self.root / ".libtorch-version").write_text("2.11\n")
        (self.root / "scripts/libtorch/2.10").mkdir()
        self.presets(**{"torch-2.9": (5, 0, 0, 0), "torch-2.10": (6, 0, 0, 0)})
        self.stand_in("scripts/test_python", "echo $* >>python_arguments")
        _, lines = self.run_test("--deep")  # exits with an error, because the other steps of --deep have no stand-in
        self.assertEqual((self.root / "python_arguments").read_text(), "--all\n")
        for line in ("preset torch-2.9: 5 passed, 0 failed", "preset torch-2.10: 6 passed, 0 failed",
                     "scripts/test_python: 1 passed, 0 failed"):
            self.assertEqual(sum(found.startswith(line) for found in lines), 1, lines)

    def test_a_libtorch_that_cannot_be_fetched_is_a_failure(self):
        (self.root / ".libtorch-version").write_text("2.11\n")
        self.stand_in("scripts/setup", "[ $1 = dry ]")
        status, lines = self.run_test()
        self.assertEqual(status, 1)
        self.assertIn("LibTorch 2.9: 0 passed, 1 failed, 0 skipped in 0 s", lines)

    def test_the_driver_runs_a_hundred_seeds_from_the_requested_one(self):
        self.run_test()
        self.assertEqual((self.root / "drive_arguments").read_text(), "--seed 0 --runs 100\n")
        with mock.patch.dict(os.environ, REMATCH_DRIVE_SEED="1000"):
            self.run_test()
        self.assertEqual((self.root / "drive_arguments").read_text(), "--seed 1000 --runs 100\n")
        self.run_test("--deep")  # exits with an error, because the other steps of --deep have no stand-in
        self.assertEqual((self.root / "drive_arguments").read_text(), "--seed 0 --runs 2000\n")

    def test_each_run_of_the_driver_counts_and_a_driver_that_cannot_work_is_a_failure(self):
        self.stand_in("scripts/drive", "echo 'drive: seed 7 failed: bytes: runs: 1 passed'\n"
                                       "echo 'runs: 98 passed, 2 failed, 0 skipped'; exit 1")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "122 passed, 2 failed, 4 skipped"))
        self.stand_in("scripts/drive", "exit 2")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (1, "24 passed, 1 failed, 4 skipped"))

    def test_a_set_up_that_needs_the_user_ends_the_test_with_its_exit_code(self):
        self.stand_in("scripts/setup", "exit 2")
        self.assertEqual(self.run_test()[0], 2)

    def test_a_missing_dry_device_is_reported_in_one_line_and_the_rest_is_tested(self):
        self.stand_in("scripts/setup", "[ -z \"$1\" ]")
        status, lines = self.run_test()
        self.assertEqual((status, lines[-1]), (0, "124 passed, 0 failed, 5 skipped"))
        self.assertEqual(sum("the dry CUDA device is left out" in line for line in lines), 1)

    def test_the_launches_on_the_dry_device_are_printed(self):
        self.log("7/9 Test\ndry launches: bfloat16, full: 1200 flash_fwd_kernel\nother\n")
        self.assertIn("dry launches: bfloat16, full: 1200 flash_fwd_kernel", self.run_test()[1])

    def test_an_unknown_flag_is_a_usage_error(self):
        self.assertEqual(self.run_test("--quick")[0], 2)


if __name__ == "__main__":
    unittest.main()
