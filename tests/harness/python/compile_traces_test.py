"""Tests that a model compiled under a budget is traced once: Dynamo and AOTAutograd trace it to plan, and compiling the plan
reuses these traces. Steps must have the bits of a model that torch compiles."""

import contextlib
import io
import unittest
from unittest import mock

import rematch
import torch
from stack import WIDTH, Layer, Stack, batch
from torch._dynamo import convert_frame
from torch._functorch import aot_autograd

BUDGET = "1GiB"


class ReturnsTwo(Stack):
    """A model with an output that the step drops."""

    def forward(self, x):
        hidden = x
        for layer in self.layers:
            hidden = layer(hidden)
        return super().forward(x), hidden


class WithBreak(Stack):
    """A model of two graphs."""

    def forward(self, x):
        x = self.layers[0](x)
        torch._dynamo.graph_break()
        return super().forward(x)


class Traces:
    """Counts the frames that Dynamo traces and the joint graphs that AOTAutograd traces."""

    def __init__(self):
        self.frames = self.joints = 0

    @contextlib.contextmanager
    def counted(self):
        trace_frame, trace_joint = convert_frame.trace_frame, aot_autograd.aot_stage1_graph_capture

        def frame(*arguments, **keywords):
            self.frames += 1
            return trace_frame(*arguments, **keywords)

        def joint(*arguments, **keywords):
            self.joints += 1
            return trace_joint(*arguments, **keywords)

        with mock.patch.object(convert_frame, "trace_frame", frame), \
                mock.patch.object(aot_autograd, "aot_stage1_graph_capture", joint):
            yield


def made(kind=Stack):
    torch.manual_seed(0)
    torch._dynamo.reset()
    return kind(Layer, num_layers=3).train()


def loss_of(result):
    return result[0] if isinstance(result, tuple) else result


def gradients(model, x):
    model.zero_grad(set_to_none=True)
    loss = loss_of(model(x))
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters()]


def planned(model, x, backend="aot_eager", **keywords):
    with contextlib.redirect_stderr(io.StringIO()):
        return rematch.compile(model, lambda: loss_of(model(x)), budget=BUDGET, backend=backend, optimizer="none", **keywords)


class TracesTest(unittest.TestCase):
    def require_traced(self, num_frames, num_joints, kind=Stack, backend="aot_eager", **keywords):
        x = batch(width=WIDTH)
        model = made(kind)
        model.compile(backend="aot_eager", **{key: value for key, value in keywords.items() if key != "options"})
        expected = gradients(model, x)
        model = made(kind)
        traces = Traces()
        with traces.counted():
            planned(model, x, backend, **keywords)
            found = gradients(model, x)
        for one, other in zip(found, expected, strict=True):
            if backend == "aot_eager":
                self.assertTrue(torch.equal(one, other))
            else:
                torch.testing.assert_close(one, other)
        self.assertEqual((num_frames, num_joints), (traces.frames, traces.joints))

    def test_one_graph(self):
        self.require_traced(1, 1)

    def test_under_inductor(self):
        self.require_traced(1, 1, backend="inductor")

    def test_an_output_that_the_step_drops(self):
        self.require_traced(1, 1, kind=ReturnsTwo)

    def test_two_graphs(self):
        self.require_traced(3, 2, kind=WithBreak)  # at a break, Dynamo traces the frame up to the break again

    def test_graphs_with_symbolic_sizes_are_traced_again(self):
        self.require_traced(3, 3, dynamic=True)  # to capture the graph, Dynamo starts twice

    def test_a_graph_is_compiled_for_autocast_as_it_was_traced(self):
        x = batch(width=WIDTH)
        model = made()

        def step(model):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x)
        model.compile(backend="aot_eager")
        step(model).backward()
        expected = [parameter.grad for parameter in model.parameters()]
        model = made()
        traces = Traces()
        with traces.counted(), contextlib.redirect_stderr(io.StringIO()):
            rematch.compile(model, lambda: step(model), budget=BUDGET, backend="aot_eager", optimizer="none")
            step(model).backward()
        self.assertEqual((1, 1), (traces.frames, traces.joints))
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            self.assertTrue(torch.equal(parameter.grad, gradient))

    def test_a_graph_for_another_batch_size_is_compiled_at_once(self):
        x = batch(width=WIDTH)
        model = planned(made(), x, dynamic=False)
        gradients(model, x)
        traces = Traces()
        with traces.counted():
            found = gradients(model, torch.cat((x, x)))
        self.assertEqual((1, 1), (traces.frames, traces.joints))
        other = made()
        for one, expected in zip(found, gradients(other, torch.cat((x, x))), strict=True):
            torch.testing.assert_close(one, expected)

    def test_layers_that_are_compiled_one_by_one(self):
        x = batch(width=WIDTH)
        model = made()
        traces = Traces()
        with traces.counted():
            planned(model, x, per_block=True)
            found = gradients(model, x)
        self.assertEqual((2, 2), (traces.frames, traces.joints))  # the input of the first layer needs no gradient
        for one, expected in zip(found, gradients(made(), x), strict=True):
            torch.testing.assert_close(one, expected)

    def test_a_refused_budget_leaves_the_model_as_it_was(self):
        x = batch(width=WIDTH)
        model = made()
        with self.assertRaises(rematch.PlanError), contextlib.redirect_stderr(io.StringIO()):
            rematch.compile(model, lambda: model(x), budget=1, backend="aot_eager")
        for one, expected in zip(gradients(model, x), gradients(made(), x), strict=True):
            self.assertTrue(torch.equal(one, expected))


if __name__ == "__main__":
    unittest.main()
