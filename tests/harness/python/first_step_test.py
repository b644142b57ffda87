"""Tests state that a model creates in its first steps: counters, tables that grow, and tensors that are None at
first."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import WIDTH, Layer, Stack, batch
from torch import nn


class Counting(Layer):
    """A router that counts its load in a tensor. It creates the tensor in the first step, and later steps add to it in
    place."""

    load = None

    def forward(self, x):
        counts = (x.detach() > 0).float().sum((0, 1))
        with torch.no_grad():
            self.load = counts if self.load is None else self.load.add_(counts)
        return super().forward(x)


class Warming(Layer):
    """A layer that runs different ops from the fourth step on."""

    num_calls = 0

    def forward(self, x):
        self.num_calls += 1
        return super().forward(x if self.num_calls <= 3 else 0.5 * x)


class Initialized(Layer):
    """A layer with a scale that is computed from the first batch, as in ActNorm and codebooks."""

    def __init__(self):
        super().__init__()
        self.register_buffer("is_ready", torch.tensor(False))
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        if not self.is_ready:
            with torch.no_grad():
                self.scale.copy_(1 / (x.std((0, 1)) + 1e-6))
                self.is_ready.fill_(True)
        return super().forward(self.scale * x)


class Rotated(Layer):
    """A layer with tables of cosines and sines, which it recreates for a batch that is longer than all earlier
    batches."""

    length = 0

    def forward(self, x):
        if x.shape[1] > self.length:
            angles = torch.arange(x.shape[1])[:, None] * torch.exp(-torch.arange(WIDTH // 2) / WIDTH)
            self.length, self.cos, self.sin = x.shape[1], angles.cos(), angles.sin()
        cos, sin = self.cos[:x.shape[1]], self.sin[:x.shape[1]]
        first, second = x.chunk(2, -1)
        return super().forward(torch.cat([first * cos - second * sin, first * sin + second * cos], -1))


class Masked(Layer):
    mask = None

    def forward(self, x):
        length = x.shape[1]
        if self.mask is None or len(self.mask) < length:
            self.mask = torch.ones(length, length).tril() == 0
        scores = (x @ x.transpose(1, 2)).masked_fill(self.mask[:length, :length], -1e9)
        return super().forward(x + scores.softmax(-1) @ x)


class Positioned(Layer):
    """A layer that adds a table of positions, and multiplies the sum by a copy of the table. The table is made in the
    first step."""

    table = None

    def forward(self, x):
        length = x.shape[1]
        if self.table is None or len(self.table) < length:
            self.table = torch.arange(length)[:, None] * torch.ones(WIDTH)
        table = self.table[:length]
        return super().forward((x + table) * table.clone())


class Cached(Layer):
    """A layer that also attends to the previous batch, which is None at first."""

    memory = None

    def forward(self, x):
        with_memory = x if self.memory is None else torch.cat([self.memory, x], 1)
        self.memory = x.detach()
        return super().forward(with_memory)[:, -x.shape[1]:]


LENGTHS = (8, 8, 4, 16, 8)


class FirstStepTest(BesideTorch):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, kind, lengths=(8,) * 5, **options):
        """Makes plans before and after the model's first steps. Each plan must work in early and in later steps."""
        names = ("load", "num_calls", "length", "cos", "sin", "mask", "memory")
        self.model = model = Stack(kind, num_layers=2)

        def forget():
            for layer in model.layers:
                for name in names:
                    layer.__dict__.pop(name, None)
                if kind is Initialized:
                    layer.is_ready.fill_(False)

        def have_run():
            forget()
            with torch.no_grad():
                for _ in range(4):
                    model(batch(lengths[0]))

        def train(around):
            losses = []
            for length in lengths:
                with around():
                    losses.append(model(batch(length)))
                losses[-1].backward()
            return [loss.detach() for loss in losses]

        for before_trace in (forget, have_run):
            before_trace()
            plans = self.plans_of(model, lambda: model(batch(lengths[0])), ["full", "save_mm"])
            for before_step in (forget, have_run):
                with self.subTest(before_trace=before_trace.__name__, before_step=before_step.__name__):
                    self.compare(model, train, plans, reset=before_step, **options)

    def test_a_router_that_counts_its_load(self):
        self.check(Counting)

    def test_a_counter_that_switches_a_branch(self):
        # torch.utils.checkpoint cannot run this, because the counter would also count recomputed layers.
        self.check(Warming, torch_runs=False)

    def test_a_scale_that_the_first_batch_sets(self):
        self.check(Initialized)

    def test_tables_that_inference_mode_made(self):
        """Before its first step, the model evaluates a longer batch, so its tables are longer than the step needs."""
        torch.manual_seed(0)
        model = Stack(Positioned, num_layers=2)

        def evaluate():
            for layer in model.layers:
                layer.table = None
            with torch.inference_mode():
                model(batch(16))

        def train(around):
            self.assertTrue(model.layers[0].table.is_inference())
            losses = []
            for length in (8, 4):
                with around():
                    losses.append(model(batch(length)))
                losses[-1].backward()
            return [loss.detach() for loss in losses]

        for before_trace, leaves in ((evaluate, False), (lambda: None, True)):
            for layer in model.layers:
                layer.table = None
            before_trace()
            plans = self.plans_of(model, lambda: model(batch(8)))
            with self.subTest(leaves=leaves):
                self.compare(model, train, plans, reset=evaluate, leaves=leaves)

    # In the next two tests, peaks are higher than with torch.utils.checkpoint, because rematch recomputes a table
    # although the layer still holds it.

    def test_tables_that_grow(self):
        self.check(Rotated, LENGTHS, beyond_bytes=2 * 4 * max(LENGTHS) * WIDTH // 2)

    def test_a_mask_that_grows(self):
        self.check(Masked, LENGTHS, beyond_bytes=max(LENGTHS)**2)

    def test_a_tensor_that_is_none_at_first(self):
        # torch.utils.checkpoint cannot run this: before it recomputes a layer, the layer has already replaced `memory`.
        self.check(Cached, torch_runs=False)


if __name__ == "__main__":
    unittest.main()
