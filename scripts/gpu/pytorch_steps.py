#!/usr/bin/env python3
"""Times a report's model in PyTorch, eager and under torch.compile, for comparison with rematch's steps.

    pytorch_steps.py --beside REPORT -o OUT [--rounds N] [--steps N] [--variants eager,compile] [--seconds LIMIT]

REPORT is a report of `rematch run`. A rival is one variant with one policy. A rival runs the report's model, rewritten
op for op in PyTorch (see tests/parity), with the same shape, dtype, optimizer, attention kernel and determinism
setting. All rivals run alternately in one process: in the listed order in even rounds, reversed in odd rounds. Every
turn of a rival starts from the same parameters. OUT is written before and after every turn.

pytorch_rivals.py runs the turns in a child process. If the child crashes or hangs during a rival's turn, this program
marks that rival as failed and starts a new child for the others. At LIMIT all remaining turns are marked as not run.
Needs torch and numpy.
Exit codes: 0 OUT is written, whatever its result; 2 usage."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

CHILD = pathlib.Path(__file__).resolve().parent / "pytorch_rivals.py"
POLICIES = ("none", "full", "attn_only", "save_mm")
VARIANTS = ("eager", "compile")
# Exit code with which the child requests a new process, because CUDA accepts no more work after some errors.
RESTART = 75
# A turn that takes longer is considered hung. Compiling took at most 41 s on two busy cores.
TURN_SECONDS = 180
MAX_CHILDREN = 6
POLL_SECONDS = 0.2
STDERR_LINES = 3
CRASH = "Fatal Python error"  # first line of faulthandler's output; a stack trace follows


def settings_of(report):
    """Returns the settings that all points of the report share."""
    first = report["points"][0]
    identity = first["identity"]
    times = [point["time"] for point in report["points"] if point["time"]]
    return {"model": identity["model"], "dimensions": identity["dimensions"], "dtype": identity["dtype"],
            "device": "cuda" if first["device"].startswith("cuda") else first["device"],
            "optimizer": identity["optimizer"],
            "attention_backend": times[0].get("attention_backend") if times else None,
            "deterministic": bool(times and times[0].get("repeatable_bits"))}


def policies_of(report):
    """Returns the report's policies that PyTorch also has. If there are none, returns all policies of PyTorch."""
    named = dict.fromkeys(point["policy"] for point in report["points"] if point["policy"] in POLICIES)
    return list(named) or list(POLICIES)


def ours(report):
    """Returns the figures to compare for each point: step time, how the step time was measured, and peaks."""
    of_time = ("step_median_ns", "samples_ns", "attention_backend", "repeatable_bits", "peak_allocated_bytes",
               "peak_reserved_bytes")
    of_memory = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes")

    def kept(part, keys):
        return {key: part.get(key) for key in keys} if part else None

    return [{"policy": point["policy"], "schedule": point["schedule"], "ops": point["identity"].get("ops"),
             "status": point["status"], "reason": point.get("reason"), "time": kept(point["time"], of_time),
             "memory": kept(point.get("memory"), of_memory)} for point in report["points"]]


def fresh_state(report, variants, num_rounds, num_steps):
    environment = report.get("environment", {})
    return {"format": 2, "complete": False, "settings": settings_of(report), "environment": None, "torch": None,
            "attention_backend": settings_of(report)["attention_backend"], "num_rounds": num_rounds,
            "num_steps": num_steps, "failure": None, "running": None,
            "rivals": [{"variant": variant, "policy": policy, "status": "not_run", "reason": None, "compile": None}
                       for variant in variants for policy in policies_of(report)],
            "turns": [], "rematch_environment": {key: environment.get(key) for key in ("device", "device_uuid")},
            "rematch": ours(report)}


def write_atomically(path, state):
    """Replaces the file atomically. Even if the process is killed, the file is never half written."""
    path = pathlib.Path(path)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
        file.write(json.dumps(state, indent=1) + "\n")
    os.replace(file.name, path)


def turn_order(rivals, round_index):
    """Returns the rivals in the listed order in even rounds, and in reverse order in odd rounds (ABBA)."""
    return list(rivals) if round_index % 2 == 0 else list(reversed(rivals))


def rival_named(state, name):
    return next(rival for rival in state["rivals"] if [rival["variant"], rival["policy"]] == name)


def blame_running(state, reason):
    """Called after the child failed. If the turn of a rival was running, marks this rival as failed. Otherwise marks
    the whole run as failed."""
    running, state["running"] = state["running"], None
    if running is None:
        state["failure"] = reason
        return False
    rival_named(state, running["rival"]).update(status="failed", reason=reason)
    return True


def mark_the_rest(state, reason):
    for rival in state["rivals"]:
        if rival["status"] == "not_run":
            rival["reason"] = rival["reason"] or reason
    wanted = state["num_rounds"] * sum(rival["status"] in ("ok", "not_run") for rival in state["rivals"])
    timed = sum(turn["status"] == "ok" for turn in state["turns"])
    state["complete"] = state["failure"] is None and timed >= wanted


def end_of(child):
    """Kills the child's whole process group, including its compilers."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run_child(command, output, deadline, turn_seconds):
    """Runs one child. Returns its exit code, or the reason why it was killed."""
    with tempfile.TemporaryFile("w+") as errors:
        # Discards stdout. A compiler can outlive the child and would keep the caller's pipe open.
        child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            killed = watch(child, output, deadline, turn_seconds)
        finally:
            end_of(child)
        errors.seek(0)
        text = errors.read()
    sys.stderr.write(text)
    return child.returncode, killed, last_words(text)


def last_words(text):
    lines = text.strip().splitlines()
    crashes = [index for index, line in enumerate(lines) if line.startswith(CRASH)]
    start = crashes[-1] if crashes else max(0, len(lines) - STDERR_LINES)
    return " ".join(line.strip() for line in lines[start:start + 2 * STDERR_LINES])


def watch(child, output, deadline, turn_seconds):
    while child.poll() is None:
        now = time.time()
        running = json.loads(pathlib.Path(output).read_text())["running"]
        if now > deadline:
            return "deadline"
        if running and now - running["since"] > turn_seconds:
            return f"the rival's turn took longer than {turn_seconds} s"
        time.sleep(POLL_SECONDS)
    return None


def supervise(command, output, deadline, turn_seconds=TURN_SECONDS):
    """Runs children until every turn is done, the time is up, or no child can start."""
    late = "the time limit was reached"
    for _ in range(MAX_CHILDREN):
        code, killed, text = run_child(command, output, deadline, turn_seconds)
        state = json.loads(pathlib.Path(output).read_text())
        if killed == "deadline":
            running, state["running"] = state["running"], None
            if running and rival_named(state, running["rival"])["status"] == "not_run":
                rival_named(state, running["rival"])["reason"] = "the time limit was reached during the rival's first turn"
            break
        if killed is None and code == 0:
            break
        if killed is None and code == RESTART:
            write_atomically(output, state)
            continue
        goes_on = blame_running(state, killed or f"the process ended with exit code {code}: {text}")
        write_atomically(output, state)
        if not goes_on:
            late = state["failure"]
            break
    else:
        state["failure"] = late = f"{MAX_CHILDREN} processes all ended early"
    mark_the_rest(state, late)
    write_atomically(output, state)
    return state


def variants_of(text):
    names = text.split(",")
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is not a variant; allowed: {', '.join(VARIANTS)}")
    return list(dict.fromkeys(names))


def at_least_one(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not '{text}'")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", metavar="REPORT", type=pathlib.Path, required=True)
    parser.add_argument("-o", "--output", metavar="OUT", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=at_least_one, default=3, help="turns of each rival (default: 3)")
    parser.add_argument("--steps", type=at_least_one, default=3, help="timed steps in a turn (default: 3)")
    parser.add_argument("--variants", type=variants_of, default=list(VARIANTS), help="default: eager,compile")
    parser.add_argument("--seconds", type=float, default=500, help="time limit of the whole run (default: 500)")
    arguments = parser.parse_args()
    deadline = time.time() + arguments.seconds
    try:
        report = json.loads(arguments.beside.read_text())
        state = fresh_state(report, arguments.variants, arguments.rounds, arguments.steps)
        arguments.output.resolve().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(arguments.output, state)
    except (OSError, ValueError, KeyError, IndexError) as error:
        parser.error(f"{arguments.beside} is not a report of rematch run: {error!r}")
    # Exiting this process also kills the child process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    command = [sys.executable, str(CHILD), str(arguments.output.resolve()), repr(deadline)]
    supervise(command, arguments.output, deadline)


if __name__ == "__main__":
    main()
