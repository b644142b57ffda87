"""Tests flags that choose kernels or change what kernels compute. A layer sets a flag in forward, and the flag is reset
before the layer is recomputed."""

import contextlib
import unittest

import torch
from beside_torch import BesideTorch
from stack import WIDTH, Stack, batch
from torch import nn
from torch.nn import functional


@contextlib.contextmanager
def set_for_a_while(setter, value, before):
    setter(value)
    try:
        yield
    finally:
        setter(before)


class Flagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.first, self.second = nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x):
        y = functional.gelu(self.flagged(x))
        return x + y * y


class WithoutOneDnn(Flagged):
    def flagged(self, x):
        with torch.backends.mkldnn.flags(enabled=False):
            y = self.first(x.transpose(1, 2))
        return self.second(functional.gelu(y)).transpose(1, 2)


class InDouble(Flagged):
    def flagged(self, x):
        with set_for_a_while(torch.set_default_dtype, torch.float64, torch.float32):
            scale = torch.arange(1, x.shape[1] + 1) / 3 + torch.full((x.shape[1],), 1 / 3) + torch.zeros(x.shape[1])
        return (self.linear(x) * scale[None, :, None]).float()


class Deterministic(Flagged):
    """A layer that calls torch.empty in deterministic mode, which fills the result with NaN."""

    def flagged(self, x):
        with set_for_a_while(torch.use_deterministic_algorithms, True, False):
            unset = torch.empty(x.shape[1], WIDTH)
        return self.linear(x) * torch.nan_to_num(unset, nan=3.0)


class OnTwoThreads(Flagged):
    """A layer that sums many numbers. The order of the summation depends on the number of threads."""

    def flagged(self, x):
        with set_for_a_while(torch.set_num_threads, 2, 1):
            total = self.linear(x).reshape(-1).repeat(50).sum()
        return self.linear(x) * torch.sin(total)


class KernelFlagsTest(BesideTorch):
    def check(self, make_layer, **options):
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        torch.manual_seed(0)
        model, x = Stack(make_layer, num_layers=3), batch(length=32)

        def train(around):
            with around():
                loss = model(x)
            loss.backward()
            return loss

        self.compare(model, train, self.plans_of(model, lambda: model(x), ["full", "save_compute"]), leaves=False, **options)

    def test_a_disabled_library(self):
        self.check(WithoutOneDnn)

    def test_the_default_type(self):
        self.check(InDouble)

    def test_deterministic_algorithms(self):
        unset = 3 * 32 * WIDTH * 4  # bytes of the results of torch.empty in three layers; every plan keeps them
        self.check(Deterministic, beyond_bytes=unset)

    def test_the_number_of_threads(self):
        self.check(OnTwoThreads)


if __name__ == "__main__":
    unittest.main()
