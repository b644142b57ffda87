"""Tests scripts/export_trace.py, which needs only torch. Its trace must have the same ops and scopes as the trace of
rematch.trace, and must lead to the same predicted peaks."""

import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "harness" / "python"))
from torch_alone.fake_step import as_with_data  # noqa: E402
from torch_alone.model_file import Refused, load_make  # noqa: E402
from torch_alone.op_times import measure_profile  # noqa: E402
from torch_alone.trace_file import record_trace  # noqa: E402
from zoo import llama, wan  # noqa: E402

POLICIES = ("none", "full", "save_mm", "nth_first(2)")
SCHEDULES = ("whole_region", "on_demand")
ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))


def small_model():
    torch.manual_seed(0)
    model, x = Model(), torch.randn(256, 32)
    return model, lambda: model(x)


def model_with_dead_branches():
    """Returns a model with results that backward never uses. Autograd frees their saved tensors during forward."""
    torch.manual_seed(0)
    model, x = Model(), torch.randn(64, 32)

    class Layer(type(model.layers[0])):
        def forward(self, x):
            torch.sigmoid(self.norm(x)).exp()
            unread = torch.sigmoid(self.norm(x) * 2)
            x = super().forward(x)
            del unread
            return x * x.tanh()

    for layer in model.layers:
        layer.__class__ = Layer
    return model, lambda: model(x)


class Scale(torch.autograd.Function):
    """Writes to its argument without incrementing the argument's version."""

    @staticmethod
    def forward(_, x):
        ctypes.c_float.from_address(x.data_ptr()).value = 0.5
        return x * 2

    @staticmethod
    def backward(_, gradient):
        return gradient * 2


@torch.library.custom_op("rematch_export_trace::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    ctypes.c_float.from_address(x.data_ptr()).value = 0.5
    return x * 2


scale.register_autograd(lambda _, gradient: gradient * 2)


def full_size_trace(name):
    from torch._subclasses.fake_tensor import FakeTensorMode
    make = load_make(ROOT / "scripts" / "full_size" / f"{name}.py")
    with FakeTensorMode(allow_non_fake_inputs=True):
        model, step = make()
        with as_with_data():
            return record_trace(model, step)


class ExportTraceTest(unittest.TestCase):
    def check(self, make):
        torch.manual_seed(0)
        model, step = make()
        step()
        library, alone = rematch.trace(model, step), record_trace(model, step)
        for key in ("model", "dtype", "parameter_bytes", "parameters", "constant_bytes", "gradient_bytes"):
            self.assertEqual(library[key], alone[key], key)
        self.check_file(library, alone)
        for policy in POLICIES:
            plans = [rematch.resolve(trace, policy) for trace in (library, alone)]
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    self.assertEqual(rematch.predict(library, plans[0], schedule),
                                     rematch.predict(alone, plans[1], schedule))

    def check_file(self, *traces):
        """Requires that both traces have the same ops, scopes, saved tensors, lifetimes and backward."""
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("library.json", "alone.json")]
            for file, trace in zip(files, traces):
                file.write_text(json.dumps(trace))
            done = subprocess.run([BINARY, "trace", "--check", *files], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def check_of_package(self, package, make):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        self.check(make)

    def test_small_model_with_dropout(self):
        self.check(small_model)

    def test_saved_tensors_that_autograd_drops(self):
        traced = record_trace(*model_with_dead_branches())
        self.assertGreater(sum("dropped_at" in pack for pack in traced["types"][0]["packs"]), 4)
        self.check(model_with_dead_branches)

    def test_code_that_writes_without_telling_is_refused(self):
        for call, name in ((Scale.apply, f"{__name__}:Scale"), (scale, "rematch_export_trace::scale")):
            model, step = small_model()
            for layer in model.layers:
                layer.feed_forward[1].forward = lambda x, call=call: call(x * 3)
            with self.subTest(name=name), self.assertRaisesRegex(
                    Refused, f"{name} writes to an argument without telling torch; record the step with .*rematch.trace") as error:
                record_trace(model, step)
            self.assertNotIn("\n", str(error.exception))

    def test_functions_of_known_libraries_are_refused_without_data(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        known = type("Rope", (torch.autograd.Function,), {
            "forward": staticmethod(lambda _, x: x.tanh()), "backward": staticmethod(lambda _, gradient: gradient),
            "__module__": "liger_kernel.ops.rope"})

        def traced():
            model, step = small_model()
            for layer in model.layers:
                layer.feed_forward[1].forward = lambda x: known.apply(x * 3)
            return record_trace(model, step)

        self.assertIn("aten::tanh", [op["name"] for op in traced()["types"][0]["ops"]])
        with FakeTensorMode(allow_non_fake_inputs=True), self.assertRaisesRegex(
                Refused, "liger_kernel.ops.rope:Rope may write .* tensors without data cannot show this; record the step with"):
            traced()

    def test_llama_of_transformers(self):
        self.check_of_package("transformers", llama)

    def test_wan_of_diffusers(self):
        self.check_of_package("diffusers", wan)

    def test_fake_tensors_give_the_trace_of_real_ones(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        real = record_trace(*small_model())
        with FakeTensorMode(allow_non_fake_inputs=True):
            fake = record_trace(*small_model())
        self.assertTrue(fake.pop("recorded")["fake"])
        self.assertFalse(real.pop("recorded")["fake"])
        self.assertEqual(real, fake)

    # transformers would build an explicit attention mask if it saw that tensors are fake. as_with_data() hides this.
    def test_fake_llama_has_the_peaks_of_the_real_one(self):
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("transformers is not installed")
        from torch._subclasses.fake_tensor import FakeTensorMode
        real = record_trace(*llama())
        with FakeTensorMode(allow_non_fake_inputs=True):
            model, step = llama()
            with as_with_data():
                fake = record_trace(model, step)
        for policy in POLICIES:
            peaks = [rematch.predict(trace, rematch.resolve(trace, policy))["peak_bytes"] for trace in (real, fake)]
            self.assertEqual(*peaks, policy)

    # The expected figures come from reports/results/full_size_traces.md.
    def test_full_size_models_are_traced_without_data(self):
        for name, package, parameter_bytes, num_layers, peak_bytes in (
                ("llama3_8b", "transformers", 2 * 8_030_261_248, 32, 130_585_527_952),
                ("wan_1_3b", "diffusers", 2 * 1_418_996_800, 30, 27_756_543_596)):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package} is not installed")
            trace = full_size_trace(name)
            self.assertEqual((trace["parameter_bytes"], len(trace["blocks"])), (parameter_bytes, num_layers), name)
            predicted = rematch.predict(trace, rematch.resolve(trace, "full"), "whole_region", optimizer="adamw")
            self.assertEqual(predicted["peak_bytes"], peak_bytes, name)

    def test_profile_has_a_time_for_every_op(self):
        model, step = small_model()
        trace = record_trace(model, step)
        profile = measure_profile(model, step, trace, num_steps=2)
        self.assertEqual(len(trace["types"][0]["ops"]), len(profile["forward"]["types"][0]["times_ns"]))
        self.assertEqual(sum("op" in event for event in trace["backward_types"][0]),
                         len(profile["backward"]["types"][0]["times_ns"]))

    def test_model_without_a_list_of_layers_is_refused(self):
        model = torch.nn.Linear(2, 2)
        with self.assertRaisesRegex(Refused, "Linear has no list of equal layers"):
            record_trace(model, lambda: model(torch.ones(1, 2)).sum())


if __name__ == "__main__":
    unittest.main()
