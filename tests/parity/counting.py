"""Counts the ops and bytes of one Python step, with counting_allocator.cpp."""

import ctypes
import gc
import pathlib
import subprocess

import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = [HERE / "counting_allocator.cpp", HERE / "fingerprint.h"]
LIBRARY = ROOT / "build" / "parity" / "counting_allocator.so"  # git ignores build/

# Maps an op to its C++ name. Attention has one C++ name for all devices.
NAMES_IN_CPP = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "rematch::attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": "rematch::attention_backward",
}


def compile_library():
    newest = max(source.stat().st_mtime for source in SOURCES)
    if LIBRARY.exists() and LIBRARY.stat().st_mtime > newest:
        return
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    torch_folder = pathlib.Path(torch.__file__).resolve().parent
    command = ["g++", "-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", f"-I{ROOT}"]
    command += [f"-isystem{torch_folder}/include", str(SOURCES[0]), "-o", str(LIBRARY)]
    command += [f"-L{torch_folder}/lib", "-ltorch_cpu", "-lc10"]
    subprocess.run(command, check=True)


class Counting:
    """Replaces the CPU allocator for the rest of the process. A process can have only one counter, which must be
    constructed before the first tensor."""

    def __init__(self):
        compile_library()
        self.library = ctypes.PyDLL(str(LIBRARY))
        for name in ("parity_current_bytes", "parity_peak_bytes"):
            getattr(self.library, name).restype = ctypes.c_int64
        for name in ("parity_executed", "parity_fingerprint"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.library.parity_install()

    def lines(self, function):
        text = getattr(self.library, function)().decode()
        return dict(line.split(" ", 1) for line in text.splitlines())

    def fingerprint(self):
        return self.lines("parity_fingerprint")

    def see_ops_of_mode(self):
        """Also counts the ops that __torch_dispatch__ of a mode calls. Call this method inside __torch_dispatch__."""
        self.library.parity_see_ops_of_mode()

    def step(self, forward):
        """Runs forward and backward once. Bytes do not include what was allocated before the step."""
        gc.collect()
        gc.disable()  # keeps tensors in reference cycles alive, so that their bytes are always counted
        self.library.parity_start()
        try:
            loss = forward()
            after_forward = self.library.parity_current_bytes()
            loss.backward()
        finally:
            self.library.parity_stop()
            gc.enable()
        ops = {
            NAMES_IN_CPP.get(name, name): int(count)
            for name, count in self.lines("parity_executed").items()
        }
        return loss.detach(), {
            "after_forward_bytes": after_forward,
            "peak_bytes": self.library.parity_peak_bytes(),
            "after_backward_bytes": self.library.parity_current_bytes(),
            "executed_ops": dict(sorted(ops.items())),
        }
