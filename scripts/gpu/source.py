"""Describes the source code from which the programs were built, and says which GPU measurements are open."""

import json
from dataclasses import dataclass, field

from gpu import measurements
from gpu.carried import OPEN_FILE


@dataclass
class Source:
    commit: str = None  # None if unknown
    # Maps each open measurement to the reason. None if unknown; then every measurement without a result is open.
    open: dict = None
    uncommitted: dict = field(default_factory=dict)  # {measurement name: uncommitted files that affect the measurement}

    def fields(self, measurement):
        """Returns what a measurement's result stores about the source code."""
        return {"commit": self.commit, "uncommitted": self.uncommitted.get(measurement.name, [])}

    def is_open(self, measurement):
        if measurement.always:
            return True
        return measurement.name in self.open if self.open is not None else not measurement.answered

    def why(self, measurement):
        return (self.open or {}).get(measurement.name, "part of every run" if measurement.always else "never measured")

    def as_json(self):
        return {"commit": self.commit, "open": self.open, "uncommitted": self.uncommitted}


def from_git(asked, repository):
    changed = {one.name: repository.uncommitted(one.depends) for one in asked if one.depends}
    return Source(repository.head(), measurements.open_measurements(asked, repository),
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
