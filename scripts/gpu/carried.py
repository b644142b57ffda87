"""Packs the files that a machine with a GPU needs. That machine has no network, no compiler and no git history."""

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks import builds
from gpu.machine import DRY_PROGRAMS, RELEASE_FILE

MAX_PACKED_BYTES = 64 << 20
# Debian libraries that the programs need, and that a container with LibTorch may not have.
LIBRARIES = ["libcrypto.so.3"]
OPEN_FILE = "open.json"
PACKAGE_LIBRARY = "harness/python/librematch_python.so"


def pack(file, build, dry_results, open_list):
    """Packs the Python package, the stripped CUDA programs, the list of open GPU measurements, and their reports from
    the dry device. Returns exit code 0. If something is missing, writes nothing and returns 2."""
    programs = {name: build / path for name, path in DRY_PROGRAMS.items()}
    absent = [str(path) for path in programs.values() if not path.exists()]
    if absent:
        print(f"gpu_queue: {absent[0]} is not built: run scripts/setup dry, then build preset dev", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        (tree / "bin").mkdir()
        for name, path in programs.items():
            strip(path, tree / "bin" / name)
        add_libraries(tree)
        add_package(tree, build / PACKAGE_LIBRARY)
        add_dry_reports(tree, dry_results)
        (tree / OPEN_FILE).write_text(json.dumps(open_list, indent=2) + "\n")
        (tree / RELEASE_FILE).write_text(builds.chosen() + "\n")
        partial = file.with_name(file.name + ".partial")
        with tarfile.open(partial, "w:xz") as archive:
            for path in sorted(tree.rglob("*")):
                archive.add(path, str(path.relative_to(tree)), recursive=False)
    size = partial.stat().st_size
    if size > MAX_PACKED_BYTES:
        partial.unlink()
        print(f"gpu_queue: {file} would have {size} bytes; the limit is {MAX_PACKED_BYTES}", file=sys.stderr)
        return 2
    partial.replace(file)
    print(f"{file}: {size} bytes, {len(open_list['open'])} open measurements; pass this file to --programs")
    return 0


def build(folder):
    """Builds everything that is packed. Returns None, or the reason why a build failed."""
    targets = list(DRY_PROGRAMS.values())
    if (folder / PACKAGE_LIBRARY).exists():
        targets.append(PACKAGE_LIBRARY)
    try:
        done = subprocess.run(["ninja", "-C", str(folder), *targets], capture_output=True, text=True)
    except OSError as error:
        return f"cannot start ninja: {error.strerror}"
    if done.returncode == 0:
        return None
    said = (done.stdout + done.stderr).strip().splitlines()[-1]
    return f"{folder} does not build ({said}): run scripts/setup dry, then build preset dev"


def strip(path, target):
    subprocess.run(["strip", "--strip-unneeded", "-o", str(target), str(path)], check=True)


def add_libraries(tree):
    target = tree / "usr/lib/x86_64-linux-gnu"
    target.mkdir(parents=True)
    for name in LIBRARIES:
        shutil.copyfile(Path("/usr/lib/x86_64-linux-gnu") / name, target / name)


def add_package(tree, library):
    """Adds the package as scripts/build_wheel does, if its library was built."""
    if not library.exists():
        print(f"gpu_queue: {library} is not built: measurements of the Python package will be skipped",
              file=sys.stderr)
        return
    target = tree / "python/rematch"
    target.mkdir(parents=True)
    for name in builds.package_files():
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(builds.PACKAGE / name, target / name)
    strip(library, target / library.name)


def add_dry_reports(tree, dry_results):
    for report in sorted(dry_results.glob("*.report.json")):
        if not has_passed(dry_results / report.name.replace(".report.json", ".json")):
            continue
        (tree / "dry").mkdir(exist_ok=True)
        shutil.copyfile(report, tree / "dry" / report.name)


def has_passed(verdict):
    return verdict.exists() and json.loads(verdict.read_text())["status"] == "passed"


def unpacked(programs):
    """Returns the folder of the packed programs. `programs` is that folder or an archive. An archive is unpacked once,
    into a folder beside it."""
    path = Path(programs).resolve()
    if path.is_dir():
        return path
    folder = path.parent / (path.name.split(".")[0] + ".unpacked")
    mark = folder / OPEN_FILE
    if not mark.exists() or mark.stat().st_mtime < path.stat().st_mtime:
        partial = folder.with_suffix(".partial")
        for left in (partial, folder):
            shutil.rmtree(left, ignore_errors=True)
        with tarfile.open(path) as archive:
            archive.extractall(partial)
        partial.rename(folder)
        mark.touch()
    return folder
