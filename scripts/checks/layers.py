"""Checks that each part of the project includes only the parts that the table below allows. CMake's links enforce the
same layering. Also checks that a folder includes only public headers of other folders, which their CMakeLists.txt lists
in rematch_public_headers()."""

import posixpath
import re

# External libraries, recognised by the paths of their headers. The first match is used.
LIBRARIES = [
    ("cuda", r"(c10|ATen)/cuda/|ATen/native/cuda/|cuda|cublas|cooperative_groups|cub/|curand"),
    ("nccl", r"nccl\.h|torch/csrc/distributed/c10d/ProcessGroupNCCL"),
    ("libtorch", r"ATen/|torch/|c10/"),
    ("cupti", r"cupti"),
    ("nvtx", r"nvtx3/"),
    ("nvml", r"nvml\.h"),
    ("fmt", r"fmt/"),
    ("json", r"nlohmann/"),
    ("openssl", r"openssl/"),
    ("valijson", r"valijson/"),
    ("cli11", r"CLI/"),
    ("catch2", r"catch2/"),
    ("benchmark", r"benchmark/"),
    ("rapidcheck", r"rapidcheck"),
    ("highs", r"highs|Highs"),
    ("standard", r"[a-z_]+$|(sys|linux|netinet|arpa|sanitizer)/|[a-z_]+\.h$"),
]
EVERY_LIBRARY = [name for name, _ in LIBRARIES]

# Maps each part to (other parts that it may include, external libraries that it may include). The name of a part is a
# path. A file belongs to the part with the longest name that is a prefix of the file's path. A file may always include
# headers of its own part and of the standard library.
PARTS = {
    "policies/base": ([], ["json", "openssl"]),
    "policies/trace": (["policies/base"], []),
    "policies/plan": (["policies/base", "policies/trace"], []),
    "policies/replay": (["policies/base", "policies/trace", "policies/plan"], []),
    "policies/predict": (["policies/base", "policies/trace", "policies/plan", "policies/replay"], []),
    "policies/catalogue": (["policies/base", "policies/trace", "policies/plan", "policies/predict", "models/scope"], []),
    "policies/export": (["policies/base", "policies/trace", "policies/plan", "policies/predict", "policies/catalogue"], []),
    "policies/search": (["policies/base", "policies/trace", "policies/plan", "policies/predict"], []),
    "policies/search/driver": (["policies/base", "policies/trace", "policies/plan", "policies/predict", "policies/catalogue", "policies/planners",
                                "policies/search"], []),
    "policies/planners": (["policies/base", "policies/trace", "policies/plan", "policies/predict", "policies/catalogue"], []),
    "policies/joint": (["policies/base", "policies/planners"], []),
    "reports": (["policies"], ["json", "valijson"]),
    "models/scope": ([], []),
    "models/preset": (["policies/base", "policies/trace"], []),
    "kernels/libtorch": ([], ["libtorch"]),
    "kernels": (["kernels/libtorch"], ["libtorch", "cuda"]),
    "models": (["kernels", "models"], ["libtorch"]),
    "harness/engine": (["kernels/libtorch", "models/scope", "policies/base", "policies/trace", "policies/plan", "policies/replay"], ["libtorch", "cuda"]),
    "harness/dry_cuda": ([], ["cuda", "cupti", "nccl"]),
    "harness/progress": ([], []),
    "harness": (["policies", "reports", "kernels", "models", "harness"],
                ["libtorch", "cuda", "fmt", "cupti", "nvtx", "nvml", "nccl", "cli11", "json",
                 "openssl"]),
    "tests": (["policies", "reports", "kernels", "models", "harness", "tests"], EVERY_LIBRARY),
}

VERSIONS_HEADER = "kernels/libtorch/versions.h"
VERSION_MACRO = re.compile(r"\bTORCH_VERSION_(MAJOR|MINOR|PATCH)\b")

# Forbidden includes: (folder, header, reason).
FORBIDDEN = [
    ("", r"torch/(torch|all|extension)\.h", "adds ten seconds to the compilation of a file; include narrower headers"),
    ("harness/engine", r"chrono$|time\.h$|ctime$", "the engine does not use a clock"),
    ("harness/profile", r"harness/run/",
     "harness/run includes harness/profile, not the other way round; put shared code into harness/training"),
    ("harness/training", r"harness/(run|profile)/",
     "harness/run and harness/profile include harness/training, not the other way round"),
]


def run(tree):
    problems = []
    files = tree.code()
    for name in files:
        for line, kind, header in tree.includes(name):
            reason = forbidden(tree, name, kind, header)
            if reason:
                problems.append(f"{name}:{line}: {reason}")
    problems += unpublished(tree) + version_macros(tree)
    return f"{len(files)} files", problems


def version_macros(tree):
    """Returns all uses of LibTorch's version numbers outside VERSIONS_HEADER."""
    return [f"{name}:{number}: only {VERSIONS_HEADER} may use LibTorch's version numbers: define a named constant there"
            for name in tree.code() if name != VERSIONS_HEADER
            for number, line in enumerate(tree.lines(name), 1) if VERSION_MACRO.search(line)]


def unpublished(tree):
    """Returns private headers that other folders include, and public headers that no other folder includes."""
    public = public_headers(tree)
    problems, used = [], set()
    for name in tree.code():
        if name.startswith("tests/"):
            continue  # a test may include private headers of the part that it tests
        for line, kind, header in tree.includes(name):
            folder = folder_of(header, public)
            if kind != '"' or folder is None or folder_of(name, public) == folder:
                continue
            used.add(header)
            if header not in public[folder]:
                problems.append(f"{name}:{line}: {header} is private to {folder}: include a public header "
                                f"of that folder, or add this one to rematch_public_headers in {folder}/CMakeLists.txt")
    for folder, headers in sorted(public.items()):
        problems += [f"{folder}/CMakeLists.txt:1: no other folder includes {header}: remove it from rematch_public_headers"
                     for header in sorted(headers - used) if header in tree.files]
    return problems


def public_headers(tree):
    """Returns {folder: its public headers} for every folder with a CMakeLists.txt that builds something."""
    found = {}
    for name in tree.files:
        folder, file = posixpath.split(name)
        if file != "CMakeLists.txt" or name.startswith("tests/"):
            continue
        text = "\n".join(tree.lines(name))
        if re.search(r"^\s*(rematch_add_library|rematch_public_headers|add_library|add_executable)\(", text, re.M):
            published = re.search(r"^rematch_public_headers\(([^)]*)\)", text, re.M)
            found[folder] = {f"{folder}/{header}" for header in (published[1].split() if published else [])}
    return found


def folder_of(name, folders):
    matching = [folder for folder in folders if inside(name, folder)]
    return max(matching, key=len) if matching else None


def forbidden(tree, name, kind, header):
    """Returns why the file may not include the header, or None."""
    for where, pattern, why in FORBIDDEN:
        if name.startswith(where) and re.match(pattern, header):
            return f"<{header}> must not be included here: {why}"
    part = part_of(name)
    if part is None:
        return f"{name} belongs to no part in scripts/checks/layers.py: add its folder to the table"
    parts, libraries = PARTS[part]
    if kind == '"':
        if header not in tree.files:
            return f'"{header}" is not a file of this tree; write the path of an include from the root'
        target = part_of(header)
        if target == part or any(inside(header, allowed) for allowed in parts):
            return None
        return f"{part} may not include {header}; it may include {', '.join(parts) or 'no other part'}"
    library = library_of(header)
    if library is None:
        return f"<{header}> belongs to no library in scripts/checks/layers.py: add it to the table"
    if library == "standard" or library in libraries:
        return None
    usable = ", ".join(libraries) or "only the standard library"
    return f"{part} may not include <{header}> ({library}); it may use {usable}"


def part_of(name):
    return folder_of(name, PARTS)


def inside(name, folder):
    return name.startswith(folder + "/")


def library_of(header):
    for library, pattern in LIBRARIES:
        if re.match(pattern, header):
            return library
    return None
