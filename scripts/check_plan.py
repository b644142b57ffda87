#!/usr/bin/env python3
"""Runs a PyTorch model with and without an exported plan. Compares bits, executed ops, peak and step time with the
prediction.

    rematch export front.json#3 --to torch --trace model.trace.json -o checkpointed.py
    python scripts/check_plan.py MODEL_FILE checkpointed.py

Needs only torch. MODEL_FILE is a Python file that defines make(): it returns the model and a function without arguments
that runs one forward pass and returns the loss. The peak leaves out memory that was allocated
before the step. On a CPU, the peak counts only tensors that ops made.
Exit codes: 0 bits are equal and ops are as predicted, 2 usage, 3 bits or ops differ."""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness" / "python"))

from torch_alone.model_file import Refused, load_exported, load_make  # noqa: E402

SEED = 0
MIB = 2**20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_file", metavar="MODEL_FILE")
    parser.add_argument("plan_file", metavar="PLAN_FILE", help="file that rematch export --to torch wrote")
    parser.add_argument("--steps", type=int, default=5, help="number of timed steps with the plan, and without it (default: 5)")
    parser.add_argument("--threads", type=int, help="number of torch's CPU threads (default: torch's choice)")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error("--steps takes a number from 1")
    return arguments


def by_one_name(counts, plan, not_counted):
    merged = {}
    for name, count in counts.items():
        if name not in not_counted:
            name = plan.OTHER_NAMES.get(name, name)
            merged[name] = merged.get(name, 0) + count
    return merged


def recomputed_ops(without, with_plan):
    """Returns how many more times each op runs with the plan than without it, by the op's name."""
    more = {name: with_plan.get(name, 0) - without.get(name, 0) for name in {*without, *with_plan}}
    return {name: count for name, count in sorted(more.items()) if count}


def measure(model, step, plan, num_steps):
    """Measures the model without and with the plan, and returns both results. Timed steps alternate between the two."""
    from torch_alone.watched_step import hash_of_step, time_step, watch_step

    def without(function, *arguments):
        return function(model, step, *arguments)

    def with_plan(function, *arguments):
        undo = plan.apply(model)
        try:
            return function(model, step, *arguments)
        finally:
            undo()

    time_step(model, step)  # a warm-up, because some memory that a first step allocates stays allocated
    figures = [{"hash": run(hash_of_step, SEED), "watched": run(watch_step), "times": []} for run in (without, with_plan)]
    for _ in range(num_steps):
        for run, arm in zip((without, with_plan), figures):
            arm["times"].append(run(time_step))
    return figures


def report(plan, figures):
    """Prints the table. Returns whether the bits are equal and the ops are as predicted."""
    from torch_alone.watched_step import NOT_COUNTED

    plain, planned = figures
    print(plan.__doc__.splitlines()[0])
    executed = [by_one_name(arm["watched"][0], plan, NOT_COUNTED) for arm in figures]
    found, expected = recomputed_ops(*executed), by_one_name(plan.PREDICTED["recomputed_ops"], plan, NOT_COUNTED)
    rows = [("", "without", "with", "predicted")]
    rows.append(("bits", "reference", "equal" if plain["hash"] == planned["hash"] else "DIFFERENT", "equal"))
    rows.append(("recomputed ops", "0", str(sum(found.values())), str(sum(expected.values()))))
    peaks = [f"{arm['watched'][1] / MIB:.3f} MiB" for arm in figures]
    rows.append(("peak", *peaks, f"{plan.PREDICTED['peak_bytes'] / MIB:.3f} MiB"))
    rows.append(("step", *(f"{statistics.median(arm['times']) * 1e3:.1f} ms" for arm in figures), ""))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for name in sorted({*found, *expected}):
        if found.get(name, 0) != expected.get(name, 0):
            print(f"{name}: recomputed {found.get(name, 0)} times, predicted {expected.get(name, 0)}")
    return plain["hash"] == planned["hash"] and found == expected


def main():
    arguments = parse_arguments()
    import torch
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        make, plan = load_make(arguments.model_file), load_exported(arguments.plan_file)
        model, step = make()
        figures = measure(model, step, plan, arguments.steps)
    except Refused as error:
        print(f"check_plan: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if type(error).__name__ != "Mismatch":
            raise
        print(f"check_plan: {error}", file=sys.stderr)
        return 3
    return 0 if report(plan, figures) else 3


if __name__ == "__main__":
    sys.exit(main())
