"""Tests compiled models under a memory budget: measured peaks, bit-identical results, and rejected inputs. Peaks are
measured with torch's allocator, so they include memory that kernels allocate."""

import contextlib
import copy
import importlib.util
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.compiled.graph_plans import Option, PhasePeaks  # noqa: E402
from rematch.compiled.sequence import step_options, step_peak  # noqa: E402
from rematch.compiled.step_plan import StepPlan  # noqa: E402
from stack import WIDTH, Layer, Stack, batch  # noqa: E402

SCRIPT = pathlib.Path(__file__).with_name("compiled_peaks.py")
MIB = 2**20
BATCH_BYTES = 4 * 64 * 64 * 4  # the batch of model "stack"; only predicted peaks include it


def measured(model, backend, *ratios):
    done = subprocess.run([sys.executable, SCRIPT, model, backend, *map(str, ratios)], capture_output=True, text=True, check=False,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def quietly_compiled(model, step, **keywords):
    """Compiles the model with aot_eager. Returns the messages that are printed."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        rematch.compile(model, step, backend="aot_eager", optimizer="none", **keywords)
    return said.getvalue()


class MeasuredPeaksTest(unittest.TestCase):
    def require_kept(self, rows, tolerance_bytes):
        """Compares measured and predicted peaks. Only predicted peaks include the batch."""
        before = 0
        for row in rows:
            predicted = row["predicted_peak_mib"] * MIB - tolerance_bytes
            self.assertTrue(row["bits"])
            self.assertLessEqual(row["measured_peak_bytes"], row["budget_bytes"])
            self.assertLess(abs(row["measured_peak_bytes"] - predicted), 0.01 * predicted)
            self.assertGreaterEqual(row["measured_peak_bytes"], before)  # rows are sorted by budget
            before = row["measured_peak_bytes"]

    def test_under_inductor(self):
        measured_before = 0
        for row in measured("stack", "inductor", 0.5, 0.8):
            self.assertLessEqual(row["measured_peak_bytes"], row["budget_bytes"])
            self.assertLess(abs(row["measured_peak_bytes"] - row["kernels_peak_bytes"]), 1e-3 * row["measured_peak_bytes"])
            predicted = row["predicted_peak_mib"] * MIB - BATCH_BYTES
            self.assertLess(abs(row["measured_peak_bytes"] - predicted), 0.01 * predicted)
            self.assertGreater(row["measured_peak_bytes"], measured_before)
            measured_before = row["measured_peak_bytes"]

    def test_a_large_vocabulary_needs_less_memory_than_under_pytorchs_budgets(self):
        default, *theirs = (row["measured_peak_bytes"] for row in measured("head", "inductor", *(
            f"torch={budget}" for budget in (1, 0.5, 0.1, 0))))
        every_plan_fits, few_plans_fit = measured("head", "inductor", 9, 0.585)
        for row in (every_plan_fits, few_plans_fit):
            self.assertLess(abs(row["measured_peak_bytes"] / MIB - row["predicted_peak_mib"]), 0.01 * row["predicted_peak_mib"])
        # The fastest plan saves what PyTorch saves by default.
        self.assertLessEqual(every_plan_fits["measured_peak_bytes"], default)
        self.assertLess(few_plans_fit["measured_peak_bytes"], min(theirs))

    def test_of_a_transformer(self):
        too_small, *rows = measured("stack", "aot_eager", 0.2, 0.55, 0.75, 1.1)
        self.assertRegex(too_small["error"], "no plan .* fits into .*; the lowest peak is 2.37 MiB")
        self.require_kept(rows, BATCH_BYTES)

    def test_of_a_loss_that_eager_code_computes(self):
        # Logits and loss take half of the memory. The loss saves probabilities, and backward allocates two gradients.
        self.require_kept(measured("eager_loss", "aot_eager", 0.8, 1.2), 2 * 64 * 8)

    def test_of_layers_that_are_compiled_one_by_one(self):
        # Only the output of the last layer is in memory until backward, and the head's gradient stays to the end.
        self.require_kept(measured("blocks", "aot_eager", 0.5, 0.8), BATCH_BYTES)

    def test_of_attention_with_a_workspace(self):
        self.require_kept(measured("attention", "aot_eager", 0.8, 1.2), 256 * 64 * 4)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_of_a_llama(self):
        self.require_kept(measured("llama", "aot_eager", 0.6, 0.8), 2 * 128 * 8)


class BudgetTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def results_of(self, model, x):
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        loss = model(x)
        loss.backward()
        return [loss.detach()] + [parameter.grad for parameter in model.parameters()]

    def test_dropout_and_another_batch_size(self):
        model = Stack(lambda: Layer(dropout=0.25), 3)
        plain = copy.deepcopy(model)
        plain.compile(backend="aot_eager")
        said = quietly_compiled(model, lambda: model(batch(16)), budget="260KiB")
        self.assertRegex(said, r"compiled plan for 260.00 KiB: search\(\d+\) \(\d+ ops recomputed\)")
        for length in (16, 32):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ignores the warning that the larger batch does not fit
                results = self.results_of(model, batch(length))
            for found, expected in zip(results, self.results_of(plain, batch(length)), strict=True):
                self.assertTrue(torch.equal(found, expected))

    def test_a_graph_that_the_step_did_not_run_gets_the_lowest_peak_if_nothing_fits(self):
        model = Stack(num_layers=2)
        quietly_compiled(model, lambda: model(batch(8)), budget="120KiB")
        with self.assertWarnsRegex(UserWarning, "no plan of the compiled step fits into 120.00 KiB; the lowest peak is"):
            self.results_of(model, batch(64))

    def test_layers_that_are_compiled_one_by_one(self):
        model = Stack(num_layers=4)
        x = batch(16)
        expected = self.results_of(model, x)
        said = quietly_compiled(model, lambda: model(x), budget="200KiB", per_block=True)
        self.assertRegex(said, "2.* ops recomputed")
        self.assertTrue(all(map(torch.equal, self.results_of(model, x), expected)))

    def test_a_model_without_layers_is_one_block(self):
        class Perceptron(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

            def forward(self, x):
                return self.down(torch.nn.functional.gelu(self.up(x)).sin().cos()).square().mean()
        model = Perceptron()
        x = batch(64)
        expected = self.results_of(model, x)
        quietly_compiled(model, lambda: model(x), budget="300KiB")
        self.assertTrue(all(map(torch.equal, self.results_of(model, x), expected)))


def option(held, backward, time, forward=0, name="option"):
    return Option(name, (), False, PhasePeaks(forward, held, backward, 0, 0), time, 0)


class SequenceTest(unittest.TestCase):
    def test_a_graph_that_is_called_twice_holds_twice(self):
        # The backward of the second call needs 25 bytes while the first call still holds 10 bytes.
        self.assertEqual(step_peak([option(10, 25, 0)] * 2), 35)

    def test_the_fastest_options_that_fit_are_chosen(self):
        large, small = option(10, 12, 0, name="large"), option(2, 15, 5, name="small")
        graphs = {"layer": [large, small], "head": [large, small]}
        calls = ["layer", "layer", "head"]
        # With `large` for both graphs, the peak is 10 + 10 + 12 = 32. With `small` for the layers and `large` for the
        # head, it is 17: the head needs 2 + 2 + 12 = 16, and a layer needs 2 + 15 = 17. The opposite choice needs 10 +
        # 10 + 15 = 35.
        for limit, expected in ((32, ["large", "large"]), (20, ["small", "large"]), (5, ["small", "large"])):
            plan = StepPlan(graphs, calls, limit)
            self.assertEqual([plan.chosen["layer"].name, plan.chosen["head"].name], expected, limit)
            self.assertEqual(plan.fits, limit >= 17)

    def test_peaks_of_the_listed_plans_are_apart(self):
        graphs = {"model": [option(0, peak, 1000 - peak) for peak in range(100, 201)]}
        peaks = [plan.peak for plan in step_options(graphs, ["model"], distance=0.05)]
        self.assertEqual((peaks[0], peaks[-1]), (100, 200))
        for lower, higher in zip(peaks, peaks[1:]):
            self.assertLessEqual(1.05 * lower, higher)
        self.assertGreater(len(peaks), 10)  # 1.05 ** 14 is about 2


class KernelsAboveTheBudgetTest(unittest.TestCase):
    """The kernels of a graph may need more memory than its option predicts."""

    OPTIONS = [option(1, peak, 1000 - peak, forward=1, name=str(peak)) for peak in (100, 150, 200, 300)]

    def compiled(self, limit, real_peaks):
        """Compiles a graph until its kernels fit. Returns the plan, and the names of the options that were tried."""
        plan, tried = StepPlan({"model": self.OPTIONS}, ["model"], limit), []
        while True:
            name = plan.chosen["model"].name
            tried.append(name)
            if plan.note_kernels("model", is_backward=False, peak=1) \
                    and plan.note_kernels("model", is_backward=True, peak=real_peaks.get(name, int(name))):
                return plan, tried

    def test_the_next_smaller_plan_is_compiled(self):
        plan, tried = self.compiled(250, {"200": 251, "150": 260})
        self.assertEqual(tried, ["200", "150", "100"])
        self.assertEqual((plan.peak(), plan.excess), (100, 0))

    def test_kernels_that_need_less_are_noted(self):
        plan, tried = self.compiled(250, {"200": 190})
        self.assertEqual((tried, plan.peak()), (["200"], 190))

    def test_the_smallest_plan_is_compiled_with_its_excess(self):
        plan, tried = self.compiled(120, {"100": 130})
        self.assertEqual((tried, plan.peak(), plan.excess), (["100"], 130, 10))

    def test_compiled_graphs_keep_their_options(self):
        options = [option(held, held + 10, 100 - held, name=str(held)) for held in (10, 20, 30)]
        plan = StepPlan({"first": options, "last": options}, ["first", "last"], 65)
        first, last = plan.chosen["first"].name, plan.chosen["last"].name
        for is_backward, peak in ((False, 0), (True, int(first) + 10)):
            self.assertTrue(plan.note_kernels("first", is_backward=is_backward, peak=peak))
        self.assertTrue(plan.note_kernels("last", is_backward=False, peak=0))
        self.assertFalse(plan.note_kernels("last", is_backward=True, peak=66 - int(first)))
        self.assertEqual(plan.chosen["first"].name, first)
        self.assertLess(int(plan.chosen["last"].name), int(last))

    def test_a_lower_budget_never_gives_a_higher_peak(self):
        """Real peaks differ from predicted peaks by up to half of the distance in the list."""
        rng = random.Random(0)
        for _ in range(200):
            options = [option(1, rng.randint(500, 1500), rng.randint(1, 1000), name=str(number)) for number in range(12)]
            real = {each.name: round(each.peaks.backward * (1 + rng.uniform(-0.009, 0.009))) for each in options}
            before = 0
            for limit in range(400, 1600, 7):
                plan = StepPlan({"model": options}, ["model"], limit)
                if not plan.fits:
                    continue
                while not plan.note_kernels("model", is_backward=True, peak=real[plan.chosen["model"].name]):
                    pass
                if plan.excess == 0:
                    self.assertLessEqual(plan.peak(), limit)
                    self.assertGreaterEqual(plan.peak(), before)
                    before = plan.peak()


if __name__ == "__main__":
    unittest.main()
