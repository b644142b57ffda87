"""Runs the two programs that execute training steps on request (tests/benchmarks/step_server.{cpp,py})."""

import json
import os
import shlex
import subprocess

from benchmarks import builds
from benchmarks.builds import ROOT

OURS = ROOT / "build" / "dev" / "tests" / "benchmarks" / "step_server"
THEIRS = ROOT / "tests" / "benchmarks" / "step_server.py"


class Failed(Exception):
    """Raised if a benchmark cannot run. The message says what to do."""


def torch_python(python, releases):
    """Returns the words of the command `python`, and the torch version that this Python has. Raises Failed if it lacks
    numpy, or if its torch is not of one of `releases`."""
    words = shlex.split(python)
    wanted = " or ".join(releases)
    advice = (f"make one with 'python3 -m venv DIR && DIR/bin/pip install torch=={releases[-1]}.* numpy', "
              "then pass --python DIR/bin/python")
    try:
        done = subprocess.run([*words, "-c", "import numpy, torch; print(torch.__version__)"],
                              capture_output=True, text=True)
    except OSError as error:
        raise Failed(f"--python {python} does not start ({error.strerror}); {advice}") from None
    if done.returncode:
        raise Failed(f"--python {python} has no torch or no numpy; {advice}")
    version = done.stdout.strip().split("+")[0]
    if builds.release_of(version) not in releases:
        raise Failed(f"--python {python} has torch {version}; it must be {wanted}: {advice}")
    return words, version


def version_of(python, package):
    """Returns the version of a package that `python` has, or None."""
    asked = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    done = subprocess.run([*python, "-c", asked, package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def require_ours():
    if not OURS.exists():
        raise Failed("tests/benchmarks/step_server is not built: run 'cmake --preset dev' and "
                     "'cmake --build --preset dev --target benchmarks'")


class Server:
    """A child process that runs steps on request, and otherwise waits."""

    def __init__(self, words, model, threads, dimensions, policies):
        sizes = ",".join(f"{name}={value}" for name, value in dimensions.items())
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen(
            [*map(str, words), model, str(threads), sizes, *policies],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Failed(f"{self.process.args[0]} ended during the request '{request}'; its message is above")
        return answer

    def nanoseconds(self, index, steps):
        """Returns the time of one step."""
        return int(self.ask(f"time {index} {steps}")) / steps

    def ops(self, index):
        return json.loads(self.ask(f"ops {index}"))

    def memory_mib(self):
        return [int(kib) / 1024 for kib in self.ask("memory").split()]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
