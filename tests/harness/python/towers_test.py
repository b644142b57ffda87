"""Tests models with a part that runs only for some batches, such as the vision tower of a text model."""

import unittest
import warnings

import rematch
import torch
from beside_torch import BesideTorch
from stack import WIDTH, Layer, batch


class Towers(torch.nn.Module):
    def __init__(self, num_layers=3):
        super().__init__()
        self.vision = torch.nn.ModuleList(Layer() for _ in range(num_layers))
        self.text = torch.nn.ModuleList(Layer() for _ in range(num_layers))
        self.head = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, text, image=None):
        x = text
        if image is not None:
            for layer in self.vision:
                image = layer(image)
            x = torch.cat([image, text], 1)
        for layer in self.text:
            x = layer(x)
        return self.head(x).square().mean()


class TowersTest(BesideTorch):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Towers()
        self.text, self.image = batch(8), batch(16)

    def train_with(self, *batches):
        """Returns a function for compare() that runs all batches and accumulates their gradients."""
        def train(around):
            losses = []
            for arguments in batches:
                with around():
                    losses.append(self.model(*arguments))
                losses[-1].backward()
            return [loss.detach() for loss in losses]

        return train

    def compare_batches(self, plans, torch_layers=None):
        for batches in (((self.text, self.image),), ((self.text,),), ((self.text,), (self.text, self.image), (self.text,))):
            with self.subTest(num_images=[len(each) - 1 for each in batches]):
                self.compare(self.model, self.train_with(*batches), plans, leaves=False, torch_layers=torch_layers)

    def test_a_plan_of_a_batch_with_an_image(self):
        self.compare_batches(self.plans_of(self.model, lambda: self.model(self.text, self.image)))

    def test_a_plan_of_a_batch_without_an_image(self):
        # Tests only policy full. With other policies, a batch with an image keeps more bytes than the plan says.
        plans = self.plans_of(self.model, lambda: self.model(self.text), ["full"])
        self.assertEqual({region["first_scope"].split(".")[0] for region in plans["full"]["regions"]}, {"text"})
        self.compare_batches(plans, torch_layers=self.model.text)

    def test_a_plan_of_the_tower_alone(self):
        (plan,) = self.plans_of(self.model, lambda: self.model(self.text, self.image), ["full"]).values()
        plan["regions"] = [region for region in plan["regions"] if region["first_scope"].startswith("vision")]
        batches = ((self.text, self.image), (self.text,))
        self.compare(self.model, self.train_with(*batches), {"vision": plan}, leaves=False, torch_layers=self.model.vision)

    def test_a_plan_of_the_tower_alone_is_silent_for_a_step_without_an_image(self):
        (plan,) = self.plans_of(self.model, lambda: self.model(self.text, self.image), ["full"]).values()
        plan["regions"] = [region for region in plan["regions"] if region["first_scope"].startswith("vision")]
        checkpoint = rematch.Checkpoint(plan)
        with warnings.catch_warnings(), rematch.scopes(self.model, checkpoint):
            warnings.simplefilter("error")
            for arguments in ((self.text,), (self.text,), (self.text, self.image), (self.text,)):
                with rematch.recording(checkpoint):
                    loss = self.model(*arguments)
                loss.backward()
        self.assertEqual(sum(row["left"] for row in checkpoint.report()), 0)
        self.assertEqual(sum(row["passes"] for row in checkpoint.report()), 3)

    def test_a_plan_of_both_batches(self):
        steps = [lambda: self.model(self.text, self.image), lambda: self.model(self.text)]
        traces = rematch.trace(self.model, steps)
        self.compare_batches({policy: rematch.resolve(traces, policy) for policy in ("full", "save_mm")})


if __name__ == "__main__":
    unittest.main()
