"""Tests compiled models under named policies. Backend aot_eager runs graphs op by op, so loss and gradients must have
the same bits as with PyTorch's own partitioner."""

import contextlib
import copy
import io
import itertools
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.compiled.backends import aot_eager  # noqa: E402
from rematch.compiled.joint_graph import JointGraph, is_op, is_view, op_name, op_of  # noqa: E402
from rematch.compiled.partitioner import Partitioner  # noqa: E402
from rematch.planning import predict, resolve  # noqa: E402
from stack import Layer, Stack, batch  # noqa: E402
from torch._functorch import partitioners  # noqa: E402

NUM_LAYERS = 4
POLICIES = ("none", "full", "attn_only", "save_mm", "nth_first(2)")
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


def results_of(model, call, seed=3):
    """Returns the loss and every gradient."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    loss = call(model)
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters()]


def run_x(model):
    return model(batch())


class WatchedBackend:
    """Backend aot_eager, which also stores the compiled graphs. Uses the partitioner for a policy, or PyTorch's
    partitioner."""

    def __init__(self, policy=None, planned_for="aot_eager"):
        self.partitioner = rematch.partitioner(policy, backend=planned_for) if policy else None
        self.forward, self.backward, self.joints = [], [], []

    def backend(self):
        return aot_eager(self.partition)

    def partition(self, module, inputs, **keywords):
        partition = self.partitioner or partitioners.min_cut_rematerialization_partition
        forward, backward = partition(module, inputs, **keywords)
        for graph, ops in ((forward, self.forward), (backward, self.backward)):
            ops.append([node for node in graph.graph.nodes if is_op(node)])
        return forward, backward

    def recomputed(self, graph=0):
        """Returns the names of the ops that forward and backward both run, without views."""
        names = {node.name for node in self.forward[graph]}
        return [op_name(node) for node in self.backward[graph] if node.name in names and not is_view(node)]


class PoliciesTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def compare(self, model, call=run_x, policies=POLICIES, **keywords):
        """Requires that each policy gives the same bits as PyTorch's partitioner. A policy saves different values for
        Inductor and for aot_eager, so both choices are tested. Returns the backends by policy."""
        found = {}
        expected = None
        for policy, planned_for in ((None, None), *itertools.product(policies, ("inductor", "aot_eager"))):
            torch._dynamo.reset()
            compiled, watched = copy.deepcopy(model), WatchedBackend(policy, planned_for)
            compiled.compile(backend=watched.backend(), **keywords)
            results = results_of(compiled, call)
            expected = expected or results
            self.assertTrue(all(map(torch.equal, results, expected)), (policy, planned_for))
            found[policy] = watched
        return found

    def test_bits_are_those_of_pytorchs_partitioner(self):
        found = self.compare(Stack(num_layers=NUM_LAYERS))
        matmuls = {policy: watched.recomputed().count("aten::addmm") for policy, watched in found.items()}
        attention = {policy: watched.recomputed().count(ATTENTION) for policy, watched in found.items()}
        # A layer has four matmuls. The last one is not recomputed, because backward does not need its result.
        self.assertEqual(matmuls, {None: 0, "none": 0, "full": 12, "attn_only": 12, "save_mm": 0, "nth_first(2)": 6})
        self.assertEqual(attention, {None: 0, "none": 0, "full": 4, "attn_only": 0, "save_mm": 4, "nth_first(2)": 2})

    def test_a_layer_is_recomputed_right_before_its_backward(self):
        watched = self.compare(Stack(num_layers=NUM_LAYERS), policies=("full",))["full"]
        again = {node.name for node in watched.forward[0]}
        layers = [match.split(".")[2] for node in watched.backward[0] if node.name in again
                  for match in [str(list(node.meta["nn_module_stack"].values())[-1][0])] if "layers." in match]
        self.assertEqual([layer for layer, before in zip(layers, [None, *layers]) if layer != before], ["3", "2", "1", "0"])

    def test_random_ops_are_never_recomputed(self):
        found = self.compare(Stack(lambda: Layer(dropout=0.5), NUM_LAYERS))
        for policy in POLICIES:
            self.assertNotIn("aten::native_dropout", found[policy].recomputed())
            self.assertIn("aten::native_dropout", [op_name(op) for op in found[policy].forward[0]])

    def test_autocast(self):
        def call(model):
            with torch.autocast("cpu", torch.bfloat16):
                return model(batch())
        self.compare(Stack(num_layers=2), call, ("full", "save_mm"))

    def test_a_graph_break_makes_two_graphs(self):
        class Broken(Stack):
            def forward(self, x):
                for layer in self.layers[:2]:
                    x = layer(x)
                torch._dynamo.graph_break()
                for layer in self.layers[2:]:
                    x = layer(x)
                return self.head(x).square().mean()
        found = self.compare(Broken(num_layers=NUM_LAYERS), policies=("full",))["full"]
        self.assertEqual([found.recomputed(graph).count("aten::addmm") for graph in range(2)], [6, 6])

    def test_dynamic_shapes(self):
        model = Stack(num_layers=2)
        for dynamic in (True, None):
            torch._dynamo.reset()
            compiled, watched = copy.deepcopy(model), WatchedBackend("full")
            compiled.compile(backend=watched.backend(), dynamic=dynamic)
            for length in (8, 16, 24):
                results = results_of(compiled, lambda module, length=length: module(batch(length)))
                expected = results_of(model, lambda module, length=length: module(batch(length)))
                for found, reference in zip(results, expected):
                    torch.testing.assert_close(found, reference)
            self.assertEqual(len(watched.backward), 1 if dynamic else 2)
            self.assertEqual(watched.recomputed().count("aten::addmm"), 6)

    def test_layers_that_are_compiled_one_by_one_share_graphs(self):
        model = Stack(num_layers=NUM_LAYERS)
        expected = results_of(model, run_x)
        watched = WatchedBackend("full")
        backend = watched.backend()
        for layer in model.layers:
            layer.compile(backend=backend)
        self.assertTrue(all(map(torch.equal, results_of(model, run_x), expected)))
        # The first layer is compiled separately, because its input needs no gradient. The other layers share a graph.
        self.assertEqual(len(watched.backward), 2)
        self.assertEqual(watched.recomputed().count("aten::addmm"), 3)

    def test_a_written_buffer(self):
        class Counts(Layer):
            def __init__(self):
                super().__init__()
                self.register_buffer("total", torch.zeros(()))

            def forward(self, x):
                self.total += x.detach().abs().mean()
                return super().forward(x) * torch.tanh(self.total)
        model = Stack(Counts, 2)
        self.compare(model, policies=("full", "save_mm"))

    def test_an_exception_falls_back_to_pytorchs_partitioner_with_a_warning(self):
        def fail(_joint):
            raise KeyError("nobody foresaw this")
        model = Stack(num_layers=2)
        expected = results_of(model, run_x)
        model.compile(backend=aot_eager(Partitioner(fail, "test")))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = results_of(model, run_x)
        told = [str(each.message) for each in caught if "rematch" in str(each.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "PyTorch chooses what this compiled graph saves.*KeyError")
        self.assertTrue(all(map(torch.equal, results, expected)))

    def test_the_trace_of_a_joint_graph_predicts_the_ops_that_run_again(self):
        watched = self.compare(Stack(num_layers=NUM_LAYERS), policies=("attn_only",))["attn_only"]
        (option,) = watched.partitioner.chosen
        self.assertEqual(option.num_recomputed, len(watched.recomputed()))

    def test_a_hash_identifies_the_plan(self):
        hashes = [rematch.partitioner(plan, device=device).uuid() for plan in ("full", "save_mm", "1GiB")
                  for device in ("cpu", "h100")]
        self.assertEqual(len(set(hashes)), 6)
        self.assertEqual(hashes[0], rematch.partitioner("full").uuid())


class CompileTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_compile_with_a_policy(self):
        torch.manual_seed(0)
        model = Stack(num_layers=2)
        expected = results_of(model, run_x)
        self.assertIs(rematch.compile(model, policy="full", backend="aot_eager"), model)
        self.assertTrue(all(map(torch.equal, results_of(model, run_x), expected)))

    def test_bad_input_is_refused_in_one_line_before_anything_compiles(self):
        model = Stack(num_layers=2)
        step = lambda: model(batch())  # noqa: E731
        for arguments, keywords, error, message in (
                ((step,), {"budget": "1GiB", "backend": "eager"}, ValueError, "backend is 'eager'"),
                ((step,), {"budget": "1GiB", "policy": "full"}, ValueError, "either budget"),
                ((), {}, ValueError, "either budget"),
                ((), {"budget": "1GiB"}, ValueError, "needs step="),
                ((step,), {"budget": "much"}, ValueError, "not a size"),
                ((step,), {"budget": "1GiB", "device": "abacus"}, ValueError, "device is 'abacus'; known are cpu, h100"),
                ((step,), {"budget": "1KiB", "backend": "aot_eager"}, rematch.PlanError, "the lowest peak is")):
            with self.subTest(keywords=keywords), contextlib.redirect_stderr(io.StringIO()):
                with self.assertRaisesRegex(error, message) as raised:
                    rematch.compile(model, *arguments, **keywords)
                self.assertNotIn("\n", str(raised.exception))
                self.assertIsNone(model._compiled_call_impl)

    def test_an_eager_plan_is_refused(self):
        model = Stack(num_layers=2)
        rematch.apply(model, "full", step=lambda: model(batch()))
        with self.assertRaisesRegex(rematch.Refused, "rematch.remove"):
            rematch.compile(model, policy="full")

    def test_checkpoint_in_the_graph_is_refused(self):
        class Checkpointed(Stack):
            def forward(self, x):
                for layer in self.layers:
                    x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
                return self.head(x).square().mean()
        model = Checkpointed(num_layers=2)
        with self.assertRaisesRegex(rematch.Refused, "torch.utils.checkpoint marks ops") as raised:
            rematch.compile(model, lambda: model(batch()), budget="1GiB", backend="aot_eager")
        self.assertNotIn("\n", str(raised.exception))

    def test_a_missing_name_of_torch_is_refused(self):
        name = "choose_saved_values_set"
        removed = getattr(partitioners, name)
        try:
            delattr(partitioners, name)
            with self.assertRaisesRegex(rematch.Refused, f"partitioners.{name}, which torch"):
                rematch.partitioner("full")
        finally:
            setattr(partitioners, name, removed)


if __name__ == "__main__":
    unittest.main()
