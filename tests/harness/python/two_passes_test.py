"""Tests backward in several passes: gradients of inputs are computed before gradients of weights, or a backward hook
runs whole steps."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import Stack, batch


class InputsFirstTest(BesideTorch):
    """Splits backward as pipeline parallelism does: gradients of weights are computed later, when the rank would
    otherwise be idle."""

    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = Stack(num_layers=3), batch()
        self.weights = list(self.model.parameters())
        self.plans = self.plans_of(self.model, lambda: self.model(self.x))

    def recorded(self, around):
        x = self.x.clone().requires_grad_()
        with around():
            return x, self.model(x)

    def test_inputs_then_weights(self):
        def train(around):
            x, loss = self.recorded(around)
            first = torch.autograd.grad(loss, [x], retain_graph=True)
            return loss.detach(), *first, *torch.autograd.grad(loss, self.weights)

        self.compare(self.model, train, self.plans)

    def test_weights_then_inputs(self):
        def train(around):
            x, loss = self.recorded(around)
            first = torch.autograd.grad(loss, self.weights, retain_graph=True)
            return loss.detach(), *first, *torch.autograd.grad(loss, [x])

        self.compare(self.model, train, self.plans)

    def test_weights_of_one_layer_after_another(self):
        def train(around):
            x, loss = self.recorded(around)
            loss.backward(inputs=[x], retain_graph=True)
            for layer in reversed(self.model.layers):
                loss.backward(inputs=list(layer.parameters()), retain_graph=True)
            return loss.detach(), x.grad

        self.compare(self.model, train, self.plans)

    def test_the_first_pass_stops_between_layers(self):
        def train(around):
            x = self.x.clone().requires_grad_()
            with around():
                y = self.model.layers[0](x)
                z = self.model.layers[1](y)
                loss = self.model.head(self.model.layers[2](z)).square().mean()
            (first,) = torch.autograd.grad(loss, [z], retain_graph=True)
            loss.backward()
            return loss.detach(), first, x.grad

        self.compare(self.model, train, self.plans, leaves=False)

    def test_a_batch_between_the_two_passes(self):
        def train(around):
            x, loss = self.recorded(around)
            loss.backward(inputs=[x], retain_graph=True)
            _, other = self.recorded(around)
            other.backward()
            loss.backward(inputs=self.weights)
            return loss.detach(), x.grad

        self.compare(self.model, train, self.plans)


class Encoder(Stack):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x).mean(1)


class HookTest(BesideTorch):
    """Tests GradCache. First, the representations of all batches are computed without grad mode, and a loss is computed
    from them. During backward of this loss, a hook runs a step for each batch, with the gradients of its
    representations."""

    def setUp(self):
        torch.manual_seed(0)
        self.model = Encoder(num_layers=3)
        self.batches = [batch(length=length, size=2) for length in (8, 16, 12)]

    def check(self, around_first):
        def train(around):
            with around_first(around), torch.no_grad():
                found = [self.model(x) for x in self.batches]
            found = [each.requires_grad_() for each in found]
            joined = torch.cat(found)
            loss = (joined @ joined.T).logsumexp(-1).mean()

            def step(gradient):
                for x, kept in zip(self.batches, found, strict=True):
                    with torch.enable_grad():
                        with around():
                            again = self.model(x)
                        (again * kept.detach()).sum().backward()
                return gradient

            loss.register_hook(step)
            loss.backward()
            return loss, *(each.grad for each in found)

        plans = self.plans_of(self.model, lambda: self.model(self.batches[1]).square().mean())
        self.compare(self.model, train, plans, leaves=False)

    def test_steps_in_a_hook_of_backward(self):
        self.check(lambda _: torch.no_grad())

    def test_the_first_pass_is_recorded_too(self):
        self.check(lambda around: around())


if __name__ == "__main__":
    unittest.main()
