"""Predicts step times that were also measured on a GPU: once from a profile of this GPU, and once from its data
sheet."""

import json
import pathlib
import subprocess

FILE = "predicted.json"
SCHEMA = "rematch.predicted_steps/1.0"
PROFILE = "rematch.profile/"


def profiles_in(folder):
    for path in sorted(folder.glob("*.report.json")):
        document = json.loads(path.read_text())
        if str(document.get("schema", "")).startswith(PROFILE):
            yield path, document


def command_of(program, profile, policies, source):
    """`source` contains the flags that select the source of op times."""
    dimensions = profile["dimensions"]
    return [str(program), "predict", "--model", profile["model"], "--batch", str(dimensions["batch"]),
            "--tokens", str(dimensions["tokens"]), "--dtype", profile["dtype"], "--policy", ",".join(policies),
            *source, "--json"]


def predict(program, profile, policies, source):
    """Returns {policy: nanoseconds per step}."""
    done = subprocess.run(command_of(program, profile, policies, source), capture_output=True, text=True, check=True)
    return {plan["policy"]: plan["predicted_step_time_ns"] for plan in json.loads(done.stdout)}


def measured_policies(points, profile, card):
    """Returns (size, policies). The policies were timed on this kind of GPU with the profile's model and size, and are
    in the order of the points."""
    batch, tokens = profile["dimensions"]["batch"], profile["dimensions"]["tokens"]
    size = f"{tokens:,}" if batch == 1 else f"{batch} x {tokens:,}"
    found = [point.policy for point in points
             if (point.card, point.model, point.size, point.ops) == (card, profile["model"], size, "eager")
             and point.is_kept and point.step_ns]
    return size, list(dict.fromkeys(found))


def write_all(program, results, evidence):
    """Writes predictions to FILE in the folder of every kind of GPU that has a profile. Returns the paths."""
    written = []
    for folder in sorted(path for path in pathlib.Path(results).iterdir() if path.is_dir()):
        entries = []
        for path, profile in profiles_in(folder):
            size, policies = measured_policies(evidence.points, profile, folder.name.upper())
            if not policies:
                continue
            by_profile = predict(program, profile, policies, ["--profile", str(path), "--any-card"])
            by_sheet = predict(program, profile, policies, ["--device", folder.name])
            entries += [{"model": profile["model"], "size": size, "policy": policy, "profile": path.name,
                         "predicted_by_profile_ns": by_profile[policy], "predicted_by_data_sheet_ns": by_sheet[policy]}
                        for policy in policies]
        if entries:
            target = folder / FILE
            target.write_text(json.dumps({"schema": SCHEMA, "predictions": entries}, indent=2) + "\n")
            written.append(target)
    return written
