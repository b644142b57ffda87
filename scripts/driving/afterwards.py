"""Runs other commands on the report of a run that passed, and checks their results."""

import json

from driving import verdict


def validate(execution, report, words):
    done = execution.start("validate", execution.report_file)
    return verdict.judge_ending(done)


def render(execution, report, words):
    done = execution.start("render", execution.report_file, "-o", execution.folder / "page.html")
    return verdict.judge_ending(done)


def compare(execution, report, words):
    done = execution.start("compare", execution.report_file, execution.report_file, "--fail-on",
                           "peak,counts")
    return verdict.judge_ending(done)


def gate(execution, report, words):
    """Checks the gate. If some gradients are missing, equal bits prove nothing, so the gate must not pass."""
    file = execution.report_file
    done = execution.start("gate", file, "--reference", file, "--loss", "bitwise")
    parities = [point["parity"] or {} for point in report["points"]]
    proven = all(parity.get("every_parameter_has_gradient") for parity in parities)
    unproven = () if proven else (3, 4)
    return verdict.judge_ending(done, 0, *unproven)


def describe(execution, report, words):
    found = []
    for policy in execution.policies:
        found += verdict.judge_ending(execution.start(
            "describe", execution.case.model["--model"], policy,
            *execution.flag_words({flag: value for flag, value in execution.case.model.items()
                                   if flag != "--model"})))
    for plan in execution.plan_words:
        found += verdict.judge_ending(execution.start("describe", "--plan", plan))
    return found


def run_again(execution, report, words):
    """Checks that repeating the command leaves finished points unchanged and does not measure them again."""
    done = execution.start(*words)
    found = verdict.judge_ending(done)
    if not found and execution.read_report()["points"] != report["points"]:
        found.append("again: repeating the command changes the points")
    return found


def predict(execution, report, words):
    """Checks that `rematch predict` gives the same figures for the same plans."""
    flags = execution.case.flags
    kept = {flag: flags[flag] for flag in ("--schedule", "--optimizer", "--allow-no-effect")
            if flag in flags}
    done = execution.start("predict", *execution.model_words(), *execution.flag_words(kept),
                           *execution.policy_words, "--json")
    found = verdict.judge_ending(done)
    if found:
        return found
    predicted = {(point["plan_sha256"], point["schedule"]): point for point in json.loads(done.out)}
    for point in report["points"]:
        other = predicted.get((point["plan_sha256"], point["schedule"]))
        if other is None:  # a reference that was not requested has no prediction
            continue
        memory = other["predicted_memory"]
        for key in ("peak_allocated_bytes", "after_forward_bytes"):
            if memory[key] != point["memory"][key]:
                found.append(f"predict: {point['policy']}, {point['schedule']}: {key} {memory[key]}, "
                             f"measured {point['memory'][key]}")
    return found


COMMANDS = {"validate": validate, "render": render, "compare": compare, "gate": gate,
            "describe": describe, "run_again": run_again, "predict": predict}
