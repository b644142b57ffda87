"""Every script prints its purpose, and rejects invalid arguments with one line and exit code 2."""

import pathlib
import subprocess
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
# This script only forwards its arguments to the binary, whose own tests check its usage.
HANDED_ON = {"rematch"}


def scripts():
    return [path for path in sorted(SCRIPTS.iterdir())
            if path.is_file() and path.stat().st_mode & 0o100 and path.name not in HANDED_ON]


def run(path, *words):
    # Runs outside the root of the tree, because a script must find the root by itself.
    return subprocess.run([path, *words], cwd=SCRIPTS, capture_output=True, text=True, timeout=60)


class UsageTest(unittest.TestCase):
    def test_help_gives_usage_purpose_and_exit_codes(self):
        self.assertGreater(len(scripts()), 8)
        for path in scripts():
            for flag in ("--help", "-h"):
                with self.subTest(script=path.name, flag=flag):
                    done = run(path, flag)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertRegex(done.stdout, f"(?i)^usage: (scripts/)?{path.name}\\b")
                    self.assertRegex(done.stdout, "(?i)exit codes?[: ]")
                    self.assertNotIn("set -", done.stdout)

    def test_unusable_arguments_are_refused_in_one_line(self):
        cases = [(path, "--nonsense") for path in scripts()]
        cases += [(SCRIPTS / name, *words) for name, *words in (
            ("approve_golden.py", "no_such_preset"),
            ("check", "no_such_check"),
            ("ci_gate_example", "tpu"),
            ("ci_gate_example", "--print", "jenkins"),
            ("compare_with_pytorch", "--rounds", "0"),
            ("compare_with_pytorch", "--threads", "two"),
            ("drive", "--runs", "0"),
            ("fuzz", "0"),
            ("make_parity", "--python"),
            ("setup", "tpu"),
            ("test", "--deep", "--deep"),
            ("test_page", "no_such_page.html"),
            ("gpu_queue", "run", "no_such_measurement"))]
        for path, *words in cases:
            with self.subTest(script=path.name, words=words):
                done = run(path, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                lines = done.stderr.strip().splitlines()
                # argparse prints its usage, on one or several lines, before the error message.
                said = [line for line in lines if not line.startswith((" ", "usage: ")) or len(lines) == 1]
                self.assertEqual(len(said), 1, done.stderr)
                self.assertIn(path.name, said[0])


if __name__ == "__main__":
    unittest.main()
