#!/usr/bin/env python3
"""Draws random comments, printed strings and sentences of READMEs, so that a reader can judge them without context.

Usage: scripts/checks/sample_sentences.py SEED [--count 200] [--of comments|strings|readmes] [--under FOLDER]...

The same seed draws the same sentences from the same sources. Each line has the file, the line and the sentence.

Examples:
  scripts/checks/sample_sentences.py 7
  scripts/checks/sample_sentences.py 7 --of strings --count 50 --under policies
  scripts/checks/sample_sentences.py 7 --of readmes
"""

import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True
from checks import sentences  # noqa: E402
from checks.tree import Tree  # noqa: E402

KINDS = {"comments": sentences.comments, "strings": sentences.strings,
         "readmes": lambda _, text: sentences.readme_sentences(text)}
IN_SOURCES = ("comments", "strings")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, help="a whole number")
    parser.add_argument("--count", type=int, default=200, help="how many of each kind to draw (default: 200)")
    parser.add_argument("--of", choices=KINDS, help="only this kind (default: comments and strings)")
    parser.add_argument("--under", action="append", metavar="FOLDER", help="only files in this folder; repeatable")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error(f"--count is {arguments.count}; it must be at least 1")
    tree = Tree(pathlib.Path(__file__).resolve().parents[2])
    folders = tuple(folder.rstrip("/") + "/" for folder in arguments.under or [])
    names = [name for name in tree.files if not folders or name.startswith(folders)]
    if not names:
        parser.error(f"--under {' '.join(arguments.under)} has no files")
    for kind in [arguments.of] if arguments.of else IN_SOURCES:
        print(f"# {kind}, seed {arguments.seed}")
        for name, line, sentence in drawn(tree, names, kind, arguments):
            print(f"{name}:{line}: {sentence}")


def drawn(tree, names, kind, arguments):
    has_kind = is_source if kind in IN_SOURCES else is_readme
    found = [(name, line, sentence) for name in names if has_kind(name)
             for line, sentence in KINDS[kind](name, tree.bytes_of(name).decode("utf-8", "replace"))]
    return random.Random(arguments.seed).sample(found, min(arguments.count, len(found)))


def is_source(name):
    return name.endswith((*sentences.CPP, *sentences.HASH, ".py")) or "." not in pathlib.PurePath(name).name


def is_readme(name):
    return pathlib.PurePath(name).name in ("README.md", "CONTRIBUTING.md")


if __name__ == "__main__":
    main()
