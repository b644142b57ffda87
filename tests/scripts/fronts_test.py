"""The plane on which scripts/compare_fronts.py places the plans of both sides."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "harness" / "python")]
from fronts.plane import Point, hypervolume_ratio, reference_of, unmatched  # noqa: E402


def points(*pairs):
    return [Point("", *pair) for pair in pairs]


class PlaneTest(unittest.TestCase):
    # The points are those of tests/policies/search/front/front_test.cpp. (4, 8), (6, 5) and (9, 2) cover 12, 12 and 3
    # of 100. (7, 9) is dominated, and (12, 1) lies beyond the reference.
    def test_hypervolume_adds_up_rectangles(self):
        found = hypervolume_ratio(points((9, 2), (4, 8), (12, 1), (7, 9), (6, 5)), Point("", 10, 10))
        self.assertAlmostEqual(found, 0.27)
        self.assertEqual(hypervolume_ratio([], Point("", 10, 10)), 0)

    def test_reference_is_beyond_the_peak_without_checkpointing_and_the_slowest_of_all(self):
        found = reference_of(Point("", 9, 1), points((5, 3)), points((20, 7)))
        self.assertEqual((found.peak_bytes, found.time_ns), (10, 8))

    def test_a_point_is_matched_by_one_that_is_no_worse_in_both(self):
        found = unmatched(points((4, 4), (4, 3), (3, 4)), points((4, 4)))
        self.assertEqual(found, points((4, 3), (3, 4)))

    def test_a_ten_thousandth_of_the_time_is_no_difference(self):
        mine = points((4, 1_000_000))
        self.assertEqual(unmatched(points((4, 999_901)), mine), [])
        self.assertEqual(len(unmatched(points((4, 999_899)), mine)), 1)


if __name__ == "__main__":
    unittest.main()
