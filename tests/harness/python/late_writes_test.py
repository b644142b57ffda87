"""Tests steps in which forward overwrites a tensor that an earlier layer has read. Without a plan, such steps are
correct, because autograd saved copies. With a plan, recompute needs the old content, so the plan must keep it."""

import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from torch import nn  # noqa: E402

WIDTH = 16
POLICIES = ("full", "save_mm", "nth_first(2)", "segments(2)")
SCHEDULES = ("whole_region", "on_demand")


class TableReader(nn.Module):
    """A layer that overwrites a table that all layers share, and then reads the table."""

    def __init__(self, table):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("table", table)

    def forward(self, x):
        self.table.mul_(0.9)
        return torch.tanh(self.linear(x) + self.table)


class SharedTable(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.ones(WIDTH)
        self.layers = nn.ModuleList(TableReader(table) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


class Converted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

    def forward(self, x):
        return self.linear(torch.tanh(x.double())).float()  # x is not saved by autograd


class ResidualInPlace(nn.Module):
    """A model that adds the result of each layer to the layer's input in place."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Converted() for _ in range(4))

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x += layer(x)
        return x.square().mean()


class LateWritesTest(unittest.TestCase):
    def check_bits(self, make):
        torch.manual_seed(0)
        model = make()
        start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        x = torch.randn(8, WIDTH)

        def results(checkpoint=None):
            model.load_state_dict(start)
            model.zero_grad(set_to_none=True)
            if checkpoint is None:
                loss = model(x)
                loss.backward()
            else:
                with rematch.scopes(model, checkpoint), rematch.recording(checkpoint):
                    loss = model(x)
                    loss.backward()
            return [loss.detach(), *(each.grad for each in model.parameters()), *(each.clone() for each in model.buffers())]

        plain = results()
        trace = rematch.trace(model, lambda: model(x))
        for policy in POLICIES:
            plan = rematch.resolve(trace, policy)
            self.assertTrue(plan["watches_writes"])
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    planned = results(rematch.Checkpoint(plan, schedule))
                    self.assertTrue(all(map(torch.equal, plain, planned)))

    def test_a_table_that_the_next_layer_overwrites(self):
        self.check_bits(SharedTable)

    def test_a_residual_that_is_added_in_place_outside_of_layers(self):
        self.check_bits(ResidualInPlace)


if __name__ == "__main__":
    unittest.main()
