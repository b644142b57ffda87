"""clang-tidy 14 on the parts without LibTorch; what it looks for stands in .clang-tidy."""

import json
import os
import re

from checks.tree import find_tool, problems_of_each, run_command

PARTS = ("policies/", "reports/", "models/scope/", "models/preset/")
# Without a bound (clang's own is 225000 nodes a function) two thirds of the time are the analyzer's.
ANALYZER = [f"--extra-arg={word}" for word in
            ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=40000")]


def run(tree):
    clang_tidy = find_tool("clang-tidy", 14)
    # Preset lite with a unit for each source: a problem is then one source's own.
    # Configured each time: sources come and go.
    status, _, errors = run_command(
        ["cmake", "--preset", "lite", "-B", "build/tidy", "-DREMATCH_UNITY=OFF"], tree.root)
    if status:
        return "nothing", [f"CMakePresets.json:1: cannot configure preset lite: {errors.strip()}"]
    database = tree.root / "build" / "tidy" / "compile_commands.json"
    commands = {os.path.relpath(entry["file"], tree.root): entry["command"]
                for entry in json.loads(database.read_text())}
    sources = sorted(name for name in commands if name.startswith(PARTS))
    uncompiled = [name for name in tree.code(".cpp")
                  if name.startswith(PARTS) and name not in commands]
    settings = (tree.root / ".clang-tidy").read_text()
    fingerprints = {name: tree.fingerprint(name, settings, *ANALYZER, commands[name])
                    for name in sources}
    problems = problems_of_each(tree, "tidy", sources, fingerprints,
                                lambda name: examine(tree, clang_tidy, database.parent, name))
    problems += [f"{name}:1: preset lite does not compile it, so clang-tidy cannot see it"
                 for name in uncompiled]
    return f"{len(sources)} sources", sorted(set(problems))


def examine(tree, clang_tidy, build, name):
    status, output, errors = run_command(
        [clang_tidy, "-p", str(build), "--quiet", "--warnings-as-errors=*", *ANALYZER, name],
        tree.root)
    lines = [line.replace(f"{tree.root}/", "") for line in output.splitlines()
             if re.search(r": (error|warning): ", line)]
    if status and not lines:
        lines = [f"{name}:1: clang-tidy failed: {errors.strip()[-300:]}"]
    return lines
