"""Compares package rematch with torch.utils.checkpoint, selective checkpointing and torch_remat: step time, executed
ops, peak memory, and whether results are bit-identical. Each compared program is an
arm. Compared arms keep the same tensors of every layer. They run alternately, in separate processes."""

import dataclasses
import os
import statistics

from benchmarks import builds
from benchmarks.rows import Row, figure, limit, median_with_interval
from benchmarks.servers import ROOT, Failed, Server, version_of

SERVER = ROOT / "tests" / "benchmarks" / "package_server.py"
REMAT_VERSION = "0.2.2"
OURS = ("whole_region", "on_demand")
# The programs that rematch is compared with, by level. A level says which tensors a layer keeps. Programs with
# `+generator` also replay random draws.
RIVALS = {"full": ("checkpoint", "checkpoint+generator", "remat"), "attn_only": ("checkpoint", "remat"),
          "save_mm": ("checkpoint",), "attention": ("remat",), "feed_forward": ("remat",)}
RIVALS_WITH_DROPOUT = {"full": ("checkpoint", "checkpoint+generator", "remat", "remat+generator"),
                       "attn_only": ("checkpoint+generator", "remat", "remat+generator")}
MODELS = {"dispatch-bound": RIVALS, "dim 128": RIVALS, "dropout": RIVALS_WITH_DROPOUT}
LEVELS = {"full": "nothing", "attn_only": "results of attention ops", "save_mm": "results of matmuls",
          "attention": "what the attention module saves", "feed_forward": "what the MLP saves"}
NAMES = {"checkpoint": "torch.utils.checkpoint", "remat": "torch_remat", "whole_region": "rematch, whole_region",
         "on_demand": "rematch, on_demand"}
# Limits of the step time relative to no checkpointing, for the dispatch-bound model, whose kernels take almost no time.
DISPATCH_BOUND, FULL_LIMIT, LIST_LIMIT = "dispatch-bound", 1.3, 1.35
TURN_NANOSECONDS = 60e6


@dataclasses.dataclass
class Result:
    """The figures of one arm. Only arms of rematch have limits."""

    model: str
    level: str
    way: str
    step: Row
    peak: Row
    extra: Row  # extra time per op; None except for the dispatch-bound model
    num_more_ops: int  # number of ops executed in addition to those of a step without checkpointing
    bits_equal: bool
    target: Row = None  # the figures of `step` with a fixed limit; only for the dispatch-bound model

    @property
    def verdicts(self):
        if self.way not in OURS:
            return []
        target = self.target.verdict if self.target else ""
        return [self.step.verdict, self.peak.verdict, "met" if self.bits_equal else "MISSED", target]

    @property
    def verdict(self):
        """Returns "MISSED", "open" or "met", whichever is the worst verdict of this result. Returns "" for a rival,
        which has no limits."""
        return next((word for word in ("MISSED", "open", "met") if word in self.verdicts), "")


def rivals_of(model, level, has_remat):
    return [way for way in MODELS[model][level] if has_remat or not way.startswith("remat")]


def require_library(release):
    library = builds.library_of(release)
    if not library.exists():
        raise Failed(f"{library.relative_to(ROOT)} is not built: {builds.how_to_build_library(release)}")
    os.environ["PYTHONPATH"] = str(ROOT / "harness" / "python")
    os.environ["REMATCH_PYTHON_LIBRARY"] = str(library)


def require_remat(python):
    """Returns the version of torch_remat. Raises Failed if it is missing."""
    found = version_of(python, "torch_remat")
    if found is None:
        raise Failed(f"{python[0]} has no torch_remat: run '{python[0]} -m pip install --no-deps torch_remat=={REMAT_VERSION}', "
                     "or leave its arms out with --without-remat")
    return found


def results(python, threads, rounds, models, has_remat, say):
    found = []
    for model in models:
        counts = {"none": counts_of(python, model, threads, "none")}
        for level in MODELS[model]:
            rivals = rivals_of(model, level, has_remat)
            if rivals:
                found += results_of_level(python, model, level, rivals, counts, threads, rounds)
                say(f"{model}, {level} done")
    return found


def results_of_level(python, model, level, rivals, counts, threads, rounds):
    ways = [*rivals, *OURS]
    arms = [f"{level}/{way}" for way in ways]
    counts = counts | {arm: counts_of(python, model, threads, arm) for arm in arms}
    times, bits = take_turns(python, model, threads, ["none", *arms], rounds)
    found = [result_of(model, level, way, times, counts, bits) for way in ways]
    set_limits(found)
    return found


def counts_of(python, model, threads, arm):
    """Returns the bytes that a step adds at its peak, and its executed ops by phase."""
    with Server([*python, SERVER, "--count"], model, threads, {}, [arm]) as server:
        return int(server.ask("peak 0")), server.ops(0)


def result_of(model, level, way, times, counts, bits):
    arm = f"{level}/{way}"
    (_, ops_of_none), (peak, ops) = counts["none"], counts[arm]
    num_ops = ops_of_none["forward"]
    extra = None
    # Only the dispatch-bound model has this row. The extra time of other models is mostly the time of repeated ops.
    if model == DISPATCH_BOUND:
        extra_ns = [(mine - other) / num_ops for mine, other in zip(times[arm], times["none"])]
        extra = Row("package", arm, "ns", *median_with_interval(extra_ns))
    over_none = [mine / other for mine, other in zip(times[arm], times["none"])]
    return Result(model, level, way, Row("package", arm, "x", *median_with_interval(over_none), strictly=True),
                  Row("package", arm, "B", peak), extra, sum(ops.values()) - sum(ops_of_none.values()),
                  bits[arm] == bits["none"])


def set_limits(found):
    """Sets the limits to the figures of the best rival. Ignores rivals whose results are not bit-identical to those of
    the step without checkpointing."""
    rivals = [result for result in found if result.way not in OURS and result.bits_equal]
    for result in found:
        if result.way in OURS:
            result.step.limit = min((rival.step.measured for rival in rivals), default=None)
            result.peak.limit = min((rival.peak.measured for rival in rivals), default=None)
            if result.model == DISPATCH_BOUND:
                own = FULL_LIMIT if result.level == "full" else LIST_LIMIT
                result.target = dataclasses.replace(result.step, limit=own, strictly=False)


def take_turns(python, model, threads, arms, rounds):
    """Returns two dicts by arm: the nanoseconds per step of each round, and a digest of the step's results. Every
    second round runs the arms in reverse order."""
    servers = {}
    try:
        for arm in arms:
            servers[arm] = Server([*python, SERVER], model, threads, {}, [arm]).__enter__()
        steps = max(1, round(TURN_NANOSECONDS / servers["none"].nanoseconds(0, 3)))
        times = {arm: [] for arm in arms}
        for turn in range(rounds):
            for arm in arms if turn % 2 == 0 else reversed(arms):
                times[arm].append(servers[arm].nanoseconds(0, steps))
        return times, {arm: server.ask("bits 0") for arm, server in servers.items()}
    finally:
        for server in servers.values():
            server.close()


def name_of(result):
    way, _, generator = result.way.partition("+")
    if way == "checkpoint" and result.level != "full":
        return "selective checkpointing" + (", generator restored" if generator else "")
    return NAMES[way] + (", generator restored" if generator else "")


def markdown(found):
    """Returns one table per model."""
    tables = []
    for model in dict.fromkeys(result.model for result in found):
        lines = [f"**{model}**", "",
                 "| kept | arm | step / none (95 % interval) | extra time per forward op | more ops than none | peak | bits | |",
                 "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        lines += [line_of(result) for result in found if result.model == model]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def line_of(result):
    cells = [LEVELS[result.level], name_of(result), figure(result.step), figure(result.extra) if result.extra else "",
             str(result.num_more_ops), f"{result.peak.measured} B", "equal" if result.bits_equal else "differ",
             verdict_text(result)]
    return "| " + " | ".join(cells) + " |"


def verdict_text(result):
    if not result.verdicts:
        return ""
    parts = []
    if result.step.limit is not None:
        parts += ["quicker than every rival: " + result.step.verdict, "peak no higher: " + result.peak.verdict]
    if result.target:
        parts.append(f"step {limit(result.target)}: {result.target.verdict}")
    return "; ".join(parts)
