"""Rules that every run must satisfy. Each function returns a list of failures, each as `kind: message`."""

import collections

HARMLESS = ("rematch: note: ", "rematch: warning: ", "rematch: hint: ")
# maximum length of an error message, which may contain a name of 300 characters and an equally long list of ops
MOST_LETTERS = 1000
TRACES_OF_A_CRASH = ("terminate called", "Assertion", "what():", "Exception raised from",
                     "AddressSanitizer", "Segmentation")


def judge_refusal(done):
    """Requires exit code 2 and one line that says why."""
    lines = [line for line in done.err.splitlines() if not line.startswith(HARMLESS)]
    if len(lines) != 1 or not lines[0].startswith("rematch: ") or len(lines[0]) > MOST_LETTERS or done.out:
        said = done.err.strip().splitlines()[-3:]
        return [f"refusal: the message is not one readable line: {' | '.join(said)!r}"]
    return []


def judge_ending(done, *allowed):
    """Requires exit code 0 or another allowed code."""
    if done.code is None:
        return [f"hung: {done.err}"]
    found = [f"crash: {word!r} on stderr" for word in TRACES_OF_A_CRASH if word in done.err]
    if done.code not in (allowed or (0,)):
        said = (done.err.strip().splitlines() or [""])[-1]
        found.append(f"exit code: {done.words[0]} ended with {done.code}: {said}")
    return found


def judge_report(report, case, plans, front_figures):
    """`plans` lists the names under which the case's plans are reported. `front_figures` maps (plan hash, schedule) to
    the figures that a search predicted for the case's optimizer."""
    points = report["points"]
    found = judge_reference(points, case) + judge_presence(points, case, plans)
    for point in points:
        name = f"{point['policy']}, {point['identity']['schedule']}"
        found += [f"{kind}: {name}: {what}" for kind, what in judge_point(point, case)]
        figures = front_figures.get((point["identity"]["plan_sha256"], point["identity"]["schedule"]))
        if figures and point["status"] == "ok":
            found += [f"front: {name}: {what}" for what in judge_front(point, figures)]
    return found + judge_baselines(points) + judge_schedules(points)


def judge_reference(points, case):
    """Requires that the reference exists, and that policy `none` keeps everything."""
    reference = case.flags.get("--reference", "none")
    of_reference = [point for point in points if point["policy"] == reference]
    found = [] if of_reference else [f"reference: {reference} is not there"]
    found += [f"reference: none recomputes {recomputed_ops(point)} ops"
              for point in of_reference if reference == "none" and recomputed_ops(point)]
    return found


def judge_presence(points, case, plans):
    """Requires one point for each requested plan and schedule. A plan that recomputes nothing may have only the point
    under whole_region. A policy and a plan file may share a point."""
    reference = case.flags.get("--reference", "none")
    least = len(case.policies) + (reference not in case.policies)
    schedules = collections.defaultdict(list)
    for point in points:
        schedules[point["policy"], point["identity"]["plan_sha256"]].append(point)
    found = []
    if len(schedules) < least:
        found.append(f"points: {len(schedules)} plans have points, but at least {least} were requested")
    found += [f"points: none of {policy}" for policy in plans
              if policy not in {policy for policy, _ in schedules}]
    for (policy, _), alike in schedules.items():
        there = sorted(point["identity"]["schedule"] for point in alike)
        asked = case.flags["--schedule"]
        asked = ["on_demand", "whole_region"] if asked == "both" else [asked]
        if there != asked and (there != ["whole_region"] or any(map(recomputed_ops, alike))):
            found.append(f"points: {policy} is there under {there}")
    return found


def judge_point(point, case):
    """Returns (kind, message) for every failure."""
    if point["status"] != "ok":
        yield "status", f"{point['status']}: {point['reason']}"
        return
    steps = int(case.flags["--steps"])
    if case.flags.get("--device") != "meta":
        yield from judge_parity(point["parity"] or {}, steps)
    if point["effect"]["counts_equal_prediction"] is not True:
        yield "counts", point["effect"]["detail"]
    if point["counts"] != point["predicted_counts"] or point["counted_steps"] != steps:
        yield "counts", f"{point['counts']}, predicted {point['predicted_counts']}"
    memory = point["memory"]
    for key in ("peak_allocated_bytes", "after_forward_bytes"):
        if memory[key] is None or memory[key] != memory["predicted_" + key]:
            yield "bytes", f"{key} {memory[key]}, predicted {memory['predicted_' + key]}"


def judge_parity(parity, steps):
    if parity.get("compared_steps") != steps:
        yield "parity", f"{parity.get('compared_steps')} of {steps} steps compared"
    for key in ("loss_bits_equal", "gradient_bits_equal", "parameter_hash_equal",
                "generator_hash_equal"):
        if parity.get(key) is not True:
            yield "parity", (f"{key} is {parity.get(key)}: step {parity.get('first_different_step')}, "
                             f"{parity.get('first_different_tensor')}")


def judge_front(point, figures):
    """Requires that the engine measured exactly the figures that the search predicted."""
    for key in ("peak_allocated_bytes", "after_forward_bytes"):
        if point["memory"][key] != figures["predicted_" + key]:
            yield f"{key} {point['memory'][key]}, but the front predicts {figures['predicted_' + key]}"
    recomputed = recomputed_ops(point)
    if recomputed != figures["predicted_recomputed_ops"] * point["counted_steps"]:
        yield (f"{recomputed} ops recomputed in {point['counted_steps']} steps, but the front predicts "
               f"{figures['predicted_recomputed_ops']} a step")


def judge_baselines(points):
    """Requires that no policy leaks memory: between steps, each policy must hold as many bytes as a run without
    checkpointing."""
    held = {point["memory"]["baseline_bytes"] for point in points if point["status"] == "ok"}
    return [f"baseline: {sorted(held)} bytes between steps"] if len(held) > 1 else []


def judge_schedules(points):
    """Requires that, with the same plan, on_demand executes at most as many ops as whole_region and has at most the
    same peak."""
    by_plan = collections.defaultdict(dict)
    for point in points:
        if point["status"] == "ok":
            by_plan[point["identity"]["plan_sha256"]][point["identity"]["schedule"]] = point
    found = []
    for pair in by_plan.values():
        if len(pair) < 2:
            continue
        lazy, eager = pair["on_demand"], pair["whole_region"]
        if executed_ops(lazy) > executed_ops(eager):
            found.append(f"schedules: {lazy['policy']}: on_demand executes {executed_ops(lazy)} ops, "
                         f"whole_region {executed_ops(eager)}")
        peaks = [point["memory"]["peak_allocated_bytes"] for point in (lazy, eager)]
        if peaks[0] > peaks[1]:
            found.append(f"schedules: {lazy['policy']}: on_demand peaks at {peaks[0]} bytes, "
                         f"whole_region at {peaks[1]}")
    return found


def executed_ops(point):
    return sum(sum(ops.values()) for ops in (point["ops"] or {}).values())


def recomputed_ops(point):
    return sum((point["ops"] or {}).get("recompute", {}).values())
