"""clang-tidy 14 on the parts without LibTorch; what it looks for stands in .clang-tidy, some of it with --deep alone."""

import json
import os
import re
import shlex
import shutil

from checks.tree import find_tool, problems_of_each, run_command

PARTS = ("policies/", "reports/", "models/scope/", "models/preset/")
# With --deep alone: the analyzer, and checks for slips with C's macros and strings. More than a third of the time.
DEEP_CHECKS = ("clang-analyzer-*", "bugprone-assert-side-effect", "bugprone-multiple-statement-macro",
               "bugprone-not-null-terminated-result", "bugprone-stringview-nullptr", "bugprone-suspicious-string-compare")
# How far the analyzer looks into a function. Clang's own bound is 225000.
NODES = 40000


def run(tree):
    clang_tidy = find_tool("clang-tidy", 14)
    # Configured each time: sources come and go.
    status, _, errors = run_command(
        ["cmake", "--preset", "lite", "-B", "build/tidy", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"], tree.root)
    if status:
        return "nothing", [f"CMakePresets.json:1: cannot configure preset lite: {errors.strip()}"]
    units = units_of(tree)
    seen = {name for sources in units.values() for name in sources}
    settings = (tree.root / ".clang-tidy").read_text()
    extent = ["--checks=" + ",".join(f"-{check}" for check in DEEP_CHECKS)]
    if tree.deep:
        extent = [f"--extra-arg={word}" for word in
                  ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={NODES}")]
    fingerprints = {unit: tree.fingerprint(unit, settings, *extent) for unit in units}
    problems = problems_of_each(tree, "tidy", list(units), fingerprints,
                                lambda unit: examine(tree, [clang_tidy, *extent], unit, units[unit]))
    problems += [f"{name}:1: preset lite does not compile it, so clang-tidy cannot see it"
                 for name in tree.code(".cpp") if name.startswith(PARTS) and name not in seen]
    return f"{len(seen)} sources", sorted(set(problems))


def units_of(tree):
    """Sources by the file that holds them all: what CMake compiles as one unit. They share their
    headers, which takes a third of the time. Joined, not included: the analyzer looks at no function
    outside the file that it is given."""
    database = tree.root / "build" / "tidy" / "compile_commands.json"
    folder = tree.root / "build" / "tidy" / "units"
    shutil.rmtree(folder, ignore_errors=True)
    units = {}
    for entry in json.loads(database.read_text()):
        file = os.path.relpath(entry["file"], tree.root)
        joined = [source for _, _, source in tree.includes(file)] if "/Unity/" in file else [file]
        sources = [os.path.relpath(tree.root / source, tree.root) for source in joined]
        sources = [source for source in sources if source.startswith(PARTS)]
        if sources:
            unit = folder / f"{len(units)}.cpp"
            unit.parent.mkdir(exist_ok=True)
            # The command is part of what the fingerprint covers.
            lines = [line for source in sources for line in tree.lines(source)]
            unit.write_text("\n".join([*lines, f"// {entry['command']}"]) + "\n")
            units[os.path.relpath(unit, tree.root)] = sources
    return units


def examine(tree, clang_tidy, unit, sources):
    command = shlex.split((tree.root / unit).read_text().splitlines()[-1])[2:]
    flags = [*command[:command.index("-o")], "-Qunused-arguments"]  # GCC's --param
    status, output, errors = run_command(
        [*clang_tidy, "--quiet", "--warnings-as-errors=*", unit, "--", *flags], tree.root)
    lines = [located(tree, line.replace(f"{tree.root}/", ""), unit, sources)
             for line in output.splitlines() if re.search(r": (error|warning): ", line)]
    if status and not lines:
        lines = [f"{sources[0]}:1: clang-tidy failed: {errors.strip()[-300:]}"]
    return lines


def located(tree, line, unit, sources):
    """A line about the unit as one about the source that it comes from."""
    match = re.match(re.escape(unit) + r":(\d+)(:.*)", line)
    if not match:
        return line
    number = int(match[1])
    for source in sources:
        if number <= len(tree.lines(source)):
            return f"{source}:{number}{match[2]}"
        number -= len(tree.lines(source))
    return line
