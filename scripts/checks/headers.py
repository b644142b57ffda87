"""Each header compiles when it is the first include, and when it is included twice."""

import re
import subprocess

from checks.layers import library_of
from checks.tree import problems_of_each

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I."]


def run(tree):
    headers = tree.code(".h")
    torch = torch_flags(tree)
    usable = [name for name in headers if torch or not needs(tree, name, ("libtorch",))]
    usable = [name for name in usable if not needs(tree, name, ("cuda", "cupti", "nvtx", "nccl"))]
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout
    fingerprints = {name: tree.fingerprint(name, compiler, FLAGS, torch) for name in usable}
    problems = problems_of_each(tree, "headers", usable, fingerprints,
                                lambda name: compile_alone(tree, name, torch))
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


def compile_alone(tree, name, torch):
    source = f'#include "{name}"\n#include "{name}"\n'
    valijson = tree.root / ".valijson" / "include"
    flags = FLAGS + (["-isystem", str(valijson)] if valijson.is_dir() else [])
    flags += torch if needs(tree, name, ("libtorch",)) else []
    done = subprocess.run(["g++", *flags, "-x", "c++", "-"], cwd=tree.root, input=source,
                          capture_output=True, text=True)
    if done.returncode == 0 and not done.stderr:
        return []
    lines = [line for line in done.stderr.splitlines() if re.search(r": (fatal )?(error|warning): ", line)]
    return [f"{name}:1: does not compile alone: {line}" for line in lines[:3] or ["g++ failed"]]
