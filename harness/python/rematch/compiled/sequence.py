"""Chooses one option for each graph of a step, so that the step fits a budget.

A graph that is called several times, such as the graph of a layer, uses the same option in all calls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from rematch.compiled.options import Option

MAX_COMBINATIONS = 50_000


def step_peak(calls: Sequence[Option]) -> int:
    """Returns the peak of a step that makes these calls, without the memory in use before the step."""
    held = list(itertools.accumulate((call.peaks.held for call in calls), initial=0))
    peak = max(before + call.peaks.forward for before, call in zip(held, calls, strict=False))
    gradients = returned = 0
    for before, call in zip(reversed(held[:-1]), reversed(calls), strict=True):
        peak = max(peak, before + gradients + returned + call.peaks.backward)
        gradients += call.peaks.gradients
        returned += call.peaks.returned
    return peak


def added_ns(calls: Sequence[Option]) -> int:
    return sum(call.added_ns for call in calls)


def fastest_within(options: Mapping[str, Sequence[Option]], calls: Sequence[str], limit: int | None) -> dict[str, Option]:
    """Returns one option for each graph, so that the step fits the limit and has the shortest recompute time. Without a
    limit, or if nothing fits, returns the options with the lowest peak. `calls` names the graph of each call."""
    thinned = _thinned(options)
    best: tuple[tuple[int, int], dict[str, Option]] | None = None
    for combination in itertools.product(*thinned.values()):
        chosen = dict(zip(thinned, combination, strict=True))
        sequence = [chosen[name] for name in calls]
        peak, time = step_peak(sequence), added_ns(sequence)
        excess = peak if limit is None else max(0, peak - limit)
        rank = (excess, time if excess == 0 or limit is None else peak)
        if best is None or rank < best[0]:
            best = rank, chosen
    assert best is not None
    return best[1]


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
