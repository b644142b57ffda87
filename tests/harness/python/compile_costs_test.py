"""Tests the op times of compiled graphs."""

import pathlib
import re
import unittest

import rematch  # noqa: F401  loads the library
import torch
from rematch.compiled.op_costs import CARDS, CPU, OpCosts, flops_of, is_inside_kernel, makes_random_numbers, rates_of
from torch import fx

SHEETS = pathlib.Path(__file__).resolve().parents[3] / "policies" / "predict" / "device" / "device_sheet.cpp"
UNIT = {"kTera": 1e12, "kGiga": 1e9}


def graph_of(function, *inputs):
    """Traces the function with make_fx. Returns the nodes of the graph by name."""
    module = fx.experimental.proxy_tensor.make_fx(function)(*inputs)
    return {node.name: node for node in module.graph.nodes}


class Joint:
    """A stand-in for a joint graph. Every op has one result."""

    def reads(self, op):
        return op.all_input_nodes

    def results(self, op):
        return [op]

    def bytes_of(self, node):
        return node.meta["val"].nbytes


class CostsTest(unittest.TestCase):
    def test_rates_are_those_of_the_data_sheets(self):
        rate = r"([\d.]+) \* (k\w+),\s*"
        found = {name: [float(number) * UNIT[unit] for number, unit in zip(numbers[::2], numbers[1::2], strict=True)]
                 for name, *numbers in re.findall(r'\{"(\w+)",\s*"NVIDIA[^{]*?hundredths_of_gib\(\d+\),\s*' + rate * 3,
                                                  SHEETS.read_text(encoding="utf-8"))}
        self.assertEqual(found, {card.name: [card.half_flops_per_second, card.float_flops_per_second, card.bytes_per_second]
                                 for card in CARDS})

    def test_a_device_by_name(self):
        self.assertEqual(rates_of("cpu"), CPU)
        self.assertEqual(rates_of("NVIDIA H200").name, "h200")
        with self.assertRaisesRegex(ValueError, "device is 'tpu'; known are cpu, h100"):
            rates_of("tpu")

    def test_random_numbers_cost_their_arithmetic(self):
        from torch._inductor import inductor_prims

        nodes = graph_of(lambda seed: inductor_prims.random([64, 32], seed, "rand").gt(0.1), torch.tensor(1))
        # 400 operations for each of 2048 numbers, at 50 GFLOP/s
        (numbers,) = filter(makes_random_numbers, nodes.values())
        self.assertEqual(OpCosts(Joint(), CPU, fuses=True).time_ns(numbers), 2048 * 8)

    def test_a_chain_of_elementwise_ops_costs_bytes_at_its_edges(self):
        nodes = graph_of(lambda x, w: (x.exp().sin() @ w), torch.ones(64, 32), torch.ones(32, 16))
        self.assertTrue(is_inside_kernel(nodes["exp"]))
        self.assertFalse(is_inside_kernel(nodes["sin"]))  # must be in memory, because the matmul reads this result
        self.assertEqual(flops_of(nodes["mm"]), 2 * 64 * 32 * 16)
        # 64 x 32 floats take 8192 bytes. At 10 GB/s, reading and writing them takes 1638 ns. If both ops run in one
        # kernel, exp only reads and sin only writes, so each takes half of the time.
        for fuses, expected in ((False, (1638, 1638)), (True, (819, 819))):
            costs = OpCosts(Joint(), CPU, fuses=fuses)
            self.assertEqual((costs.time_ns(nodes["exp"]), costs.time_ns(nodes["sin"])), expected)


if __name__ == "__main__":
    unittest.main()
