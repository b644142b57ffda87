"""Tests compiled models with graph breaks, data-dependent shapes, higher-order ops and graphs that cannot be planned.
Training must continue in each case, with the bits of PyTorch's own partitioner."""

import contextlib
import copy
import importlib.util
import io
import unittest
import warnings

import rematch
import torch
from rematch.compiled.backends import aot_eager
from stack import WIDTH, Layer, Stack, batch
from torch._functorch import config as functorch_config


def results_of(model, call):
    """Returns the loss and every gradient."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(3)
    loss = call(model)
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def run_x(model):
    return model(batch())


class Experts(torch.nn.Module):
    """A mixture of experts. Each token runs one of them, so the shapes depend on data."""

    def __init__(self, num_experts=2):
        super().__init__()
        self.router = torch.nn.Linear(WIDTH, num_experts)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(num_experts))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weight, chosen = self.router(tokens).softmax(-1).max(-1)
        y = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            (where,) = torch.where(chosen == index)
            y = y.index_add(0, where, torch.tanh(expert(tokens[where])) * weight[where, None])
        return x + y.view_as(x)


class LayerWithExperts(Layer):
    def __init__(self):
        super().__init__()
        self.moe = Experts()

    def forward(self, x):
        return self.moe(super().forward(x))


class LayerWithCond(Layer):
    def forward(self, x):
        x = super().forward(x)
        return torch.cond(x.detach().mean() > 0, lambda x: (x * 2).sin(), lambda x: x.cos(), (x,))


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)).sin().cos()).square().mean()


class ModesTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def compare(self, model, call=run_x, budget="1GiB", policies=("full", "save_mm"), **options):
        """Compares a budget and policies with PyTorch's partitioner. Returns the plan for the budget, and what was
        printed. `options` go to rematch.compile."""
        plain = copy.deepcopy(model)
        for module in plain.layers if options.get("per_block") else [plain]:
            module.compile(backend="aot_eager", dynamic=options.get("dynamic"))
        expected = results_of(plain, call)
        said = io.StringIO()
        for keywords in ({"budget": budget}, *({"policy": policy} for policy in policies)):
            torch._dynamo.reset()
            compiled = copy.deepcopy(model)
            step = {"step": lambda compiled=compiled: call(compiled)} if "budget" in keywords else {}
            with contextlib.redirect_stderr(said):
                rematch.compile(compiled, **step, **keywords, **options, backend="aot_eager")
            results = results_of(compiled, call)
            self.assertEqual(len(results), len(expected))
            self.assertTrue(all(map(torch.equal, results, expected)), keywords)
            plan = rematch.compiled_plan_of(compiled)
            self.assertGreater(len(plan.graphs), 0)
            if "budget" in keywords:
                of_budget = plan
        return of_budget, said.getvalue()

    def test_experts_break_the_graph(self):
        plan, _ = self.compare(Stack(LayerWithExperts, 2))
        self.assertGreater(len(plan.graphs), 1)

    def test_experts_with_data_dependent_shapes_in_one_graph(self):
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            plan, _ = self.compare(Stack(LayerWithExperts, 2))
        self.assertEqual(len(plan.graphs), 1)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_a_mixture_of_experts_of_transformers(self):
        import zoo

        model, step = zoo.mixtral()
        expected = results_of(model, lambda _: step())  # also fills the model's caches
        with contextlib.redirect_stderr(io.StringIO()):
            rematch.compile(model, step, budget="9MiB", backend="aot_eager", optimizer="none")
        for found, reference in zip(results_of(model, lambda _: step()), expected, strict=True):
            torch.testing.assert_close(found, reference)
        plan = rematch.compiled_plan_of(model)
        self.assertLessEqual(plan.predicted_peak_allocated_bytes, plan.budget_bytes)
        self.assertLess(plan.predicted_peak_allocated_bytes, plan.fastest_peak_bytes)

    def test_autocast(self):
        def run_half(model):
            with torch.autocast("cpu", torch.bfloat16):
                return model(batch())

        plan, _ = self.compare(Stack(num_layers=3), run_half, budget="220KiB")
        self.assertLess(plan.predicted_peak_allocated_bytes, plan.fastest_peak_bytes)

    def test_dropout_in_layers_that_are_compiled_one_by_one(self):
        plan, _ = self.compare(Stack(lambda: Layer(dropout=0.5), 3), policies=("full",), per_block=True)
        self.assertEqual([graph.num_calls for graph in plan.graphs], [1, 2])  # no gradient reaches the first input

    def test_dynamic_shapes(self):
        def run_two_lengths(model):
            return model(batch(8)) + model(batch(12))

        plan, _ = self.compare(Stack(num_layers=3), run_two_lengths, policies=("full",), dynamic=True)
        self.assertEqual([graph.num_calls for graph in plan.graphs], [2])

    def test_a_higher_order_op_of_unknown_cost_is_kept_and_named(self):
        _, said = self.compare(Stack(LayerWithCond, 2))
        self.assertEqual(said.count("the time of higher_order::cond is unknown, so compiled plans never recompute it\n"), 1, said)

    def test_a_policy_leaves_graphs_to_which_it_does_not_apply(self):
        class Broken(Stack):
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                torch._dynamo.graph_break()
                return self.head(x).square().mean()
        model = Broken(num_layers=2)
        expected = results_of(copy.deepcopy(model), run_x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rematch.compile(model, policy="attn_only", backend="aot_eager")
            results = results_of(model, run_x)
        told = [str(each.message) for each in caught if "rematch" in str(each.message)]
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], "^rematch: PyTorch chooses what a compiled graph saves, because the policy does not apply: attn_only:")
        self.assertTrue(all(map(torch.equal, results, expected)))
        self.assertEqual([graph.policy for graph in rematch.compiled_plan_of(model).graphs], ["attn_only"])

    def test_a_model_without_layers(self):
        plan, _ = self.compare(Perceptron(), policies=("full",))
        self.assertEqual(len(plan.graphs), 1)
        with self.assertRaisesRegex(rematch.RematchError, "^[^\n]*Perceptron has no list of layers[^\n]*$"):
            rematch.compile(Perceptron(), policy="full", per_block=True)

    def test_only_the_first_graph_of_a_run_may_be_refused(self):
        class Checkpointed(Stack):
            is_checkpointed = False

            def forward(self, x):
                for layer in self.layers:
                    x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) if self.is_checkpointed else layer(x)
                return self.head(x).square().mean()

        model = Checkpointed(num_layers=2)
        expected = results_of(copy.deepcopy(model), run_x)
        model.is_checkpointed = True
        model.compile(backend=aot_eager(rematch.partitioner("full", backend="aot_eager")))
        with self.assertRaises(Exception) as raised:
            run_x(model)
        self.assertIsInstance(raised.exception.inner_exception, rematch.Refused)
        torch._dynamo.reset()
        model.is_checkpointed = False
        model.compile(backend=aot_eager(rematch.partitioner("full", backend="aot_eager")))
        run_x(model)
        model.is_checkpointed = True
        with self.assertWarnsRegex(UserWarning, "PyTorch chooses what this compiled graph saves, because torch.utils.checkpoint"):
            self.assertTrue(all(map(torch.equal, results_of(model, run_x), expected)))

    def test_a_budget_that_a_larger_batch_exceeds_does_not_end_the_run(self):
        model = Stack(num_layers=2)
        expected = results_of(copy.deepcopy(model), lambda model: model(batch(64)))
        model.compile(backend=aot_eager(rematch.partitioner("120KiB", backend="aot_eager", optimizer="none")))
        model(batch(8)).backward()
        with self.assertWarnsRegex(UserWarning, "no plan of the compiled step fits into 120.00 KiB; the lowest peak is"):
            results = results_of(model, lambda model: model(batch(64)))
        for found, reference in zip(results, expected, strict=True):
            torch.testing.assert_close(found, reference)

    def test_settings_of_the_user_stay(self):
        model = Stack(num_layers=2)
        with functorch_config.patch(activation_memory_budget=0.5):
            self.compare(model, policies=("none",))
            self.assertEqual(functorch_config.activation_memory_budget, 0.5)
        self.assertIsNone(torch._inductor.config.custom_partitioner_fn)

    def test_mode_becomes_inductors_options(self):
        class Noted(Stack):
            def compile(self, **keywords):
                self.keywords = keywords
        model = Noted(num_layers=2)
        rematch.compile(model, policy="full", mode="max-autotune-no-cudagraphs", dynamic=True)
        self.assertEqual(model.keywords["dynamic"], True)
        self.assertNotIn("mode", model.keywords)
        self.assertTrue(model.keywords["options"]["max_autotune"])
        self.assertIn("custom_partitioner_fn", model.keywords["options"])
        with self.assertRaisesRegex(ValueError, "either mode or options"):
            rematch.compile(model, policy="full", mode="default", options={"max_autotune": True})


class PlanTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def test_the_plan_of_a_budget(self):
        model = Stack(num_layers=4)
        with self.assertRaisesRegex(ValueError, "^this Stack follows no compiled plan; call rematch.compile"):
            rematch.compiled_plan_of(model)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            rematch.compile(model, lambda: run_x(model), budget="300KiB", backend="aot_eager", optimizer="none", per_block=True)
        plan = rematch.compiled_plan_of(model)
        self.assertEqual(plan.budget_bytes, 300 * 2**10)
        self.assertLessEqual(plan.predicted_peak_allocated_bytes, plan.budget_bytes)
        self.assertIn(f"predicted peak {plan.predicted_peak_allocated_bytes / 2**10:.2f} KiB instead of "
                      f"{plan.fastest_peak_bytes / 2**10:.2f} KiB", said.getvalue())
        self.assertEqual([graph.num_calls for graph in plan.graphs], [1, 3])
        self.assertEqual(len(str(plan).splitlines()), 6)
        run_x(model).backward()
        self.assertEqual(rematch.compiled_plan_of(model), plan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model(batch(32)).backward()
        self.assertEqual([graph.num_calls for graph in rematch.compiled_plan_of(model).graphs], [1, 3, 0, 0])

    def test_the_plan_of_a_policy_is_listed_once_the_graph_is_compiled(self):
        model = rematch.compile(Stack(num_layers=2), policy="none", backend="aot_eager")
        self.assertEqual(rematch.compiled_plan_of(model).graphs, ())
        run_x(model).backward()
        (graph,) = rematch.compiled_plan_of(model).graphs
        self.assertEqual((graph.policy, graph.recomputed_ops), ("none", 0))
        self.assertIsNone(rematch.compiled_plan_of(model).budget_bytes)

    def test_an_unknown_policy_is_refused_before_anything_compiles(self):
        for use in (rematch.partitioner, lambda name: rematch.compile(Stack(num_layers=2), policy=name)):
            with self.assertRaisesRegex(rematch.PlanError, "^unknown policy 'sac_titans'; did you mean 'sac_titan'[^\n]*$"):
                use("sac_titans")


if __name__ == "__main__":
    unittest.main()
