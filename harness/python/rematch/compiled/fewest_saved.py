"""Finds the values that forward must save, if backward may recompute elementwise ops: those with the fewest bytes, or
those with which the step is fastest.

Inductor computes an elementwise op inside the kernels that read its result, so recomputing it in backward launches no
kernel and takes no memory. The values to save are a minimum cut between the values that forward makes and the values
that backward reads. PyTorch's partitioner computes one cut of the whole graph
(torch._functorch.partitioners.solve_min_cut). Here each layer has its own cut, because ops are recomputed only within
their layer. To find the fastest step, an edge's capacity is the time of saving a value or of recomputing an op."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable
from typing import Any

from torch import fx

from rematch.compiled.joint_graph import JointGraph, is_tensor, must_be_kept, op_of
from rematch.compiled.op_costs import OpCosts, is_elementwise, is_inside_kernel


@dataclasses.dataclass(frozen=True)
class Aim:
    """The quantity that a cut minimizes. Without `traffic_per_byte`: the saved bytes, where the bytes of values inside kernels count
    `shift` sixteenths more, because such values are in memory only if they are saved. With `traffic_per_byte`: the time
    of saving and of recomputing, plus the time of moving each saved byte that many times."""

    shift: int = 0
    traffic_per_byte: int | None = None


# A plan has an option for each aim. At 4, recomputing a gelu of single precision costs less than saving its result.
AIMS = (Aim(shift=1), Aim(shift=-1), Aim(traffic_per_byte=0), Aim(traffic_per_byte=4))
PARTS = 16

# One entry for each value: its weight, whether backward reads it, the cost of recomputing its op (None if the op must not
# be recomputed), and the indices of the values that its op reads.
_Network = tuple[tuple[int, bool, int | None, tuple[int, ...]], ...]


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

    def __init__(self, joint: JointGraph, costs: OpCosts):
        self._joint = joint
        self._costs = costs
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
                                        root in wanted, root not in at_boundaries and not must_be_kept(op),
                                        is_elementwise(op))
                    self._layers.setdefault(number_of[op], []).append(made[root])
        self._value_of = made

    def values(self, recomputed: set[fx.Node], aim: Aim) -> list[fx.Node]:
        """Returns the values to save, without inputs. `recomputed` are the ops that may be recomputed in addition to
        elementwise ops."""
        found: set[fx.Node] = set()
        for values in self._layers.values():
            members = self._with_reads(values)
            network = self._network(members, set(members).intersection(values), recomputed, aim)
            if network not in self._solved:
                self._solved[network] = _minimum_cut(network)
            found.update(members[index].root for index in self._solved[network])
        return sorted(found, key=self._joint.order.__getitem__)

    def _network(self, members: list[_Value], own: set[_Value], recomputed: set[fx.Node], aim: Aim) -> _Network:
        index_of = {value.root: index for index, value in enumerate(members)}
        network = []
        for value in members:
            runs_again = value in own and value.can_run_again and (value.is_free or op_of(value.root) in recomputed)
            weight, again = self._weight(value, aim), self._again(value, aim) if runs_again else None
            network.append((weight, value.is_wanted, again, tuple(map(index_of.__getitem__, value.reads if runs_again else ()))))
        return tuple(network)

    def _weight(self, value: _Value, aim: Aim) -> int:
        """Returns the cost of saving the value. It is above 0, so that no value is saved without need."""
        if aim.traffic_per_byte is None:
            return value.num_bytes * (PARTS + aim.shift * value.is_in_kernel) + 1
        return self._costs.saving_ns(value.root) + self._costs.traffic_ns(aim.traffic_per_byte * value.num_bytes) + 1

    def _again(self, value: _Value, aim: Aim) -> int:
        """Returns the cost of recomputing the value's op."""
        return 0 if aim.traffic_per_byte is None else self._costs.time_ns(op_of(value.root))

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
    for index, (weight, is_wanted, again, reads) in enumerate(network):
        graph.add_edge((index, "made"), (index, "read"), capacity=weight)
        if is_wanted:
            graph.add_edge((index, "read"), "sink")  # without `capacity`, an edge is unlimited
        if again is None:
            graph.add_edge("source", (index, "made"))
        elif again > 0:
            graph.add_edge("source", (index, "made"), capacity=again)
        for read in reads:
            graph.add_edge((read, "read"), (index, "made"))
    _, (before, _) = networkx.minimum_cut(graph, "source", "sink")
    return frozenset(index for index in range(len(network)) if (index, "made") in before and (index, "read") not in before)


def inputs_and_sizes(saved: Iterable[fx.Node]) -> list[fx.Node]:
    """Returns the saved values that need no memory of their own: inputs and symbolic sizes."""
    return [node for node in saved if node.op == "placeholder" or not is_tensor(node)]
