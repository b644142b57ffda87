"""Checks for non-ASCII characters, large files, paths that exist on only one machine, and unfinished work. Checks how
comments begin, and how long the sentences of Markdown files are. Warns about commits with long subjects."""

import re

from checks import sentences
from checks.tree import run_command

MAX_BYTES = 200 * 1024
# Files that may be larger, each with the reason.
LARGE_FILES = {"models/data/text.txt": "the public-domain text that Llama trains on",
               "reports/results/gpu/h200/front_llama3_1b.report.json": "a front holds every plan that was measured"}
# Reports from GPUs are kept in full, because it may take long until a GPU is available again.
LARGE_FOLDER = "reports/results/gpu/"
MAX_REPORT_BYTES = 1 << 20
BINARY = (".png",)

# Some words in the patterns are split into pieces, so that this file passes its own check.
FORBIDDEN = [
    (re.compile(r"(?<![\w.}])/(home|root|work|Users|mnt)/"), "a path that exists on only one machine"),
    (re.compile(r"py" r"pi\.org|python" r"hosted|deb\.deb" r"ian\.org"),
     "the host of a package registry: let the user's tools choose the registry"),
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b"), "unfinished work: finish it, or write an issue"),
]

# Most comments that begin with one of these words are fragments, without a subject or a verb.
FRAGMENT = re.compile(r"(Of|What|Those|By|That)\b")
MAX_WORDS = 35  # maximum length of a sentence in Markdown files; code counts as one word
CODE = re.compile(r"`[^`]*`")
MAX_SUBJECT = 72  # characters
MAX_COMMITS = 20


def run(tree):
    tree.warnings += warnings_of_commits(tree)
    problems = []
    names = [name for name in tree.files if not name.endswith(BINARY)]
    for name in names:
        size = len(tree.bytes_of(name))
        limit = MAX_REPORT_BYTES if name.startswith(LARGE_FOLDER) else MAX_BYTES
        if size > limit and name not in LARGE_FILES:
            problems.append(f"{name}:1: {size} bytes, the limit is {limit}; if the file must be "
                            "larger, add it to LARGE_FILES in scripts/checks/text.py with the reason")
        problems += problems_of_lines(tree, name)
        problems += problems_of_sentences(tree, name)
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


def problems_of_sentences(tree, name):
    text = tree.bytes_of(name).decode("utf-8", "replace")
    found = [f"{name}:{line}: a comment begins with '{match[0]}': begin with its subject or its verb"
             for line, comment in sentences.comments(name, text) if (match := FRAGMENT.match(comment))]
    if name.endswith(".md"):
        lengths = ((line, len(CODE.sub("code", each).split())) for line, each in sentences.readme_sentences(text))
        found += [f"{name}:{line}: a sentence of {length} words, the limit is {MAX_WORDS}: make two sentences of it"
                  for line, length in lengths if length > MAX_WORDS]
    return found


def warnings_of_commits(tree):
    """Returns warnings about new commits that are not yet on origin. Without an origin, checks all recent commits."""
    status, listed, _ = run_command(
        ["git", "log", f"--max-count={MAX_COMMITS}", "--format=%h %s", "HEAD", "--not", "--remotes=origin"], tree.root)
    if status:
        return []  # git log fails without git, and in a repository without commits
    commits = (line.split(" ", 1) for line in listed.splitlines())
    return [f"commit {commit}: its subject has {len(subject)} characters, at most {MAX_SUBJECT} are usual: {subject}"
            for commit, subject in commits if len(subject) > MAX_SUBJECT]
