#!/usr/bin/env python3
"""Lets the golden tests of the built presets rewrite their files, and shows what changed.

Usage: scripts/approve_golden.py [PRESET ...]    (default: every preset built among lite and dev)
Read the diff before it is committed: it is the change of behaviour.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    built = sys.argv[1:] or [preset for preset in ("lite", "dev")
                             if (ROOT / "build" / preset / "CTestTestfile.cmake").exists()]
    if not built:
        sys.exit("nothing is built: run scripts/test, or cmake --workflow --preset dev")
    for preset in built:
        done = subprocess.run(
            ["ctest", "--preset", preset, "--label-regex", "^golden$", "--no-tests=ignore"],
            cwd=ROOT, env={**os.environ, "REMATCH_APPROVE": "1"})
        if done.returncode:
            sys.exit(f"golden tests of preset {preset} failed for another reason than their files")
    subprocess.run(["git", "status", "--short", "--", "tests", "reports"], cwd=ROOT, check=True)
    subprocess.run(["git", "--no-pager", "diff", "--stat", "--", "tests", "reports"], cwd=ROOT,
                   check=True)


if __name__ == "__main__":
    main()
