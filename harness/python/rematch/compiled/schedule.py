"""Converts a plan to the values that forward saves, and the order in which backward recomputes.

A recomputed op runs as late as its first use allows, or together with the other recomputed ops of its layer. Which of
the two orders has the lower peak depends on the plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from torch import fx

from rematch._library import PlanError
from rematch.compiled.joint_graph import JointGraph, Layer, is_symbolic_size, is_tensor, is_view, op_name, op_of
from rematch.compiled.node_table import NodeTable


# Inductor also fuses elementwise ops that are farther apart, but such kernels are split if they raise the peak.
MAX_CALLS_BETWEEN = 3


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The order of nodes in the forward and the backward graph, including the nodes that unpack results. `saved` are
    the values that forward passes to backward, including inputs. `recomputed` are the ops that run in both graphs, in no
    particular order."""

    forward: list[fx.Node]
    backward: list[fx.Node]
    saved: list[fx.Node]
    recomputed: list[fx.Node]


def require_plan_of(joint: JointGraph, plan: dict[str, Any]) -> None:
    """Raises PlanError if the plan of a compiled model was made for another graph."""
    scopes = joint.spans()
    for region in plan["regions"]:
        for end in ("first_scope", "last_scope"):
            if region[end] not in scopes:
                raise PlanError(f"the plan is for another graph: this graph has no layer or module {region[end]}")
        ops = joint.forward[scopes[region["first_scope"]].start:scopes[region["last_scope"]].stop]
        if [op_name(op) for op in ops] != [op["name"] for op in plan["types"][region["type"]]["ops"]]:
            raise PlanError(f"the plan is for another graph: {region['first_scope']} has other ops")


def recomputed_ops(joint: JointGraph, plan: dict[str, Any]) -> set[fx.Node]:
    """Returns the ops that the plan does not keep."""
    scopes = joint.spans()
    found: set[fx.Node] = set()
    for region in plan["regions"]:
        ops = joint.forward[scopes[region["first_scope"]].start:scopes[region["last_scope"]].stop]
        planned = plan["types"][region["type"]]["ops"]
        found |= {op for op, treated in zip(ops, planned, strict=True) if treated["treatment"] == "recompute"}
    return found - joint.kept_ops


def saved_values(joint: JointGraph, recomputed: set[fx.Node], region_of: dict[fx.Node, Any]) -> list[fx.Node]:
    """Returns the values that forward may save: inputs, symbolic sizes, results of kept ops, and those results of
    recomputed ops that another region reads. Leaves out views, because recomputing a view costs nothing."""
    crossing = _read_by_other_regions(joint, region_of)
    saved: dict[fx.Node, None] = dict.fromkeys(joint.inputs)
    for node in joint.nodes:
        if node.op != "call_function" or not joint.is_forward(node) or node in saved:
            continue
        if is_symbolic_size(node):
            saved[node] = None
        elif is_tensor(node) and joint.root(node) not in saved and (op_of(node) not in recomputed or node in crossing):
            saved[node] = None
    return list(saved)


def regions_of(joint: JointGraph, plan: dict[str, Any]) -> dict[fx.Node, Any]:
    """Maps each op to its region. Ops outside of regions are left out."""
    scopes = joint.spans()
    return {op: number for number, region in enumerate(plan["regions"])
            for op in joint.forward[scopes[region["first_scope"]].start:scopes[region["last_scope"]].stop]}


def _read_by_other_regions(joint: JointGraph, region_of: dict[fx.Node, Any]) -> set[fx.Node]:
    """Returns the values that an op of another region reads. These values must be saved, because recomputation stays
    within a region. Each is given by the node that allocates it."""
    found: set[fx.Node] = set()
    for op in joint.forward:
        if is_view(op):
            continue
        for node in joint.reads(op):
            root = joint.root(node)
            if root.op != "placeholder" and region_of.get(op_of(root)) != region_of.get(op):
                found.add(root)
    found |= {joint.root(node) for node in joint.forward_outputs}
    return found


def schedule_of(joint: JointGraph, saved: Iterable[fx.Node], *, by_layer: bool, fuses: bool) -> Schedule:
    """Returns the order of nodes in both graphs. With `by_layer`, backward recomputes a whole layer at the first use of
    a recomputed value. Otherwise it recomputes each value at its first use. `fuses` says whether the backend fuses
    elementwise ops."""
    by_first_use, of_layers = schedules_of(joint, saved, fuses=fuses)
    return of_layers if by_layer else by_first_use


def schedules_of(joint: JointGraph, saved: Iterable[fx.Node], *, fuses: bool) -> tuple[Schedule, Schedule]:
    """Returns the schedules that schedule_of() returns without and with `by_layer`. They differ only in the order of
    backward. If the order is the same, returns one schedule twice."""
    table, nodes = joint.table, joint.nodes
    offered = list(saved)
    order = joint.demand_order(offered)
    used = {index for op in order for index in table.inputs[op]}.union(table.indices(joint.backward_outputs))
    kept = [node for node in offered if joint.order[node] in used]
    needed = _needed_for(table, table.indices((*kept, *joint.forward_outputs)))
    forward = [node for node, is_call, is_needed in zip(nodes, table.is_call, needed, strict=True) if is_call and is_needed]
    recomputed = [nodes[index] for index in order if table.is_forward[index] and table.is_op[index]]
    orders = [order]
    grouped = _grouped_by_layer(table, order)
    if grouped != order:
        orders.append(grouped)
    if fuses:
        orders = [_with_neighbours(table, each) for each in orders]
    if orders[0] == orders[-1]:
        del orders[1:]
    found = [Schedule(forward, [nodes[index] for index in each], kept, recomputed) for each in orders]
    return found[0], found[-1]


def _needed_for(table: NodeTable, wanted: list[int]) -> bytearray:
    """Returns for each node whether it is wanted or whether a wanted node depends on it."""
    is_needed = bytearray(len(table.inputs))
    stack = wanted
    while stack:
        index = stack.pop()
        if not is_needed[index]:
            is_needed[index] = True
            stack += table.inputs[index]
    return is_needed


def _with_neighbours(table: NodeTable, order: list[int]) -> list[int]:
    """Moves elementwise ops to the position of an earlier elementwise op that reads the same value, if they can run
    there. Inductor computes such ops in one kernel."""
    inputs, root_of, is_op, is_tensor = table.inputs, table.root, table.is_op, table.is_tensor
    is_view, is_elementwise = table.is_view, table.is_elementwise
    position_of = [-1] * len(inputs)
    for position, node in enumerate(order):
        position_of[node] = position
    num_calls = 0  # ops so far that are not elementwise
    calls_before: list[int] = []
    # The values from other kernels that each elementwise op reads, and the position of the last of them. Values whose
    # first reader is too far away are left out. Otherwise, their number would grow with the number of layers.
    read: dict[int, set[int]] = {}
    ready_after: dict[int, int] = {}
    first_reader: dict[int, int] = {}  # where an elementwise op reads each value first
    moved_to: dict[int, list[int]] = {}
    moved: set[int] = set()
    for position, node in enumerate(order):
        calls_before.append(num_calls)
        if not is_op[node]:
            continue
        if is_view[node]:
            source = inputs[node][0] if inputs[node] else node
            read[node] = read[source] if source in read else {root_of[source]}
            ready_after[node] = ready_after[source] if source in read else position_of[root_of[source]]
            continue
        if not is_elementwise[node]:
            num_calls += 1
            continue
        offered: set[int] = set()
        ready = -1
        for each in inputs[node]:
            if each in read:
                offered |= read[each]
                ready = max(ready, ready_after[each])
            elif is_tensor[each]:
                offered.add(root_of[each])
                ready = max(ready, position_of[root_of[each]])
        found = set()
        target = position
        for root in offered:
            place = first_reader.get(root)
            if place is None:
                found.add(root)
            elif num_calls - calls_before[place] <= MAX_CALLS_BETWEEN:
                found.add(root)
                if ready < place < target:
                    target = place
        read[node], ready_after[node] = found, ready
        if target < position:
            chain = [each for each in _chain(table, node, position_of, target) if each not in moved]
            moved_to.setdefault(target, []).extend(chain)
            moved.update(chain)
        for root in found:
            first_reader.setdefault(root, target)
    result = []
    for position, node in enumerate(order):
        if node not in moved:
            result.append(node)
        if position in moved_to:
            result += moved_to[position]
    return result


def _chain(table: NodeTable, node: int, position_of: list[int], target: int) -> list[int]:
    """Returns the node, and the nodes after position `target` that it depends on, in their order."""
    found = {node}
    stack = [node]
    while stack:
        for each in table.inputs[stack.pop()]:
            if position_of[each] > target and each not in found:
                found.add(each)
                stack.append(each)
    return sorted(found, key=position_of.__getitem__)


def _grouped_by_layer(table: NodeTable, backward: list[int]) -> list[int]:
    """Moves all recomputed nodes of a layer to the position of the first of them, in forward's order."""
    inputs, layer_of = table.inputs, table.layer
    groups: dict[Layer, list[int]] = {}
    is_missing = bytearray(len(inputs))  # the nodes that have yet to run
    for node in backward:
        is_missing[node] = True
        layer = layer_of[node]
        if layer is not None:
            groups.setdefault(layer, []).append(node)
    found: list[int] = []

    def add(node: int) -> None:
        stack = [node]
        while stack:
            last = stack[-1]
            missing = [each for each in inputs[last] if is_missing[each]] if is_missing[last] else ()
            if missing:
                stack += missing
                continue
            stack.pop()
            if is_missing[last]:
                is_missing[last] = False
                found.append(last)
    for node in backward:
        layer = layer_of[node]
        if layer is not None:
            for each in sorted(groups.pop(layer, ())):
                add(each)
        if is_missing[node]:
            add(node)
    return found
