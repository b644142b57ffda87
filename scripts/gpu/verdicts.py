"""Judges the reports of scripts/gpu_queue. A verdict checks requirements on a report and reports figures from it. Each
verdict is a pure function from a report to (findings, problems), so tests need no GPU."""

import re

from gpu.rivals import judge_pytorch

MIB = 1 << 20

# Allowed relative error of the predicted peak, which does not include memory that kernels allocate internally.
PEAK_RATIO = 0.001
PEAK_BYTES = 2 * MIB
# The largest allowed slowdown of a step while kernels are counted.
MOST_SLOWDOWN = 1.10

# Matches what Catch2 prints for skipped tests. No test may be skipped on a machine with a GPU.
SKIPPED_TESTS = re.compile(r": skipped|No test cases matched|No tests ran")
# Matches a line in which `rematch doctor` says that the device cannot be used, or that kernels cannot be counted.
UNUSABLE = re.compile(r"^(device cuda|kernels) +(?!ok$| )")
# Matches a race in one of our kernels in compute-sanitizer's output, and a device that compute-sanitizer does not
# support. Does not match races in cuBLAS.
RACES = re.compile(r"access at .*rematch_|Device not supported")
SUMMARY = re.compile("^=+ (?=(ERROR|RACECHECK) SUMMARY)")
BANDWIDTH = re.compile("^bandwidth: ")
PATTERNS = {"skipped_tests": SKIPPED_TESTS, "unusable": UNUSABLE, "races": RACES, "summary": SUMMARY,
            "bandwidth": BANDWIDTH}


def pattern(name):
    return PATTERNS[name] if name else None


def is_dry(report):
    return (report.get("environment", {}).get("device") or "").startswith("dry ")


def points(report):
    """Yields (name, point) for each point of a report. Points of a front get the front's schedule."""
    for point in report.get("points", []):
        yield f"{point['policy']}, {point.get('schedule') or report['schedule']}", point


def end_of(point):
    """Returns the status of a point. In a front, the status is under `measured`, which is null if the point was not
    run."""
    return (point["measured"] if "measured" in point else point) or {"status": None}


def timed_out(report):
    ends = [(name, end_of(point)) for name, point in points(report)]
    return [f"{name}: {end['status']}: {end['reason']}" for name, end in ends if end["status"] == "timeout"]


def without(report, late):
    """Returns the report without points that timed out. If none timed out, returns the report itself."""
    if not late:
        return report
    return {**report, "points": [point for point in report["points"] if end_of(point)["status"] != "timeout"]}


def without_slowdowns(report):
    """Returns the report without the slowdown from counting kernels. The steps of this GPU measurement ran in parallel
    with other measurements, so this slowdown means nothing."""
    made = [{**point, "kernels": {**point["kernels"], "slowdown_ratio": None}} if point.get("kernels") else point
            for point in report.get("points", [])]
    return {**report, "points": made} if made else report


def wrong_bits(point):
    parity = point["parity"]
    if not parity:
        return "was not compared with a reference"
    bits = [parity[key] for key in ("loss_bits_equal", "gradient_bits_equal", "parameter_hash_equal",
                                    "generator_hash_equal")]
    if False in bits:
        where = parity["first_different_tensor"] or "a tensor without a name"
        return f"bits differ from reference {parity['reference']} at {where}"
    if parity.get("replay_bits_equal") is False:
        return "the replayed CUDA graph has other bits than the step op by op"
    if point["status"] != "ok":
        return None  # the point stopped early, and the steps that it ran were compared above
    if None in bits:
        return f"bits were not compared with reference {parity['reference']}"
    if not parity["every_parameter_has_gradient"]:
        return f"equal bits prove nothing: missing gradient at {parity['first_parameter_without_gradient']}"
    return None


def wrong_counts(point):
    effect = point["effect"] or {}
    if effect.get("counts_equal_prediction"):
        return None
    return f"executed ops differ from the prediction: {effect.get('detail') or 'not counted'}"


def peaks_of(point):
    """Returns the measured and the predicted peak of requested bytes. Both include library workspaces."""
    memory = point["memory"] or {}
    measured, predicted, workspace = (memory.get(key) for key in (
        "peak_requested_bytes", "predicted_peak_requested_bytes", "workspace_bytes"))
    if None in (measured, predicted, workspace):
        return None, None
    return measured, predicted + workspace


def wrong_peak(point):
    measured, predicted = peaks_of(point)
    if measured is None:
        return "no peak was both measured and predicted"
    off = measured - predicted
    if abs(off) <= max(PEAK_BYTES, PEAK_RATIO * measured):
        return None
    return f"peak {measured} B differs from its prediction by {off} B; allowed: 0.1 % or 2 MiB"


def point_problems(report, results=("ok",)):
    """Returns the problems that every verdict checks for: points without a result, bits that differ from the reference,
    executed ops that differ from the plan, and peaks that differ from the prediction. `results` lists the valid
    statuses."""
    problems = []
    for name, point in points(report):
        wrong = []
        if point["status"] == "ok":
            checks = (wrong_counts, wrong_peak) if is_dry(report) else (wrong_bits, wrong_counts, wrong_peak)
            wrong = [check(point) for check in checks]
        elif point["status"] not in results:
            wrong = [f"{point['status']}: {point['reason']}"]
        elif point["parity"]:
            wrong = [wrong_bits(point)]
        problems += [f"{name}: {text}" for text in wrong if text]
    return problems if report["points"] else ["the report has no points"]


def judge_bits(report):
    """Requires that the bits of every point equal the bits of its reference."""
    if is_dry(report):
        return ["equal bits on the dry device prove nothing"], point_problems(report)
    equal = sum(point["status"] == "ok" and not wrong_bits(point) for _, point in points(report))
    findings = [f"{equal} of {len(report['points'])} points have the reference's bits"]
    return findings, point_problems(report)


def judge_graph(report):
    """Requires that every point replayed a CUDA graph with the bits of the step op by op."""
    if is_dry(report):
        return ["equal bits on the dry device prove nothing"], point_problems(report)
    problems = point_problems(report)
    replayed = [name for name, point in points(report) if (point["parity"] or {}).get("replay_bits_equal") is not None]
    problems += [f"{name}: no replay was compared" for name, point in points(report)
                 if point["status"] == "ok" and name not in replayed]
    return [f"{len(replayed)} of {len(report['points'])} points replayed a step"], problems


def kernel_sum(point, kernel_class):
    kernels = point["kernels"]
    if kernels is None:
        return None
    return sum(phase.get(kernel_class, 0) for phase in kernels["kernel_count"].values())


def unknown_kernels(kernels, most=8):
    """Returns the slowest kernels without a class. Each of them needs a rule in kernel_class.cpp."""
    times = kernels.get("unknown_time_ns") or {}
    longest = sorted(times.items(), key=lambda item: -item[1])
    return [f"no class: {kernel}, {time / 1e6:.2f} ms" for kernel, time in longest[:most]]


def judge_counts(report):
    """Requires that 10 steps run 600 attention forward kernels, or 1200 if the blocks are recomputed."""
    expected = {"none": 600, "full": 1200, "attn_only": 600}
    findings, problems = [], point_problems(report)
    for name, point in points(report):
        ran = kernel_sum(point, "attention_forward")
        if ran is None:
            problems.append(f"{name}: no kernel counts: {point['kernels_reason']}")
            continue
        kernels = point["kernels"]
        slowdown = kernels["slowdown_ratio"]
        cost = "" if slowdown is None else f", counting slowed the step by {slowdown - 1:.1%}"
        findings.append(f"{name}: {ran} attention forward kernels, {kernels['unknown_time_ratio']:.2%} "
                        f"of kernel time unknown{cost}")
        findings += [f"{name}: {line}" for line in unknown_kernels(kernels)]
        if kernels.get("note"):
            findings.append(f"{name}: {kernels['note']}")
        if slowdown is not None and slowdown > MOST_SLOWDOWN:
            findings.append(f"{name}: the target for counting is {MOST_SLOWDOWN - 1:.0%}: missed")
        if kernels["invalid"]:
            problems.append(f"{name}: {kernels['invalid']}")
        if ran != expected[point["policy"]]:
            problems.append(f"{name}: {expected[point['policy']]} were expected")
    return findings, problems


def judge_steps(report):
    """Reports predicted and measured peaks, kernel counts and times. Running out of memory is a valid result. Crashes,
    wrong counts, different bits and wrong peaks are problems."""
    findings, problems = [], point_problems(report, results=("ok", "oom"))
    for name, point in points(report):
        memory, time = point["memory"] or {}, point["time"] or {}
        measured, predicted = peaks_of(point)
        slowdown = (point["kernels"] or {}).get("slowdown_ratio")
        if slowdown is not None:
            findings.append(f"{name}: counting slowed the step by {slowdown - 1:.1%}")
        findings.append(f"{name}: {point['status']}, requested {measured} B, predicted {predicted} B, allocated "
                        f"{memory.get('peak_allocated_bytes')} B, reserved {memory.get('peak_reserved_bytes')} B, "
                        f"{kernel_sum(point, 'attention_forward')} attention forward kernels, "
                        f"step {time.get('step_median_ns')} ns")
    if not any(point["status"] == "ok" for _, point in points(report)):
        problems.append("no policy fits")
    return findings, problems


# Fields that have the same values on the dry device and on a GPU.
SAME_ON_DRY = ("peak_requested_bytes", "workspace_bytes")


def against_dry(report, expected):
    """Compares the report with `expected`, the report of the same command on the dry device. Returns (findings,
    problems)."""
    dry = dict(points(expected))
    findings, problems = [], []
    for name, point in points(report):
        other = dry.get(name)
        if other is None or point["status"] != "ok" or other["status"] != "ok":
            continue
        memory, expected_memory = point["memory"] or {}, other["memory"] or {}
        for key in SAME_ON_DRY:
            if memory.get(key) != expected_memory.get(key):
                problems.append(f"{name}: {key} is {memory.get(key)}, dry {expected_memory.get(key)}")
        for key in ("peak_allocated_bytes", "peak_reserved_bytes"):
            if memory.get(key) is not None:
                findings.append(f"{name}: {key} {memory.get(key)}, dry {expected_memory.get(key)}")
        if point["kernels"] is None or other["kernels"] is None:
            continue
        for kernel_class in ("attention_forward", "attention_backward"):
            ran, there = kernel_sum(point, kernel_class), kernel_sum(other, kernel_class)
            if ran != there:
                problems.append(f"{name}: {ran} kernels of class {kernel_class}, dry {there}")
    return findings, problems


def judge_profile(profile):
    """Requires that the profile has kernel times, and the bytes that kernels allocate."""
    findings, problems = [], []
    for name in ("forward", "backward"):
        types = profile[name]["types"]
        times = sum(sum(types[index]["times_ns"]) for index in profile[name]["spans"])
        findings.append(f"{name}: {times} ns in kernels")
        if times == 0:
            problems.append(f"{name}: no op took any time on the device")
        if any(kind["temporary_bytes"] is None for kind in types):
            problems.append(f"{name}: the bytes that kernels allocate were not measured")
        else:
            most = max(max(kind["temporary_bytes"]) for kind in types)
            findings.append(f"{name}: temporaries of an op take at most {most} B")
    if (profile["device"], profile["source"]) != ("cuda", "measured"):
        problems.append(f"the profile is {profile['source']}, of {profile['device']}")
    return findings, problems


TIME_PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes")


def judge_times(report):
    """Reports step times and the allocator's peaks of the timed steps. Running out of memory is a valid result."""
    findings, problems = [], []
    timed = 0
    for name, point in points(report):
        if point["status"] not in ("ok", "oom"):
            problems.append(f"{name}: {point['status']}: {point['reason']}")
        time = point["time"]
        if not time or time.get("step_median_ns") is None:
            findings.append(f"{name}: {point['status']}, no time")
            continue
        timed += 1
        findings.append(f"{name}: step {time['step_median_ns']} ns{ratio_of(time)}, "
                        + ", ".join(f"{key} {time.get(key)}" for key in TIME_PEAKS))
    if not report["points"]:
        return findings, ["the report has no points"]
    if is_dry(report):
        return ["the dry device has no times"], problems
    return findings, problems + ([] if timed else ["no policy was timed"])


def judge_overhead(report):
    """Reports the ratio of step times as a finding. The ratio has no target on a GPU."""
    findings, problems = judge_times(report)
    ratios = [point for _, point in points(report) if point["policy"] != "none" and (point["time"] or {}).get("step_ratio")]
    if not is_dry(report) and not ratios:
        problems.append("no ratio was measured")
    return findings, problems


def ratio_of(time):
    ratio = time.get("step_ratio")
    if not ratio:
        return ""
    low, high = ratio["interval"] or (None, None)
    return f", {ratio['ratio']:.3f} of the reference [{low}, {high}]"


def judge_ceilings(report):
    """Reports the card's highest rates, so that runs on different cards can be compared."""
    findings = [f"{report['device']}: copy {report['copy_gb_per_second']:.0f} GB/s, "
                f"bf16 matmul {report['matmul_tflop_per_second']:.0f} TFLOP/s"]
    slow = [key for key, rate in report.items() if key.endswith("_per_second") and rate <= 0]
    return findings, [f"{key} is not positive" for key in slow]


def judge_front(front):
    """Judges the measured points of a front. Times that are too noisy are only a finding."""
    measurement = front["measurement"] or {"num_measured": 0}
    error = measurement.get("median_step_time_error_ratio")
    findings = [f"{measurement['num_measured']} points were run, {measurement.get('num_equal_peaks')} peaks equal the "
                f"predicted peaks, step times are off by {'unknown' if error is None else f'{error:.1%}'} in the median"]
    return findings, [] if measurement["num_measured"] else ["no point was measured"]


def judge_package(report):
    findings = [f"{key}: {value}" for key, value in report["findings"].items()]
    return findings, list(report["problems"])


JUDGES = {"bits": judge_bits, "graph": judge_graph, "counts": judge_counts, "overhead": judge_overhead, "steps": judge_steps,
          "times": judge_times, "profile": judge_profile, "front": judge_front, "ceilings": judge_ceilings,
          "package": judge_package, "pytorch": judge_pytorch}
