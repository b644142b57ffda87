"""Finds the releases of torch that the presets build for. Also finds the package's files, and its shared library for
each release."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "harness" / "python" / "rematch"


def releases():
    """Returns the supported releases, such as "2.11", oldest first."""
    found = [folder.name for folder in (ROOT / "scripts" / "libtorch").iterdir() if folder.is_dir()]
    return sorted(found, key=lambda release: tuple(map(int, release.split("."))))


def default():
    return (ROOT / "scripts" / "libtorch" / "default.txt").read_text(encoding="utf-8").strip()


def chosen():
    """Returns the release that preset dev builds for."""
    kept = ROOT / ".libtorch-version"
    return kept.read_text(encoding="utf-8").strip() if kept.exists() else default()


def libtorch_folder(kind, release):
    """Returns the folder into which scripts/setup unpacks this release of LibTorch. `kind` is the folder's name for the
    default release, such as ".libtorch-cuda"."""
    return ROOT / (kind if release == default() else f"{kind}-{release}")


def release_of(version):
    """Returns the release of a version: "2.15" for "2.15.0+cpu"."""
    return ".".join(version.split(".")[:2])


def preset_of(release):
    return "dev" if release == chosen() else f"torch-{release}"


def library_of(release):
    return ROOT / "build" / preset_of(release) / "harness" / "python" / "librematch_python.so"


def how_to_build_library(release):
    preset = preset_of(release)
    first = "" if preset == "dev" else f"'scripts/setup --beside {release}', "
    return f"run {first}'cmake --preset {preset}' and 'cmake --build --preset {preset} --target rematch_python'"


def package_files():
    """Returns the paths of the Python package's files, relative to PACKAGE, without the shared library."""
    return [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*"))
            if path.suffix == ".py" or path.name == "py.typed"]
