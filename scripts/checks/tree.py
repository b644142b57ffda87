"""The checkout that is checked: its files, their includes, and a cache of passed checks."""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CODE = (".h", ".cpp", ".cu", ".cuh")


class Skipped(Exception):
    """Raised if a check cannot run on this machine. The message is the reason."""


class Tree:
    def __init__(self, root, fix=False, deep=False):
        self.root = pathlib.Path(root)
        self.fix = fix
        self.deep = deep
        self.warnings = []  # messages that are printed but do not fail a check
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, check=True, capture_output=True, text=True).stdout
        self.files = sorted({name for name in listed.split("\0")
                             if name and (self.root / name).is_file()})

    def code(self, *suffixes):
        return [name for name in self.files if name.endswith(suffixes or CODE)]

    @functools.lru_cache(maxsize=None)
    def bytes_of(self, name):
        return (self.root / name).read_bytes()

    def lines(self, name):
        return self.bytes_of(name).decode("utf-8", "replace").splitlines()

    @functools.lru_cache(maxsize=None)
    def includes(self, name):
        """Returns (line number, '<' or '"', header) for every include directive of the file."""
        found = []
        for number, line in enumerate(self.lines(name), 1):
            match = INCLUDE.match(line)
            if match:
                found.append((number, match[1], match[2]))
        return found

    @functools.lru_cache(maxsize=None)
    def closure(self, name):
        """Returns the file itself and all files of the checkout that it includes, directly or not."""
        seen, waiting = set(), [name]
        while waiting:
            current = waiting.pop()
            if current in seen or not (self.root / current).is_file():
                continue
            seen.add(current)
            waiting += [header for _, kind, header in self.includes(current) if kind == '"']
        return frozenset(seen)

    def fingerprint(self, name, *context):
        """Returns a hash of the file, of every file that it includes, and of `context`."""
        digest = hashlib.sha256(repr(context).encode())
        for member in sorted(self.closure(name)):
            digest.update(member.encode() + b"\0" + hashlib.sha256(self.bytes_of(member)).digest())
        return digest.hexdigest()


def find_tool(name, major):
    """Returns the command of the tool's required major version. Raises Skipped if this version is not installed."""
    for candidate in (f"{name}-{major}", name):
        if shutil.which(candidate):
            version = subprocess.run([candidate, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {major}\.", version):
                return candidate
    raise Skipped(f"{name} {major} is not installed")


def run_command(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def problems_of_each(tree, check, items, fingerprints, examine):
    """Runs examine(item), which returns problems, in parallel. Skips items that passed before with the same
    fingerprint."""
    store = tree.root / "build" / "checks" / f"{check}.json"
    passed = set(json.loads(store.read_text())) if store.exists() else set()
    waiting = [item for item in items if fingerprints[item] not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(waiting, pool.map(examine, waiting)))
    store.parent.mkdir(parents=True, exist_ok=True)
    good = sorted(fingerprints[item] for item in items if not found.get(item))
    temporary = store.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(good))
    temporary.replace(store)
    return [problem for item in waiting for problem in found[item]]
