"""Packs all results into archives that a machine with a GPU can return: at most 8 files of 16 MiB."""

import io
import json
import os
import tarfile
import zlib
from pathlib import Path

MAX_BYTES = 15 << 20  # in bytes; large archives compress better than small ones
MAX_ARCHIVES = 7
NAMES = "results*.tar.gz"
LEFT_OUT = "left_out.json"


def contents(folder):
    """Returns the paths to pack: verdicts first, then reports, then the stored points that an interrupted run needs to
    continue."""
    def order(path):
        is_report = ".report." in path.name
        return (path.parent != folder, is_report, str(path))
    found = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".partial"
             and path.name != LEFT_OUT and not path.match(NAMES)]
    return sorted(found, key=order)


def shared_out(sizes, most=MAX_BYTES, archives=MAX_ARCHIVES):
    """Distributes files over archives, in order. `sizes` maps names to bytes. Returns (list of names for each archive,
    names left out)."""
    parts, left_out, room = [[]], [], most
    for name, size in sizes.items():
        if size > most or (size > room and len(parts) == archives):
            left_out.append(name)
            continue
        if size > room:
            parts.append([])
            room = most
        parts[-1].append(name)
        room -= size
    return parts, left_out


def write(folder, target=None):
    """Packs the results of `folder` and writes the archives to `target` (default: `folder`). Returns the names of
    results that were left out."""
    target = Path(target or folder)
    target.mkdir(parents=True, exist_ok=True)
    files = read_all(folder)
    sizes = {name: len(zlib.compress(content, 6)) + 1024 for name, content in files.items()}
    parts, left_out = shared_out(sizes, MAX_BYTES, MAX_ARCHIVES)
    if left_out:
        files[LEFT_OUT] = json.dumps(left_out, indent=2).encode() + b"\n"
        parts[0].append(LEFT_OUT)
    names = ["results.tar.gz"] if len(parts) == 1 else [f"results-{i + 1}.tar.gz" for i in range(len(parts))]
    for name, members in zip(names, parts):
        write_one(target / name, {member: files[member] for member in members})
    for old in target.glob(NAMES):
        if old.name not in names:
            old.unlink()
    return left_out


def read_all(folder):
    """Returns {name: content}. Skips files that were renamed after they were listed."""
    files = {}
    for path in contents(folder):
        try:
            files[str(path.relative_to(folder))] = path.read_bytes()
        except FileNotFoundError:
            continue
    return files


def write_one(path, files):
    partial = path.with_name(path.name + ".partial")
    with tarfile.open(partial, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    os.replace(partial, path)


def unpack(source, target):
    """Copies the results in `source` to `target`: loose files, and the contents of archives."""
    for name, content in read_all(source).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    for path in sorted(source.rglob(NAMES)):
        with tarfile.open(path) as archive:
            archive.extractall(target, filter="data")
