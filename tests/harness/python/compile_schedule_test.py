"""Compares schedules of joint graphs with a slower implementation, which works on the nodes of the graph."""

import unittest

import torch
import zoo
from rematch.compiled.capture import captured
from rematch.compiled.graph_plans import GraphPlans
from rematch.compiled.joint_graph import is_op, is_tensor, is_view, op_of
from rematch.compiled.op_costs import is_elementwise
from stack import WIDTH, Layer, Stack, batch

MAX_CALLS_BETWEEN = 3


def demand_order(joint, saved):
    found = []
    made = set(saved)

    def add(node):
        if node in made or node.op != "call_function":
            return []
        made.add(node)
        return [node, *(each for read in node.all_input_nodes for each in add(read))]
    for seed in joint.backward_seeds:
        found += sorted(add(seed), key=joint.order.__getitem__)
    return found


def grouped_by_layer(joint, order):
    """Returns the order in which each layer is recomputed as a whole."""
    layer_of = {node: joint.layer_of.get(op_of(node)) if joint.is_forward(node) else None for node in order}
    found = []

    def add(node):
        if node in layer_of and node not in found:
            for each in reversed(node.all_input_nodes):
                add(each)
            if node not in found:
                found.append(node)
    for node in order:
        if layer_of[node] is not None:
            for each in sorted((each for each in order if layer_of[each] == layer_of[node]), key=joint.order.__getitem__):
                add(each)
        add(node)
    return found


def with_neighbours(joint, order):
    """Returns the order in which elementwise ops run beside earlier ones that read the same value."""
    is_call = [is_op(node) and not is_view(node) and not is_elementwise(node) for node in order]
    position_of = {node: position for position, node in enumerate(order)}
    read, first_reader, moved_to, moved = {}, {}, {}, set()
    for position, node in enumerate(order):
        if not is_op(node) or is_call[position]:
            continue
        inputs = node.all_input_nodes[:1] or [node] if is_view(node) else node.all_input_nodes
        read[node] = set().union(*(read.get(each, {joint.root(each)} if is_tensor(each) else set()) for each in inputs if each in read or
                                   is_tensor(each)))
        if is_view(node):
            continue
        ready_after = max((position_of.get(root, -1) for root in read[node]), default=-1)
        places = [place for root in read[node] if (place := first_reader.get(root, -1)) > ready_after
                  and sum(is_call[place:position]) <= MAX_CALLS_BETWEEN]
        target = min(places, default=position)
        if target < position:
            chain = [each for each in order[target + 1:position + 1] if each in needed_after(node, position_of, target)]
            moved_to.setdefault(target, []).extend(each for each in chain if each not in moved)
            moved.update(chain)
        for root in read[node]:
            first_reader.setdefault(root, target)
    return [each for position, node in enumerate(order)
            for each in ([] if node in moved else [node]) + moved_to.get(position, [])]


def needed_after(node, position_of, target):
    found = {node}
    for each in node.all_input_nodes:
        if position_of.get(each, -1) > target:
            found |= needed_after(each, position_of, target)
    return found


def joint_of(model, step):
    torch._dynamo.reset()
    (joint,) = captured("inductor", model, [model], step, {}).graphs.values()
    return joint


class SchedulesTest(unittest.TestCase):
    def require_equal(self, joint):
        """Compares schedules that save different shares of the results of forward."""
        plans = {fuses: GraphPlans(joint, fuses=fuses) for fuses in (False, True)}
        results = [result for op in joint.forward if not is_view(op) for result in joint.results(op)]
        for share in range(1, 8):
            saved = [*joint.inputs, *(result for index, result in enumerate(results) if index % share == 0)]
            orders = {False: demand_order(joint, saved)}
            orders[True] = grouped_by_layer(joint, orders[False])
            for by_layer, order in orders.items():
                with self.subTest(share=share, by_layer=by_layer):
                    self.assertEqual(order, plans[False].schedule(saved, by_layer=by_layer).backward)
                    self.assertEqual(with_neighbours(joint, order), plans[True].schedule(saved, by_layer=by_layer).backward)

    def test_of_a_transformer(self):
        torch.manual_seed(0)
        model = Stack(Layer, num_layers=3).train()
        x = batch(width=WIDTH)
        self.require_equal(joint_of(model, lambda: model(x)))

    def test_of_a_llama(self):
        torch.manual_seed(0)
        model, step = zoo.llama()
        self.require_equal(joint_of(model.train(), step))


if __name__ == "__main__":
    unittest.main()
