"""Which source the programs were built from, and which questions are open for it."""

import json
from dataclasses import dataclass, field

from gpu import questions
from gpu.carried import OPEN_FILE


@dataclass
class Source:
    commit: str = None  # None: nobody knows
    open: dict = None  # {name: reason}; None: nobody knows, so every question without an answer is open
    uncommitted: dict = field(default_factory=dict)  # {name: changed files that no commit has}

    def fields(self, question):
        """What a result says of its source."""
        return {"commit": self.commit, "uncommitted": self.uncommitted.get(question.name, [])}

    def is_open(self, question):
        if question.always:
            return True
        return question.name in self.open if self.open is not None else not question.answered

    def why(self, question):
        return (self.open or {}).get(question.name, "asked by every run" if question.always else "never answered")

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
    """From what was carried along, else from git, else nothing is known."""
    if programs and (programs / OPEN_FILE).exists():
        return from_programs(programs)
    return from_git(asked, repository) if repository.has_history() else Source()
