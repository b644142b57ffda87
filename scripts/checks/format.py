"""Checks that clang-format 14 would leave every C++ and CUDA file unchanged."""

from checks.tree import find_tool, run_command


def run(tree):
    clang_format = find_tool("clang-format", 14)
    files = tree.code()
    if not files:
        return "no files", []
    mode = ["-i"] if tree.fix else ["--dry-run", "--Werror"]
    status, _, errors = run_command([clang_format, "--style=file", *mode, *files], tree.root)
    first_of_file = {}
    for line in errors.splitlines():
        if " error: " in line:
            name, number = line.split(":")[:2]
            first_of_file.setdefault(name, f"{name}:{number}: not formatted by clang-format; "
                                           "run scripts/check --fix format")
    problems = list(first_of_file.values())
    if status and not problems:
        problems = errors.splitlines() or [f"clang-format failed with status {status}"]
    return f"{len(files)} files", problems
