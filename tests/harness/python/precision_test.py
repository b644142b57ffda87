"""Tests changes of precision between the trace and the step, between passes of a step, or between forward and
backward."""

import copy
import unittest

import torch
from beside_torch import POLICIES, BesideTorch
from stack import WIDTH, Layer, Stack, batch
from torch import nn
from torch.nn import functional


def autocast(**options):
    return torch.autocast("cpu", torch.bfloat16, **options)


class Case(BesideTorch):
    def setUp(self):
        torch.manual_seed(0)
        # So large that the peak is in the last layer, not in the gradients.
        self.model, self.x = Stack(num_layers=3), batch(size=16)

    def loss(self, **options):
        with autocast(**options):
            return self.model(self.x)

    def autocast_plans(self, policies=POLICIES):
        return self.plans_of(self.model, self.loss, policies)


def cast_bytes(layers, min_dimensions=1):
    """Returns the bytes of the bfloat16 copies that autocast makes of the parameters of linear layers.
    `min_dimensions=2` excludes biases, because autograd does not save their copies."""
    linears = [each for layer in layers for each in layer.modules() if isinstance(each, nn.Linear)]
    return sum(2 * each.numel() for linear in linears for each in linear.parameters() if each.dim() >= min_dimensions)


class CachedCastTest(Case):
    """Tests autocast's cache of cast weights. The second pass of a step reads the cache instead of casting, so the ops
    of the two passes differ. The second pass's record must hold the cached tensors. torch.utils.checkpoint casts each
    weight again."""

    def beyond_bytes(self, parts=None):
        """Returns by how many bytes the peak exceeds the peak with torch.utils.checkpoint. The peak is in the last
        layer. There, rematch holds the cast parameters of all layers, but torch.utils.checkpoint holds only the ones
        that autograd saved in the last layer. `parts` lists the modules that autocast casts, by default all layers."""
        parts = parts or list(self.model.layers)
        return cast_bytes(parts) - cast_bytes(parts[-1:], min_dimensions=2)

    def test_a_pass(self):
        def train(around):
            with autocast(), around():
                loss = self.model(self.x)
            loss.backward()
            return loss

        self.compare(self.model, train, self.autocast_plans(), leaves=False)

    def test_two_recordings_inside_one_autocast(self):
        def train(around):
            with autocast():
                with around():
                    first = self.model(self.x)
                with around():
                    second = self.model(self.x * 2)
            (first + second).backward()
            return first, second

        self.compare(self.model, train, self.autocast_plans(), leaves=True, beyond_bytes=self.beyond_bytes())

    def check_two_passes(self, parts=None):
        def train(around):
            with autocast(), around():
                loss = self.model(self.x) + self.model(self.x * 2)
            loss.backward()
            return loss

        self.compare(self.model, train, self.autocast_plans(), leaves=True, beyond_bytes=self.beyond_bytes(parts))

    def test_two_passes_in_one_recording(self):
        self.check_two_passes()

    def check_a_pass(self, policies, **options):
        def train(around):
            with around():
                loss = self.loss()
            loss.backward()
            return loss

        self.compare(self.model, train, self.autocast_plans(policies), leaves=False, **options)

    def test_a_weight_of_several_layers(self):
        first, *others = self.model.layers
        for layer in others:
            layer.feed_forward.up.weight = first.feed_forward.up.weight
        self.check_a_pass(POLICIES)

    def test_a_layer_that_runs_several_times(self):
        layer = Layer()
        self.model = Stack(lambda: layer, num_layers=3)
        self.check_a_pass(["full", "save_mm"], beyond_bytes=self.beyond_bytes([layer]))

    def test_backward_inside_autocast_between_recordings(self):
        def train(around):
            losses = []
            with autocast():
                for scale in (1, 2):
                    with around():
                        losses.append(self.model(self.x * scale))
                    losses[-1].backward()
            return [loss.detach() for loss in losses]

        self.compare(self.model, train, self.autocast_plans(), leaves=True)

    def recycled(self):
        y = 0.0
        with autocast():
            for index in range(3):
                with torch.set_grad_enabled(index == 2):
                    y = self.model(self.x + y)
        return y

    def recycle(self, around):
        with around():
            loss = self.recycled()
        loss.backward()
        return loss

    def test_passes_without_grad_mode_first(self):
        self.compare(self.model, self.recycle, self.autocast_plans(), leaves=True, beyond_bytes=self.beyond_bytes())

    def test_a_trace_of_passes_without_grad_mode_first(self):
        plans = self.plans_of(self.model, self.recycled)
        self.compare(self.model, self.recycle, plans, leaves=False, beyond_bytes=self.beyond_bytes())

        def train(around):
            with around():
                loss = self.loss()
            loss.backward()
            return loss

        self.compare(self.model, train, plans, leaves=True)

    def test_a_pass_without_grad_mode_in_a_separate_autocast(self):
        def train(around):
            with around():
                with torch.no_grad():
                    y = self.loss()
                loss = self.loss() + y
            loss.backward()
            return loss

        self.compare(self.model, train, self.autocast_plans(), leaves=False)

    def test_without_the_cache(self):
        def train(around):
            with autocast(cache_enabled=False), around():
                loss = self.model(self.x) + self.model(self.x * 2)
            loss.backward()
            return loss

        self.compare(self.model, train, self.autocast_plans(), leaves=False)

    def test_nested_regions_with_other_precisions(self):
        class Mixed(Layer):
            def forward(self, x):
                with autocast(enabled=False):
                    x = x.float() + self.attention(self.attention_norm(x.float()))
                with torch.autocast("cpu", torch.float16):
                    return x + self.feed_forward(self.feed_forward_norm(x)).float()

        self.model = Stack(Mixed, num_layers=3)
        self.check_two_passes([layer.feed_forward for layer in self.model.layers])


class OtherPrecisionTest(Case):
    def train(self, around):
        with around():
            loss = self.model(self.x)
        loss.backward()
        return loss

    def test_autocast_after_a_trace_in_float32(self):
        plans = self.plans_of(self.model, lambda: self.model(self.x))

        def train(around):
            with autocast():
                return self.train(around)

        # If backward also runs under autocast, autocast's cache holds the cast weight. Recompute casts the weight
        # again, and autograd saves that second copy.
        beyond_bytes = cast_bytes(self.model.layers[-1:], min_dimensions=2)
        self.compare(self.model, train, plans, leaves=True, beyond_bytes=beyond_bytes)

    def test_float32_after_a_trace_under_autocast(self):
        self.compare(self.model, self.train, self.autocast_plans(), leaves=True)

    def test_a_bfloat16_model_after_a_trace_in_float32(self):
        plans = self.plans_of(self.model, lambda: self.model(self.x))
        self.model, self.x = self.model.bfloat16(), self.x.bfloat16()
        self.compare(self.model, self.train, plans, leaves=False)

    def test_a_float32_model_after_a_trace_in_bfloat16(self):
        model = copy.deepcopy(self.model).bfloat16()
        plans = self.plans_of(model, lambda: model(self.x.bfloat16()))
        # A float32 number takes twice the bytes of a bfloat16 number.
        self.compare(self.model, self.train, plans, leaves=False, kept_ratio=2)

    def test_float16_with_a_scaler(self):
        def forward():
            with torch.autocast("cpu", torch.float16):
                return self.model(self.x)

        def train(around):
            optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=1)
            scales = []
            for _ in range(8):  # the scaler skips the optimizer's step if gradients overflow
                optimizer.zero_grad(set_to_none=True)
                with around():
                    loss = forward()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                scales.append(scaler.get_scale())
            self.assertLess(min(scales), scales[-1])
            return torch.tensor(scales), *(each.detach() for each in self.model.parameters())

        self.compare(self.model, train, self.plans_of(self.model, forward), leaves=False)


class Convolutions(nn.Module):
    """A layer that always runs in float32."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.first, self.second = nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x):
        with autocast(enabled=False):
            y = functional.gelu(self.first(self.norm(x.float()).transpose(1, 2)))
            y = self.second(y).transpose(1, 2)
        return x + functional.gelu(y)


class Distances(Layer):
    """A layer with cdist, whose kernel calls other ops that autocast may cast."""

    repeats = 1

    def forward(self, x):
        y = self.attention_norm(x)
        first, second = y.repeat(1, self.repeats, 1), self.feed_forward_norm(y * y).repeat(1, self.repeats, 1)
        return x + (torch.softmax(-torch.cdist(first, second), -1) @ first)[:, :x.shape[1]]


class ManyDistances(Distances):
    """A layer with so many rows that cdist uses matmuls."""

    repeats = 4


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear, self.norm = nn.Bilinear(WIDTH, WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        y = self.norm(x)
        return x + functional.gelu(self.bilinear(y, y)) + self.lstm(y)[0]


class BackwardTest(Case):
    """Tests backward under a different autocast setting from forward."""

    def check(self, make_layer):
        self.model = Stack(make_layer, num_layers=2)
        self.x = batch(length=4, size=2)
        for in_forward, in_backward in ((False, True), (True, True), (True, False)):
            def train(around, in_forward=in_forward, in_backward=in_backward):
                with autocast(enabled=in_forward), around():
                    loss = self.model(self.x)
                with autocast(enabled=in_backward):
                    loss.backward()
                return loss

            with self.subTest(in_forward=in_forward, in_backward=in_backward):
                plans = self.plans_of(self.model, lambda in_forward=in_forward: self.loss(enabled=in_forward), ["full"])
                self.compare(self.model, train, plans, leaves=False)

    def test_layers_that_turn_autocast_off(self):
        self.check(Convolutions)

    def test_kernels_that_call_other_ops(self):
        self.check(Distances)
        self.check(ManyDistances)

    def test_bilinear_and_recurrent_layers(self):
        self.check(Recurrent)


if __name__ == "__main__":
    unittest.main()
