"""scripts/ci_gate_example runs every step, returns the first nonzero exit code, and prints complete CI jobs."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CiGateExampleTest(unittest.TestCase):
    """A checkout whose rematch is a stand-in that records its calls and exits as the test specifies."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_ci_"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/ci_gate_example", self.root / "scripts/ci_gate_example")
        stand_in = self.root / "scripts/rematch"
        stand_in.write_text('#!/bin/bash\necho "$*" >>calls\n'
                            '[[ $1 != run ]] || echo {} >results/ci_cpu.json\n'
                            'code=CODE_$1; exit "${!code:-0}"\n')
        stand_in.chmod(0o755)

    def start(self, *arguments, **codes):
        done = subprocess.run([self.root / "scripts/ci_gate_example", *arguments],
                              env={**os.environ, **codes}, capture_output=True, text=True)
        calls = self.root / "calls"
        called = [line.split()[0] for line in calls.read_text().splitlines()] if calls.exists() else []
        return done.returncode, done.stdout, called

    def test_all_steps_run_and_pass(self):
        code, output, called = self.start("cpu")
        self.assertEqual((code, called), (0, ["run", "gate", "gate", "gate", "render"]))
        self.assertIn("exit code 0: PASS", output)

    def test_a_base_report_is_compared(self):
        self.assertIn("compare", self.start("cpu", "base.json")[2])

    def test_the_first_bad_exit_code_is_returned_and_the_other_steps_still_run(self):
        for codes, expected, word in (({"CODE_gate": "3", "CODE_render": "2"}, 3, "FAIL"),
                                      ({"CODE_gate": "4"}, 4, "INCONCLUSIVE"),
                                      ({"CODE_gate": "4", "CODE_render": "2"}, 2, "correct the job"),
                                      ({"CODE_run": "5", "CODE_gate": "3"}, 5, "out of memory")):
            (self.root / "calls").unlink(missing_ok=True)
            code, output, called = self.start("cpu", **codes)
            self.assertEqual((code, called[-1]), (expected, "render"))
            self.assertIn(word, output)
        code, output, _ = self.start("cpu", "base.json", CODE_compare="6")
        self.assertEqual(code, 6)
        self.assertIn("another environment", output)

    def test_other_arguments_are_a_usage_error(self):
        for arguments in ((), ("tpu",), ("--print",), ("--print", "jenkins"), ("cpu", "a", "b")):
            self.assertEqual(self.start(*arguments)[0], 2)

    def test_the_printed_jobs_call_existing_scripts(self):
        for system, jobs in (("github", ("gate-cpu:", "gate-gpu:", "upload-artifact")),
                             ("gitlab", ("gate-cpu:", "gate-gpu:", "artifacts:"))):
            code, output, _ = self.start("--print", system)
            self.assertEqual(code, 0)
            for part in (*jobs, "scripts/setup cuda", "--preset cuda", "scripts/ci_gate_example cpu"):
                self.assertIn(part, output)
            # Both jobs treat exit code 4, inconclusive, as a warning. GitHub has no setting for an allowed exit code,
            # so its job tests the code.
            warning = {"github": 'if [ "$code" = 4 ]; then echo "::warning::',
                       "gitlab": "allow_failure: {exit_codes: [4]}"}[system]
            self.assertEqual(output.count(warning), 2)
            try:
                import yaml
            except ImportError:
                continue
            document = yaml.safe_load(output)
            self.assertEqual(set(document.get("jobs", document)) & {"gate-cpu", "gate-gpu"},
                             {"gate-cpu", "gate-gpu"})


if __name__ == "__main__":
    unittest.main()
