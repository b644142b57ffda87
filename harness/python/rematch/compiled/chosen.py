"""Describes the plan that a compiled model follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from rematch.compiled.graph_plans import Option
from rematch.compiled.partitioner import Partitioner
from rematch.planning import size_text


@dataclasses.dataclass(frozen=True)
class CompiledGraph:
    """One compiled graph under its plan.

    `policy` is the name of the plan: a policy, or "search(3)" for a point of the searched front. `num_calls` counts the
    calls of the graph in step(). It is 0 for graphs that step() did not run. `recomputed_ops` counts the ops of forward
    that backward runs again, without views. `added_ns` is the predicted time of these ops, plus the time of writing and
    reading what a plan saves. `held_bytes` is what one call holds from forward to backward.
    `forward_peak_bytes` and `backward_peak_bytes` are the predicted peaks of one call. They leave out parameters,
    constants, and what other calls hold."""

    policy: str
    num_calls: int
    recomputed_ops: int
    added_ns: int
    held_bytes: int
    forward_peak_bytes: int
    backward_peak_bytes: int


@dataclasses.dataclass(frozen=True)
class CompiledPlan:
    """The plan that rematch.compile() has chosen for a model. Prints as a table.

    `graphs` lists the graphs of the step in the order of their first calls, and then the graphs that were compiled
    later. `budget_bytes` and the predicted peaks of the step are None for a model compiled with a policy, because such a
    model is compiled without a step. Once Inductor has lowered a graph, the predicted peak is computed from its kernels.
    `fastest_peak_bytes` is the peak of the plan that would be chosen without a budget.
    `uuid` is the hash of the plan and its options in the keys of Inductor's caches: processes with equal hashes follow
    equal plans."""

    graphs: tuple[CompiledGraph, ...]
    uuid: str
    budget_bytes: int | None = None
    predicted_peak_allocated_bytes: int | None = None
    fastest_peak_bytes: int | None = None

    def __str__(self) -> str:
        rows = ["| plan | calls | recomputed ops | held for backward | peak in forward | peak in backward |", "| --- " * 6 + "|"]
        rows += [f"| {graph.policy} | {graph.num_calls} | {graph.recomputed_ops} | {size_text(graph.held_bytes)} | "
                 f"{size_text(graph.forward_peak_bytes)} | {size_text(graph.backward_peak_bytes)} |" for graph in self.graphs]
        if self.budget_bytes is not None and self.predicted_peak_allocated_bytes is not None:
            rows += ["", f"predicted peak of the step: {size_text(self.predicted_peak_allocated_bytes)}; budget: "
                     f"{size_text(self.budget_bytes)}"]
        return "\n".join(rows)


def plan_so_far(made: Partitioner, of_step: Iterable[tuple[Option, int]] = (), **figures: int) -> CompiledPlan:
    """Returns the plan that a partitioner has followed. `of_step` contains the options of the step's graphs, and how
    often the step calls each graph."""
    calls = list(of_step)
    planned = [option for option, _ in calls]
    later = [(option, 0) for option in made.chosen if option not in planned]
    return CompiledPlan(tuple(
        CompiledGraph(option.name, num_calls, option.num_recomputed, option.added_ns, option.peaks.held, option.peaks.forward,
                      option.peaks.backward)
        for option, num_calls in (*calls, *later)), made.uuid(), **figures)
