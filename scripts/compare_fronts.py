#!/usr/bin/env python3
"""Compares the search's plans with PyTorch's own plans for the same models. Each side's plans are points of peak and
step time; the side with the larger hypervolume is better.

    PYTHON scripts/compare_fronts.py [MODEL ...] > table.md
    PYTHON scripts/compare_fronts.py --compiled [--backend aot_eager] [MODEL ...] > table.md

PYTHON needs the packages of scripts/python.txt, any torch version of scripts/setup, and torch_remat. The script also
needs two built targets: `rematch_python` of the preset for that torch version, and `rematch_cli_lite` of preset dev.
REMATCH_PYTHON_LIBRARY and REMATCH_BINARY can name other files instead. The models are defined in
tests/harness/python/zoo.py. Runs every plan of ours and of PyTorch, and measures its peak. The time of a plan is the
time of a step without checkpointing plus the time of the recomputed ops. Both are computed from a device's data sheet.
torch_remat runs with every choice of saved modules of a layer. If no plan of ours matches a plan of PyTorch, the search
looks for one with that plan's peak as the budget. The table names the plans of PyTorch that are still not matched.
Takes about three minutes per model. The table goes to stdout, points and progress to stderr.

With --compiled, torch.compile compiles the models for the CPU, and steps are timed as well. All plans run alternately;
a plan's step time is the median of its rounds, in processor time of one thread. Needs no torch_remat. Losses and
gradients of all plans must be close. --folder keeps a file for each finished model and Inductor's kernels, so that a
killed run can be resumed.
Exit codes: 0 written; 1 our front covers less than PyTorch's on some model, or a plan did not run as predicted; 2
usage, or something is missing (the message is one line)."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import builds
from benchmarks.builds import ROOT
from benchmarks.package import REMAT_VERSION
from fronts import measured

BINARY = ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="MODEL", nargs="*", help="only these (default: all)")
    parser.add_argument("--device", default="h100", help="data sheet of `rematch profile` (default: h100)")
    parser.add_argument("--points", type=int, default=24, help="maximum number of points of our front (default: 24)")
    parser.add_argument("--without-remat", action="store_true", help="leave torch_remat out")
    compiled = parser.add_argument_group("compiled models")
    compiled.add_argument("--compiled", action="store_true", help="compare compiled models by measured peaks and step times")
    compiled.add_argument("--backend", choices=measured.BACKENDS, help="backend of torch.compile (default: inductor)")
    compiled.add_argument("--rounds", type=int, metavar="N", help="number of timed steps of each plan (default: 9)")
    compiled.add_argument("--folder", type=pathlib.Path, help="keeps results here; skips models that it has results of")
    arguments = parser.parse_args()
    if not arguments.compiled and (arguments.backend or arguments.rounds or arguments.folder):
        refuse("--backend, --rounds and --folder require --compiled")
    return arguments


def refuse(text):
    print(f"compare_fronts.py: {text}", file=sys.stderr)
    sys.exit(2)


def use_tree(has_remat):
    """Uses the programs that were built in this checkout, unless environment variables name others."""
    for name in ("torch", "transformers", "diffusers"):
        if importlib.util.find_spec(name) is None:
            refuse(f"{sys.executable} has no {name}: use a Python with the packages of scripts/python.txt")
    if has_remat and importlib.util.find_spec("torch_remat") is None:
        refuse(f"{sys.executable} has no torch_remat: run '{sys.executable} -m pip install --no-deps "
               f"torch_remat=={REMAT_VERSION}', or leave it out with --without-remat")
    release = builds.release_of(importlib.metadata.version("torch"))
    for variable, built, how in (
            ("REMATCH_BINARY", BINARY, "run 'cmake --preset dev' and 'cmake --build --preset dev --target rematch_cli_lite'"),
            ("REMATCH_PYTHON_LIBRARY", builds.library_of(release), builds.how_to_build_library(release))):
        os.environ.setdefault(variable, str(built))
        if not pathlib.Path(os.environ[variable]).exists():
            refuse(f"{os.environ[variable]} is not built: {how}, or name another with {variable}")
    sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "harness/python", "tests/harness/python")]


def refuse_unknown(models, known):
    unknown = sorted({*models} - {*known})
    if unknown:
        refuse(f"unknown model '{unknown[0]}'; known: {', '.join(known)}")


def compare_compiled(models, backend, num_rounds, folder):
    """Yields the comparison of each model. Each model runs in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path[:3]), "OMP_NUM_THREADS": "1",
        # runs Inductor's C++ compiler in child processes, so that its time is not measured
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder.resolve() / "kernels")}
    for library in folder.glob("kernels/*/*.so"):
        if library.stat().st_size == 0:  # the linker was killed, and Inductor would load the empty file
            library.unlink()
    for model in models:
        path = folder / f"{model}_{backend}.json"
        if not path.exists():
            done = subprocess.run([sys.executable, "-m", "fronts.compiled", model, backend, str(num_rounds), path.resolve()],
                                  env=environment)
            if done.returncode != 0:
                sys.exit(done.returncode)
        yield measured.comparison_of(json.loads(path.read_text()))


def run_compiled(arguments):
    refuse_unknown(arguments.models, measured.MODELS)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for comparison in compare_compiled(arguments.models or measured.MODELS, arguments.backend or "inductor",
                                           arguments.rounds or 9, arguments.folder or pathlib.Path(temporary)):
            print(measured.listing(comparison), file=sys.stderr, flush=True)
            found.append(comparison)
    print(measured.markdown(found))
    return 0 if all(each.ratio() >= 1 for each in found) else 1


def run_eager(arguments):
    from fronts.comparison import compare, known_models, markdown
    refuse_unknown(arguments.models, known_models())
    rows = [compare(name, arguments.device, arguments.points, not arguments.without_remat)
            for name in arguments.models or known_models()]
    print(markdown(rows))
    return 0 if all(row.is_ahead() for row in rows) else 1


def main():
    arguments = parse_arguments()
    use_tree(not arguments.without_remat and not arguments.compiled)
    return run_compiled(arguments) if arguments.compiled else run_eager(arguments)


if __name__ == "__main__":
    sys.exit(main())
