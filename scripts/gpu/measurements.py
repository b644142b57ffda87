"""Reads the GPU measurements of reports/results/gpu/queue.json. Decides which of them are open, and which open ones fit
into the remaining time.

A GPU measurement is an entry of the queue: commands to run, most of them on a GPU. It is open if it has no valid
result. The result of the latest valid run is stored under the key `answered`."""

import json
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

LANES = ("values", "times")
KINDS = ("h100", "h200", "a100", "l40s")


def kind_of_card(name):
    """Returns the kind of card, such as "h200" for "NVIDIA H200". Returns None for an unknown card."""
    return next((kind for kind in KINDS if kind in (name or "").lower()), None)


def is_of_kind(card, kind):
    """Returns whether the card is of the required kind. Any card is accepted if `kind` is None."""
    return kind is None or kind_of_card(card) == kind


# A git pathspec that excludes Markdown files, because they do not affect a result.
NOT_DOCUMENTS = ":(exclude)*.md"


@dataclass
class Measurement:
    name: str
    what: str
    value: int  # importance; measurements with a higher value run first
    seconds: int  # estimate
    lane: str  # "times": measures times, so it runs alone; "values": may run in parallel with others
    commands: list  # lists of words; see machine.filled for the placeholders
    depends: list = field(default_factory=list)  # the measurement opens again if one of these repository paths changes
    kind: str = None  # required kind of card; None accepts any card
    run: str = ""  # the planned GPU run that includes this measurement
    always: bool = False  # if true, every run includes the measurement, even if it has a valid result
    judge: str = None  # name of a judge in verdicts.JUDGES; if None, the exit codes decide
    ok_codes: tuple = (0,)
    quote: str = None  # pattern; in each matching line of the output, the text after the match is a finding
    refuse: str = None  # pattern; the measurement fails if a line of the output matches
    needs: list = field(default_factory=list)  # other measurements whose reports this measurement reads
    programs: list = field(default_factory=list)  # programs that must be on the PATH
    # true if the measurement needs a Python whose torch can use the device and has the version that the programs need
    torch: bool = False
    gpu: bool = True
    dry: bool = True  # whether the measurement can run on the dry device
    answered: dict = None  # commit, date, card and report of the latest valid result

    def limit(self):
        """Returns the time limit of the measurement's commands in seconds. Includes a margin, because estimates come
        from few runs."""
        return 2 * self.seconds + 30


class QueueError(Exception):
    """Raised if the queue cannot be read, or if it names something that does not exist."""


def expand(text, words):
    """Replaces each {NAME} by its value in the queue's `words`. The value may contain placeholders, too."""
    for _ in range(4):
        text = re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)
    return text


def read(path):
    """Returns all measurements of a queue, the most valuable first."""
    try:
        queue = json.loads(Path(path).read_text())
        measurements = [measurement_of(entry, queue) for entry in queue["measurements"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise QueueError(f"{path}: {error}") from error
    check(measurements, path)
    return sorted(measurements, key=lambda measurement: -measurement.value)


def measurement_of(entry, queue):
    words, paths = queue["words"], queue["paths"]
    depends = [path for name in entry["depends"] for path in (paths[name[1:]] if name.startswith("@") else [name])]
    commands = [shlex.split(expand(command, words)) for command in entry["commands"]]
    return Measurement(**{**entry, "depends": depends, "commands": commands,
                          "ok_codes": tuple(entry.get("ok_codes", (0,)))})


def check(measurements, path):
    names = [measurement.name for measurement in measurements]
    for measurement in measurements:
        if names.count(measurement.name) > 1:
            raise QueueError(f"{path}: two measurements have the name '{measurement.name}'")
        if measurement.lane not in LANES:
            raise QueueError(f"{path}: {measurement.name}: lane is '{measurement.lane}'; allowed: values, times")
        for needed in measurement.needs:
            if needed not in names:
                raise QueueError(f"{path}: {measurement.name} needs '{needed}', which is not a measurement")


class Repository:
    """Looks up facts in git. These facts are packed for the machine with a GPU, which has no git history."""

    def __init__(self, root):
        self.root = root

    def git(self, *words):
        try:
            return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True)
        except OSError as error:
            raise QueueError(f"cannot start git: {error.strerror}") from error

    def has_history(self):
        try:
            return self.git("rev-parse", "--verify", "-q", "HEAD^{commit}").returncode == 0
        except QueueError:
            return False

    def head(self):
        return self.git("rev-parse", "HEAD").stdout.strip()

    def has(self, commit):
        return self.git("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def changed(self, commit, paths):
        """Returns the files below `paths`, except documents, that differ between the commit and HEAD."""
        done = self.git("diff", "--name-only", commit, "HEAD", "--", *paths, NOT_DOCUMENTS)
        if done.returncode:
            raise QueueError(f"git diff {commit}: {done.stderr.strip()}")
        return done.stdout.split("\n")[:-1]

    def uncommitted(self, paths):
        done = self.git("status", "--porcelain", "--", *paths, NOT_DOCUMENTS)
        return [line[3:] for line in done.stdout.split("\n")[:-1]]


def why_open(measurement, repository):
    """Returns a sentence that says why the measurement is open, or None if it has a valid result. Unless the
    measurement requires a kind of card, a result from any card is valid."""
    if not measurement.answered:
        return "never measured"
    if not is_of_kind(measurement.answered["card"], measurement.kind):
        return f"measured on {measurement.answered['card']}, which is not of kind {measurement.kind}"
    commit = measurement.answered["commit"]
    if not repository.has(commit):
        return f"measured at commit {commit}, which this git repository lacks"
    changed = repository.changed(commit, measurement.depends) if measurement.depends else []
    if not changed:
        return None
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"changed since {commit[:8]}: {changed[0]}{more}"


def open_measurements(measurements, repository):
    """Returns {name: reason} for every measurement without a valid result."""
    reasons = {measurement.name: why_open(measurement, repository) for measurement in measurements}
    return {name: reason for name, reason in reasons.items() if reason}


def fits_kind(measurement, kind):
    return measurement.kind is None or kind is None or measurement.kind == kind


def makespan(seconds, workers):
    """Returns the total time of tasks on parallel workers that always start the longest remaining task."""
    ends = [0] * workers
    for one in sorted(seconds, reverse=True):
        ends[ends.index(min(ends))] += one
    return max(ends)


def cost(measurements, workers):
    """Returns the total estimated time. Measurements of times run alone; others run in parallel."""
    by_lane = {lane: [one.seconds for one in measurements if one.lane == lane] for lane in LANES}
    return sum(by_lane["times"]) + makespan(by_lane["values"], workers)


def choose(measurements, seconds, workers, reports=()):
    """Returns the most valuable measurements that fit into the time, the most valuable first. A measurement that needs
    another measurement's report is chosen only if the other measurement was chosen before, or if its report is in
    `reports`."""
    chosen, known = [], set(reports)
    for measurement in sorted(measurements, key=lambda measurement: -measurement.value):
        if set(measurement.needs) - known or cost([*chosen, measurement], workers) > seconds:
            continue
        chosen.append(measurement)
        known.add(measurement.name)
    return chosen
