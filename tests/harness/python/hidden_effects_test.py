"""Tests plans for code with hidden effects. The plans are made in one process and used in another."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

HERE = pathlib.Path(__file__).parent
FUNCTION, WRITER, NOISY = "hidden_model:Rotary", "rematch_hidden::scale", "rematch_hidden::counted"
EFFECTS = {"opaque_functions": [{"name": FUNCTION, "overwrites": [1]}],
           "silent_writers": [{"op": WRITER, "arguments": [1]}], "kept_ops": [NOISY]}

MAKE_BY_HAND = """
import hidden_model, json, pathlib, rematch
rematch.keep_op("rematch_hidden::counted")
steps = [hidden_model.step, lambda: hidden_model.step(hidden_model.MASK)]
traces = rematch.trace(hidden_model.MODEL, steps)
fronts = rematch.search(traces, device="h100", baselines=())
documents = {
    "trace": traces[0], "full": rematch.resolve(traces[0], "full"), "save_mm": rematch.resolve(traces[0], "save_mm"),
    "front": fronts[0],
    "combined": rematch.combine(traces, [rematch.resolve(traces[0], "full"), rematch.resolve(traces[1], "save_mm")])}
for name, document in documents.items():
    pathlib.Path(f"{name}.json").write_text(json.dumps(document))
"""

MAKE_BY_AUTO = """
import hidden_model, json, pathlib, rematch
fits = rematch.predict(trace := rematch.trace(hidden_model.MODEL, hidden_model.step), rematch.resolve(trace, "none"))
checkpoint = rematch.auto(hidden_model.MODEL, hidden_model.step, budget=fits["peak_bytes"] - 1, device="h100", optimizer="none")
pathlib.Path("auto.json").write_text(json.dumps(checkpoint.plan))
"""

USE = """
import sys, hidden_model, json, pathlib, rematch
plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
if "points" in plan:
    plan = plan["points"][0]["plan"]
for name in sys.argv[2:]:
    del plan[name]
masks = [None, hidden_model.MASK] if "other_shapes" in plan else [None]
print(json.dumps([hidden_model.differences(plan, mask) for mask in masks]))
"""


def python(program, folder, *arguments, on_warning="error"):
    """Runs the program in the folder in a new process, and returns the last line that it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-W", on_warning, "-c", program, *arguments], cwd=folder, env=environment, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.strip().rpartition("\n")[2]


class ProcessesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        python(MAKE_BY_HAND, cls.folder)

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def effects_of(self, document):
        return {name: document[name] for name in EFFECTS if name in document}

    def test_traces_and_plans_name_the_hidden_effects_of_the_step(self):
        for name in ("trace.json", "full.json", "save_mm.json", "combined.json"):
            self.assertEqual(self.effects_of(self.read(name)), EFFECTS, name)
        for point in self.read("front.json")["points"]:
            self.assertEqual(self.effects_of(point["plan"]), EFFECTS)
        self.assertNotIn("kept_ops", self.read("combined.json")["other_shapes"][0])

    def test_a_plan_of_another_process_keeps_the_bits(self):
        for name in ("full.json", "save_mm.json", "front.json"):
            self.assertEqual(json.loads(python(USE, self.folder, name)), [[]], name)
        self.assertEqual(json.loads(python(USE, self.folder, "combined.json")), [[], []])

    def test_each_list_is_needed(self):
        for name in EFFECTS:
            [differing] = json.loads(python(USE, self.folder, "full.json", name, on_warning="ignore"))
            self.assertTrue(differing, name)

    def test_auto_finds_all_hidden_effects(self):
        python(MAKE_BY_AUTO, self.folder)
        self.assertEqual(self.effects_of(self.read("auto.json")), EFFECTS)
        self.assertEqual(json.loads(python(USE, self.folder, "auto.json")), [[]])


class NamesTest(unittest.TestCase):
    """Tests plans that name functions and ops that this process may lack."""

    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = Model(num_layers=2), torch.randn(4, 32)
        self.plan = rematch.resolve(rematch.trace(self.model, self.step), "full")

    def step(self):
        return self.model(self.x)

    def warnings_of(self, plan, num_steps=2, before_second_step=lambda: None):
        checkpoint = rematch.Checkpoint(self.plan | plan)
        with warnings.catch_warnings(record=True) as said, rematch.scopes(self.model, checkpoint):
            warnings.simplefilter("always")
            for number in range(num_steps):
                if number == 1:
                    before_second_step()
                with rematch.recording(checkpoint):
                    loss = self.step()
                loss.backward()
        return [str(each.message) for each in said]

    def test_a_step_without_hidden_effects_has_no_lists(self):
        self.assertFalse(set(EFFECTS) & set(self.plan))

    def test_a_name_that_its_module_lacks_is_reported_once(self):
        module = types.ModuleType("rematch_hidden_names")
        module.Known = type("Known", (torch.autograd.Function,), {})
        sys.modules["rematch_hidden_names"] = module
        self.addCleanup(sys.modules.pop, "rematch_hidden_names")
        for plan, expected in (
                ({"opaque_functions": [{"name": "rematch_hidden_names:Known", "overwrites": [0]}]}, None),
                ({"opaque_functions": [{"name": "rematch_hidden_names:made.<locals>.Known", "overwrites": [0]}]}, None),
                ({"opaque_functions": [{"name": "rematch_hidden_names:Gone", "overwrites": None}]},
                 "autograd function rematch_hidden_names:Gone, and rematch_hidden_names has no such function"),
                ({"opaque_functions": [{"name": "torch:Tensor", "overwrites": []}]}, "torch has no such function"),
                ({"kept_ops": ["aten::gone"]}, "op aten::gone, and aten has no such op"),
                ({"kept_ops": ["aten::bernoulli"]}, None),
                ({"silent_writers": [{"op": "aten::cudnn_is_acceptable", "arguments": [7]}]}, "argument 7, but the op has no such"),
                ({"silent_writers": [{"op": "rematch_nowhere::op", "arguments": [7]}]}, None),
                ({"opaque_functions": [{"name": "rematch_nowhere:Gone", "overwrites": []}]}, None)):
            with self.subTest(plan=plan):
                said = self.warnings_of(plan)
                self.assertEqual(len(said), 0 if expected is None else 1)
                for line in said:
                    self.assertIn(expected, line)
                    self.assertNotIn("\n", line)

    def test_a_module_that_is_imported_between_steps_is_checked(self):
        self.addCleanup(sys.modules.pop, "rematch_hidden_late")
        said = self.warnings_of({"opaque_functions": [{"name": "rematch_hidden_late:Gone", "overwrites": []}]}, num_steps=3,
                                before_second_step=lambda: sys.modules.setdefault("rematch_hidden_late", types.ModuleType("x")))
        self.assertEqual(len(said), 1)

    def test_a_malformed_entry_is_refused_in_one_line(self):
        for plan, expected in (
                ({"opaque_functions": [{"name": "Rotary", "overwrites": [0]}]}, "opaque_functions.0..name: 'Rotary' is not a name"),
                ({"opaque_functions": [{"name": "a:B"}]}, 'opaque_functions.0.: key "overwrites" is missing'),
                ({"opaque_functions": [{"name": "a:B", "overwrites": [-1]}]}, "overwrites.0.: -1 is out of range"),
                ({"silent_writers": [{"op": "scale", "arguments": [0]}]}, "write it as 'library::op'"),
                ({"kept_ops": ["noisy"]}, "kept_ops.0.: 'noisy' is not a name"), ({"kept_ops": 3}, "kept_ops: found 3")):
            with self.subTest(plan=plan), self.assertRaisesRegex(rematch.RematchError, expected) as error:
                rematch.Checkpoint(self.plan | plan)
            self.assertNotIn("\n", str(error.exception))


class LateTest(unittest.TestCase):
    def test_an_op_and_a_function_that_the_first_step_defines(self):
        """Tests a layer that does not import a library until it runs."""
        model, x = Model(num_layers=2), torch.randn(4, 32)
        numbers = []

        def late(x):
            if not numbers:
                library = torch.library.Library("rematch_late", "DEF")
                library.define("noisy(Tensor x) -> Tensor")
                library.impl("noisy", lambda x: x + numbers[-1], "CPU")
                numbers.append(library)

                class Doubled(torch.autograd.Function):
                    """Counts its calls. Recompute must not call this function again."""

                    @staticmethod
                    def forward(_, x):
                        numbers.append(numbers[-1] + 1 if isinstance(numbers[-1], int) else 1)
                        return x * 2

                    @staticmethod
                    def backward(_, gradient):
                        return gradient * 2

                numbers[0].function = Doubled
            return torch.ops.rematch_late.noisy(numbers[0].function.apply(x).detach()) + x

        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(x)), "full") | {
            "opaque_functions": [{"name": f"{__name__}:{self.id().removeprefix(__name__ + '.')}.<locals>.late.<locals>.Doubled",
                                  "overwrites": []}], "kept_ops": ["rematch_late::noisy"]})
        for layer in model.layers:
            layer.feed_forward[1].forward = late
        with warnings.catch_warnings(), rematch.scopes(model, checkpoint):
            warnings.simplefilter("ignore")  # ignores the warning that layers do not follow the plan
            with rematch.recording(checkpoint, verify_every=1):
                loss = model(x)
            loss.backward()
        self.assertEqual(numbers[1:], [1, 2])
        self.assertEqual(checkpoint.recompute_differences(), [])


class SubclassTest(unittest.TestCase):
    def test_an_opaque_function_does_not_affect_its_subclasses(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(_, x):
                return x * 2

            @staticmethod
            def backward(_, gradient):
                return gradient * 2

        class Thrice(Twice):
            @staticmethod
            def forward(_, x):
                return x * 3

        model, x = Model(num_layers=2), torch.randn(4, 32)
        plan = rematch.resolve(rematch.trace(model, lambda: model(x)), "full")
        checkpoint = rematch.Checkpoint(plan | {
            "opaque_functions": [{"name": f"{Twice.__module__}:{Twice.__qualname__}", "overwrites": [0]}]})
        with rematch.scopes(model, checkpoint), rematch.recording(checkpoint):
            model(x)
            self.assertTrue(torch.equal(Thrice.apply(torch.ones(2)), torch.full((2,), 3.0)))
        self.assertTrue(torch.equal(Thrice.apply(torch.ones(2)), torch.full((2,), 3.0)))


class MetaTest(unittest.TestCase):
    def test_a_trace_without_content_narrows_nothing(self):
        """Writes cannot be detected on meta, so a function of a known library is assumed to write to all its
        arguments."""
        module = types.ModuleType("liger_kernel.ops.late")
        module.Rope = type("Rope", (torch.autograd.Function,), {
            "forward": staticmethod(lambda _, x: x.tanh()), "backward": staticmethod(lambda _, gradient: gradient),
            "__module__": module.__name__})
        model = Model(num_layers=2)
        for layer in model.layers:
            layer.feed_forward[1].forward = lambda x: module.Rope.apply(x * 2)

        def lists_of(model, x):
            return rematch.trace(model, lambda: model(x)).get("opaque_functions")

        name = "liger_kernel.ops.late:Rope"
        self.assertEqual(lists_of(copy.deepcopy(model).to("meta"), torch.randn(4, 32, device="meta")),
                         [{"name": name, "overwrites": None}])
        self.assertEqual(lists_of(model, torch.randn(4, 32)), [{"name": name, "overwrites": []}])


if __name__ == "__main__":
    unittest.main()
