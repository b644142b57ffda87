"""Each header compiles when it is the first include, and when it is included twice."""

import re
import subprocess
import threading

from checks.layers import library_of
from checks.tree import problems_of_each

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Winvalid-pch", "-I."]

# What many headers include and takes most of their time: precompiled once. A header starts from the first
# set that it includes the whole of itself, directly or not, so that nothing is declared for it which it
# would lack alone.
COMMON = (
    ("torch/csrc/distributed/c10d/ProcessGroup.hpp",),
    ("ATen/core/dispatch/Dispatcher.h",),
    ("ATen/core/Tensor.h",),
    ("CLI/CLI.hpp", "nlohmann/json_fwd.hpp"),
    ("nlohmann/json.hpp",),
    ("chrono", "functional", "map", "optional", "string", "string_view", "variant", "vector"),
    ("chrono", "functional", "map", "optional", "string", "string_view", "vector"),
    ("functional", "map", "optional", "string", "string_view", "vector"),
    ("map", "optional", "string", "vector"),
    ("optional", "string", "string_view", "vector"),
    ("string", "vector"),
    ("string",),
)


def run(tree):
    headers = tree.code(".h")
    torch = torch_flags(tree)
    usable = [name for name in headers if torch or not needs(tree, name, ("libtorch",))]
    usable = [name for name in usable if not needs(tree, name, ("cuda", "cupti", "nvtx", "nccl"))]
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout
    fingerprints = {name: tree.fingerprint(name, compiler, FLAGS, torch) for name in usable}
    common = Precompiled(tree, torch)
    problems = problems_of_each(tree, "headers", usable, fingerprints,
                                lambda name: compile_alone(tree, name, torch, common))
    left = len(headers) - len(usable)
    return f"{len(usable)} headers" + (f" ({left} need a library that is not here)" if left else ""), problems


def torch_flags(tree):
    """Where the configured build found LibTorch, else where scripts/setup unpacks it; [] if absent."""
    cache = tree.root / "build" / "dev" / "CMakeCache.txt"
    found = re.search(r"^LIBTORCH_ROOT:PATH=(.*)$", cache.read_text(), re.M) if cache.exists() else None
    include = (tree.root / (found[1] if found else ".libtorch")) / "torch" / "include"
    if not include.is_dir():
        return []
    return ["-isystem", str(include), "-isystem", f"{include}/torch/csrc/api/include"]


def needs(tree, name, libraries):
    return any(kind == "<" and library_of(header) in libraries
               for member in tree.closure(name) for _, kind, header in tree.includes(member))


def system_headers(tree, name):
    return {header for member in tree.closure(name) for _, kind, header in tree.includes(member) if kind == "<"}


class Precompiled:
    """The sets of COMMON, each precompiled when the first header starts from it."""

    def __init__(self, tree, torch):
        self.tree = tree
        self.torch = torch
        self.folder = tree.root / "build" / "checks" / "precompiled"
        self.locks = [threading.Lock() for _ in COMMON]
        self.made = [False for _ in COMMON]

    def start_of(self, name):
        """The flags that begin with the first set which the header includes."""
        included = system_headers(self.tree, name)
        for number, headers in enumerate(COMMON):
            if included.issuperset(headers):
                with self.locks[number]:
                    return self.flags_of(number, headers)
        return []

    def flags_of(self, number, headers):
        start = self.folder / f"{number}.h"
        if not self.made[number]:
            self.folder.mkdir(parents=True, exist_ok=True)
            start.write_text("".join(f"#include <{header}>\n" for header in headers))
            flags = [flag for flag in FLAGS if flag != "-fsyntax-only"]
            subprocess.run(["g++", *flags, *self.torch, "-x", "c++-header", str(start), "-o", f"{start}.gch"],
                           cwd=self.tree.root, check=True)
            self.made[number] = True
        return ["-include", str(start)]


def compile_alone(tree, name, torch, common):
    source = f'#include "{name}"\n#include "{name}"\n'
    valijson = tree.root / ".valijson" / "include"
    flags = FLAGS + (["-isystem", str(valijson)] if valijson.is_dir() else [])
    flags += torch + common.start_of(name)
    done = subprocess.run(["g++", *flags, "-x", "c++", "-"], cwd=tree.root, input=source,
                          capture_output=True, text=True)
    if done.returncode == 0 and not done.stderr:
        return []
    lines = [line for line in done.stderr.splitlines() if re.search(r": (fatal )?(error|warning): ", line)]
    return [f"{name}:1: does not compile alone: {line}" for line in lines[:3] or ["g++ failed"]]
