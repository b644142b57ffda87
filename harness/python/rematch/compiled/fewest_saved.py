"""Finds the fewest bytes that forward must save, if backward may recompute elementwise ops.

Inductor computes an elementwise op inside the kernels that read its result, so recomputing it in backward launches no
kernel and takes no memory. The values to save are a minimum cut between the values that forward makes and the values
that backward reads. PyTorch's partitioner computes one cut of the whole graph
(torch._functorch.partitioners.solve_min_cut). Here each layer has its own cut, because ops are recomputed only within
their layer."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable
from typing import Any

from torch import fx

from rematch.compiled.joint_graph import JointGraph, is_tensor, must_be_kept, op_of
from rematch.compiled.op_costs import is_elementwise, is_inside_kernel

# The weight of a value is its number of bytes. Values inside kernels are in memory only if they are saved. Two cuts are
# tried, which raise or lower the weight of such values by one sixteenth. The cut with the lower peak is used.
SHIFTS = (1, -1)
PARTS = 16

# One entry for each value: its weight, whether backward reads it, whether its op may be recomputed, and the indices of
# the values that its op reads.
_Network = tuple[tuple[int, bool, bool, tuple[int, ...]], ...]


@dataclasses.dataclass(frozen=True)
class _Value:
    """A value that an op of forward makes. `reads` are the values that this op reads."""

    root: fx.Node
    reads: tuple[fx.Node, ...]
    num_bytes: int  # 0 if the program keeps the value in memory anyway
    is_in_kernel: bool
    is_wanted: bool  # an op of backward reads it
    can_run_again: bool  # False if another layer reads it, or if its op must not be recomputed
    is_free: bool  # recomputing its op launches no kernel


class FewestSaved:
    """Finds the values to save in one joint graph, given the ops that may be recomputed."""

    def __init__(self, joint: JointGraph):
        self._joint = joint
        self._solved: dict[_Network, frozenset[int]] = {}  # a cache, because many layers are equal
        number_of = _numbers_of_layers(joint)
        at_boundaries = _read_in_other_layers(joint, number_of)
        held = {joint.root(node) for node in joint.forward_outputs if node not in joint.dropped_outputs}
        wanted = {joint.root(node) for op in joint.backward for node in joint.reads(op)}
        wanted |= {joint.root(node) for node in joint.backward_outputs}
        made: dict[fx.Node, _Value] = {}
        self._layers: dict[int, list[_Value]] = {}
        for op in joint.forward:
            reads = tuple(dict.fromkeys(root for node in joint.reads(op) if (root := joint.root(node)) in made))
            for root in map(joint.root, joint.results(op)):
                if op_of(root) is op:
                    made[root] = _Value(root, reads, 0 if root in held else joint.bytes_of(root),
                                        is_inside_kernel(op, joint.readers_in_forward(op)),
                                        root in wanted, root not in at_boundaries and not must_be_kept(op), is_elementwise(op))
                    self._layers.setdefault(number_of[op], []).append(made[root])
        self._value_of = made

    def values(self, recomputed: set[fx.Node], shift: int) -> list[fx.Node]:
        """Returns the values to save, without inputs. `recomputed` are the ops that may be recomputed in addition to
        elementwise ops."""
        found: set[fx.Node] = set()
        for values in self._layers.values():
            members = self._with_reads(values)
            network = self._network(members, set(members).intersection(values), recomputed, shift)
            if network not in self._solved:
                self._solved[network] = _minimum_cut(network)
            found.update(members[index].root for index in self._solved[network])
        return sorted(found, key=self._joint.order.__getitem__)

    def _network(self, members: list[_Value], own: set[_Value], recomputed: set[fx.Node], shift: int) -> _Network:
        index_of = {value.root: index for index, value in enumerate(members)}
        network = []
        for value in members:
            runs_again = value in own and value.can_run_again and (value.is_free or op_of(value.root) in recomputed)
            # The weight is above 0, so that no value is saved without need.
            weight = value.num_bytes * (PARTS + shift * value.is_in_kernel) + 1
            network.append((weight, value.is_wanted, runs_again, tuple(map(index_of.__getitem__, value.reads if runs_again else ()))))
        return tuple(network)

    def _with_reads(self, values: list[_Value]) -> list[_Value]:
        """Returns the values of a layer. The values of other layers that its ops read come first."""
        own = {value.root for value in values}
        others = dict.fromkeys(read for value in values for read in value.reads if read not in own)
        return [dataclasses.replace(self._value_of[read], is_wanted=False) for read in others] + values


def _numbers_of_layers(joint: JointGraph) -> dict[fx.Node, int]:
    """Numbers the layers and the parts between layers, in forward's order. Maps each op to the number of its layer or
    part."""
    found: dict[fx.Node, int] = {}
    before = None
    for op in joint.forward:
        layer = joint.layer_of.get(op)
        found[op] = found[before] + (layer != joint.layer_of.get(before)) if before is not None else 0
        before = op
    return found


def _read_in_other_layers(joint: JointGraph, number_of: dict[fx.Node, int]) -> set[fx.Node]:
    return {root for op in joint.forward for node in joint.reads(op)
            if (made_by := op_of(root := joint.root(node))) in number_of and number_of[made_by] != number_of[op]}


def _minimum_cut(network: _Network) -> frozenset[int]:
    """Returns the indices of the values in the cut. Each value is represented by two nodes and an edge with the value's
    weight between them."""
    networkx: Any = importlib.import_module("networkx")  # installed with torch; has no type annotations
    graph = networkx.DiGraph()
    graph.add_nodes_from(("source", "sink"))
    for index, (weight, is_wanted, runs_again, reads) in enumerate(network):
        graph.add_edge((index, "made"), (index, "read"), capacity=weight)
        if is_wanted:
            graph.add_edge((index, "read"), "sink")  # without `capacity`, an edge is unlimited
        if not runs_again:
            graph.add_edge("source", (index, "made"))
        for read in reads:
            graph.add_edge((read, "read"), (index, "made"))
    _, (before, _) = networkx.minimum_cut(graph, "source", "sink")
    return frozenset(index for index in range(len(network)) if (index, "made") in before and (index, "read") not in before)


def inputs_and_sizes(saved: Iterable[fx.Node]) -> list[fx.Node]:
    """Returns the saved values that need no memory of their own: inputs and symbolic sizes."""
    return [node for node in saved if node.op == "placeholder" or not is_tensor(node)]
