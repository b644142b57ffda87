"""Tests which values a compiled graph saves if elementwise ops may be repeated in backward."""

import itertools
import random
import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.capture import captured
from rematch.compiled.fewest_saved import AIMS, Aim, FewestSaved, _minimum_cut
from rematch.compiled.op_costs import CPU, OpCosts
from rematch.compiled.schedule import schedule_of
from stack import Layer, Stack, batch

WIDTH = 128  # so large that a tensor with one value per row takes little memory in comparison


def drawn_network(rng):
    """Returns a random network of up to eight values. Each value may be computed from earlier values."""
    values = []
    for index in range(rng.randint(1, 8)):
        again = rng.choice((0, rng.randint(1, 9))) if rng.random() < 0.7 else None
        reads = tuple(sorted(rng.sample(range(index), rng.randint(0, min(index, 3))))) if again is not None else ()
        values.append((rng.randint(1, 9), rng.random() < 0.4, again, reads))
    return tuple(values)


def cost(network, saved):
    """Returns the cost of saving these values, and of recomputing the values that are needed and not saved. Returns None
    if a value that is needed cannot be recomputed."""
    needed = {index for index, (_, is_wanted, _, _) in enumerate(network) if is_wanted}
    total = sum(network[index][0] for index in saved)
    for index, (_, _, again, reads) in reversed(list(enumerate(network))):
        if index in needed and index not in saved:
            if again is None:
                return None
            total += again
            needed.update(reads)
    return total


class MinimumCutTest(unittest.TestCase):
    def test_no_choice_of_values_costs_less(self):
        for seed in range(200):
            network = drawn_network(random.Random(seed))
            choices = (set(choice) for count in range(len(network) + 1)
                       for choice in itertools.combinations(range(len(network)), count))
            least = min(total for choice in choices if (total := cost(network, choice)) is not None)
            with self.subTest(seed=seed, network=network):
                self.assertEqual(cost(network, _minimum_cut(network)), least)


class FewestSavedTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Stack(lambda: Layer(WIDTH), num_layers=2, width=WIDTH)
        capture = captured("inductor", model, [model], lambda: model(batch(width=WIDTH)), {})
        (self.joint,) = capture.graphs.values()

    def saved(self, recomputed=(), aim=AIMS[0]):
        return FewestSaved(self.joint, OpCosts(self.joint, CPU, fuses=True)).values(set(recomputed), aim)

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

    def test_the_fastest_step_saves_what_takes_longer_to_recompute(self):
        """One byte of traffic takes 0.1 ns. Recomputing erf and the ops around it reads and writes the input of gelu and
        more, so saving a result of single precision is faster, unless its bytes have a price."""
        costs = OpCosts(self.joint, CPU, fuses=True)

        def added_ns(saved):
            schedule = schedule_of(self.joint, [*self.joint.inputs, *saved], by_layer=False, fuses=True)
            return sum(map(costs.time_ns, schedule.recomputed)) + sum(map(costs.saving_ns, schedule.saved))
        fewest, fastest = self.saved(), self.saved(aim=Aim(traffic_per_byte=0))
        bytes_of = self.joint.bytes_of
        self.assertLess(sum(map(bytes_of, fewest)), sum(map(bytes_of, fastest)))
        self.assertLess(added_ns(fastest), added_ns(fewest))

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
