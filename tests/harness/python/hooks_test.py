"""Tests hooks, parametrizations and adapters that are added to modules inside layers after the trace was made."""

import contextlib
import unittest

import torch
from beside_torch import BesideTorch
from stack import WIDTH, Stack, batch
from torch.nn.utils import parametrizations


class Adapted(torch.nn.Module):
    """A linear layer with a low-rank adapter."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear
        self.down, self.up = torch.nn.Linear(linear.in_features, 2), torch.nn.Linear(2, linear.out_features)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class HooksTest(BesideTorch):
    def check(self, change, leaves):
        """`change(model)` changes the model after the trace is made. If it returns a context manager, the steps run
        inside this context."""
        torch.manual_seed(0)
        model = Stack(num_layers=3)
        plans = self.plans_of(model, lambda: model(batch().requires_grad_()))

        def train(around):
            x = batch().requires_grad_()
            with around():
                loss = model(x)
            loss.backward()
            return loss.detach(), x.grad

        with change(model) or contextlib.nullcontext():
            self.compare(model, train, plans, leaves=leaves)

    def test_hooks_of_backward(self):
        """A module with backward hooks makes views of its inputs and results."""
        hooks = {"full backward": lambda module: module.register_full_backward_hook(lambda *_: None),
                 "full backward pre": lambda module: module.register_full_backward_pre_hook(lambda *_: None)}
        for name, register in hooks.items():
            for place in ("layers.1", "layers.1.feed_forward", "layers.1.attention.qkv"):
                with self.subTest(hook=name, place=place):
                    self.check(lambda model, register=register, place=place: register(model.get_submodule(place)) and None, True)

    def test_hooks_of_all_modules(self):
        def change(_):
            self.addCleanup(torch.nn.modules.module.register_module_full_backward_hook(lambda *_: None).remove)

        self.check(change, True)

    def test_a_gradient_that_a_hook_changes(self):
        def change(model):
            def double(module, gradients, _):
                return tuple(2 * each for each in gradients)

            model.layers[1].feed_forward.register_full_backward_hook(double)

        self.check(change, True)

    def test_hooks_of_results(self):
        def change(model):
            def hook(module, arguments, result):
                result.register_hook(lambda gradient: 0.5 * gradient)

            model.layers[1].feed_forward.register_forward_hook(hook)

        self.check(change, False)

    def test_hooks_that_change_arguments_and_results(self):
        def change(model):
            model.layers[0].attention.register_forward_pre_hook(lambda module, arguments: tuple(0.5 * each for each in arguments))
            model.layers[2].feed_forward.register_forward_hook(lambda module, arguments, result: result.sigmoid())

        self.check(change, True)

    def test_monitors(self):
        def change(model):
            def read(module, arguments, result):
                module.norm = result.detach().norm().item()

            def read_without_grad(module, arguments, result):
                with torch.no_grad():
                    module.largest = result.abs().max()

            model.layers[0].feed_forward.register_forward_hook(read)
            model.layers[1].feed_forward.register_forward_hook(read_without_grad)

        self.check(change, True)

    def test_hooks_of_accumulated_gradients(self):
        def change(model):
            def halve(parameter):
                parameter.grad.mul_(0.5)

            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(halve)

        self.check(change, False)

    def test_anomaly_detection(self):
        self.check(lambda _: torch.autograd.set_detect_anomaly(True, check_nan=False), False)

    def test_parametrizations(self):
        def change(model):
            parametrizations.weight_norm(model.layers[0].feed_forward.up)
            parametrizations.orthogonal(model.layers[1].attention.out)

        self.check(change, True)

    def test_adapters(self):
        def change(model):
            for layer in model.layers:
                layer.attention.qkv = Adapted(layer.attention.qkv)
            self.assertEqual(model.layers[0].attention.qkv.down.in_features, WIDTH)

        self.check(change, True)


if __name__ == "__main__":
    unittest.main()
