"""Tests which values a compiled graph saves if elementwise ops may be repeated in backward."""

import itertools
import random
import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.capture import captured
from rematch.compiled.fewest_saved import FewestSaved, _minimum_cut
from stack import Layer, Stack, batch

WIDTH = 128  # so large that a tensor with one value per row takes little memory in comparison


def drawn_network(rng):
    """Returns a random network of up to eight values. Each value may be computed from earlier values."""
    values = []
    for index in range(rng.randint(1, 8)):
        runs_again = rng.random() < 0.7
        reads = tuple(sorted(rng.sample(range(index), rng.randint(0, min(index, 3))))) if runs_again else ()
        values.append((rng.randint(1, 9), rng.random() < 0.4, runs_again, reads))
    return tuple(values)


def suffices(network, saved):
    """Returns whether each value that is needed is saved or can be computed from saved values."""
    made = set()
    for index, (_, _, runs_again, reads) in enumerate(network):
        if index in saved or (runs_again and made.issuperset(reads)):
            made.add(index)
    return all(index in made for index, (_, is_wanted, _, _) in enumerate(network) if is_wanted)


def weight(network, saved):
    return sum(network[index][0] for index in saved)


class MinimumCutTest(unittest.TestCase):
    def test_no_choice_of_values_weighs_less(self):
        for seed in range(200):
            network = drawn_network(random.Random(seed))
            choices = (set(choice) for count in range(len(network) + 1)
                       for choice in itertools.combinations(range(len(network)), count))
            lightest = min(weight(network, choice) for choice in choices if suffices(network, choice))
            found = _minimum_cut(network)
            with self.subTest(seed=seed, network=network):
                self.assertTrue(suffices(network, found))
                self.assertEqual(weight(network, found), lightest)


class FewestSavedTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Stack(lambda: Layer(WIDTH), num_layers=2, width=WIDTH)
        capture = captured("inductor", model, [model], lambda: model(batch(width=WIDTH)), {})
        (self.joint,) = capture.graphs.values()

    def saved(self, recomputed=()):
        return FewestSaved(self.joint).values(set(recomputed), 1)

    def ops_named(self, name):
        return [op for op in self.joint.forward if name in str(op.target)]

    def inputs_of_gelu(self):
        found = [op for op in self.ops_named("addmm") if self.joint.bytes_of(op) == 4 * 16 * 4 * WIDTH * 4]
        self.assertEqual(len(found), 2)
        return set(found)

    def test_elementwise_ops_run_again_and_matmuls_do_not(self):
        saved, parts_of_gelu = set(self.saved()), set(self.ops_named("aten.erf"))
        self.assertEqual(len(parts_of_gelu), 2)
        self.assertFalse(saved & parts_of_gelu)
        self.assertLessEqual(self.inputs_of_gelu(), saved)

    def test_a_recomputed_matmul_is_not_saved(self):
        fewer = self.saved(self.ops_named("addmm"))
        self.assertFalse(set(fewer) & self.inputs_of_gelu())
        bytes_of = self.joint.bytes_of
        self.assertLess(sum(map(bytes_of, fewer)), sum(map(bytes_of, self.saved())))

    def test_values_between_layers_are_not_computed_again(self):
        """Layer 1 reads the sum that layer 0 returns. This sum must be saved. Without a boundary between the layers,
        its terms could be saved instead."""
        layer_of = self.joint.layer_of
        returned = [op for op in self.ops_named("aten.add.Tensor") if op in layer_of and any(
            layer_of.get(user, layer_of[op]) != layer_of[op] for user in self.joint.readers_in_forward(op))]
        self.assertEqual(len(returned), 1)
        self.assertIn(returned[0], self.saved())


if __name__ == "__main__":
    unittest.main()
