"""Measures the time from process start to the end of the first checkpointed step, and the resident memory at that
point."""

import statistics
import time

from benchmarks.rows import Row, median_with_interval
from benchmarks.servers import OURS, THEIRS, Server

ROUNDS = 7
LIMIT_SECONDS = 1.0
LIMIT_MIB = 250


def first_step(words, policy):
    start = time.monotonic()
    with Server(words, "llama_small", 1, {}, [policy]) as server:
        server.nanoseconds(0, 1)
        elapsed = time.monotonic() - start
        return elapsed, server.memory_mib()[1]


def rows(python):
    """Measures only rematch if `python` is None."""
    ours, theirs = [], []
    # These runs are not measured. They load both programs into the page cache.
    first_step([OURS], "full")
    if python:
        first_step([*python, THEIRS], "full")
    for turn in range(ROUNDS):
        sides = [(ours, [OURS])] + ([(theirs, [*python, THEIRS])] if python else [])
        for found, words in sides if turn % 2 else reversed(sides):
            found.append(first_step(words, "full"))
    return [
        row("process start to end of first step, llama_small full", "s", ours, theirs, 0, LIMIT_SECONDS),
        row("peak resident memory until the end of the first step", "MiB", ours, theirs, 1, LIMIT_MIB),
    ]


def row(what, unit, ours, theirs, column, limit):
    median, interval = median_with_interval([found[column] for found in ours])
    note = "PyTorch not measured"
    if theirs:
        note = f"PyTorch {statistics.median(found[column] for found in theirs):.2f} {unit}"
    return Row("startup", what, unit, median, interval, limit, note, strictly=True)
