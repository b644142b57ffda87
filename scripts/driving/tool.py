"""Starts the binary, and keeps its output and exit code for the verdict."""

import dataclasses
import json
import os
import subprocess

TIME_LIMIT_SECONDS = 300


class Failed(Exception):
    """Raised if the driver cannot continue. The message says why."""


@dataclasses.dataclass
class Done:
    words: list
    code: int  # 128 + n if signal n killed the program; None if it exceeded the time limit
    out: str
    err: str


class Tool:
    def __init__(self, binary, root):
        self.binary, self.root = str(binary), root
        # Removes the variables of a cluster's job array. With them, every run would execute only a share of its points.
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("SLURM_")}

    def start(self, *words):
        words = [str(word) for word in words]
        try:
            done = subprocess.run([self.binary, *words], cwd=self.root, env=self.environment,
                                  capture_output=True, text=True, errors="replace",
                                  timeout=TIME_LIMIT_SECONDS)
        except subprocess.TimeoutExpired as late:
            return Done(words, None, "", str(late))
        except OSError as error:
            raise Failed(f"{self.binary} does not start: {error.strerror}") from None
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Done(words, code, done.stdout, done.stderr)

    def json(self, *words):
        done = self.start(*words)
        if done.code != 0:
            raise Failed(f"'rematch {' '.join(done.words)}' ended with {done.code}: {done.err.strip()}")
        return json.loads(done.out)
