"""Points of peak bytes and step time, and their hypervolume."""

import dataclasses

# Two plans count as equally fast if their times differ by less than this fraction. All cheap ops of a step together
# take about this fraction of its time.
SAME_TIME = 1e-4


@dataclasses.dataclass(frozen=True)
class Point:
    name: str
    peak_bytes: int
    time_ns: float


def reference_of(plain, *fronts):
    """Returns a reference point for hypervolumes. It has one byte more than the peak without checkpointing, and one
    nanosecond more than the slowest point."""
    slowest = max(point.time_ns for front in fronts for point in (plain, *front))
    return Point("reference", plain.peak_bytes + 1, slowest + 1)


def hypervolume_ratio(points, reference):
    """Returns the area that the points dominate, as a fraction of the rectangle from zero to the reference. The search
    computes hypervolumes in the same way."""
    area, lowest_time = 0, reference.time_ns
    for point in sorted(points, key=lambda point: (point.peak_bytes, point.time_ns)):
        if point.peak_bytes < reference.peak_bytes and point.time_ns < lowest_time:
            area += (reference.peak_bytes - point.peak_bytes) * (lowest_time - point.time_ns)
            lowest_time = point.time_ns
    return area / (reference.peak_bytes * reference.time_ns)


def unmatched(points, front):
    """Returns each of `points` for which no point of the front is as small and as fast."""
    return [point for point in points if not any(
        mine.peak_bytes <= point.peak_bytes and mine.time_ns <= point.time_ns * (1 + SAME_TIME) for mine in front)]


def with_answers(front, points, answer_of):
    """Returns the front and additional points. For each of `points` that the front does not match, calls `answer_of`
    with that point's peak as budget. `answer_of` returns a point or None."""
    answers = [answer_of(point.peak_bytes) for point in unmatched(points, front)]
    return [*front, *(answer for answer in answers if answer is not None)]
