"""Locates the programs, and describes the machine that they run on.

A GPU measurement is an entry of reports/results/gpu/queue.json: commands to run, most of them on a GPU."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import builds
from gpu import measurements

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "reports/results/gpu"
CUDA_BUILD = ROOT / "build/cuda"
DEV_BUILD = ROOT / "build/dev"
SECONDS_TO_WRITE = 10
# A file that is packed with the programs. It names the LibTorch release, such as 2.11, for which the programs were
# built.
RELEASE_FILE = "torch_release.txt"

# Paths of the programs in the build folders of preset cuda and, for the dry device, of preset dev.
PROGRAMS = {
    "rematch": "harness/cli/rematch-libtorch",
    "engine_cuda_test": "tests/harness/engine/engine_cuda_test",
    "run_cuda_test": "tests/harness/run/run_cuda_test",
    "attention_cuda_test": "tests/kernels/attention_cuda_test",
    "fused_ops_cuda_test": "tests/kernels/fused_ops_cuda_test",
    "cupti_test": "tests/harness/profile/cupti_test",
}
DRY_PROGRAMS = {**PROGRAMS, "rematch": "harness/cli/dry/rematch"}


def libtorch_root(release):
    """Returns LibTorch's folder: LIBTORCH_ROOT if set, else the folder that scripts/setup unpacked, else the folder of
    a Python's torch."""
    if os.environ.get("LIBTORCH_ROOT"):
        return Path(os.environ["LIBTORCH_ROOT"])
    unpacked = builds.libtorch_folder(".libtorch-cuda", release)
    if (unpacked / "torch").exists():
        return unpacked
    for path in map(Path, sys.path):
        if (path / "torch/lib/libtorch_cuda.so").exists():
            return path
    found = subprocess.run(["python3", "-c", "import torch; print(torch.__path__[0])"],
                           capture_output=True, text=True)
    return Path(found.stdout.strip()).parent if found.returncode == 0 else None


def report_file(folder, name):
    return Path(folder) / f"{name}.report.json"


class Machine:
    def __init__(self, dry=False, programs=None, python="python3"):
        self.dry = dry
        self.programs = Path(programs) if programs else None
        self.python = python
        self.card_found = None
        self.torch_asked = False
        self.torch_reason = None

    def program(self, name):
        if self.programs:
            return self.programs / "bin" / name
        if not self.dry and (CUDA_BUILD / PROGRAMS[name]).exists():
            return CUDA_BUILD / PROGRAMS[name]
        return DEV_BUILD / DRY_PROGRAMS[name]

    def libtorch(self):
        return DEV_BUILD / "dry_cuda" if self.dry else libtorch_root(self.release())

    def release(self):
        """Returns the release of torch that the programs were built for."""
        carried = self.programs / RELEASE_FILE if self.programs else None
        return carried.read_text(encoding="utf-8").strip() if carried and carried.exists() else builds.chosen()

    def expected(self, measurement):
        """Returns the dry device's packed report of the same measurement, for comparison, or None if there is none."""
        path = report_file((self.programs or Path("/nowhere")) / "dry", measurement.name)
        return None if self.dry or not path.exists() else json.loads(path.read_text())

    def has_driver(self):
        """Returns whether the machine has NVIDIA's driver. Looks in several places, because some containers have
        neither /proc/driver/nvidia nor nvidia-smi."""
        if self.dry or Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi"):
            return True
        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return False
        return True

    def torch_obstacle(self):
        """Returns the reason why this Python cannot be used, or None."""
        asked = "import numpy, torch; print(torch.__version__, torch.cuda.is_available())"
        try:
            done = subprocess.run([self.python, "-c", asked], capture_output=True, text=True)
        except OSError as error:
            return f"{self.python} does not start: {error.strerror}"
        if done.returncode:
            return f"{self.python} has no torch or no numpy"
        version, sees_device = done.stdout.split()
        if builds.release_of(version) != self.release():
            return f"{self.python} has torch {version}, not {self.release()}"
        return None if sees_device == "True" else f"torch {version} of {self.python} sees no device"

    def obstacle(self, measurement):
        """Returns the reason why this machine cannot run the measurement's commands, or None."""
        if self.dry and not measurement.dry:
            return "the dry device cannot run this measurement"
        for program in measurement.programs:
            if not shutil.which(program):
                return f"{program} is not on the PATH"
        if measurement.gpu and not self.has_driver():
            return "there is no NVIDIA driver"
        if self.libtorch() is None:
            return f"no LibTorch {self.release()}: set LIBTORCH_ROOT to the folder that holds torch/ and nvidia/"
        if measurement.gpu and not self.program("rematch").exists():
            return "no built programs found: pass --programs, or build preset cuda"
        return self.ask_torch() if measurement.torch else None

    def ask_torch(self):
        """Checks Python's torch only once, because importing torch takes seconds."""
        if not self.torch_asked:
            self.torch_reason = self.torch_obstacle()
            self.torch_asked = True
        return self.torch_reason

    def environment(self, measurement=None):
        """Returns the environment variables for our own programs. For Python, use python_environment instead, because
        torch loads its own libraries."""
        root = self.libtorch()
        merged = dict(os.environ)
        libraries = [f"{root}/torch/lib", *(f"{root}/nvidia/{name}/lib" for name in (
            "cu13", "cudnn", "nccl", "cusparselt", "nvshmem"))]
        if self.programs:
            libraries.append(f"{self.programs}/usr/lib/x86_64-linux-gnu")
        merged["LD_LIBRARY_PATH"] = ":".join([*libraries, merged.get("LD_LIBRARY_PATH", "")])
        if self.dry and measurement and measurement.kind:
            merged["DRY_CUDA_CARD"] = measurement.kind
        return merged

    def python_environment(self):
        merged = dict(os.environ)
        if self.programs:
            merged["PYTHONPATH"] = f"{self.programs}/python:{merged.get('PYTHONPATH', '')}"
        return merged

    def card(self):
        """Returns (name, UUID) of the device. Both are None if the device cannot be queried."""
        if self.card_found is None:
            self.card_found = self.ask_card()
        return self.card_found

    def ask_card(self):
        try:
            done = subprocess.run([self.program("rematch"), "doctor", "--json"], capture_output=True, text=True,
                                  env=self.environment(), timeout=60)
            environment = json.loads(done.stdout)["environment"]
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
            return None, None
        return environment.get("device"), environment.get("device_uuid")

    def filled(self, command, measurement, out, seconds=None):
        """Returns the words of a command with placeholders replaced. {report} is the path of this measurement's report,
        and {report:NAME} is the path of measurement NAME's report. {seconds} and {timeout} are time limits; a program
        must write its results before they expire."""
        seconds = max(1, int(seconds or measurement.limit()) - SECONDS_TO_WRITE)
        values = {"report": str(report_file(out, measurement.name)), "out": str(out), "python": self.python,
                  "timeout": f"{seconds}s", "seconds": str(seconds),
                  "tests": "[device]" if self.dry else "[gpu],[device]",
                  **{name: str(self.program(name)) for name in PROGRAMS},
                  **{f"report:{name}": str(self.needed_report(name, out)) for name in measurement.needs}}
        words = shortened(command) if self.dry and "--times-only" in command else command
        return [fill(word, values) for word in words]

    def needed_report(self, name, out):
        """Returns the path of the report of measurement `name`. If this run did not write the report, returns the path
        of the committed report from the same kind of card."""
        own = report_file(out, name)
        if own.exists() or self.dry:
            return own
        return first_existing(report_file(self.committed_results(), name), own)

    def committed_results(self):
        """Returns the folder with committed results of this kind of card."""
        return results_of(self.card()[0])


def shortened(command):
    """Adapts a command that measures times to the dry device. Measures only one step, because times mean nothing there.
    Names an attention kernel, because LibTorch would choose cuDNN's kernel, which the dry device does not have."""
    words = list(command)
    for flag in ("--timed-steps", "--rounds"):
        if flag in words:
            words[words.index(flag) + 1] = "1"
    if "--attention" in words:
        return words
    return [*words, "--attention", "flash" if "bfloat16" in words else "efficient"]


def results_of(card, results=RESULTS):
    """Returns the folder for committed results of the card. Each kind of card has its own folder."""
    return results / (measurements.kind_of_card(card) or "other")


def first_existing(path, otherwise):
    return path if path.exists() else otherwise


def fill(word, values):
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word
