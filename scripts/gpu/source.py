"""Describes the source code from which the programs were built, and says which questions of the queue are open."""

import json
from dataclasses import dataclass, field

from gpu import questions
from gpu.carried import OPEN_FILE


@dataclass
class Source:
    commit: str = None  # None if unknown
    open: dict = None  # maps each open question to the reason; None if unknown, so every unanswered question is open
    uncommitted: dict = field(default_factory=dict)  # {question name: uncommitted files that affect the question}

    def fields(self, question):
        """Returns what a question's result stores about the source code."""
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
    """Returns the packed description of the source code if there is one. Otherwise asks git. Without git, returns an
    empty description."""
    if programs and (programs / OPEN_FILE).exists():
        return from_programs(programs)
    return from_git(asked, repository) if repository.has_history() else Source()
