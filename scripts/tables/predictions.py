"""Predicts step times that were also measured on a GPU: from a profile of this GPU, from rates of this GPU that come
from profiles of other models, and from its data sheet."""

import json
import pathlib
import subprocess
import tempfile

FILE = "predicted.json"
SCHEMA = "rematch.predicted_steps/1.0"
PROFILE = "rematch.profile/"
# Rates at which an op takes one nanosecond for each byte, or for each FLOP if it is a matmul or attention.
UNIT_RATES = {"schema": "rematch.ceilings/1.0", "device": "unit", "copy_gb_per_second": 1,
              "matmul_tflop_per_second": 1e-3}
ATTENTION_BACKWARD_FLOPS = 2.5  # relative to forward


def profiles_in(folder):
    for path in sorted(folder.glob("*.report.json")):
        document = json.loads(path.read_text())
        if str(document.get("schema", "")).startswith(PROFILE):
            yield path, document


def model_flags(profile):
    dimensions = profile["dimensions"]
    return ["--model", profile["model"], "--batch", str(dimensions["batch"]), "--tokens", str(dimensions["tokens"]),
            "--dtype", profile["dtype"]]


def run(program, *words):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, check=True).stdout


def predict(program, profile, policies, source):
    """Returns {policy: nanoseconds per step}. `source` contains the flags that select the source of op times."""
    plans = run(program, "predict", *model_flags(profile), "--policy", ",".join(policies), *source, "--json")
    return {plan["policy"]: plan["predicted_step_time_ns"] for plan in json.loads(plans)}


def times_of(profile):
    """Returns the times of forward's and of backward's ops, in the order in which they run."""
    return [[time for span in profile[part]["spans"] for time in profile[part]["types"][span]["times_ns"]]
            for part in ("forward", "backward")]


def rates_of(program, profile, kind):
    """Returns ceilings (Note [Which rate prices an op], policies/predict/device/ceilings.h): the FLOPs or bytes of all
    ops of a kind over their measured time. Matmuls and attention are measured in forward, attention also in
    backward."""
    with tempfile.TemporaryDirectory() as folder:
        unit, trace_file = pathlib.Path(folder) / "unit.json", pathlib.Path(folder) / "trace.json"
        unit.write_text(json.dumps(UNIT_RATES))
        run(program, "trace", *model_flags(profile), "-o", trace_file)
        amounts = json.loads(run(program, "profile", "--trace", trace_file, "--device", kind, "--ceilings", unit))
        trace = json.loads(trace_file.read_text())
    forward = [op for span in trace["spans"] for op in trace["types"][span["type"]]["ops"]]
    backward = [event["op"] for span in trace["backward"] for event in trace["backward_types"][span["type"]]
                if "op" in event]
    measured_forward, measured_backward = times_of(profile)
    amount, time = {}, {}
    for op, of_op, measured in zip(forward, times_of(amounts)[0], measured_forward, strict=True):
        kind_of_op = op["class"] if op["class"] in ("matmul", "attention_forward") else "elementwise"
        amount[kind_of_op] = amount.get(kind_of_op, 0) + of_op
        time[kind_of_op] = time.get(kind_of_op, 0) + measured
    attention_backward = sum(measured for op, measured in zip(backward, measured_backward, strict=True)
                             if op == "rematch::attention_backward")
    tera = {name: amount[name] / time[name] * 1e-3 for name in ("matmul", "attention_forward")}
    return {"matmul_tflop_per_second": tera["matmul"],
            "attention_forward_tflop_per_second": tera["attention_forward"],
            "attention_backward_tflop_per_second":
                ATTENTION_BACKWARD_FLOPS * amount["attention_forward"] / attention_backward * 1e-3,
            "elementwise_gb_per_second": amount["elementwise"] / time["elementwise"]}


def ceilings_for(program, model, profiles, folder, evidence):
    """Returns the ceilings by which steps of `model` are predicted, as a document of their schema: the measured rate of
    copies, and the other rates from the first profile of another model."""
    copies = next(report["copy_gb_per_second"] for name, report in evidence.ceilings.items()
                  if name.startswith(folder.name + "/"))
    path, other = next((path, profile) for path, profile in profiles if profile["model"] != model)
    return {"schema": UNIT_RATES["schema"], "device": other["card"], "copy_gb_per_second": copies,
            **rates_of(program, other, folder.name), "source": f"rates of {path.name}"}


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
    """Writes predictions to FILE in the folder of every kind of GPU that has profiles of two models. Returns the
    paths."""
    written = []
    for folder in sorted(path for path in pathlib.Path(results).iterdir() if path.is_dir()):
        entries = []
        profiles = list(profiles_in(folder))
        for path, profile in profiles:
            size, policies = measured_policies(evidence.points, profile, folder.name.upper())
            if not policies or len({each["model"] for _, each in profiles}) < 2:
                continue
            rates = ceilings_for(program, profile["model"], profiles, folder, evidence)
            by_profile = predict(program, profile, policies, ["--profile", str(path), "--any-card"])
            by_sheet = predict(program, profile, policies, ["--device", folder.name])
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(json.dumps(rates))
                file.flush()
                by_rates = predict(program, profile, policies, ["--device", folder.name, "--ceilings", file.name])
            entries += [{"model": profile["model"], "size": size, "policy": policy, "profile": path.name, "rates": rates,
                         "predicted_by_profile_ns": by_profile[policy], "predicted_by_rates_ns": by_rates[policy],
                         "predicted_by_data_sheet_ns": by_sheet[policy]} for policy in policies]
        if entries:
            target = folder / FILE
            target.write_text(json.dumps({"schema": SCHEMA, "predictions": entries}, indent=2) + "\n")
            written.append(target)
    return written
