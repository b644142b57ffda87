"""Tests which values a compiled graph saves if elementwise ops may be repeated in backward."""

import dataclasses
import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.capture import captured
from rematch.compiled.fewest_saved import AIMS, Aim
from rematch.compiled.graph_plans import GraphPlans
from rematch.compiled.op_costs import CPU, OpCosts
from stack import Layer, Stack, batch

WIDTH = 128  # so large that a tensor with one value per row takes little memory in comparison


class FewestSavedTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Stack(lambda: Layer(WIDTH), num_layers=2, width=WIDTH)
        capture = captured("inductor", model, [model], lambda: model(batch(width=WIDTH)), {})
        (self.joint,) = capture.graphs.values()
        self.plans = GraphPlans(self.joint, OpCosts(self.joint, CPU, fuses=True), fuses=True)

    def saved(self, recomputed=(), aim=AIMS[0]):
        return self.plans.fewest_saved(recomputed, **dataclasses.asdict(aim))

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
            schedule = self.plans.schedule([*self.joint.inputs, *saved], by_layer=False)
            added = sum(map(costs.time_ns, schedule.recomputed)) + sum(map(costs.saving_ns, schedule.saved))
            self.assertEqual(added, self.plans.option([*self.joint.inputs, *saved]).added_ns)
            return added
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
