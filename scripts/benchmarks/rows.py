"""Rows of the benchmark table: a figure, its interval and its target."""

import dataclasses
import json
import math
import statistics


@dataclasses.dataclass
class Row:
    target: str
    what: str
    unit: str  # unit of the figure; "x" for a ratio
    measured: float
    interval: list = None
    limit: float = None
    note: str = ""
    strictly: bool = False  # if true, the value must be below the limit; if false, it may equal the limit

    def holds(self, value):
        return value < self.limit or (not self.strictly and value == self.limit)

    @property
    def verdict(self):
        """Returns "" if there is no limit. Returns "open" if the measured value misses the limit, but the interval
        includes it."""
        if self.limit is None:
            return ""
        if self.holds(self.measured):
            return "met"
        return "open" if self.interval and self.holds(self.interval[0]) else "MISSED"


def read_rows(text):
    return [Row(**json.loads(line)) for line in text.splitlines() if line.startswith("{")]


def median_with_interval(values):
    """Returns the median and its 95 % confidence interval, computed from order statistics. Assumes nothing about the
    distribution."""
    ordered = sorted(values)
    count = len(ordered)
    reach = math.ceil(0.98 * math.sqrt(count))
    low = max(0, count // 2 - reach)
    high = min(count - 1, (count - 1) // 2 + reach)
    return statistics.median(ordered), [ordered[low], ordered[high]]


def number(value, unit):
    if unit == "x":
        return f"{value:.3f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def figure(row):
    unit = "x" if row.unit == "x" else " " + row.unit
    text = number(row.measured, row.unit) + unit
    if row.interval:
        low, high = (number(value, row.unit) for value in row.interval)
        text += f" ({low} to {high})"
    return text


def limit(row):
    if row.limit is None:
        return ""
    unit = "x" if row.unit == "x" else " " + row.unit
    return ("< " if row.strictly else "<= ") + f"{row.limit:g}" + unit


def markdown(rows):
    lines = ["| what | target | measured (95 % interval) | |", "| --- | --- | --- | --- |"]
    for row in rows:
        notes = "; ".join(part for part in (row.verdict, row.note) if part)
        lines.append(f"| {row.what} | {limit(row)} | {figure(row)} | {notes} |")
    return "\n".join(lines)


def nearest_to_its_limit(rows):
    return max(rows, key=lambda row: row.measured / row.limit)


def summary(rows_by_heading):
    """Returns one line per group that has targets. The line states how many rows met their targets, and which row is
    closest to its limit or furthest above it."""
    lines = ["| | rows that met their target | worst row | target | measured (95 % interval) |",
             "| --- | --- | --- | --- | --- |"]
    for heading, rows in rows_by_heading.items():
        bound = [row for row in rows if row.limit is not None]
        if not bound:
            continue
        worst = nearest_to_its_limit(bound)
        met = sum(row.verdict == "met" for row in bound)
        lines.append(f"| {heading} | {met} of {len(bound)} | {worst.what} | {limit(worst)} | {figure(worst)} |")
    return "\n".join(lines)
