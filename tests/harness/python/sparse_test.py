"""Tests sparse tensors that layers make, and whose values they write to through views."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import Layer, Stack, batch
from torch.nn import functional

INDICES = torch.tensor([[0, 0, 1, 2, 3, 5, 7], [1, 2, 0, 3, 4, 6, 7]])
ROWS = torch.tensor([0, 2, 3, 4, 5, 5, 6, 6, 7])
SIZE = 8
NUM_LAYERS = 3
# A write through .data cannot be repeated, so the record keeps the values and a copy of the written content.
KEPT_BYTES = NUM_LAYERS * 2 * 4 * INDICES.shape[1]


def halve_values(matrix, _):
    matrix.values().mul_(0.5)


def divide_inner_values(matrix, _):
    matrix._values().div_(3.0)


def double_what_it_was_made_of(_, values):
    values.mul_(2.0)


def double_matrix(matrix, _):
    matrix.mul_(2.0)


def nothing(matrix, values):
    pass


class Sparse(Layer):
    """Multiplies by a sparse matrix that the layer makes and `change` then writes to."""

    def __init__(self, make_matrix, change):
        super().__init__()
        self.make_matrix, self.change = make_matrix, change

    def forward(self, x):
        values = torch.sigmoid(self.feed_forward.up.bias[:INDICES.shape[1]]).detach() * (x.detach().mean() + 2)
        matrix = self.make_matrix(values)
        self.change(matrix, values)
        y = torch.stack([matrix @ each for each in self.attention_norm(x)])
        return x + functional.gelu(y) * y


def by_coordinates(values):
    return torch.sparse_coo_tensor(INDICES, values, (SIZE, SIZE), is_coalesced=True)


def by_rows(values):
    return torch.sparse_csr_tensor(ROWS, INDICES[1], values, (SIZE, SIZE))


class SparseTest(BesideTorch):
    def check(self, make_layer, **options):
        torch.manual_seed(0)
        model, x = Stack(make_layer, num_layers=NUM_LAYERS), batch(length=SIZE)

        def train(around):
            with around():
                loss = model(x)
            loss.backward()
            return loss

        self.compare(model, train, self.plans_of(model, lambda: model(x)), leaves=False, **options)

    def test_coordinates(self):
        for change in (nothing, halve_values, double_what_it_was_made_of, double_matrix):
            with self.subTest(change=change.__name__):
                self.check(lambda change=change: Sparse(by_coordinates, change))
        self.check(lambda: Sparse(by_coordinates, divide_inner_values), beyond_bytes=KEPT_BYTES)

    def test_rows(self):
        self.check(lambda: Sparse(by_rows, nothing))
        for change in (halve_values, double_what_it_was_made_of):
            with self.subTest(change=change.__name__):
                words = "writes in place into .* the values of a compressed tensor; write to them before"
                with self.assertRaisesRegex(RuntimeError, words) as error:
                    self.check(lambda change=change: Sparse(by_rows, change))
                self.assertNotIn("\n", str(error.exception))


if __name__ == "__main__":
    unittest.main()
