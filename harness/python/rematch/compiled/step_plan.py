"""Chooses the plan of a step under a budget, and keeps the budget when Inductor's kernels need more than predicted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rematch.compiled.eager_loss import LossBytes
from rematch.compiled.graph_plans import Option
from rematch.compiled.sequence import IN_GRAPH, StepOption, step_options, step_peak

# How many plans are compiled at most before the plan with the lowest peak.
MAX_TRIED = 4


class StepPlan:
    """The options that the graphs of a step follow. `limit` is the budget without the memory in use before the step.
    `fits` says whether the predicted peak is within the limit; otherwise, the plan has the lowest peak.

    The answer to a budget comes from one list of plans, which does not depend on the budget. If the kernels of a graph
    exceed the limit, the next smaller plan of the list is tried. Graphs that are already compiled keep their option."""

    def __init__(self, options: Mapping[str, Sequence[Option]], calls: Sequence[str], limit: int, loss: LossBytes = IN_GRAPH):
        self._options = options
        self._calls = calls
        self._limit = limit
        self._loss = loss
        self._list = step_options(options, calls, loss)
        self._rejected: list[tuple[str, Option]] = []
        self._lowered: dict[str, Option] = {}  # the chosen options of lowered graphs, with the peaks of their kernels
        fitting = [each for each in self._list if each.peak <= limit]
        self.fits = bool(fitting)
        self.fastest_peak = self._list[-1].peak
        self.chosen = (fitting or self._list[:1])[-1].chosen
        self.excess = 0

    def peak(self) -> int:
        """Returns the peak of the step, without the memory in use before it. For lowered graphs, the peak is that of
        their kernels."""
        return step_peak([self._lowered.get(name, self.chosen[name]) for name in self._calls], self._loss)

    def note_kernels(self, name: str, *, is_backward: bool, peak: int) -> bool:
        """Notes the peak of a graph that was lowered to kernels, in bytes. Returns false if the graph must be compiled
        again, because `chosen` has changed."""
        option = self._lowered.get(name, self.chosen[name])
        peaks = option.peaks
        peaks = dataclasses.replace(peaks, backward=peak + peaks.outside) if is_backward else dataclasses.replace(peaks, forward=peak)
        self._lowered[name] = dataclasses.replace(option, peaks=peaks)
        self.excess = max(0, self.peak() - self._limit)
        if self.excess == 0:
            return True
        self._rejected.append((name, self.chosen[name]))
        lowered = self._lowered.pop(name)
        smaller = self._next_smaller()
        if smaller is None:
            self._lowered[name] = lowered
            return True
        self.chosen = smaller.chosen
        self.excess = 0
        return False

    def _next_smaller(self) -> StepOption | None:
        """Returns the next plan to try, or None if no smaller plan is left."""
        found = [each for each in self._list if self._is_possible(each)]
        if not found and self._lowered:
            kept = {other: [self.chosen[other]] if other in self._lowered else
                    [option for option in options if (other, option) not in self._rejected] for other, options in self._options.items()}
            found = step_options(kept, self._calls, self._loss) if all(kept.values()) else []
        fitting = [each for each in found if each.peak <= self._limit]
        if len(self._rejected) >= MAX_TRIED:
            fitting = fitting[:1]
        return fitting[-1] if fitting else None

    def _is_possible(self, plan: StepOption) -> bool:
        return all(plan.chosen[name] == self.chosen[name] for name in self._lowered) \
            and not any(plan.chosen[name] == option for name, option in self._rejected)
