"""Checks for plain ASCII, large files, and words that are valid only on one machine or at one time."""

import re

MAX_BYTES = 200 * 1024
# Files that may be larger, each with the reason.
LARGE_FILES = {"models/data/text.txt": "the public-domain text that Llama trains on",
               "reports/results/gpu/h200/front_llama3_1b.report.json": "a front holds every plan that was measured"}
# Reports of a GPU are kept whole, because a GPU may not be available again for a long time.
LARGE_FOLDER = "reports/results/gpu/"
MAX_REPORT_BYTES = 1 << 20
BINARY = (".png",)

# The patterns are split into pieces, so that this file passes its own check.
FORBIDDEN = [
    (re.compile(r"(?<![\w.}])/(home|root|work|Users|mnt)/"), "a path of one machine"),
    (re.compile(r"py" r"pi\.org|python" r"hosted|deb\.deb" r"ian\.org"),
     "a registry's host: the user's tools have their own"),
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b"), "unfinished work: finish it, or write an issue"),
]


def run(tree):
    problems = []
    names = [name for name in tree.files if not name.endswith(BINARY)]
    for name in names:
        size = len(tree.bytes_of(name))
        limit = MAX_REPORT_BYTES if name.startswith(LARGE_FOLDER) else MAX_BYTES
        if size > limit and name not in LARGE_FILES:
            problems.append(f"{name}:1: {size} bytes, the limit is {limit}; a larger file is "
                            "listed with its reason in scripts/checks/text.py")
        problems += problems_of_lines(tree, name)
    return f"{len(names)} files", problems


def problems_of_lines(tree, name):
    found = []
    for number, line in enumerate(tree.lines(name), 1):
        if not line.isascii():
            character = next(c for c in line if not c.isascii())
            found.append(f"{name}:{number}: '{character}' (U+{ord(character):04X}) is not ASCII")
        for pattern, why in FORBIDDEN:
            match = pattern.search(line)
            if match:
                found.append(f"{name}:{number}: '{match[0]}' is {why}")
    return found
