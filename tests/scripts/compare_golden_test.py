"""Golden files of two machines must agree in counts and bytes. Their bits must agree only if their fingerprints do."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = {
    "model": "llama_small",
    "fingerprint": {"threads": "1"},
    "gradient_hashes": {"embed.weight": "ab"},
    "policies": {"full": {"loss_bits": "0x1", "executed_ops": {"aten::mm": 3}, "peak_bytes": 5}},
}


def compare(old, new):
    """Returns the exit code and output for one golden file in each of two folders. None stands for a missing file."""
    with tempfile.TemporaryDirectory() as folder:
        for name, golden in (("old", old), ("new", new)):
            (pathlib.Path(folder) / name).mkdir()
            if golden is not None:
                (pathlib.Path(folder) / name / "one.json").write_text(json.dumps(golden))
        command = [sys.executable, ROOT / "tests/parity/compare_golden.py"]
        done = subprocess.run(
            [*command, f"{folder}/old", f"{folder}/new"], capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr


class CompareGoldenTest(unittest.TestCase):
    def setUp(self):
        self.other = copy.deepcopy(GOLDEN)

    def test_equal_files_are_equal(self):
        self.assertEqual(compare(GOLDEN, self.other), (0, "one.json: equal (bits too)\n"))

    def test_a_different_count_is_named(self):
        self.other["policies"]["full"]["executed_ops"]["aten::mm"] = 4
        code, output = compare(GOLDEN, self.other)
        self.assertEqual(code, 1)
        self.assertIn("policies.full.executed_ops.aten::mm: 3 became 4", output)

    def test_different_bits_count_only_for_equal_fingerprints(self):
        self.other["gradient_hashes"]["embed.weight"] = "cd"
        self.other["policies"]["full"]["loss_bits"] = "0x2"
        code, output = compare(GOLDEN, self.other)
        self.assertEqual(code, 1)
        self.assertEqual(output.count("became"), 2)
        self.other["fingerprint"]["threads"] = "2"
        code, output = compare(GOLDEN, self.other)
        self.assertEqual(code, 0)
        self.assertIn("bits not compared", output)

    def test_a_different_peak_counts_for_any_fingerprint(self):
        self.other["fingerprint"]["threads"] = "2"
        self.other["policies"]["full"]["peak_bytes"] = 6
        self.assertEqual(compare(GOLDEN, self.other)[0], 1)

    def test_a_missing_file_and_no_files(self):
        self.assertEqual(compare(GOLDEN, None)[0], 1)
        self.assertEqual(compare(None, None)[0], 2)


if __name__ == "__main__":
    unittest.main()
