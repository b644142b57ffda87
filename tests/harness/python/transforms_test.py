"""Tests torch.func on a model with scopes, forward-mode gradients, and second derivatives, inside a recorded step."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import Stack, batch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel


class Case(BesideTorch):
    def setUp(self):
        self.enterContext(sdpa_kernel(SDPBackend.MATH))  # other backends have no second derivative
        torch.manual_seed(0)
        self.model, self.x = Stack(num_layers=3), batch(length=8, size=3)
        self.plans = self.plans_of(self.model, lambda: self.model(self.x))
        self.parameters = dict(self.model.named_parameters())
        self.values = {name: each.detach() for name, each in self.parameters.items()}

    def called_with(self, parameters, x):
        return functional_call(self.model, parameters, (x,))


class FunctionalCallTest(Case):
    def test_parameters_of_the_model(self):
        def train(around):
            with around():
                loss = self.called_with(self.parameters, self.x)
            loss.backward()
            return loss

        self.compare(self.model, train, self.plans, leaves=False)

    def test_other_parameters(self):
        """Calls the model with parameters other than its own. torch.utils.checkpoint cannot run this, because it would
        recompute layers with the model's own parameters."""
        others = {name: (1.01 * each).requires_grad_() for name, each in self.values.items()}

        def train(around):
            with around():
                loss = self.called_with(others, self.x)
            return loss, *torch.autograd.grad(loss, list(others.values()))

        self.compare(self.model, train, self.plans, leaves=False, torch_runs=False)


class TransformTest(Case):
    """Tests transforms of torch.func. They disable saved-tensor hooks, so layers inside them are not checkpointed."""

    def compare_transform(self, train):
        self.compare(self.model, train, self.plans, torch_runs=False, recomputes=False)

    def test_gradients_of_each_sample(self):
        gradients = vmap(grad(lambda parameters, x: self.called_with(parameters, x[None])), in_dims=(None, 0))

        def train(around):
            with around():
                found = gradients(self.values, self.x)
            return list(found.values())

        self.compare_transform(train)

    def test_grad(self):
        def train(around):
            with around():
                found = grad(self.called_with)(self.values, self.x)
            return list(found.values())

        self.compare_transform(train)

    def test_vjp(self):
        def train(around):
            with around():
                loss, pull = vjp(lambda parameters: self.called_with(parameters, self.x), self.values)
            return loss, *pull(torch.ones(()))[0].values()

        self.compare_transform(train)

    def test_jvp(self):
        def train(around):
            tangents = {name: torch.ones_like(each) for name, each in self.values.items()}
            with around():
                return jvp(lambda parameters: self.called_with(parameters, self.x), (self.values,), (tangents,))

        self.compare_transform(train)

    def test_transforms_next_to_a_checkpointed_step(self):
        def train(around):
            with around():
                found = grad(self.called_with)(self.values, self.x)
                loss = self.model(self.x)
            loss.backward()
            return loss, *found.values()

        self.compare(self.model, train, self.plans, torch_runs=False)


class DerivativeTest(Case):
    def test_forward_mode(self):
        def train(around):
            with forward_ad.dual_level():
                x = forward_ad.make_dual(self.x, torch.ones_like(self.x))
                with around():
                    loss, tangent = forward_ad.unpack_dual(self.model(x))
            loss.backward()
            return loss, tangent

        self.compare(self.model, train, self.plans, torch_runs=False)

    def test_gradients_of_gradients(self):
        def train(around):
            with around():
                loss = self.model(self.x)
            found = torch.autograd.grad(loss, list(self.model.parameters()), create_graph=True)
            sum((2 * each).sum() for each in found).backward()
            return loss

        self.compare(self.model, train, self.plans, leaves=False)

    def test_forces_inside_the_recorded_pass(self):
        def train(around):
            x = self.x.clone().requires_grad_()
            with around():
                energy = self.model(x)
                (force,) = torch.autograd.grad(energy, x, create_graph=True)
                loss = energy + force.square().sum()
            loss.backward()
            return loss

        self.compare(self.model, train, self.plans)


if __name__ == "__main__":
    unittest.main()
