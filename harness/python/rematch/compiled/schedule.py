"""Converts a plan to the values that forward saves, and the order in which backward recomputes.

A recomputed op runs as late as its first use allows, or together with the other recomputed ops of its layer. Which of
the two orders has the lower peak depends on the plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from torch import fx

from rematch._library import PlanError
from rematch.compiled.joint_graph import (JointGraph, Layer, is_op, is_symbolic_size, is_tensor, is_view, must_be_kept,
                                          needed_for, op_name, op_of)
from rematch.compiled.op_costs import is_elementwise


# Inductor also fuses elementwise ops that are farther apart, but such kernels are split if they raise the peak.
MAX_CALLS_BETWEEN = 3


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The order of nodes in the forward and the backward graph, including the nodes that unpack results. `saved` are
    the values that forward passes to backward, including inputs. `recomputed` are the ops that run in both graphs."""

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
    return {op for op in found if not must_be_kept(op)}


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
    offered = list(saved)
    available = {node for node in joint.nodes if node.op == "placeholder"} | set(offered)
    backward = joint.demand_order(available)
    if by_layer:
        backward = _grouped_by_layer(joint, backward)
    if fuses:
        backward = _with_neighbours(joint, backward)
    used = {node for op in backward for node in op.all_input_nodes} | set(joint.backward_outputs)
    kept = [node for node in offered if node in used]
    needed = needed_for({*kept, *joint.forward_outputs})
    forward = [node for node in joint.nodes if node.op == "call_function" and node in needed]
    recomputed = [node for node in backward if joint.is_forward(node) and is_op(node)]
    return Schedule(forward, backward, kept, recomputed)


def _with_neighbours(joint: JointGraph, order: list[fx.Node]) -> list[fx.Node]:
    """Moves elementwise ops to the position of an earlier elementwise op that reads the same value, if they can run
    there. Inductor computes such ops in one kernel."""
    position_of = {node: position for position, node in enumerate(order)}
    num_calls = 0  # ops so far that are not elementwise
    calls_before: list[int] = []
    read: dict[fx.Node, set[fx.Node]] = {}  # which values from other kernels each elementwise op reads
    first_reader: dict[fx.Node, int] = {}  # where an elementwise op reads each value first
    moved_to: dict[int, list[fx.Node]] = {}
    moved: set[fx.Node] = set()
    for position, node in enumerate(order):
        calls_before.append(num_calls)
        if not is_op(node) or not (is_view(node) or is_elementwise(node)):
            num_calls += is_op(node)
            continue
        if is_view(node):
            source = node.all_input_nodes[0] if node.all_input_nodes else node
            read[node] = read.get(source, {joint.root(source)})
            continue
        found = read[node] = set()
        for each in node.all_input_nodes:
            found |= read.get(each, {joint.root(each)} if is_tensor(each) else set())
        ready_after = max((position_of.get(root, -1) for root in found), default=-1)
        places = [first_reader[root] for root in found if first_reader.get(root, -1) > ready_after]
        target = min((place for place in places if num_calls - calls_before[place] <= MAX_CALLS_BETWEEN), default=position)
        if target < position:
            chain = [each for each in _chain(node, position_of, target) if each not in moved]
            moved_to.setdefault(target, []).extend(chain)
            moved.update(chain)
        for root in found:
            first_reader.setdefault(root, target)
    result = []
    for position, node in enumerate(order):
        if node not in moved:
            result.append(node)
        result += moved_to.get(position, ())
    return result


def _chain(node: fx.Node, position_of: dict[fx.Node, int], target: int) -> list[fx.Node]:
    """Returns the node, and the nodes after position `target` that it depends on, in their order."""
    found = {node}
    stack = [node]
    while stack:
        for each in stack.pop().all_input_nodes:
            if position_of.get(each, -1) > target and each not in found:
                found.add(each)
                stack.append(each)
    return sorted(found, key=position_of.__getitem__)


def _grouped_by_layer(joint: JointGraph, backward: list[fx.Node]) -> list[fx.Node]:
    """Moves all recomputed nodes of a layer to the position of the first of them, in forward's order."""
    groups: dict[Layer, list[fx.Node]] = {}
    for node in backward:
        layer = joint.layer_of.get(op_of(node)) if joint.is_forward(node) else None
        if layer is not None:
            groups.setdefault(layer, []).append(node)
    found: list[fx.Node] = []
    made: set[fx.Node] = set()
    in_backward = set(backward)

    def add(node: fx.Node) -> None:
        stack = [node]
        while stack:
            last = stack[-1]
            missing = [each for each in last.all_input_nodes if each in in_backward and each not in made]
            if last in made or not missing:
                stack.pop()
                if last not in made:
                    made.add(last)
                    found.append(last)
            else:
                stack += missing
    for node in backward:
        layer = joint.layer_of.get(op_of(node)) if joint.is_forward(node) else None
        for each in sorted(groups.pop(layer, []), key=joint.order.__getitem__) if layer is not None else ():
            add(each)
        add(node)
    return found
