"""Tests the rows of the benchmark table: their verdicts against targets, and the summary."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from benchmarks.rows import Row, summary  # noqa: E402


def row(what, measured, interval, limit, **more):
    return Row("group", what, "x", measured, interval, limit, **more)


class BenchmarkRowsTest(unittest.TestCase):
    def test_a_row_misses_its_target_only_if_its_interval_is_above_it(self):
        self.assertEqual(row("a", 1.0, [0.9, 1.1], 1.0).verdict, "met")
        self.assertEqual(row("a", 1.1, [0.9, 1.3], 1.0).verdict, "open")
        self.assertEqual(row("a", 1.2, [1.1, 1.3], 1.0).verdict, "MISSED")
        self.assertEqual(row("a", 1.0, None, 1.0, strictly=True).verdict, "MISSED")
        self.assertEqual(row("a", 1.0, None, None).verdict, "")

    def test_the_summary_counts_targets_and_names_the_worst_row(self):
        rows = [row("near", 0.98, None, 1.0), row("over", 1.5, [1.4, 1.6], 1.25), row("free", 9.0, None, None)]
        line = summary({"Group": rows, "No targets": [rows[2]]}).splitlines()[2:]
        self.assertEqual(line, ["| Group | 1 of 2 | over | <= 1.25x | 1.500x (1.400 to 1.600) |"])

    def test_the_worst_row_is_the_nearest_to_its_own_target(self):
        rows = [row("half", 5.0, None, 10.0), row("nearest", 0.9, None, 1.0)]
        self.assertIn("| 2 of 2 | nearest |", summary({"Group": rows}))


if __name__ == "__main__":
    unittest.main()
