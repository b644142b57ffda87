"""Tests layers that run several times in a step, with and without grad mode, and results that backward never uses. For
policies and searched plans, predicted bytes must equal measured bytes exactly."""

import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from beside_torch import BesideTorch  # noqa: E402
from torch import nn  # noqa: E402

NUM_POINTS = 6


class Layer(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


class DeadBranches(Layer):
    """A layer with two results that backward never uses. It frees one result immediately, and the other when it
    returns."""

    def forward(self, x):
        self.down(torch.sigmoid(self.up(x)))
        unread = torch.sigmoid(self.up(x))
        x = super().forward(x)
        return x + 0 * unread.detach().mean()


class Net(nn.Module):
    def __init__(self, num_layers, num_runs, layer=Layer):
        super().__init__()
        self.layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.num_runs = num_runs

    def forward(self, x):
        for _ in range(self.num_runs):
            for layer in self.layers:
                x = layer(x)
        return x.square().mean()


class Case(BesideTorch):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(256, 32)

    def check_plan(self, model, step, trace, plan):
        predicted = rematch.predict(trace, plan, "on_demand")
        blocks = {"layers": list(model.layers)}
        checked = rematch.check(model, step, rematch.Checkpoint(plan, "on_demand"), blocks=blocks)
        self.assertTrue(checked["bits_equal"])
        measured = checked["checkpointed"]
        self.assertEqual(predicted["peak_bytes"] - predicted["before_bytes"], measured["peak_bytes"])
        self.assertEqual(predicted["recomputed_ops"], measured["executed_ops"].get("recompute", 0))
        return predicted["peak_bytes"]

    def check_step(self, model, step):
        """Checks named policies and points of a front. At least one searched plan must not peak higher than policy
        `full`. No plan may exceed the peak of torch.utils.checkpoint by more than the bytes that the plan keeps."""
        trace = rematch.trace(model, step, blocks={"layers": list(model.layers)})
        peaks = [self.check_plan(model, step, trace, rematch.resolve(trace, name)) for name in ("none", "full", "save_mm")]
        points = rematch.search(trace, device="h100", optimizer="none")["points"]
        self.assertGreater(len(points), 2)
        for point in points[:: max(1, len(points) // NUM_POINTS)]:
            peaks.append(self.check_plan(model, step, trace, point["plan"]))
        self.assertLessEqual(min(peaks[3:]), peaks[1])

        def train(around):
            with around():
                loss = step()
            loss.backward()
            return loss

        plans = {name: rematch.resolve(trace, name) for name in ("save_mm", "full")} | {"searched": points[0]["plan"]}
        self.compare(model, train, plans, blocks={"layers": list(model.layers)}, leaves=False)
        return trace

    def test_one_layer_that_runs_several_times(self):
        model = Net(num_layers=1, num_runs=5)
        trace = self.check_step(model, lambda: model(self.x))
        self.assertEqual(len(trace["blocks"]), 5)

    def test_layers_in_a_loop(self):
        model = Net(num_layers=2, num_runs=3)
        self.check_step(model, lambda: model(self.x))

    def test_two_forward_passes_in_a_step(self):
        model, other = Net(num_layers=3, num_runs=1), torch.randn(256, 32)
        self.check_step(model, lambda: model(self.x) - model(other))

    def test_a_first_pass_without_grad_mode(self):
        model = Net(num_layers=3, num_runs=1)

        def step():
            with torch.no_grad():
                guess = model(self.x)
            return model(self.x) + guess

        trace = self.check_step(model, step)
        self.assertEqual(len(trace["blocks"]), 3)

    def test_values_that_backward_never_reads(self):
        model = Net(num_layers=3, num_runs=1, layer=DeadBranches)
        self.check_step(model, lambda: model(self.x))


if __name__ == "__main__":
    unittest.main()
