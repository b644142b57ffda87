"""Tests layers that create sparse tensors, and then write to their indices and values through views."""

import unittest

import torch
from beside_torch import BesideTorch
from stack import Layer, Stack, batch
from torch.nn import functional

INDICES = torch.tensor([[0, 0, 1, 2, 3, 5, 7], [1, 2, 0, 3, 4, 6, 7]])
ROWS = torch.tensor([0, 2, 3, 4, 5, 5, 6, 6, 7])
SIZE = 8
NUM_LAYERS = 3


def halve_values(matrix, _):
    matrix.values().mul_(0.5)


def divide_inner_values(matrix, _):
    matrix._values().div_(3.0)


def double_what_it_was_made_of(_, values):
    values.mul_(2.0)


def double_matrix(matrix, _):
    matrix.mul_(2.0)


def move_columns(matrix, values):
    columns = matrix.indices()[1] if matrix.layout == torch.sparse_coo else matrix.col_indices()
    columns.remainder_(5)
    values.mul_(2.0)


def nothing(matrix, values):
    pass


class Sparse(Layer):
    """A layer that makes a sparse matrix, calls `change` to write to it, and multiplies by it."""

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


def by_own_coordinates(values):
    return torch.sparse_coo_tensor(INDICES.clone(), values, (SIZE, SIZE), is_coalesced=True)


def by_rows(values):
    return torch.sparse_csr_tensor(ROWS, INDICES[1], values, (SIZE, SIZE))


def by_own_rows(values):
    return torch.sparse_csr_tensor(ROWS.clone(), INDICES[1].clone(), values, (SIZE, SIZE))


class SparseTest(BesideTorch):
    def check(self, make_layer, **options):
        torch.manual_seed(0)
        model, x = Stack(make_layer, num_layers=NUM_LAYERS), batch(length=SIZE)
        before = INDICES.clone()

        def train(around):
            with around():
                loss = model(x)
            loss.backward()
            return loss

        def reset():
            INDICES.copy_(before)

        self.addCleanup(reset)
        self.compare(model, train, self.plans_of(model, lambda: model(x)), leaves=False, reset=reset, **options)

    def test_coordinates(self):
        for change in (nothing, halve_values, divide_inner_values, double_what_it_was_made_of, double_matrix):
            with self.subTest(change=change.__name__):
                self.check(lambda change=change: Sparse(by_coordinates, change))

    def test_rows(self):
        for change in (nothing, halve_values, double_what_it_was_made_of, double_matrix):
            with self.subTest(change=change.__name__):
                self.check(lambda change=change: Sparse(by_rows, change))

    def test_indices_of_the_layer(self):
        for make in (by_own_coordinates, by_own_rows):
            with self.subTest(make=make.__name__):
                self.check(lambda make=make: Sparse(make, move_columns))

    def test_indices_from_outside(self):
        for make in (by_coordinates, by_rows):
            with self.subTest(make=make.__name__):
                # torch.utils.checkpoint cannot run this, because recompute would write to the indices again
                self.check(lambda make=make: Sparse(make, move_columns), torch_runs=False)


if __name__ == "__main__":
    unittest.main()
