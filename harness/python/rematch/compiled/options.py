"""The possible plans for one joint graph, each with its peak and its recompute time.

Plans come from the search and from named policies. The figures of a plan are computed from its forward and backward
graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import fx

from rematch._library import Document, PlanError
from rematch.compiled.graph_plans import Aim, GraphPlans, Option
from rematch.compiled.joint_graph import JointGraph, is_tensor
from rematch.compiled.joint_trace import profile_of, trace_of
from rematch.compiled.op_costs import DeviceRates, OpCosts
from rematch.compiled.saved_values import recomputed_ops, regions_of, require_plan_of, saved_values
from rematch.planning import predict, resolve, search, size_text

# The number of points of a front. With fusion, minimum cuts choose most of the saved values, so many points of a front save the
# same values. On the models of tests/harness/python/zoo.py, 48 points of the convex hull dominated 0.997 to 1.02 times the
# area of 24 points of the whole search, in a quarter of the time on models with large layers.
NUM_POINTS = 24
NUM_HULL_POINTS = 48
# A plan has an option for each aim. At 4, recomputing a gelu of single precision costs less than saving its result.
AIMS = (Aim(shift=1), Aim(shift=-1), Aim(traffic_per_byte=0), Aim(traffic_per_byte=4))
POLICIES = ("none", "full", "attn_only", "save_mm")


class Planner:
    """Makes options for one joint graph."""

    def __init__(self, joint: JointGraph, rates: DeviceRates, *, fuses: bool, model: str = "compiled"):
        self._joint = joint
        self._fuses = fuses
        self._costs = OpCosts(joint, rates, fuses=fuses)
        self._plans = GraphPlans(joint, self._costs, fuses=fuses, aims=AIMS)
        # The search takes only whole layers as regions, because choosing among all modules takes too long.
        self.trace = Document(trace_of(joint, model, has_modules=False))
        self._model = model
        self.batch_bytes = sum(joint.bytes_of(node) for node in joint.inputs if is_tensor(node)
                               and node not in joint.static_inputs and node not in joint.activation_inputs)

    def named(self, policy: str) -> Option:
        """Returns the option of a named policy. Raises PlanError if the policy does not apply to the graph."""
        return self._lowest(policy, resolve(self.trace_with_modules(), policy))

    def trace_with_modules(self) -> dict[str, Any]:
        """Returns a trace whose scopes are the layers and the modules in them, which policies may name."""
        return trace_of(self._joint, self._model, has_modules=True)

    def of_plan(self, plan: dict[str, Any]) -> Option:
        """Returns the option of a plan for the graph's exported trace. Raises PlanError for a plan of another graph."""
        require_plan_of(self._joint, plan)
        return self._lowest(plan["policy"], plan)

    def _lowest(self, name: str, plan: dict[str, Any]) -> Option:
        return min(self._options_of(name, plan), key=lambda option: (option.peaks.step(), option.added_ns))

    def _options_of(self, name: str, plan: dict[str, Any]) -> list[Option]:
        """Returns an option for each choice of saved values that the plan allows. Each option uses the order of
        recomputation that has the lower peak."""
        recomputed = recomputed_ops(self._joint, plan)
        found = self._plans.options(recomputed) if self._fuses else \
            [self._plans.option(saved_values(self._joint, recomputed, regions_of(self._joint, plan)))]
        return [dataclasses.replace(option, name=name) for option in dict.fromkeys(found)]

    def profile(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Returns the graph's op times as a profile of `trace`. `trace` must be a trace of this graph, but may have a
        different name."""
        return profile_of(self._joint, trace, self._costs)

    def options(self) -> list[Option]:
        """Returns the options of the searched front and of the named policies."""
        front = search(self.trace, profile=self.profile(self.trace), optimizer="none", hull=self._fuses,
                       points=NUM_HULL_POINTS if self._fuses else NUM_POINTS, baselines=())
        found = [option for number, point in enumerate(front["points"])
                 for option in self._options_of(f"search({number})", point["plan"])]
        for policy in POLICIES:
            try:
                found += self._options_of(policy, resolve(self.trace, policy))
            except PlanError:
                continue
        return found


def nodes_of(joint: JointGraph, option: Option) -> list[fx.Node]:
    """Returns the nodes that the option saves."""
    return [joint.nodes[index] for index in option.saved]


def fitting(options: Sequence[Option], before: int, limit: int) -> Option:
    """Returns the fastest option whose peak fits into `limit`, where `before` is the number of bytes in use before the
    step. Raises PlanError if no option fits."""
    found = [option for option in options if before + option.peaks.step() <= limit]
    if not found:
        raise PlanError(too_small(limit, before + min(option.peaks.step() for option in options)))
    return min(found, key=lambda option: (option.added_ns, option.peaks.step()))


def too_small(limit: int, lowest: int) -> str:
    return (f"no plan of the compiled step fits into {size_text(limit)}; the lowest peak is {size_text(lowest)}. Use a smaller "
            "batch, or shard the model")


def bytes_before(trace: dict[str, Any], optimizer: str) -> int:
    """Returns the bytes of parameters, constants and the optimizer's state."""
    return int(predict(trace, resolve(trace, "none"), optimizer=optimizer)["before_bytes"])
