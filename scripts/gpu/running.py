"""Runs GPU measurements within a time limit, and writes the result after each of them. Measurements of times run alone;
others run in parallel.

A GPU measurement is an entry of reports/results/gpu/queue.json: commands to run, most of them on a GPU."""

import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu import archive, measurements, verdicts
from gpu.machine import ROOT, report_file

MIN_SECONDS = 10  # a measurement starts only if at least this much time is left
MAX_WORKERS = 5
TAIL_LETTERS = 4000
LAST_LINES = 12
STACK_TRACE = re.compile(r"\n *Exception raised from .*?(?=\n\n|\Z)", re.DOTALL)
GATE_FAILED = 3  # exit code of a run whose results differ from the reference in their bits


def say(text):
    print(f"gpu_queue: {text}", file=sys.stderr, flush=True)


def dry_workers(cores):
    """Returns how many measurements run at once on the dry device, where no times are measured."""
    return max(1, min(MAX_WORKERS, cores))


def value_workers(cores):
    """Returns how many measurements of lane "values" run at once: at most five. Each of them loads LibTorch and
    initialises a model."""
    return max(1, min(MAX_WORKERS, cores // 3))


class Run:
    """One call of `next` or `run`: its measurements, its remaining time, and the results so far."""

    def __init__(self, asked, machine, out, seconds, source, archives=None, workers=1):
        self.asked = asked
        self.machine = machine
        self.out = Path(out)
        self.deadline = time.monotonic() + seconds
        self.source = source
        self.archives = archives
        self.workers = workers
        self.statuses = {}
        self.anchors = {}  # findings of the measurements that every run includes, by measurement
        self.processes = set()
        self.stopped = False
        self.lock = threading.Lock()

    def left(self):
        return self.deadline - time.monotonic()

    def go(self):
        """Returns the exit code: 0 all passed, 2 something is missing, 3 some failed, 4 some are unfinished."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.skip_passed()
        self.skip_impossible()
        while batch := self.next_batch():
            self.run_batch(batch)
        return self.exit_code() if self.statuses or self.machine.dry else self.nothing_ran()

    def nothing_ran(self):
        """Prints why no measurement runs. Returns exit code 0 if no measurement is open, and 2 if none fits into the
        time."""
        if not self.asked:
            say("no measurement is open")
            return 0
        shortest = min(measurement.seconds for measurement in self.asked)
        say(f"no measurement fits into the remaining time; give --seconds {max(shortest, MIN_SECONDS) + 1} or more")
        return 2

    def open(self):
        return [measurement for measurement in self.asked if measurement.name not in self.statuses]

    def skip_passed(self):
        for measurement in self.open():
            before = self.result_before(measurement)
            if before.get("status") == "passed" and not measurement.always:
                say(f"{measurement.name}: passed before")
                self.statuses[measurement.name] = "passed"

    def result_before(self, measurement):
        """Returns the stored result of an earlier run with the same source code, or an empty result."""
        try:
            before = json.loads((self.out / f"{measurement.name}.json").read_text())
        except (OSError, ValueError):
            return {}
        same = before.get("commit") == self.source.commit and before.get("dry") == self.machine.dry
        return before if same else {}

    def skip_impossible(self):
        for measurement in self.open():
            reason = self.machine.obstacle(measurement)
            if reason:
                self.finish(measurement, {**self.blank(measurement), "status": "skipped", "problems": [reason]})

    def next_batch(self):
        """Returns the chosen measurements to run next. If the most valuable one measures times, returns only that
        measurement. Otherwise returns all chosen measurements of lane "values". On the dry device, returns all chosen
        measurements."""
        chosen = self.chosen()
        if not chosen:
            return []
        if chosen[0].lane == "times" and not self.machine.dry:
            return chosen[:1]
        batch = [measurement for measurement in chosen if measurement.lane == "values" or self.machine.dry]
        return sorted(batch, key=lambda measurement: -measurement.seconds)

    def chosen(self):
        if self.left() < MIN_SECONDS:
            return []
        return measurements.choose(self.open(), self.budget(), self.workers, self.reports())

    def budget(self):
        """Returns the limit for the total estimated time of the chosen measurements, in seconds. There is no limit
        on the dry device, because estimates are for a GPU."""
        return float("inf") if self.machine.dry else self.left()

    def limit(self, measurement):
        """Returns the time limit of a measurement in seconds. On the dry device this is all remaining time, because
        estimates are for a GPU."""
        return max(1, self.left() if self.machine.dry else min(measurement.limit(), self.left()))

    def reports(self):
        """Returns the names of measurements that have a report, from this run or from the repository."""
        names = {path.name[:-len(".report.json")] for path in self.out.glob("*.report.json")}
        if not self.machine.dry:
            names |= {path.name[:-len(".report.json")] for path in self.machine.committed_results().glob("*.report.json")}
        return names | {name for name, status in self.statuses.items() if status == "passed"}

    def run_batch(self, batch):
        if len(batch) == 1:
            self.run_measurement(batch[0], 1)
            return
        pool = ThreadPoolExecutor(self.workers)
        try:
            for done in [pool.submit(self.run_measurement, measurement, self.workers) for measurement in batch]:
                done.result()
        finally:
            self.stop()
            pool.shutdown(cancel_futures=True)
            self.stopped = False

    def run_measurement(self, measurement, workers):
        if self.left() < (MIN_SECONDS if self.machine.dry else measurement.seconds):
            say(f"{measurement.name}: not started, because the time limit was reached")
            self.statuses[measurement.name] = "unfinished"
            return
        result = self.blank(measurement)
        start = time.monotonic()
        is_cut = self.machine.dry or self.left() < measurement.limit()  # the run's time limit stopped the command
        try:
            deadline = start + self.limit(measurement)
            result["commands"], result["status"] = self.run_commands(measurement, deadline, workers)
            judge(measurement, self.machine, self.out, result, is_cut)
        except Exception as error:  # an error fails this measurement, not the whole run
            result["status"] = "failed"
            result["problems"].append(f"{type(error).__name__}: {error}, in {place_of(error)}")
        result["seconds"] = round(time.monotonic() - start, 1)
        self.finish(measurement, result)

    def blank(self, measurement):
        card, uuid = self.machine.card()
        return {"question": measurement.name, "what": measurement.what, "status": "failed",
                **self.source.fields(measurement), "dry": self.machine.dry, "reached": self.reached(),
                "date": datetime.date.today().isoformat(), "card": card, "card_uuid": uuid,
                "seconds": None, "commands": [], "findings": [], "problems": []}

    def reached(self):
        """Returns the findings of the measurements that every run includes. They show how results of different cards
        compare."""
        return {name: findings for name, findings in self.anchors.items() if findings}

    def run_commands(self, measurement, deadline, workers):
        """Returns the command line, exit code and last output lines of each command. Stops at the first command that
        fails or runs out of time."""
        done = []
        quote, refuse = verdicts.pattern(measurement.quote), verdicts.pattern(measurement.refuse)
        for command in measurement.commands:
            left = max(1, deadline - time.monotonic())
            words = self.machine.filled(command, measurement, self.out, left)
            say(f"{measurement.name}: {shlex.join(words)}")
            entry = {"command": words, "exit_code": None, "tail": "", "refused": [], "quoted": []}
            done.append(entry)
            environment = self.environment(command, measurement, workers)
            entry["exit_code"], said = self.run_in_time(words, environment, left)
            entry["tail"] = said[-TAIL_LETTERS:]
            lines = said.splitlines()
            entry["quoted"] = [line[found.end():] for line in lines if quote and (found := quote.search(line))]
            if entry["exit_code"] is None:
                return done, "unfinished"
            entry["refused"] = [line.strip() for line in lines if refuse and refuse.search(line)]
            if entry["exit_code"] not in measurement.ok_codes or entry["refused"]:
                return done, "failed"
        return done, "passed"

    def environment(self, command, measurement, workers):
        is_python = command[0] == "{python}"
        merged = self.machine.python_environment() if is_python else self.machine.environment(measurement)
        if workers > 1:  # parallel measurements share the cores equally
            merged["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // workers))
        return merged

    def run_in_time(self, words, environment, seconds):
        """Returns (output, exit code), with None as exit code if the command took too long. Also ends all processes
        that the command started."""
        process = subprocess.Popen(words, cwd=ROOT, env=environment, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.processes.add(process)
        try:
            said, _ = process.communicate(timeout=seconds)
            return None if self.stopped else process.returncode, said
        except subprocess.TimeoutExpired:
            kill_group(process)
            said, _ = process.communicate()
            return None, said
        finally:
            kill_group(process)
            self.processes.discard(process)

    def stop(self):
        """Kills running programs after Ctrl-C, so that the threads that wait for them end."""
        self.stopped = True
        for process in list(self.processes):
            kill_group(process)

    def finish(self, measurement, result):
        with self.lock:
            self.statuses[measurement.name] = result["status"]
            if measurement.always and result["status"] == "passed":
                self.anchors[measurement.name] = result["findings"]
            write(self.out / f"{measurement.name}.json", result)
            for name in archive.write(self.out, self.archives):
                say(f"omitted from the archives because it is too large: {name}")
        took = "" if result["seconds"] is None else f" in {result['seconds']} s of {measurement.seconds} s"
        say(f"{measurement.name}: {result['status']}{took}")
        for line in result["findings"] + result["problems"]:
            say(f"    {line}")

    def exit_code(self):
        """On the dry device, skipped measurements are ignored, because some cannot run there."""
        statuses = list(self.statuses.values())
        if self.machine.dry and self.open():
            for measurement in self.open():
                say(f"{measurement.name}: not started, because the time limit was reached")
            statuses.append("unfinished")
        for status, code in (("failed", 3), ("unfinished", 4), ("skipped", 0 if self.machine.dry else 2)):
            if status in statuses:
                return code
        return 0


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def write(path, result):
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=2) + "\n")
    partial.replace(path)


def last_words(done):
    """Returns the reason that a failed command printed, if any, without LibTorch's long stack traces."""
    said = STACK_TRACE.sub("", done["tail"])
    return [f"exit code {done['exit_code']}, after"] + [line for line in said.splitlines() if line.strip()][-LAST_LINES:]


def place_of(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"


def judge(measurement, machine, out, result, is_cut):
    result["problems"] = [f"it says: {line}" for done in result["commands"] for line in done["refused"]]
    result["findings"] = [line for done in result["commands"] for line in done["quoted"]]
    if result["status"] == "failed" and not result["problems"]:
        result["problems"] = last_words(result["commands"][-1])
    if result["status"] == "passed" and measurement.judge:
        judge_report(measurement, machine, out, result, is_cut)


def judge_report(measurement, machine, out, result, is_cut):
    path = report_file(out, measurement.name)
    if not path.exists():
        result["status"], result["problems"] = "failed", ["no report was written"]
        return
    report = json.loads(path.read_text())
    late = verdicts.timed_out(report)
    in_time = verdicts.without(report, late)
    if measurement.lane == "values":
        in_time = verdicts.without_slowdowns(in_time)
    if not late or in_time["points"]:
        result["findings"], result["problems"] = verdicts.JUDGES[measurement.judge](in_time)
    if expected := machine.expected(measurement):
        findings, problems = verdicts.against_dry(in_time, expected)
        result["findings"] += findings
        result["problems"] += problems
    if not result["problems"] and GATE_FAILED in (done["exit_code"] for done in result["commands"]):
        result["problems"] = ["the exit code says that bits differ, but the report does not show where"]
    result["problems"] += late
    if result["problems"]:
        result["status"] = "unfinished" if is_cut and result["problems"] == late else "failed"
