#!/usr/bin/env python3
"""Lets the golden tests of the built presets rewrite their files, and shows what changed.

The diff shows how behaviour changes, so read it before you commit it. Exit codes: 0 rewritten, 1 a test failed for
another reason, 2 usage, or nothing is built."""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def parse_presets():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="default: lite and dev, if built")
    built = [folder.parent.name for folder in sorted(ROOT.glob("build/*/CTestTestfile.cmake"))]
    presets = parser.parse_args().presets or [preset for preset in ("lite", "dev") if preset in built]
    for preset in presets:
        if preset not in built:
            parser.error(f"preset '{preset}' is not built; built: {' '.join(built) or 'none'}")
    if not presets:
        parser.error("nothing is built: run scripts/test, or cmake --workflow --preset dev")
    return presets


def main():
    for preset in parse_presets():
        done = subprocess.run(
            ["ctest", "--preset", preset, "--label-regex", "^golden$", "--no-tests=ignore"],
            cwd=ROOT, env={**os.environ, "REMATCH_APPROVE": "1"})
        if done.returncode:
            sys.exit(f"golden tests of preset {preset} failed, but not because of golden files")
    subprocess.run(["git", "status", "--short", "--", "tests", "reports"], cwd=ROOT, check=True)
    subprocess.run(["git", "--no-pager", "diff", "--stat", "--", "tests", "reports"], cwd=ROOT,
                   check=True)


if __name__ == "__main__":
    main()
