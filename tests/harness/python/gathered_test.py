"""Tests parameters whose data is freed after forward and gathered again before backward."""

import itertools
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from beside_torch import BesideTorch  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")


class Swapped(torch.nn.Module):
    """A layer whose weight is on the device only during forward and backward of the layer. Otherwise it is in
    `store`."""

    def __init__(self, dim, learns):
        super().__init__()
        self.norm, self.out = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, dim)
        self.store = torch.randn(dim, dim) * 0.2
        self.weight = torch.nn.Parameter(self.store.clone(), requires_grad=learns)

    def fetch(self):
        self.weight.data = self.store.clone()

    def drop(self):
        self.weight.data = torch.empty(0)

    def forward(self, x):
        return x + self.out(torch.nn.functional.gelu(torch.nn.functional.linear(self.norm(x), self.weight)))


class At(torch.autograd.Function):
    """Calls the function `in_backward` during backward."""

    @staticmethod
    def forward(context, x, in_backward):
        context.in_backward = in_backward
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        context.in_backward()
        return gradient, None


class Swapping(torch.nn.Module):
    def __init__(self, learns, dim=16, num_layers=3, make_layer=Swapped):
        super().__init__()
        self.layers = torch.nn.ModuleList(make_layer(dim, learns) for _ in range(num_layers))
        self.fetches = True

    def forward(self, x):
        x = x.clone().requires_grad_()
        for layer in self.layers:
            x = At.apply(x, layer.drop)
            layer.fetch()
            x = layer(x)
            layer.drop()
            x = At.apply(x, layer.fetch if self.fetches else lambda: None)
        return x.square().mean()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(2, 8, 16)

    def gradients(self, model, checkpoint=None):
        model.zero_grad()
        if checkpoint is None:
            loss = model(self.x)
        else:
            with rematch.recording(checkpoint):
                loss = model(self.x)
        loss.backward()
        return [loss.detach(), *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]

    def checkpoint(self, model, schedule="on_demand"):
        return rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"), schedule)


class BlockSwapTest(Case):
    def test_bits_are_equal_if_the_callback_confirms_the_content(self):
        for learns in (False, True):
            for schedule in SCHEDULES:
                with self.subTest(learns=learns, schedule=schedule):
                    model = Swapping(learns)
                    expected = self.gradients(model)
                    checkpoint = self.checkpoint(model, schedule)
                    asked = []

                    def is_back(weight, asked=asked):
                        asked.append(weight)
                        return weight.numel() > 0

                    checkpoint.gathered_by(is_back, [layer.weight for layer in model.layers])
                    rematch.scopes(model, checkpoint)
                    for _ in range(2):
                        found = self.gradients(model, checkpoint)
                        self.assertEqual(len(found), len(expected))
                        self.assertTrue(all(map(torch.equal, expected, found)))
                    self.assertEqual({id(each) for each in asked}, {id(layer.weight) for layer in model.layers})

    def test_a_missing_or_negative_callback_is_refused_in_one_line(self):
        model = Swapping(learns=True)
        checkpoint = self.checkpoint(model)
        rematch.scopes(model, checkpoint)
        with self.assertRaisesRegex(RuntimeError, "was given different data .* gathered_by"):
            self.gradients(model, checkpoint)
        checkpoint.gathered_by(lambda weight: weight.numel() > 0, [layer.weight for layer in model.layers])
        model.fetches = False
        with self.assertRaisesRegex(RuntimeError, "still missing, according to its gathered_by\\(\\) callback") as error:
            self.gradients(model, checkpoint)
        self.assertNotIn("\n", str(error.exception))

    def test_the_record_holds_no_freed_weight(self):
        model = Swapping(learns=False)
        held = {}
        for is_gathered in (False, True):
            checkpoint = self.checkpoint(model)
            if is_gathered:
                checkpoint.gathered_by(lambda weight: weight.numel() > 0, [layer.weight for layer in model.layers])
            before = rematch.allocated_bytes()
            with rematch.scopes(model, checkpoint), rematch.recording(checkpoint):
                loss = model(self.x)
            held[is_gathered] = rematch.allocated_bytes() - before
            del loss
        self.assertEqual(held[False] - held[True], sum(layer.store.nbytes for layer in model.layers))


class BesideTorchTest(BesideTorch):
    def test_layers_that_are_swapped(self):
        for learns in (False, True):
            torch.manual_seed(0)
            model, x = Swapping(learns), torch.randn(2, 8, 16)

            def train(around, model=model, x=x):
                with around():
                    loss = model(x)
                loss.backward()
                return loss

            def name_weights(checkpoint, model=model):
                checkpoint.gathered_by(lambda weight: weight.numel() > 0, [layer.weight for layer in model.layers])

            with self.subTest(learns=learns):
                plans = self.plans_of(model, lambda model=model, x=x: model(x), ["full", "save_mm"])
                self.compare(model, train, plans, leaves=False, prepare=name_weights)


class Shared(Swapped):
    """A layer whose weight is in a buffer that all layers share. The buffer contains the weight of the running
    layer."""

    buffer = torch.zeros(16, 16)

    def fetch(self):
        self.weight.data = Shared.buffer
        Shared.buffer.copy_(self.store)

    def drop(self):
        pass


class SharedBufferTest(Case):
    def setUp(self):
        super().setUp()
        self.model = Swapping(learns=False, make_layer=Shared)
        self.weights = [layer.weight for layer in self.model.layers]
        self.expected = self.gradients(self.model)

    def test_a_buffer_that_the_program_refills(self):
        for schedule, is_named in itertools.product(SCHEDULES, (True, False)):
            with self.subTest(schedule=schedule, is_named=is_named):
                checkpoint = self.checkpoint(self.model, schedule)
                if is_named:
                    checkpoint.gathered_by(lambda _: True, self.weights)
                with rematch.scopes(self.model, checkpoint):
                    self.assertTrue(all(map(torch.equal, self.expected, self.gradients(self.model, checkpoint))))

    def test_a_buffer_that_the_callback_refills(self):
        layer_of = {id(layer.weight): layer for layer in self.model.layers}

        def refill(weight):
            with torch.no_grad():
                layer_of[id(weight)].fetch()
            return True

        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule):
                self.model.fetches = True
                checkpoint = self.checkpoint(self.model, schedule)
                checkpoint.gathered_by(refill, self.weights)
                self.model.fetches = False
                with rematch.scopes(self.model, checkpoint):
                    self.assertTrue(all(map(torch.equal, self.expected, self.gradients(self.model, checkpoint))))


class ZeroTest(Case):
    def test_parameters_of_deepspeed_need_a_callback_before_scopes(self):
        model = Swapping(learns=True)
        checkpoint = self.checkpoint(model)
        for index, parameter in enumerate(model.parameters()):
            parameter.ds_id = index
        with self.assertRaisesRegex(rematch.RematchError, "layers.0.weight is a parameter of DeepSpeed ZeRO-3.*gathered_by") as error:
            rematch.scopes(model, checkpoint)
        self.assertNotIn("\n", str(error.exception))
        checkpoint.gathered_by(lambda parameter: parameter.numel() > 0, model.parameters())
        expected = self.gradients(model)
        rematch.scopes(model, checkpoint)
        self.assertTrue(all(map(torch.equal, expected, self.gradients(model, checkpoint))))


if __name__ == "__main__":
    unittest.main()
