"""Tests op times measured on the model's own device, and the plan that rematch.auto chooses from these times."""

import contextlib
import copy
import io
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import first_step_test  # noqa: E402
import torch  # noqa: E402
from follow_test import PLAIN, batches, made  # noqa: E402
from rematch import _progress  # noqa: E402
from rematch.selftest import Model  # noqa: E402
from stack import Stack, batch  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("REMATCH_PYTHON_LIBRARY", "build/dev/harness/python/librematch_python.so"))
BINARY = LIBRARY.parents[1] / "cli" / "rematch"
NUM_STEPS = 3
KINDS = [PLAIN, {"mask": True}]


class AddNoise(torch.autograd.Function):
    """Returns its input. In backward, adds noise that differs for each call, like kernels with nondeterministic
    sums."""

    num_calls = 0

    @staticmethod
    def forward(_, x):
        return x.view_as(x)

    @staticmethod
    def backward(_, gradient):
        AddNoise.num_calls += 1
        return gradient + 1e-3 * AddNoise.num_calls


class Noisy(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return AddNoise.apply(self.norm(x))


@torch.library.custom_op("rematch_test::scale_by_count", mutates_args=())
def scale_by_count(x: torch.Tensor) -> torch.Tensor:
    """An op with hidden state. Resetting num_calls to 0 before a step makes the step repeatable, but the op still
    cannot be recomputed."""
    Counting.num_calls += 1
    return x * (1 + 0.1 * Counting.num_calls)


scale_by_count.register_fake(torch.empty_like)
scale_by_count.register_autograd(lambda _, gradient: gradient)


class Counting(torch.nn.Module):
    num_calls = 0

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return scale_by_count(self.norm(x))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Model()
        self.x = torch.randn(256, 32)

    def step(self):
        return self.model(self.x)

    def trace(self):
        return rematch.trace(self.model, self.step)


class ProfileTest(Case):
    def test_every_op_has_a_time_and_equal_layers_have_equal_times(self):
        trace = self.trace()
        profile = rematch.profile(self.model, self.step, trace, num_steps=NUM_STEPS)
        self.assertEqual((profile["source"], profile["device"], profile["num_steps"]), ("measured", "cpu", NUM_STEPS))
        spans = profile["forward"]["spans"]
        times = [time for each in spans for time in profile["forward"]["types"][each]["times_ns"]]
        self.assertEqual(len(times), sum(len(trace["types"][each["type"]]["ops"]) for each in trace["spans"]))
        self.assertTrue(all(time > 0 for time in times))
        self.assertLess(len(profile["forward"]["types"]), len(spans))

    def test_an_opaque_call_has_the_time_of_the_whole_call(self):
        def slow(x):
            time.sleep(0.002)
            return torch.tanh(x) * 2

        for layer in self.model.layers:
            layer.feed_forward[1].forward = rematch.opaque(slow)
        trace = self.trace()
        profile = rematch.profile(self.model, self.step, trace, num_steps=NUM_STEPS)
        names = [op["name"] for each in trace["spans"] for op in trace["types"][each["type"]]["ops"]]
        times = [time for each in profile["forward"]["spans"] for time in profile["forward"]["types"][each]["times_ns"]]
        calls = [time for name, time in zip(names, times, strict=True) if name == "rematch::opaque"]
        self.assertEqual(len(calls), len(self.model.layers))
        self.assertTrue(all(time >= 2_000_000 for time in calls), calls)
        self.assertNotIn("aten::tanh", names)

    def test_files_are_valid(self):
        if not BINARY.exists():
            self.skipTest("rematch is not built beside the library")
        trace = self.trace()
        profile = rematch.profile(self.model, self.step, trace, num_steps=NUM_STEPS)
        front = rematch.search(trace, profile=profile, optimizer="none", points=4)
        with tempfile.TemporaryDirectory() as folder:
            for name, document in (("trace", trace), ("profile", profile), ("front", front)):
                path = pathlib.Path(folder) / f"{name}.json"
                path.write_text(json.dumps(document), encoding="utf-8")
                done = subprocess.run([BINARY, "validate", path], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"rematch.{name}/1", done.stdout)

    def test_a_step_with_other_ops_than_the_trace(self):
        trace = self.trace()
        self.model.layers[2].feed_forward[1] = torch.nn.ReLU()
        with self.assertRaisesRegex(rematch.RematchError, "aten::gelu") as error:
            rematch.profile(self.model, self.step, trace, num_steps=NUM_STEPS)
        self.assertNotIn("\n", str(error.exception))
        self.step().backward()  # this step must no longer be watched

    def test_a_device_whose_ops_are_not_timed(self):
        with self.assertRaisesRegex(rematch.RematchError, "measured on the CPU or a GPU, but the model is on meta"):
            rematch.profile(Model().to("meta"), self.step, {}, num_steps=NUM_STEPS)


LINKS = pathlib.Path(__file__).resolve().parents[2] / "reports" / "fixtures" / "released" / "links-1.0.json"


class SearchOptionsTest(Case):
    """Tests the options of rematch.search, which have the names of the command line's flags."""

    def search(self, **options):
        return rematch.search(self.trace(), **{"device": "h100", "baselines": (), **options})

    def test_a_budget_beside_parameters_and_state(self):
        trace = self.trace()
        held = rematch.predict(trace, rematch.resolve(trace, "none"), optimizer="adamw")["before_bytes"]
        front = self.search(free="1MiB")
        self.assertEqual(front["budget_bytes"], held + 2**20)
        self.assertEqual(front["answer"], self.search(budget=held + 2**20)["answer"])
        with self.assertRaisesRegex(ValueError, "give only one"):
            self.search(free="1MiB", budget="1MiB")

    def test_options_on_the_hull_give_no_better_plans(self):
        def points_of(front):
            return [(point["predicted_peak_allocated_bytes"], point["predicted_step_time_ns"]) for point in front["points"]]

        every, on_hull = (points_of(self.search(points=1000, hull=hull)) for hull in (False, True))
        self.assertLess(len(on_hull), len(every))
        for peak, time in on_hull:
            self.assertTrue(any(other[0] <= peak and other[1] <= time for other in every))

    def test_plans_that_offload(self):
        def offloads(front):
            return any(op["treatment"] == "offload" for point in front["points"] for kind in point["plan"]["types"]
                       for op in kind["ops"]) or any(
                           region.get("offload_inputs") for point in front["points"] for region in point["plan"]["types"])

        self.assertFalse(offloads(self.search()))
        fast, slow = self.search(offload=True, link_rate="100TB/s"), self.search(offload=True, link_rate=1000)
        self.assertTrue(offloads(fast))
        self.assertLess(fast["points"][0]["predicted_step_time_ns"], self.search()["points"][0]["predicted_step_time_ns"])
        self.assertEqual(self.search(offload=True)["host_link"]["source"], "data sheet of h100")
        self.assertEqual(fast["host_link"]["to_host_bytes_per_second"], 100e12)
        self.assertEqual(slow["host_link"]["to_host_bytes_per_second"], 1000)

    def test_links(self):
        links = json.loads(LINKS.read_text(encoding="utf-8"))
        for given in (links, LINKS, str(LINKS)):
            self.assertIn("links of", self.search(offload=True, links=given)["host_link"]["source"])
        # The link profile has no effect, because the step has no collectives.
        self.assertEqual(self.search(links=links)["points"], self.search()["points"])

    def test_options_that_conflict(self):
        for options, words in (({"link_rate": "1GB/s"}, "with offload=True"), ({"link_rate": "1GB", "offload": True}, "'25GB/s'"),
                               ({"link_rate": "1GB/s", "offload": True, "links": LINKS}, "without links"),
                               ({"links": LINKS, "device": None, "profile": {}}, "device='h100'")):
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, words):
                self.search(**options)

    def test_a_searched_plan_that_offloads_runs(self):
        with contextlib.redirect_stderr(io.StringIO()) as words:
            lowest = self.search(offload=True, link_rate="100TB/s", optimizer="none")["points"][0]
            checkpoint = rematch.auto(self.model, self.step, budget=lowest["predicted_peak_allocated_bytes"], device="h100",
                                      optimizer="none", offload=True, link_rate="100TB/s")
            free = rematch.auto(self.model, self.step, free="1GiB", device="h100")
        self.assertIn("bits equal", words.getvalue())
        self.assertEqual(checkpoint.plan, lowest["plan"])
        self.assertGreater(free.front["budget_bytes"], 2**30)
        for options in ({}, {"free": "1GiB", "budget": "1GiB"}):
            with self.assertRaisesRegex(ValueError, "auto needs either budget='24GiB' or free='16GiB'"):
                rematch.auto(self.model, self.step, **options)


class SimpleTest(Case):
    """Tests searches with simple=True, which also return the best simple plan."""

    def search(self, trace, **options):
        return rematch.search(trace, device="h100", baselines=(), optimizer="none", simple=True, **options)

    def test_it_stands_beside_the_front(self):
        trace = self.trace()
        limit = rematch.predict(trace, rematch.resolve(trace, "save_mm"), "whole_region")["peak_bytes"]
        self.assertIsNone(rematch.search(trace, device="h100", baselines=()).get("simple"))
        front = self.search(trace, budget=limit)
        simple = front["simple"]
        predicted = rematch.predict(trace, simple["plan"], "whole_region")
        self.assertLessEqual(predicted["peak_bytes"], limit)
        self.assertEqual(predicted["peak_bytes"], simple["predicted_peak_allocated_bytes"])
        fastest = self.search(trace, budget=simple["predicted_peak_allocated_bytes"])["answer"]
        self.assertEqual(fastest["predicted_step_time_ns"] + simple["more_step_time_ns"], simple["predicted_step_time_ns"])
        found = rematch.check(self.model, self.step, rematch.Checkpoint(simple["plan"], "whole_region"))
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], simple["predicted_recomputed_ops"])

    def test_its_file_and_that_of_the_command_line(self):
        if not BINARY.exists():
            self.skipTest("rematch is not built beside the library")
        trace = self.trace()
        with tempfile.TemporaryDirectory() as folder:
            file, output = pathlib.Path(folder) / "trace.json", pathlib.Path(folder) / "front.json"
            file.write_text(json.dumps(trace), encoding="utf-8")
            subprocess.run([BINARY, "search", "--trace", file, "--device", "h100", "--optimizer", "none", "--simple", "--budget",
                            "1200KiB", "-o", output], capture_output=True, check=True)
            plan = rematch.Checkpoint(f"{output}#simple", "whole_region").plan
            self.assertEqual(plan, self.search(trace, budget="1200KiB")["simple"]["plan"])
            output.write_text(json.dumps(rematch.search(trace, device="h100")), encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "has no simple plan; search with simple=True"):
                rematch.Checkpoint(f"{output}#simple")

    def test_auto_runs_it(self):
        trace = self.trace()
        front = self.search(trace, budget="1200KiB")
        with contextlib.redirect_stderr(io.StringIO()) as words:
            checkpoint = rematch.auto(self.model, self.step, budget="1200KiB", device="h100", optimizer="none", simple=True)
        self.assertEqual((checkpoint.plan, checkpoint.schedule), (front["simple"]["plan"], "whole_region"))
        self.assertIn("ran the plan once: bits equal", words.getvalue())
        self.assertIn(front["simple"]["saves"], words.getvalue())
        lowest = self.search(trace, budget=1)["simple"]["predicted_peak_allocated_bytes"]
        words = f"no simple plan fits into .*; the smallest peak is {lowest / 2**10:.2f} KiB"
        with self.assertRaisesRegex(rematch.PlanError, words), contextlib.redirect_stderr(io.StringIO()):
            rematch.auto(self.model, self.step, budget=lowest - 1, device="h100", optimizer="none", simple=True)

    def test_auto_makes_one_plan_of_several_steps(self):
        model, limit = made(KINDS), 30000
        steps = [lambda kind=kind: model(batches()[0], kind) for kind in range(len(KINDS))]
        with contextlib.redirect_stderr(io.StringIO()):
            checkpoint = rematch.auto(model, steps, budget=limit, device="h100", optimizer="none", simple=True)
        for each in rematch.predict(rematch.trace(model, steps), checkpoint.plan, "whole_region"):
            self.assertLessEqual(each["peak_bytes"], limit)
        for step in steps:
            self.assertTrue(rematch.check(model, step, checkpoint)["bits_equal"])


class AutoTest(Case):
    def auto(self, budget, **options):
        words = io.StringIO()
        with contextlib.redirect_stderr(words):
            checkpoint = rematch.auto(self.model, self.step, budget=budget, optimizer="none", **options)
        return checkpoint, words.getvalue()

    def test_a_plan_by_measured_times_that_fits_and_runs(self):
        trace = self.trace()
        plain = rematch.predict(trace, rematch.resolve(trace, "none"))["peak_bytes"]
        budget = int(plain * 0.75)
        for schedule in ("whole_region", "on_demand"):
            with self.subTest(schedule=schedule):
                state = torch.get_rng_state()
                checkpoint, words = self.auto(budget, schedule=schedule)
                self.assertTrue(torch.equal(state, torch.get_rng_state()))
                self.assertEqual(checkpoint.front["time_source"], "measured")
                predicted = rematch.predict(trace, checkpoint.plan, schedule)
                self.assertLessEqual(predicted["peak_bytes"], budget)
                found = rematch.check(self.model, self.step, checkpoint)
                self.assertTrue(found["bits_equal"])
                self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], predicted["recomputed_ops"])
                self.assertLess(found["checkpointed"]["peak_bytes"], found["plain"]["peak_bytes"])
                self.assertIn("based on measured times (cpu); chosen for", words)
                self.assertIn(f"ran the plan once: bits equal, {predicted['recomputed_ops']} ops recomputed", words)
                self.assertIn("| with the plan |", str(found))

    def test_a_model_that_creates_state_in_its_first_step(self):
        for kind in (first_step_test.Counting, first_step_test.Initialized, first_step_test.Rotated):
            with self.subTest(kind=kind.__name__):
                self.model, self.x = Stack(kind, num_layers=2), batch(length=8)
                other = copy.deepcopy(self.model)
                trace = rematch.trace(other, lambda other=other: other(self.x))
                budget = int(0.9 * rematch.predict(trace, rematch.resolve(trace, "none"))["peak_bytes"])
                checkpoint, words = self.auto(budget)
                self.assertIn("ran the plan once: bits equal", words)
                self.assertTrue(rematch.check(self.model, self.step, checkpoint)["bits_equal"])

    def test_times_of_a_data_sheet(self):
        checkpoint, words = self.auto("1GiB", device="h100")
        self.assertEqual((checkpoint.front["time_source"], checkpoint.plan["regions"]), ("roofline", []))
        self.assertIn("nothing needs checkpointing", words)

    def test_a_budget_without_a_fitting_plan(self):
        lowest = rematch.search(self.trace(), device="h100", optimizer="none")["points"][0]
        budget = lowest["predicted_peak_allocated_bytes"]
        self.auto(budget, device="h100")
        with self.assertRaisesRegex(rematch.RematchError, "no plan fits into .*; the smallest peak is") as error:
            self.auto(budget - 1, device="h100")
        self.assertNotIn("\n", str(error.exception))

    def test_malformed_budgets_are_refused(self):
        for budget in ("24", "24 gb", "-1GiB", "", "1e3GiB", "\u0663GiB", None, 24.5, True):
            with self.subTest(budget=budget), self.assertRaisesRegex(ValueError, "is not a size; write it as '24GiB'"):
                rematch.auto(self.model, lambda: self.fail("the budget is read first"), budget=budget)
        for budget in (0, -5, "0GiB"):
            with self.subTest(budget=budget), self.assertRaisesRegex(ValueError, "must be at least 1 B"):
                rematch.auto(self.model, self.step, budget=budget)

    def test_layers_that_the_caller_names(self):
        class Flat(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Model(num_layers=1).layers[0], Model(num_layers=1).layers[0]

            def forward(self, x):
                return self.second(self.first(x)).square().mean()

        self.model = Flat()
        blocks = {"parts": [self.model.first, self.model.second]}
        trace = rematch.trace(self.model, self.step, blocks=blocks)
        budget = rematch.predict(trace, rematch.resolve(trace, "full"))["peak_bytes"]
        checkpoint, _ = self.auto(budget, device="h100", blocks=blocks)
        found = rematch.check(self.model, self.step, checkpoint, blocks=blocks)
        self.assertTrue(found["bits_equal"])
        self.assertGreater(found["checkpointed"]["executed_ops"]["recompute"], 0)

    def test_a_step_with_another_batch_each_time(self):
        def step():
            self.x = self.x + 1
            return self.model(self.x)

        self.step = step
        with self.assertWarnsRegex(UserWarning, "differ, first in the loss.*step\\(\\) must run the same batch each time"):
            self.auto("1200KiB", device="h100")

    def test_a_step_whose_backward_is_not_repeatable(self):
        self.model.layers[1].norm = Noisy(self.model.layers[1].norm)
        said = "differ, first in the gradient of layers.0.norm.weight.*torch.use_deterministic_algorithms\\(True\\)"
        with self.assertWarnsRegex(UserWarning, said) as warned:
            checkpoint, words = self.auto("1200KiB", device="h100")
        self.assertNotIn("\n", str(warned.warning))
        self.assertIn("bits not compared, as the step is not repeatable", words)
        with self.assertWarnsRegex(UserWarning, said) as warned:
            found = rematch.check(self.model, self.step, checkpoint)
        self.assertEqual(warned.filename, __file__)
        self.assertEqual((found["repeatable"], found["bits_equal"]), (False, None))
        self.assertEqual(found["first_difference"], "the gradient of layers.0.norm.weight")
        self.assertGreater(found["checkpointed"]["executed_ops"]["recompute"], 0)
        self.assertIn("| the step is not repeatable |", str(found))

    def test_a_plan_that_changes_bits(self):
        self.model.layers[1].norm = Counting(self.model.layers[1].norm)

        def step():
            Counting.num_calls = 0
            return self.model(self.x)

        self.step = step
        trace = self.trace()
        checkpoint = rematch.Checkpoint(rematch.resolve(trace, "full"))
        found = rematch.check(self.model, self.step, checkpoint)
        self.assertEqual((found["repeatable"], found["bits_equal"]), (True, False))
        self.assertEqual(found["first_difference"], "the gradient of layers.0.norm.weight")
        self.assertEqual({each["op"] for each in found["recompute_differences"]}, {"rematch_test::scale_by_count"})
        self.assertEqual([(each["region"], each["scope"]) for each in found["recompute_differences"]],
                         [("layers.1", "layers.1.norm")])
        budget = rematch.predict(trace, checkpoint.plan)["peak_bytes"] + 64 * 1024
        checkpoint, words = self.auto(budget, device="h100")
        self.assertRegex(words, "region layers.1, rematch_test::scale_by_count in layers.1.norm, gave different results .* It is kept")
        found = rematch.check(self.model, self.step, checkpoint)
        self.assertTrue(found["bits_equal"])
        self.assertGreater(found["checkpointed"]["executed_ops"]["recompute"], 0)


class PageTest(Case):
    def test_a_front_as_a_page(self):
        front = rematch.search(self.trace(), device="h100", optimizer="none", points=4)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "front.html"
            rematch.render(front, path)
            page = path.read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>"))
        for baseline in front["baselines"]:
            self.assertIn(baseline["policy"], page)


# Ten steps of two thirds of a second each. Progress is printed from the fourth step on.
SLOW_PROFILE = """
import time, torch, rematch
from rematch.selftest import Model
model, x = Model(), torch.randn(4, 32)

def step():
    time.sleep(0.6)
    return model(x)

rematch.profile(model, step, rematch.trace(model, lambda: model(x)))
"""


class ProgressTest(unittest.TestCase):
    def test_op_times_show_a_progress_bar_on_a_terminal(self):
        terminal, stderr = pty.openpty()
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen([sys.executable, "-c", SLOW_PROFILE], stderr=stderr, env=environment) as process:
            os.close(stderr)
            said = b""
            with contextlib.suppress(OSError):  # os.read fails after the child has closed its end of the terminal
                while part := os.read(terminal, 4096):
                    said += part
        os.close(terminal)
        self.assertEqual(process.returncode, 0, said)
        self.assertRegex(said.decode(), r"\[#+\.+\] measuring op times: step [4-9] of 10, about \d s left")

    def test_only_slow_work_is_announced(self):
        said = threading.Event()
        with unittest.mock.patch.object(_progress, "say", lambda text: said.set()):
            with unittest.mock.patch.object(_progress, "SILENT_SECONDS", 3600), _progress.announced("nothing"):
                pass
            self.assertFalse(said.is_set())
            with unittest.mock.patch.object(_progress, "SILENT_SECONDS", 0), _progress.announced("waiting"):
                said.wait()


if __name__ == "__main__":
    unittest.main()
