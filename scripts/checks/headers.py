"""Checks that each header compiles on its own, and when it is included twice."""

import functools
import re
import subprocess
import threading

from checks.layers import library_of
from checks.tree import problems_of_each

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Winvalid-pch", "-I."]

# Sets of headers that take most of the compile time. Each set is precompiled once. A header is checked with the first
# set that it includes completely, so that no precompiled set hides a missing include.
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
    common = Precompiled(tree, torch)
    chains = {chain[-1]: chain for chain in chains_of(tree, usable, common.number_of)}
    fingerprints = {last: tree.fingerprint(last, compiler, FLAGS, torch, chain) for last, chain in chains.items()}
    problems = problems_of_each(tree, "headers", list(chains), fingerprints,
                                lambda last: compile_chain(tree, chains[last], torch, common))
    left = len(headers) - len(usable)
    return f"{len(usable)} headers" + (f" ({left} need a library that is not installed)" if left else ""), problems


def torch_flags(tree):
    """Returns compiler flags for the LibTorch of the configured build, or else of scripts/setup. Returns [] if there is
    none."""
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
    """The precompiled sets of COMMON. Each set is compiled when it is first needed."""

    def __init__(self, tree, torch):
        self.tree = tree
        self.torch = torch
        self.folder = tree.root / "build" / "checks" / "precompiled"
        self.locks = [threading.Lock() for _ in COMMON]
        self.made = [False for _ in COMMON]

    @functools.lru_cache(maxsize=None)
    def number_of(self, name):
        """Returns the index of the first set that the header includes completely; None if there is no such set."""
        included = system_headers(self.tree, name)
        return next((number for number, headers in enumerate(COMMON) if included.issuperset(headers)), None)

    def start_of(self, name):
        """Returns the compiler flags that include the header's precompiled set before the header."""
        number = self.number_of(name)
        if number is None:
            return []
        with self.locks[number]:
            return self.flags_of(number, COMMON[number])

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


def chains_of(tree, names, kind_of):
    """Groups the headers into as few chains as possible. In a chain, each header includes the previous header, directly
    or indirectly, and all use the same precompiled set. One compilation can therefore check the whole chain. Uses
    Fulkerson's reduction of Dilworth's theorem to matching."""
    before = {}

    def take_one_before(name, seen):
        for other in names:
            if other == name or other in seen or other not in tree.closure(name) or kind_of(other) != kind_of(name):
                continue
            seen.add(other)
            if other not in after or take_one_before(after[other], seen):
                after[other], before[name] = name, other
                return True
        return False

    after = {}
    for name in names:
        take_one_before(name, set())
    chains = []
    for name in names:
        if name not in after:
            chain = [name]
            while chain[0] in before:
                chain.insert(0, before[chain[0]])
            chains.append(chain)
    return chains


def compile_chain(tree, chain, torch, common):
    source = "".join(f'#include "{name}"\n#include "{name}"\n' for name in chain)
    valijson = tree.root / ".valijson" / "include"
    flags = FLAGS + (["-isystem", str(valijson)] if valijson.is_dir() else [])
    flags += torch + common.start_of(chain[0])
    done = subprocess.run(["g++", *flags, "-x", "c++", "-"], cwd=tree.root, input=source,
                          capture_output=True, text=True)
    if done.returncode == 0 and not done.stderr:
        return []
    lines = [line for line in done.stderr.splitlines() if re.search(r": (fatal )?(error|warning): ", line)]
    return [f"{blamed(line, chain)}:1: does not compile alone: {line}" for line in lines[:3] or ["g++ failed"]]


def blamed(line, chain):
    """Returns the header that the compiler's message names, or else the last header of the include chain."""
    return next((name for name in chain if line.startswith(f"{name}:")), chain[-1])
