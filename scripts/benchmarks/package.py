"""Compares package rematch with torch.utils.checkpoint for the same lists of saved ops: step time, peak and time per
op. Each arm has its own process; they take turns."""

import os
import statistics

from benchmarks.rows import Row, median_with_interval
from benchmarks.servers import ROOT, Failed, Server

SERVER = ROOT / "tests" / "benchmarks" / "package_server.py"
LIBRARY = ROOT / "build" / "dev" / "harness" / "python" / "librematch_python.so"
POLICIES = ["full", "attn_only", "save_mm"]
SCHEDULES = ["whole_region", "on_demand"]
WAYS = ["torch", *SCHEDULES]
MODELS = ["dispatch-bound", "dim 128"]
# Limits of a step's time over the same step without checkpointing, where only dispatch takes time.
LIMITS = {"full": 1.3, "attn_only": 1.35, "save_mm": 1.35}
TURN_NANOSECONDS = 60e6


def require_library():
    if not LIBRARY.exists():
        raise Failed(f"{LIBRARY.relative_to(ROOT)} is not built: run 'cmake --preset dev' and "
                     "'cmake --build --preset dev --target rematch_python'")
    os.environ["PYTHONPATH"] = str(ROOT / "harness" / "python")
    os.environ["REMATCH_PYTHON_LIBRARY"] = str(LIBRARY)


def rows(python, threads, rounds, say):
    require_library()
    found = []
    for model in MODELS:
        found += rows_of(python, model, threads, rounds)
        say(f"{model} done")
    return found


def rows_of(python, model, threads, rounds):
    arms = ["none", *(f"{policy}/{way}" for policy in POLICIES for way in WAYS)]
    peaks, forward_ops = {}, {}
    for arm in arms:
        with Server([*python, SERVER, "--count"], model, threads, {}, [arm]) as server:
            peaks[arm], forward_ops[arm] = int(server.ask("peak 0")), server.ops(0)["forward"]
    times = take_turns(python, model, threads, arms, rounds)
    found = []
    for policy in POLICIES:
        theirs = ratios(times, f"{policy}/torch", "none")
        for schedule in SCHEDULES:
            found += rows_of_arm(model, policy, schedule, times, theirs, peaks, forward_ops["none"])
    return found


def rows_of_arm(model, policy, schedule, times, theirs, peaks, num_ops):
    arm, name = f"{policy}/{schedule}", f"{model}, {policy}, {schedule}"
    median, interval = median_with_interval(ratios(times, arm, "none"))
    limit = LIMITS[policy] if model == "dispatch-bound" else statistics.median(theirs)
    found = [Row("package", f"{name}: step over none", "x", median, interval, round(limit, 3),
                 f"torch {statistics.median(theirs):.3f}x"),
             Row("package", f"{name}: peak over torch's", "x", peaks[arm] / peaks[f"{policy}/torch"], None, 1.0,
                 f"{peaks[arm]} B, torch {peaks[f'{policy}/torch']} B, none {peaks['none']} B")]
    if model == "dispatch-bound":  # in other models the repeated ops take most of the time
        ours_ns, theirs_ns = extra_an_op(times, arm, num_ops), extra_an_op(times, f"{policy}/torch", num_ops)
        found.append(Row("package", f"{name}: extra time an op of forward", "ns", *median_with_interval(ours_ns), None,
                         f"torch {statistics.median(theirs_ns):.0f} ns"))
    return found


def ratios(times, arm, base):
    return [mine / other for mine, other in zip(times[arm], times[base])]


def extra_an_op(times, arm, num_ops):
    return [(mine - other) / num_ops for mine, other in zip(times[arm], times["none"])]


def take_turns(python, model, threads, arms, rounds):
    """Returns nanoseconds per step, by arm and round. The order is reversed each round."""
    servers = {}
    try:
        for arm in arms:
            servers[arm] = Server([*python, SERVER], model, threads, {}, [arm]).__enter__()
        steps = max(1, round(TURN_NANOSECONDS / servers["none"].nanoseconds(0, 3)))
        times = {arm: [] for arm in arms}
        for turn in range(rounds):
            for arm in arms if turn % 2 == 0 else reversed(arms):
                times[arm].append(servers[arm].nanoseconds(0, steps))
        return times
    finally:
        for server in servers.values():
            server.close()
