"""Describes the source code from which the programs were built. Lists the questions of the queue that have no valid
answer for this source code."""

import json
from dataclasses import dataclass, field

from gpu import questions
from gpu.carried import OPEN_FILE


@dataclass
class Source:
    commit: str = None  # None if unknown
    open: dict = None  # {name: reason}; None if unknown, so every question without an answer is open
    uncommitted: dict = field(default_factory=dict)  # {name: changed files that are not committed}

    def fields(self, question):
        """Returns the fields that a question's result stores about the source code."""
        return {"commit": self.commit, "uncommitted": self.uncommitted.get(question.name, [])}

    def is_open(self, question):
        if question.always:
            return True
        return question.name in self.open if self.open is not None else not question.answered

    def why(self, question):
        return (self.open or {}).get(question.name, "always asked" if question.always else "never answered")

    def as_json(self):
        return {"commit": self.commit, "open": self.open, "uncommitted": self.uncommitted}


def from_git(asked, repository):
    changed = {question.name: repository.uncommitted(question.depends) for question in asked if question.depends}
    return Source(repository.head(), questions.open_questions(asked, repository),
                  {name: files for name, files in changed.items() if files})


def from_programs(folder):
    carried = json.loads((folder / OPEN_FILE).read_text())
    return Source(carried["commit"], carried["open"], carried["uncommitted"])


def found(asked, repository, programs=None):
    """Returns the packed description of the source code if there is one, else a description from git, else an empty
    one."""
    if programs and (programs / OPEN_FILE).exists():
        return from_programs(programs)
    return from_git(asked, repository) if repository.has_history() else Source()
