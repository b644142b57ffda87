"""Lists the plans of a step: one option for each graph, so that the step fits a budget.

A graph that is called several times, such as the graph of a layer, uses the same option in all calls."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from rematch.compiled.eager_loss import LossBytes
from rematch.compiled.graph_plans import Option

MAX_COMBINATIONS = 50_000
# Measured and predicted peaks differ by less than half of this. So of two plans in a list, the one with the lower
# predicted peak has the lower measured peak.
MIN_DISTANCE = 0.02
IN_GRAPH = LossBytes()  # of a loss that a graph computes


@dataclasses.dataclass(frozen=True)
class StepOption:
    """A plan of the step. `peak` does not count the memory in use before the step."""

    peak: int
    added_ns: int
    chosen: dict[str, Option]


def step_peak(calls: Sequence[Option], loss: LossBytes = IN_GRAPH) -> int:
    """Returns the peak of a step that makes these calls, without the memory in use before the step."""
    held = list(itertools.accumulate((call.peaks.held for call in calls), initial=0))
    peak = max(before + call.peaks.forward for before, call in zip(held, calls, strict=False))
    peak = max(peak, held[-1] + loss.peak)
    gradients, returned = loss.gradients, 0
    for before, call in zip(reversed(held[:-1]), reversed(calls), strict=True):
        peak = max(peak, before + gradients + returned + call.peaks.backward)
        gradients += call.peaks.gradients
        returned += call.peaks.returned
    return peak


def added_ns(calls: Sequence[Option]) -> int:
    return sum(call.added_ns for call in calls)


def step_options(options: Mapping[str, Sequence[Option]], calls: Sequence[str], loss: LossBytes = IN_GRAPH,
                 distance: float = MIN_DISTANCE) -> list[StepOption]:
    """Returns the plans of the step, by ascending peak. Each plan is faster than all plans before it. Leaves out plans
    whose peaks are closer than `distance`, except the plan with the lowest peak and the fastest plan. `calls` names the
    graph of each call."""
    thinned = _thinned(options)
    found = []
    for combination in itertools.product(*thinned.values()):
        chosen = dict(zip(thinned, combination, strict=True))
        sequence = [chosen[name] for name in calls]
        found.append(StepOption(step_peak(sequence, loss), added_ns(sequence), chosen))
    found.sort(key=lambda each: (each.peak, each.added_ns))
    front: list[StepOption] = []
    for each in found:
        if not front or each.added_ns < front[-1].added_ns:
            front.append(each)
    return _apart(front, distance)


def _apart(front: Sequence[StepOption], distance: float) -> list[StepOption]:
    lowest, *others = front
    found: list[StepOption] = []
    for each in reversed(others):
        if not found or each.peak * (1 + distance) <= found[-1].peak:
            found.append(each)
    while len(found) > 1 and lowest.peak * (1 + distance) > found[-1].peak:
        found.pop()
    return [lowest, *reversed(found)]


def _thinned(options: Mapping[str, Sequence[Option]]) -> dict[str, list[Option]]:
    """Drops dominated options of each graph. Then drops further options, until few enough combinations are left to try
    them all."""
    fronts = {name: _front(each) for name, each in options.items()}
    most = max(2, math.floor(MAX_COMBINATIONS ** (1 / max(1, len(fronts)))))
    return {name: front if len(front) <= most else
            [front[round(index * (len(front) - 1) / (most - 1))] for index in range(most)] for name, front in fronts.items()}


def _front(options: Sequence[Option]) -> list[Option]:
    """Drops dominated options and returns the rest. An option is dominated if a faster option holds no more bytes and
    has no higher peak in either graph."""
    found: list[Option] = []
    for option in sorted(options, key=lambda each: (each.added_ns, each.peaks.step(), each.peaks.held)):
        if not any(other.peaks.held <= option.peaks.held and other.peaks.forward <= option.peaks.forward
                   and other.peaks.backward <= option.peaks.backward for other in found):
            found.append(option)
    return found
