"""The plans of one joint graph, each with its peak and the time of its recomputation.

Plans come from the search and from named policies. Each plan's figures are computed from the graphs that it makes."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import fx

from rematch._library import PlanError
from rematch.compiled.joint_graph import JointGraph, is_tensor
from rematch.compiled.joint_trace import profile_of, trace_of
from rematch.compiled.op_costs import DeviceRates, OpCosts
from rematch.compiled.peak import PhasePeaks, peaks_of
from rematch.compiled.schedule import recomputed_ops, regions_of, require_plan_of, saved_values, schedule_of
from rematch.planning import resolve, search

NUM_POINTS = 24
POLICIES = ("none", "full", "attn_only", "save_mm")


@dataclasses.dataclass(frozen=True)
class Option:
    """A plan for a joint graph. `saved` are indices of the graph's nodes. schedule_of(by_layer) gives the order of
    recomputation."""

    name: str
    saved: tuple[int, ...]
    by_layer: bool
    peaks: PhasePeaks
    recompute_ns: int
    num_recomputed: int


class Planner:
    """Makes options for one joint graph."""

    def __init__(self, joint: JointGraph, rates: DeviceRates, *, fuses: bool, model: str = "compiled"):
        self._joint = joint
        self._fuses = fuses
        self._costs = OpCosts(joint, rates, fuses=fuses)
        self.trace = trace_of(joint, model)
        self.batch_bytes = sum(joint.bytes_of(node) for node in joint.inputs if is_tensor(node)
                               and node not in joint.static_inputs and node not in joint.activation_inputs)

    def named(self, policy: str) -> Option:
        """Returns the option of a named policy. Raises PlanError if the policy does not apply to the graph."""
        return self.option(policy, resolve(self.trace, policy))

    def of_plan(self, plan: dict[str, Any]) -> Option:
        """Returns the option of a plan that was made from the graph's exported trace. Raises PlanError for another
        plan."""
        require_plan_of(self._joint, plan)
        return self.option(plan["policy"], plan)

    def option(self, name: str, plan: dict[str, Any]) -> Option:
        """Returns the option of a plan, with the order that has the lower peak."""
        joint = self._joint
        recomputed = recomputed_ops(joint, plan)
        saved = saved_values(joint, recomputed, regions_of(joint, plan))
        found = []
        for by_layer in (False, True):
            schedule = schedule_of(joint, saved, by_layer=by_layer)
            found.append(Option(name, tuple(joint.order[node] for node in schedule.saved), by_layer,
                                peaks_of(joint, schedule, fuses=self._fuses),
                                sum(map(self._costs.time_ns, schedule.recomputed)), len(schedule.recomputed)))
        return min(found, key=lambda option: option.peaks.step())

    def profile(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Returns the op times of the graph for its trace, which may have another name or other bytes outside of the
        graph."""
        return profile_of(self._joint, trace, self._costs)

    def options(self) -> list[Option]:
        """Returns the options of the searched front and of the named policies."""
        front = search(self.trace, profile=self.profile(self.trace), optimizer="none", points=NUM_POINTS,
                       baselines=())
        found = [self.option(f"search({number})", point["plan"]) for number, point in enumerate(front["points"])]
        for policy in POLICIES:
            try:
                found.append(self.named(policy))
            except PlanError:
                continue
        return found


def nodes_of(joint: JointGraph, option: Option) -> list[fx.Node]:
    """Returns the nodes that the option saves."""
    return [joint.nodes[index] for index in option.saved]
