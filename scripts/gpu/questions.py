"""Reads the questions of reports/results/gpu/queue.json. Decides which questions are open, and which open questions fit
into the remaining time.

A question is an entry of the queue: commands to run, most of them on a GPU. Their result is the answer. A question is
open if it has no valid answer."""

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


# A git pathspec that excludes Markdown files, because they do not affect an answer.
NOT_DOCUMENTS = ":(exclude)*.md"


@dataclass
class Question:
    name: str
    what: str
    value: int  # importance; questions with a higher value run first
    seconds: int  # estimate
    lane: str  # "times": measures times, so it runs alone; "values": may run in parallel with other questions
    commands: list  # lists of words; see machine.filled for the placeholders
    depends: list = field(default_factory=list)  # if one of these repository paths changes, the question is open again
    kind: str = None  # required kind of card; None accepts any card
    run: str = ""  # the planned GPU run that includes this question
    always: bool = False  # if true, every run includes the question, even if it is already answered
    judge: str = None  # name of a judge in verdicts.JUDGES; if None, the exit codes decide
    ok_codes: tuple = (0,)
    quote: str = None  # pattern; in each matching line of the output, the text after the match is a finding
    refuse: str = None  # pattern; the question fails if a line of the output matches
    needs: list = field(default_factory=list)  # other questions whose reports this question reads
    programs: list = field(default_factory=list)  # programs that must be on the PATH
    # true if the question needs a Python whose torch can use the device and has the version that the programs need
    torch: bool = False
    gpu: bool = True
    dry: bool = True  # whether the question can run on the dry device
    answered: dict = None

    def limit(self):
        """Returns the time limit of the question's commands in seconds. Includes a margin, because estimates come from
        few runs."""
        return 2 * self.seconds + 30


class QueueError(Exception):
    """Raised if the queue cannot be read, or if it names something that does not exist."""


def expand(text, words):
    """Replaces each {NAME} by its value in the queue's `words`. The value may contain placeholders, too."""
    for _ in range(4):
        text = re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)
    return text


def read(path):
    """Returns all questions of a queue, the most valuable first."""
    try:
        queue = json.loads(Path(path).read_text())
        questions = [question_of(entry, queue) for entry in queue["questions"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise QueueError(f"{path}: {error}") from error
    check(questions, path)
    return sorted(questions, key=lambda question: -question.value)


def question_of(entry, queue):
    words, paths = queue["words"], queue["paths"]
    depends = [path for name in entry["depends"] for path in (paths[name[1:]] if name.startswith("@") else [name])]
    commands = [shlex.split(expand(command, words)) for command in entry["commands"]]
    return Question(**{**entry, "depends": depends, "commands": commands,
                       "ok_codes": tuple(entry.get("ok_codes", (0,)))})


def check(questions, path):
    names = [question.name for question in questions]
    for question in questions:
        if names.count(question.name) > 1:
            raise QueueError(f"{path}: two questions have the name '{question.name}'")
        if question.lane not in LANES:
            raise QueueError(f"{path}: {question.name}: lane is '{question.lane}'; allowed: values, times")
        for needed in question.needs:
            if needed not in names:
                raise QueueError(f"{path}: {question.name} needs '{needed}', which is not a question")


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


def why_open(question, repository):
    """Returns a sentence that says why the question is open, or None if it has a valid answer. Unless the question
    requires a kind of card, an answer from any card is valid."""
    if not question.answered:
        return "never answered"
    if not is_of_kind(question.answered["card"], question.kind):
        return f"answered by {question.answered['card']}, which is not of kind {question.kind}"
    commit = question.answered["commit"]
    if not repository.has(commit):
        return f"answered by commit {commit}, which this git repository lacks"
    changed = repository.changed(commit, question.depends) if question.depends else []
    if not changed:
        return None
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"changed since {commit[:8]}: {changed[0]}{more}"


def open_questions(questions, repository):
    """Returns {name: reason} for every question without a valid answer."""
    reasons = {question.name: why_open(question, repository) for question in questions}
    return {name: reason for name, reason in reasons.items() if reason}


def fits_kind(question, kind):
    return question.kind is None or kind is None or question.kind == kind


def makespan(seconds, workers):
    """Returns the total time of tasks on parallel workers that always start the longest remaining task."""
    ends = [0] * workers
    for one in sorted(seconds, reverse=True):
        ends[ends.index(min(ends))] += one
    return max(ends)


def cost(questions, workers):
    """Returns the total estimated time. Questions that measure times run alone; other questions run in parallel."""
    by_lane = {lane: [question.seconds for question in questions if question.lane == lane] for lane in LANES}
    return sum(by_lane["times"]) + makespan(by_lane["values"], workers)


def choose(questions, seconds, workers, reports=()):
    """Returns the most valuable questions that fit into the time, the most valuable first. A question that needs
    another question's report is chosen only if the other question was chosen before, or if its report is in
    `reports`."""
    chosen, known = [], set(reports)
    for question in sorted(questions, key=lambda question: -question.value):
        if set(question.needs) - known or cost([*chosen, question], workers) > seconds:
            continue
        chosen.append(question)
        known.add(question.name)
    return chosen
