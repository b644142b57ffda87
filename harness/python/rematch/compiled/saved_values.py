"""Converts a plan to the ops that backward recomputes, and to the values that forward saves."""

from __future__ import annotations

from typing import Any

from torch import fx

from rematch._library import PlanError
from rematch.compiled.joint_graph import JointGraph, is_symbolic_size, is_tensor, is_view, op_name, op_of


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
