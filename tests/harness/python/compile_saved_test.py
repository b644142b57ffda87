"""Tests which values a compiled graph saves if elementwise ops may be repeated in backward."""

import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.capture import captured
from rematch.compiled.graph_plans import Aim, GraphPlans
from rematch.compiled.op_costs import CPU, OpCosts
from rematch.compiled.options import AIMS, nodes_of
from stack import Layer, Stack, batch

WIDTH = 128  # so large that a tensor with one value per row takes little memory in comparison


class FewestSavedTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Stack(lambda: Layer(WIDTH), num_layers=2, width=WIDTH)
        capture = captured("inductor", model, [model], lambda: model(batch(width=WIDTH)), {})
        (self.joint,) = capture.graphs.values()
        self.costs = OpCosts(self.joint, CPU, fuses=True)

    def option(self, recomputed=(), aim=AIMS[0]):
        (option,) = GraphPlans(self.joint, self.costs, fuses=True, aims=[aim]).options(recomputed)
        return option

    def saved(self, recomputed=(), aim=AIMS[0]):
        """Returns the saved values without inputs."""
        return [node for node in nodes_of(self.joint, self.option(recomputed, aim)) if node.op == "call_function"]

    def saved_bytes(self, option):
        return sum(map(self.joint.bytes_of, nodes_of(self.joint, option)))

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
        matmuls = self.ops_named("addmm")
        self.assertFalse(set(self.saved(matmuls)) & self.inputs_of_gelu())
        self.assertLess(self.saved_bytes(self.option(matmuls)), self.saved_bytes(self.option()))

    def test_the_fastest_step_saves_what_takes_longer_to_recompute(self):
        """One byte of traffic takes 0.1 ns. Recomputing erf and the ops around it reads and writes the input of gelu and
        more, so saving a result of single precision is faster, unless its bytes have a price."""
        fewest, fastest = self.option(), self.option(aim=Aim(traffic_per_byte=0))
        self.assertLess(self.saved_bytes(fewest), self.saved_bytes(fastest))
        self.assertLess(fastest.added_ns, fewest.added_ns)

    def test_the_added_time_is_that_of_recomputed_and_of_saved_values(self):
        for aim in AIMS:
            option = self.option(aim=aim)
            schedule = GraphPlans(self.joint, fuses=True).schedule(nodes_of(self.joint, option), by_layer=option.by_layer)
            added = sum(map(self.costs.time_ns, schedule.recomputed)) + sum(map(self.costs.saving_ns, schedule.saved))
            self.assertGreater(added, 0)
            self.assertEqual(option.added_ns, added)

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
