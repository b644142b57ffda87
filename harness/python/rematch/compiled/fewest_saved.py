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
from typing import Any

from torch import fx

from rematch.compiled.joint_graph import JointGraph, is_symbolic_size, op_of
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
    saving_ns: int
    op_ns: int  # the time of recomputing its op

    def weight(self, aim: Aim, costs: OpCosts) -> int:
        """Returns the cost of saving the value. It is above 0, so that no value is saved without need."""
        if aim.traffic_per_byte is None:
            return self.num_bytes * (PARTS + aim.shift * self.is_in_kernel) + 1
        return self.saving_ns + costs.traffic_ns(aim.traffic_per_byte * self.num_bytes) + 1

    def again(self, aim: Aim) -> int:
        """Returns the cost of recomputing the value's op."""
        return 0 if aim.traffic_per_byte is None else self.op_ns


class FewestSaved:
    """Finds the values to save in one joint graph, given the ops that may be recomputed."""

    def __init__(self, joint: JointGraph, costs: OpCosts):
        self._joint = joint
        self._costs = costs
        self._solved: dict[tuple[int, tuple[bool, ...], Aim], frozenset[int]] = {}  # a cache, because many layers are equal
        number_of = _numbers_of_layers(joint)
        at_boundaries = _read_in_other_layers(joint, number_of)
        held = {joint.root(node) for node in joint.forward_outputs if node not in joint.dropped_outputs}
        wanted = {joint.root(node) for op in joint.backward for node in joint.reads(op)}
        wanted |= {joint.root(node) for node in joint.backward_outputs}
        made: dict[fx.Node, _Value] = {}
        layers: dict[int, list[_Value]] = {}
        for op in joint.forward:
            reads = tuple(dict.fromkeys(root for node in joint.reads(op) if (root := joint.root(node)) in made))
            for root in map(joint.root, joint.results(op)):
                if op_of(root) is op:
                    made[root] = _Value(root, reads, 0 if root in held else joint.bytes_of(root),
                                        is_inside_kernel(op, joint.readers_in_forward(op)),
                                        root in wanted, root not in at_boundaries and op not in joint.kept_ops, is_elementwise(op),
                                        costs.saving_ns(root), costs.time_ns(op))
                    layers.setdefault(number_of[op], []).append(made[root])
        self._layers = [_Layer(values, made) for values in layers.values()]
        numbers: dict[tuple[Any, ...], int] = {}
        self._kinds = [numbers.setdefault(layer.kind, len(numbers)) for layer in self._layers]  # numbers are hashed in less time

    def values(self, recomputed: set[fx.Node], aim: Aim) -> list[fx.Node]:
        """Returns the values to save, without inputs. `recomputed` are the ops that may be recomputed in addition to
        elementwise ops."""
        found: set[fx.Node] = set()
        for kind, layer in zip(self._kinds, self._layers, strict=True):
            running_again = layer.running_again(recomputed)
            key = kind, running_again, aim
            if key not in self._solved:
                self._solved[key] = _minimum_cut(layer.network(running_again, aim, self._costs))
            found.update(layer.members[index].root for index in self._solved[key])
        return sorted(found, key=self._joint.order.__getitem__)


class _Layer:
    """The values of a layer. The values of other layers that its ops read come first. `kind` is equal for layers that
    have equal networks."""

    def __init__(self, values: list[_Value], made: dict[fx.Node, _Value]):
        own = {value.root for value in values}
        others = dict.fromkeys(read for value in values for read in value.reads if read not in own)
        self.members = [dataclasses.replace(made[read], is_wanted=False, can_run_again=False) for read in others] + values
        index_of = {value.root: index for index, value in enumerate(self.members)}
        self._reads = [tuple(index_of[read] for read in value.reads) if value.can_run_again else () for value in self.members]
        self._op_of = [op_of(value.root) for value in self.members]
        self.kind = tuple((value.num_bytes, value.is_in_kernel, value.is_wanted, value.can_run_again, value.is_free, value.saving_ns,
                           value.op_ns, reads) for value, reads in zip(self.members, self._reads, strict=True))

    def running_again(self, recomputed: set[fx.Node]) -> tuple[bool, ...]:
        """Returns for each value whether its op may run again."""
        return tuple(value.can_run_again and (value.is_free or op in recomputed)
                     for value, op in zip(self.members, self._op_of, strict=True))

    def network(self, running_again: tuple[bool, ...], aim: Aim, costs: OpCosts) -> _Network:
        return tuple((value.weight(aim, costs), value.is_wanted, value.again(aim) if runs_again else None, reads if runs_again else ())
                     for value, runs_again, reads in zip(self.members, running_again, self._reads, strict=True))


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


def inputs_and_sizes(joint: JointGraph) -> list[fx.Node]:
    """Returns the values that forward may save and that need no memory of their own: inputs and symbolic sizes."""
    return list(dict.fromkeys((*joint.inputs, *(node for node in joint.nodes if node.op == "call_function" and joint.is_forward(node)
                                                and is_symbolic_size(node)))))
