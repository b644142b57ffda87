"""Judges a result file of pytorch_steps.py: compares our step times and peaks with those of PyTorch eager and
torch.compile. Uses no device, clock or file.

A rival is PyTorch eager or torch.compile with one policy. In each round, every rival has one turn, which runs several
steps. See pytorch_steps.py."""

import math
import statistics

# largest allowed ratio of our step time to the rival's step time
MAX_RATIO = 1.0
# Largest allowed relative difference of losses. Losses may differ only by rounding: bfloat16 has a precision of 8 bits,
# and averaging over tokens reduces the error further.
MAX_LOSS_DIFFERENCE = 0.02
MEBIBYTE = 1 << 20
NAMES = {"eager": "PyTorch eager", "compile": "torch.compile"}


def turns_of(report):
    """Returns one dict for each turn. Older files without the key `format` contain only PyTorch eager: one dict per
    round that maps each policy to its figures."""
    if report.get("format", 1) >= 2:
        return report["turns"]
    return [{"round": index, "variant": "eager", "policy": policy, **measured}
            for index, found in enumerate(report["rounds"]) for policy, measured in found.items()]


def rivals_of(report):
    """Returns one dict for each rival, with keys variant, policy, status, reason and compile."""
    if report.get("format", 1) >= 2:
        return report["rivals"]
    rivals = {}
    for turn in turns_of(report):
        rivals[turn["policy"]] = {"variant": "eager", "policy": turn["policy"], "status": turn.get("status", "ok"),
                                  "reason": turn.get("reason"), "compile": None}
    return list(rivals.values())


def measured_of(report, variant, policy):
    """Returns a rival's step times and highest peaks over all turns, or None if the rival was not timed."""
    turns = [turn for turn in turns_of(report) if (turn["variant"], turn["policy"]) == (variant, policy)]
    samples = [sample for turn in turns for sample in turn["samples_ns"]]
    if not samples:
        return None
    found = {"step_median_ns": statistics.median(samples), "samples_ns": samples}
    for key in ("peak_allocated_bytes", "peak_reserved_bytes"):
        peaks = [turn[key] for turn in turns if turn.get(key) is not None]
        found[key] = max(peaks) if peaks else None
    return found


def our_peak(point, key):
    """Returns the peak of the timed steps. Older reports have only the peak of the untimed steps, which used another
    attention kernel."""
    for part in ("time", "memory"):
        found = (point.get(part) or {}).get(key)
        if found is not None:
            return found
    return None


def point_name(point):
    ops = point.get("ops")
    return f"{point['policy']}, {point['schedule']}" + (f", {ops} ops" if ops not in (None, "eager") else "")


def mebibytes(count):
    return "unknown" if count is None else f"{count / MEBIBYTE:,.0f} MiB"


def describe_rival(rival):
    """Returns the reason why the rival failed, or how long compiling took. Returns None if an eager rival succeeded."""
    name, compiled = f"{NAMES[rival['variant']]}, {rival['policy']}", rival.get("compile") or {}
    if rival["status"] != "ok":
        return f"{name}: {rival['status'].replace('_', ' ')}: {rival['reason']}"
    if "first_step_seconds" not in compiled:
        return None
    breaks = compiled["graph_breaks"]
    return (f"{name}: {compiled['form']}, first step {compiled['first_step_seconds']:.1f} s, "
            f"{breaks} graph break{'' if breaks == 1 else 's'}")


def compare(report, point):
    """Returns the lines that compare one of our points with its rivals."""
    lines = []
    for variant in dict.fromkeys(rival["variant"] for rival in rivals_of(report)):
        rival = measured_of(report, variant, point["policy"])
        if rival is None:
            continue
        ratio = point["time"]["step_median_ns"] / rival["step_median_ns"]
        missed = "" if ratio <= MAX_RATIO else ", the target is 1.0: missed"
        lines.append(f"{point_name(point)}: {ratio:.3f} of {NAMES[variant]}'s {rival['step_median_ns'] / 1e6:.1f} ms"
                     + missed)
        for key, what in (("peak_allocated_bytes", "allocated"), ("peak_reserved_bytes", "reserved")):
            if rival[key] is not None:
                lines.append(f"{point_name(point)}: {what} {mebibytes(our_peak(point, key))}, {NAMES[variant]} "
                             f"{mebibytes(rival[key])}")
    return lines


def wrong_losses(report):
    """Returns the rivals whose first loss differs from that of the other rivals. All rivals start from the same
    parameters, so the first losses must agree."""
    known = [(rival, float(rival["first_loss"])) for rival in rivals_of(report) if rival.get("first_loss") is not None]
    if not known:
        return []
    expected = known[0][1]
    return [f"{NAMES[rival['variant']]}, {rival['policy']}: first loss {loss}, {NAMES[known[0][0]['variant']]}'s "
            f"is {expected}" for rival, loss in known
            if not math.isfinite(loss) or abs(loss - expected) > MAX_LOSS_DIFFERENCE * abs(expected)]


def diverged(report):
    """Returns the rivals whose loss diverged, which can happen with random data. Their steps run the same ops, but
    arithmetic on NaN takes less power and may be faster."""
    return [f"{NAMES[turn['variant']]}, {turn['policy']}: the last loss of round {turn['round']} is {turn['last_loss']}"
            for turn in turns_of(report)
            if turn.get("last_loss") is not None and not math.isfinite(float(turn["last_loss"]))]


def wrong_card(report):
    ours = report.get("rematch_environment") or {}
    theirs = report.get("environment") or {}
    if ours.get("device_uuid") and theirs.get("device_uuid") and ours["device_uuid"] != theirs["device_uuid"]:
        return [f"our steps ran on {ours['device_uuid']}, PyTorch's on {theirs['device_uuid']}"]
    return []


def untimed_variants(report):
    """Returns one line for each variant that could not be timed under any policy, with the reasons."""
    problems = []
    for variant in dict.fromkeys(rival["variant"] for rival in rivals_of(report)):
        rivals = [rival for rival in rivals_of(report) if rival["variant"] == variant]
        if not any(measured_of(report, variant, rival["policy"]) for rival in rivals):
            reasons = dict.fromkeys(f"{rival['status'].replace('_', ' ')}: {rival['reason']}" for rival in rivals)
            problems.append(f"{NAMES[variant]} was not timed under any policy: {'; '.join(reasons)}")
    return problems


def judge_pytorch(report):
    """Returns (findings, problems). A slower step or a failed rival is only a finding. Different attention kernels,
    cards or determinism settings are problems, because times cannot be compared then. A different loss is a problem,
    because it shows that the models differ."""
    num_rounds = len({turn["round"] for turn in turns_of(report)})
    findings = [f"PyTorch {report['torch']}, {report['attention_backend']} attention, {num_rounds} rounds"]
    findings += filter(None, map(describe_rival, rivals_of(report)))
    findings += diverged(report)
    problems = [report["failure"]] if report.get("failure") else []
    problems += wrong_card(report) + wrong_losses(report) + untimed_variants(report)
    theirs = report["attention_backend"], report["settings"]["deterministic"]
    was_compared = False
    for point in report["rematch"]:
        time = point["time"]
        if not time or not time.get("step_median_ns"):
            findings.append(f"{point_name(point)}: not compared, because rematch has no step time (status: {point['status']})")
            continue
        how = time.get("attention_backend"), bool(time.get("repeatable_bits"))
        if how != theirs:
            problems.append(f"{point_name(point)}: timed with attention and determinism {how}, PyTorch with {theirs}")
            continue
        lines = compare(report, point)
        was_compared = was_compared or bool(lines)
        findings += lines
    if not was_compared and not problems:
        problems.append("no policy was timed on both sides")
    return findings, problems
