"""Compares measured points of compiled models: finds the points of PyTorch that no point of ours matches, and makes a
model's row of the table. Does not need torch."""

import dataclasses
import statistics

from fronts.plane import Point, hypervolume_ratio, reference_of

MODELS = ("llama", "qwen3", "mixtral", "gpt2", "bert", "vit", "wan", "flux", "ltx", "sd3")
BACKENDS = ("inductor", "aot_eager")
MIB = 2**20
NUM_SPREADS = 2  # times count as equal if they differ by less than this factor times the sum of their spreads
SAME_PEAK = 1e-3  # peaks that differ by less than this fraction count as equal
LOW_PEAK = 0.7  # points with a peak below this fraction of the peak without checkpointing are "low points"
OURS = "ours"


@dataclasses.dataclass(frozen=True)
class Measured:
    """A plan that ran. `compile_ns` is the processor time of compilation, excluding the C++ compiler.
    `predicted_added_ns` is the predicted time that the plan adds to the step."""

    family: str
    name: str
    peak_bytes: int
    median_ns: int
    spread_ns: int  # median absolute deviation
    compile_ns: int
    predicted_peak_bytes: int | None = None
    predicted_added_ns: int | None = None

    def is_as_fast_as(self, other):
        return self.median_ns - other.median_ns <= NUM_SPREADS * (self.spread_ns + other.spread_ns)

    def is_as_small_as(self, other):
        return self.peak_bytes <= other.peak_bytes * (1 + SAME_PEAK)

    def point(self):
        return Point(self.name, self.peak_bytes, self.median_ns)


def spread_of(times):
    """Returns the median absolute deviation."""
    median = statistics.median(times)
    return statistics.median(abs(time - median) for time in times)


@dataclasses.dataclass
class Comparison:
    """The measured points of one model. `plain` is the compiled step without checkpointing. `failed` maps each plan
    that did not compile to the reason."""

    model: str
    plain: Measured
    ours: list
    theirs: list
    failed: dict = dataclasses.field(default_factory=dict)

    def hypervolume(self, points):
        reference = reference_of(self.plain.point(), [each.point() for each in (*self.ours, *self.theirs)])
        return hypervolume_ratio([each.point() for each in (self.plain, *points)], reference)

    def ratio(self):
        return self.hypervolume(self.ours) / self.hypervolume(self.theirs)

    def ahead(self):
        """Returns the points of PyTorch for which no point of ours is as small and as fast."""
        return [each for each in self.theirs
                if not any(mine.is_as_small_as(each) and mine.is_as_fast_as(each) for mine in (self.plain, *self.ours))]

    def low_points(self):
        """Returns PyTorch's points below LOW_PEAK. Leaves out a point if another point of PyTorch has a lower peak and
        is at least as fast."""
        return [each for each in self.theirs if each.peak_bytes < LOW_PEAK * self.plain.peak_bytes and not any(
            other.peak_bytes < each.peak_bytes and other.median_ns <= each.median_ns for other in self.theirs)]

    def peak_ratios(self):
        """Returns a ratio for each low point of PyTorch: the lowest peak of our plans that are as fast as this point,
        divided by the point's peak. The ratio is None if no plan of ours is as fast."""
        found = []
        for each in self.low_points():
            as_fast = [mine.peak_bytes for mine in self.ours if mine.is_as_fast_as(each)]
            found.append(min(as_fast) / each.peak_bytes if as_fast else None)
        return found

    def pairs_in_order(self):
        """Compares each two of our plans whose measured steps differ by more than noise. Returns for how many pairs the
        predicted times have the same order, and the number of pairs."""
        known = [each for each in self.ours if each.predicted_added_ns is not None]
        pairs = [(faster, slower) for faster in known for slower in known
                 if faster.median_ns < slower.median_ns and not slower.is_as_fast_as(faster)]
        return sum(faster.predicted_added_ns < slower.predicted_added_ns for faster, slower in pairs), len(pairs)

    def compile_ratio(self):
        """Returns the median compile time of our plans, divided by the median compile time of PyTorch's memory
        budgets."""
        budgets = [each.compile_ns for each in self.theirs if each.family == "budget"]
        return statistics.median(each.compile_ns for each in self.ours) / statistics.median(budgets)


def comparison_of(document):
    """Parses the JSON that a model's process printed. The first point is the step without checkpointing."""
    plain, *points = [Measured(**each) for each in document["points"]]
    return Comparison(document["model"], plain, [each for each in points if each.family == OURS],
                      [each for each in points if each.family != OURS], document["failed"])


def listing(comparison):
    """Returns a line for each point, and for each plan that did not run."""
    lines = [f"{comparison.model}:"]
    ahead = comparison.ahead()
    for each in sorted((comparison.plain, *comparison.ours, *comparison.theirs), key=lambda each: each.peak_bytes):
        mark = "  ahead of ours" if each in ahead else ""
        lines.append(f"  {each.peak_bytes / MIB:8.2f} MiB {each.median_ns / 1e6:8.1f} +- {each.spread_ns / 1e6:.1f} ms  "
                     f"{each.family}: {each.name}{mark}")
    lines += [f"  did not run: {name}: {why}" for name, why in comparison.failed.items()]
    return "\n".join(lines)


HEAD = ("model", "peak without", "smallest peak: ours", "PyTorch's", "hypervolume: ours / PyTorch's",
        "PyTorch's plans ahead of ours",
        f"our peak / PyTorch's at equal step time, for peaks below {LOW_PEAK} of the peak without",
        "compile time / PyTorch's", "measured / predicted peak", "pairs of our plans in the predicted order of time")


def markdown(comparisons):
    lines = [HEAD, ["---"] * len(HEAD), *(cells(each) for each in comparisons)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(comparison):
    def smallest(points):
        return f"{min(point.peak_bytes for point in points) / MIB:.2f} MiB"

    predicted = [each.peak_bytes / each.predicted_peak_bytes for each in comparison.ours]
    return [comparison.model, smallest([comparison.plain]), smallest(comparison.ours), smallest(comparison.theirs),
            f"{comparison.ratio():.2f}", f"{len(comparison.ahead())} of {len(comparison.theirs)}",
            ratios_text(comparison.peak_ratios()), f"{comparison.compile_ratio():.2f}",
            f"{min(predicted):.2f} to {max(predicted):.2f}", pairs_text(*comparison.pairs_in_order())]


def pairs_text(num_in_order, num_pairs):
    return f"{num_in_order} of {num_pairs}" if num_pairs else "equal within noise"


def ratios_text(ratios):
    known = [ratio for ratio in ratios if ratio is not None]
    if not ratios:
        return "PyTorch has no such plan"
    text = f"{min(known):.2f} to {max(known):.2f}" if known else ""
    missing = len(ratios) - len(known)
    if missing:
        text += f"{', ' if text else ''}no equally fast plan for {missing} of {len(ratios)}"
    return text
