"""Runs clang-tidy 14 on the parts without LibTorch. The checks are listed in .clang-tidy; some run only with --deep."""

import json
import os
import re
import shlex
import shutil

from checks.tree import find_tool, problems_of_each, run_command

PARTS = ("policies/", "reports/", "models/scope/", "models/preset/")
# Checks that run only with --deep: the static analyzer, and checks for typical mistakes with C macros and C strings.
DEEP_CHECKS = ("clang-analyzer-*", "bugprone-assert-side-effect", "bugprone-multiple-statement-macro",
               "bugprone-not-null-terminated-result", "bugprone-stringview-nullptr", "bugprone-suspicious-string-compare")
# Limits how far the analyzer explores a function. Clang's default is 225000.
NODES = 40000


def run(tree):
    clang_tidy = find_tool("clang-tidy", 14)
    # Runs CMake every time, because sources may have been added or removed.
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
    problems += [f"{name}:1: preset lite does not compile this file, so clang-tidy cannot check it"
                 for name in tree.code(".cpp") if name.startswith(PARTS) and name not in seen]
    return f"{len(seen)} sources", sorted(set(problems))


def units_of(tree):
    """Joins sources into larger compilation units, as CMake's unity builds do. Returns a map from each unit to its
    sources. This saves two thirds of the time, because headers are parsed only once. A unit contains the text of its
    sources, because the analyzer skips functions in included files."""
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
            # Appends the compile command as a comment, so that the unit's fingerprint also depends on the command.
            lines = [line for source in sources for line in tree.lines(source)]
            unit.write_text("\n".join([*lines, f"// {entry['command']}"]) + "\n")
            units[os.path.relpath(unit, tree.root)] = sources
    return units


def examine(tree, clang_tidy, unit, sources):
    command = shlex.split((tree.root / unit).read_text().splitlines()[-1])[2:]
    flags = [*command[:command.index("-o")], "-Qunused-arguments"]  # makes clang ignore GCC's flag --param
    status, output, errors = run_command(
        [*clang_tidy, "--quiet", "--warnings-as-errors=*", unit, "--", *flags], tree.root)
    lines = [located(tree, line.replace(f"{tree.root}/", ""), unit, sources)
             for line in output.splitlines() if re.search(r": (error|warning): ", line)]
    if status and not lines:
        lines = [f"{sources[0]}:1: clang-tidy failed: {errors.strip()[-300:]}"]
    return lines


def located(tree, line, unit, sources):
    """Replaces the unit's name and line in a message by the source's name and line."""
    match = re.match(re.escape(unit) + r":(\d+)(:.*)", line)
    if not match:
        return line
    number = int(match[1])
    for source in sources:
        if number <= len(tree.lines(source)):
            return f"{source}:{number}{match[2]}"
        number -= len(tree.lines(source))
    return line
