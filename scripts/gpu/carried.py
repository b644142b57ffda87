"""What goes along to a machine without a network: the built programs, or, to build there, headers, small
libraries and CMake files of the Debian packages that preset cuda needs, where the packages have them."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from gpu import stages

PACKAGES = ["nlohmann-json3-dev", "libcli11-dev", "libssl-dev", "libssl3", "catch2", "libbenchmark-dev",
            "libbenchmark1debian", "librapidcheck-dev"]
LEFT_OUT = ("/usr/share/doc", "/usr/share/man", "/usr/share/lintian", "/usr/lib/x86_64-linux-gnu/engines-3",
            "/usr/lib/x86_64-linux-gnu/libcrypto.a", "/usr/lib/x86_64-linux-gnu/libssl.a",
            "/usr/lib/x86_64-linux-gnu/ossl-modules")
MOST_BYTES = 48 << 20
MOST_PACKED_BYTES = 64 << 20
# Libraries of Debian's that the programs load, and that a container with LibTorch may lack.
LIBRARIES = ["libcrypto.so.3"]


def files_of(package):
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True)
    if listed.returncode:
        return None
    return [name for name in listed.stdout.splitlines()
            if name.startswith("/usr/") and not name.startswith(LEFT_OUT) and not Path(name).is_dir()]


def missing(packed, valijson):
    """What is not here, in words; "" if nothing."""
    for package, names in packed.items():
        if names is None:
            return f"package {package} is not installed"
    return "" if valijson else "valijson's headers are missing"


def pack_headers(folder, root):
    """Exit code: 0 packed, 2 something is missing, and nothing is written."""
    packed = {package: files_of(package) for package in PACKAGES}
    valijson = [place for place in (root / ".valijson", Path("/usr")) if (place / "include/valijson").exists()]
    if lacks := missing(packed, valijson):
        print(f"verify_gpu: {lacks}; run scripts/setup first", file=sys.stderr)
        return 2
    total = 0
    for name in (name for names in packed.values() for name in names):
        target = folder / name[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        # A link among the packages' own files becomes the file: some ways of copying drop links.
        shutil.copyfile(name, target)
        total += target.stat().st_size
    shutil.copytree(valijson[0] / "include/valijson", folder / "valijson/include/valijson",
                    dirs_exist_ok=True)
    total += sum(path.stat().st_size for path in (folder / "valijson").rglob("*") if path.is_file())
    print(f"{folder}: {total} bytes; take it along and pass --carried")
    if total > MOST_BYTES:
        print(f"verify_gpu: that is more than {MOST_BYTES} bytes", file=sys.stderr)
    return 0


def pack_programs(file, build, dry_results):
    """The programs that are linked with CUDA, stripped; and what their stages reported on the dry device.
    Exit code: 0 packed, 2 something is missing, and nothing is written."""
    programs = {name: build / path for name, path in stages.DRY_PROGRAMS.items()}
    absent = [str(path) for path in programs.values() if not path.exists()]
    if absent:
        print(f"verify_gpu: {absent[0]} is not built: build preset dev after scripts/setup dry", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        (tree / "bin").mkdir()
        for name, path in programs.items():
            subprocess.run(["strip", "-o", str(tree / "bin" / name), str(path)], check=True)
        add_libraries(tree)
        for report in sorted(dry_results.glob("*.report.json")):
            (tree / "dry").mkdir(exist_ok=True)
            shutil.copyfile(report, tree / "dry" / report.name)
        partial = file.with_name(file.name + ".partial")
        with tarfile.open(partial, "w:xz") as archive:
            for path in sorted(tree.rglob("*")):
                archive.add(path, str(path.relative_to(tree)), recursive=False)
    size = partial.stat().st_size
    if size > MOST_PACKED_BYTES:
        partial.unlink()
        print(f"verify_gpu: that is {size} bytes, more than {MOST_PACKED_BYTES}", file=sys.stderr)
        return 2
    partial.replace(file)
    print(f"{file}: {size} bytes; take it along and pass --programs")
    return 0


def add_libraries(tree):
    target = tree / "usr/lib/x86_64-linux-gnu"
    target.mkdir(parents=True)
    for name in LIBRARIES:
        shutil.copyfile(Path("/usr/lib/x86_64-linux-gnu") / name, target / name)
