#!/usr/bin/env python3
"""Prints the differences between two folders of golden files: python tests/parity/compare_golden.py OLD NEW

Counts and bytes do not depend on the machine, so they must be equal. Bits are compared only if both files have the same
fingerprint. Exit codes: 0 equal, 1 different, 2 usage."""

import json
import pathlib
import sys

ON_ONE_FINGERPRINT = {"gradient_hashes", "gradient_norms", "loss", "loss_bits"}


def leaves(value, path=""):
    """Yields every leaf with its path, such as policies.full.peak_bytes."""
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inner in value.items():
        yield from leaves(inner, f"{path}.{key}" if path else key)


def is_bits(path):
    return any(name in ON_ONE_FINGERPRINT for name in path.split("."))


def differences(old, new):
    same_fingerprint = old["fingerprint"] == new["fingerprint"]
    old_leaves = {path: leaf for path, leaf in leaves(old) if not path.startswith("fingerprint")}
    new_leaves = {path: leaf for path, leaf in leaves(new) if not path.startswith("fingerprint")}
    for path in sorted(old_leaves.keys() | new_leaves.keys()):
        if is_bits(path) and not same_fingerprint:
            continue
        before, after = old_leaves.get(path), new_leaves.get(path)
        if before != after:
            yield f"{path}: {before} became {after}"


def main():
    if len(sys.argv) != 3:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    old_folder, new_folder = (pathlib.Path(argument) for argument in sys.argv[1:])
    folders = (old_folder, new_folder)
    names = sorted({path.name for folder in folders for path in folder.glob("*.json")})
    if not names:
        print(f"no golden files in {old_folder} and {new_folder}", file=sys.stderr)
        return 2
    found = 0
    for name in names:
        if not (old_folder / name).exists() or not (new_folder / name).exists():
            print(f"{name}: only in one of the two folders")
            found += 1
            continue
        old = json.loads((old_folder / name).read_text())
        new = json.loads((new_folder / name).read_text())
        lines = list(differences(old, new))
        for line in lines:
            print(f"{name}: {line}")
        same_fingerprint = old["fingerprint"] == new["fingerprint"]
        bits = "bits too" if same_fingerprint else "bits not compared: the fingerprints differ"
        if not lines:
            print(f"{name}: equal ({bits})")
        found += len(lines)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
