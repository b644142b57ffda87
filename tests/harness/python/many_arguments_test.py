"""Tests ops with so many arguments and results that 15 or 16 bits cannot count them."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import Layer, Stack, batch

# Maps a number of arguments to a number of recordings, after which memory must not have grown. A step with many
# arguments takes a second, so it is recorded only twice.
NUMBERS_OF_ITEMS = {1000: 50, 2**16 + 1: 2}


class ManyItems(Layer):
    """A layer that splits a long vector into one tensor per number, and stacks these tensors. The vector needs no
    gradient, because the backward pass of such a stack takes seconds."""

    num_items = 0

    def forward(self, x):
        y = self.attention_norm(x)
        numbers = y.detach().flatten()
        items = (1.5 * numbers.repeat(-(-self.num_items // len(numbers)))[:self.num_items]).unbind()
        stacked = torch.stack(items)
        return x + torch.sin(y) * torch.cos(stacked[-x.numel():].view_as(x))


class ManyArgumentsTest(BesideTorch):
    def test_layers_that_unbind_and_stack(self):
        for num_items, num_growth_recordings in NUMBERS_OF_ITEMS.items():
            with self.subTest(num_items=num_items):
                torch.manual_seed(0)
                model, x = Stack(type("ManyItems", (ManyItems,), {"num_items": num_items}), num_layers=1), batch(length=8)

                def train(around, model=model, x=x):
                    with around():
                        loss = model(x)
                    loss.backward()
                    return loss

                plans = self.plans_of(model, lambda model=model, x=x: model(x), ["full"])
                self.compare(model, train, plans, leaves=False, num_growth_recordings=num_growth_recordings)


if __name__ == "__main__":
    unittest.main()
