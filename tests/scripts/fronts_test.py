"""Tests scripts/compare_fronts.py: how it compares rematch's and PyTorch's plans by peak and time, and which saved
modules it tries with torch_remat."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
sys.path[:0] = [str(SCRIPTS), str(ROOT / "harness" / "python")]
from fronts import remat  # noqa: E402
from fronts.measured import OURS, Comparison, Measured, cells, comparison_of, listing, ratios_text, spread_of  # noqa: E402
from fronts.plane import Point, hypervolume_ratio, reference_of, unmatched, with_answers  # noqa: E402


def points(*pairs):
    return [Point("", *pair) for pair in pairs]


class PlaneTest(unittest.TestCase):
    # The points are the same as in tests/policies/search/front/hypervolume_test.cpp. (4, 8), (6, 5) and (9, 2) cover areas of
    # 12, 12 and 3 out of 100. (7, 9) is dominated, and (12, 1) lies beyond the reference.
    def test_hypervolume_is_a_sum_of_rectangles(self):
        found = hypervolume_ratio(points((9, 2), (4, 8), (12, 1), (7, 9), (6, 5)), Point("", 10, 10))
        self.assertAlmostEqual(found, 0.27)
        self.assertEqual(hypervolume_ratio([], Point("", 10, 10)), 0)

    def test_the_reference_is_beyond_the_peak_without_checkpointing_and_the_slowest_point(self):
        found = reference_of(Point("", 9, 1), points((5, 3)), points((20, 7)))
        self.assertEqual((found.peak_bytes, found.time_ns), (10, 8))

    def test_a_point_matches_another_if_it_is_no_worse_in_both(self):
        found = unmatched(points((4, 4), (4, 3), (3, 4)), points((4, 4)))
        self.assertEqual(found, points((4, 3), (3, 4)))

    def test_the_search_answers_the_peak_of_a_point_that_the_front_does_not_match(self):
        front, between, below = [Point("a", 10, 9), Point("b", 20, 5)], Point("x", 15, 7), Point("y", 5, 20)
        answers = {15: Point("c", 14, 6), 5: None}
        answered = with_answers(front, [between, below, Point("z", 30, 6)], answers.pop)
        # The search was asked for plans at the peaks of `between` and `below`. It was not asked for z, because b is no
        # larger and no slower than z.
        self.assertEqual(answers, {})
        self.assertEqual(answered, [*front, Point("c", 14, 6)])
        self.assertEqual(unmatched([between, below], answered), [below])

    def test_a_ten_thousandth_of_the_time_is_not_a_difference(self):
        mine = points((4, 1_000_000))
        self.assertEqual(unmatched(points((4, 999_901)), mine), [])
        self.assertEqual(len(unmatched(points((4, 999_899)), mine)), 1)


def measured(family, peak, median, spread=0, compile_ns=10, predicted=None):
    return Measured(family, f"{family} {peak}", peak, median, spread, compile_ns, predicted)


def compared(ours, theirs, plain=(1000, 100)):
    return Comparison("model", measured("plain", *plain), [measured(OURS, *each) for each in ours],
                      [measured("budget", *each) for each in theirs])


class MeasuredTest(unittest.TestCase):
    def test_the_spread_is_the_median_absolute_deviation(self):
        self.assertEqual(spread_of([10, 12, 11, 900, 9]), 1)

    def test_times_within_two_spreads_of_both_are_equal(self):
        # The spreads are 3 and 2, so times that differ by up to twice the sum of the spreads, 10, are equal.
        for ours, num_ahead in ((110, 0), (111, 1)):
            self.assertEqual(len(compared([(500, ours, 3)], [(500, 100, 2)]).ahead()), num_ahead)

    def test_peaks_within_a_thousandth_are_equal(self):
        for ours, num_ahead in ((500_499, 0), (500_501, 1)):
            self.assertEqual(len(compared([(ours, 100)], [(500_000, 100)], plain=(10**6, 90)).ahead()), num_ahead)

    def test_no_plan_is_ahead_of_the_step_without_checkpointing_if_it_is_larger_and_slower(self):
        self.assertEqual(compared([(500, 150)], [(1000, 101), (400, 200)]).ahead(), [measured("budget", 400, 200)])

    def test_peaks_are_compared_at_equal_step_below_seven_tenths(self):
        # (800, 110) has 0.8 of the peak without checkpointing, and (650, 130) beats (690, 140) in both peak and time.
        found = compared([(300, 132), (200, 150)], [(800, 110), (690, 140), (650, 130), (600, 135), (500, 160)])
        self.assertEqual([each.peak_bytes for each in found.low_points()], [650, 600, 500])
        self.assertEqual(found.peak_ratios(), [None, 300 / 600, 200 / 500])

    def test_ratios_as_text(self):
        self.assertEqual(ratios_text([0.5, 0.75]), "0.50 to 0.75")
        self.assertEqual(ratios_text([0.5, None]), "0.50 to 0.50, no equally fast plan for 1 of 2")
        self.assertEqual(ratios_text([None]), "no equally fast plan for 1 of 1")
        self.assertEqual(ratios_text([]), "PyTorch has no such plan")

    def test_hypervolume_is_a_ratio_of_both_sides(self):
        # The reference is (1001, 201). rematch's point covers 501 x 51, and PyTorch's covers 301 x 51. Both also have
        # the point (1000, 100), which adds an area of 1 x 50.
        found = compared([(500, 150)], [(700, 150), (999, 200)])
        self.assertAlmostEqual(found.ratio(), (501 * 51 + 50) / (301 * 51 + 50))

    def test_the_compile_time_is_compared_with_memory_budgets(self):
        found = compared([(500, 150, 0, 24), (400, 150, 0, 26)], [(700, 150, 0, 20)])
        found.theirs.append(measured("full", 600, 150, compile_ns=1))
        self.assertEqual(found.compile_ratio(), 25 / 20)

    def test_predicted_times_order_the_plans_that_differ_beyond_noise(self):
        # 100 and 103 are equal within noise. 90 and 100 have the predicted order, 90 and 103 do not. A plan without a
        # prediction does not count.
        plans = [dataclasses.replace(measured(OURS, 500, median, 1), predicted_added_ns=added)
                 for median, added in ((90, 5), (100, 6), (103, 4), (200, None))]
        found = Comparison("model", measured("plain", 1000, 100), plans, [])
        self.assertEqual(found.pairs_in_order(), (1, 2))

    def test_a_document_becomes_a_row_and_a_listing(self):
        fields = ("family", "name", "peak_bytes", "median_ns", "spread_ns", "compile_ns", "predicted_peak_bytes")
        mib = 2**20
        points = [("plain", "no checkpointing", 10 * mib, 10**6, 0, 20, None), (OURS, "budget 5 MiB", 4 * mib, 11 * 10**5, 0, 22, 5 * mib),
                  ("budget", "memory budget 0", 3 * mib, 12 * 10**5, 0, 20, None)]
        found = comparison_of({"model": "llama", "points": [dict(zip(fields, each)) for each in points],
                               "failed": {"full": "no graph"}})
        model, plain, ours, theirs, _, ahead, ratios, compiling, predicted, pairs = cells(found)
        self.assertEqual((model, plain, ours, theirs), ("llama", "10.00 MiB", "4.00 MiB", "3.00 MiB"))
        self.assertEqual((ahead, ratios, compiling, predicted), ("1 of 1", "1.33 to 1.33", "1.10", "0.80 to 0.80"))
        self.assertEqual(pairs, "equal within noise")
        self.assertIn("3.00 MiB      1.2 +- 0.0 ms  budget: memory budget 0  ahead of ours", listing(found))
        self.assertIn("did not run: full: no graph", listing(found))

    def test_flags_of_compiled_models_alone_are_refused(self):
        done = subprocess.run([sys.executable, "-B", SCRIPTS / "compare_fronts.py", "--backend", "aot_eager"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "compare_fronts.py: --backend, --rounds and --folder require --compiled\n"))


class Dropout:
    """Stands in for a module. It has children, and at most one parameter."""

    def __init__(self, children=(), num_parameters=1):
        self.children, self.num_parameters = dict(children), num_parameters

    def named_children(self):
        return self.children.items()

    def parameters(self):
        return iter(range(self.num_parameters))

    def forward(self, words):
        for child in self.children.values():
            words = child.forward(words)
        return words


class Module(Dropout):
    pass


def layer(*names, without_parameters=()):
    return Module({name: Module(num_parameters=0 if name in without_parameters else 1) for name in names})


def stand_in_for_torch_remat(said):
    def region(function, name, *, recompute):
        return lambda *inputs: said.append(f"{'recompute' if recompute else 'save'} {name}") or function(*inputs)

    def checkpoint(*, region_name, recompute_state_hooks):
        return lambda function: lambda *inputs: said.append(f"enter {recompute_state_hooks}") or function(*inputs)

    return types.SimpleNamespace(region=region, checkpoint=checkpoint,
                                 recompute_needs_tensor=lambda *tensors: said.append(f"need {', '.join(tensors)}"))


class RematTest(unittest.TestCase):
    def test_modules_of_a_layer_are_saved_or_recomputed_in_every_combination(self):
        layers = [layer("attn", "ff"), layer("attn", "ff")]
        layers[0].children["drop"] = Dropout()
        names = [name for _, name, _ in remat.remat_offers(None, {"layers": layers}, ())]
        kept = ["nothing", "attn", "ff", "attn, ff"]
        self.assertEqual(names, [f"torch_remat, saved: {saved}{where}" for saved in kept
                                 for where in ("", ", every second layer")])

    def test_twins_share_a_choice_and_modules_without_parameters_are_left_out_first(self):
        self.assertEqual(remat.choices([layer("norm", "norm_context", "ff", "ff_context")]), ["norm", "ff"])
        self.assertEqual(remat.choices([layer(*"abcdef", without_parameters="ace")]), list("abcdef"))
        self.assertEqual(remat.choices([layer(*"abcdefg", without_parameters="ace")]), list("bdfg"))

    def test_a_saved_output_is_announced_and_the_layers_stay_unchanged(self):
        said, of_model = [], [layer("attn", "ff"), layer("attn", "ff")]
        put_on = {name: how for _, name, how in remat.remat_offers(
            stand_in_for_torch_remat(said), {"layers": of_model}, ("hook",))}
        with put_on["torch_remat, saved: attn, every second layer"]():
            for of_list in of_model:
                self.assertEqual(of_list.forward("x"), "x")
        self.assertEqual(said, ["enter ('hook',)", "save attn", "need x", "recompute ff"])
        del said[:]
        with contextlib.suppress(KeyError), put_on["torch_remat, saved: attn"]():
            raise KeyError
        of_model[0].forward("x")
        self.assertEqual(said, [])

    def test_a_missing_torch_remat_is_reported_with_its_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("torch", "transformers", "diffusers"):
                (pathlib.Path(folder) / f"{name}.py").touch()
            done = subprocess.run([sys.executable, "-B", SCRIPTS / "compare_fronts.py"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder})
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        self.assertIn("has no torch_remat: run '", done.stderr)
        self.assertIn("or leave it out with --without-remat", done.stderr)


if __name__ == "__main__":
    unittest.main()
