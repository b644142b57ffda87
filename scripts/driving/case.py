"""Describes one run of the driver: the flags, policies and plans of one `rematch run`, and the files that they name.
Executes nothing."""

import dataclasses
import json
import shlex

FOLDER = "{folder}"  # placeholder in policies and flags for the folder with the case's files


@dataclasses.dataclass(frozen=True)
class PlanOf:
    """A plan file that `rematch plan` makes for a policy."""
    policy: str


@dataclasses.dataclass(frozen=True)
class FrontPoint:
    """A point of a front that `rematch search` makes with `flags`. `share` is the point's relative position on the
    front, from 0 to 1."""
    flags: tuple
    share: float


@dataclasses.dataclass
class Case:
    seed: int
    model: dict
    flags: dict
    policies: list = dataclasses.field(default_factory=list)
    plans: list = dataclasses.field(default_factory=list)
    files: dict = dataclasses.field(default_factory=dict)  # maps a file's name to its policy or text
    model_from_plan: bool = False  # if true and no policies are given, the model comes from a plan file
    afterwards: str = None  # name of a function in driving/afterwards.py

    def copy(self):
        return Case(self.seed, dict(self.model), dict(self.flags), list(self.policies),
                    list(self.plans), dict(self.files), self.model_from_plan, self.afterwards)

    def write_files(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            text = content if isinstance(content, str) else json.dumps(content, indent=1)
            (folder / name).write_text(text, encoding="utf-8")

    def allows_no_effect(self):
        return "--allow-no-effect" in self.flags


def words_of(flags, folder):
    """Converts flags to words of a command line. A value of None means a flag without a value."""
    words = []
    for flag, value in dict(flags).items():
        words += [flag] if value is None else [flag, placed(value, folder)]
    return words


def placed(text, folder):
    return text.replace(FOLDER, str(folder))


def shell_line(words):
    return shlex.join(["scripts/rematch", *map(str, words)])
