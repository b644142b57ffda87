"""Tests that the package loads the library that was built for the imported torch. If there is no such library, the
error must say in one line what to do."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import rematch
import torch
from rematch._library import LIBRARY, LIBRARY_NAME

PACKAGE = pathlib.Path(rematch.__file__).parent
RELEASE = ".".join(torch.__version__.split(".")[:2])
BUILT_FOR = LIBRARY.rematch_torch_version().decode()


def built_library():
    override = os.environ.get("REMATCH_PYTHON_LIBRARY")
    return pathlib.Path(override) if override else PACKAGE / LIBRARY_NAME.format(RELEASE)


class LibraryTest(unittest.TestCase):
    """Runs a copy of the package that has no library, in a separate process."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rematch_library_"))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(PACKAGE, self.folder / "rematch", ignore=shutil.ignore_patterns("*.so", "__pycache__"))

    def put(self, release, source=None):
        target = self.folder / "rematch" / LIBRARY_NAME.format(release)
        if source is None:
            target.write_text("not a library")
        else:
            target.symlink_to(source.resolve())

    def python(self, script, **more):
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **more}
        if not more:
            environment.pop("REMATCH_PYTHON_LIBRARY", None)
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)

    def refusal(self, script="import rematch", **more):
        done = self.python(script, **more)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.splitlines()[-1]

    def test_the_library_for_this_torch_is_loaded(self):
        for release in ("2.9", RELEASE, "2.99"):
            self.put(release, built_library() if release == RELEASE else None)
        done = self.python("import rematch._library as found; print(found.LIBRARY.rematch_torch_version().decode())")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, BUILT_FOR), done.stderr)

    def test_an_unsupported_torch(self):
        for release in ("2.10", "2.9"):
            self.put(release)
        self.assertEqual(self.refusal(),
                         f"ImportError: rematch has libraries for torch 2.9, 2.10; this is torch {torch.__version__}: pip install "
                         "'torch==2.10.*', or use scripts/export_trace.py, which needs no library")

    def test_no_library(self):
        self.assertIn("this copy of rematch has no library: install the wheel of scripts/build_wheel", self.refusal())

    def test_a_library_for_another_torch(self):
        script = "import torch; torch.__version__ = '2.99.1+cpu'; import rematch"
        self.assertEqual(self.refusal(script, REMATCH_PYTHON_LIBRARY=str(built_library())),
                         f"ImportError: {built_library()} is built for torch {BUILT_FOR}, this is torch 2.99.1+cpu: build the "
                         "library for this torch (scripts/build_wheel), or name another library with REMATCH_PYTHON_LIBRARY")

    def test_a_library_that_cannot_be_loaded(self):
        self.put(RELEASE)
        self.assertRegex(self.refusal(), f"ImportError: .*{RELEASE}.so cannot be loaded into torch {RELEASE}")

    def test_a_torch_without_a_private_name_that_the_package_uses(self):
        self.put(RELEASE, built_library())
        for name in ("torch._C._dispatch_key_parse", "torch.utils.checkpoint.CheckpointFunction"):
            with self.subTest(name):
                self.assertRegex(self.refusal(f"import torch.utils.checkpoint; del {name}; import rematch"),
                                 f"ImportError: rematch uses {name}.*, which torch {RELEASE}.* does not have: "
                                 "install an unmodified torch")

    def test_a_module_that_torch_imports_later_without_a_name_that_the_package_uses(self):
        self.put(RELEASE, built_library())
        script = ("import torch, rematch, torch._dynamo.eval_frame as frame; del frame._callback_from_stance\n"
                  "model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2)))\n"
                  "rematch.trace(model, lambda: model(torch.ones(2)).sum())")
        self.assertRegex(self.refusal(script), "RematchError: rematch uses torch._dynamo.eval_frame._callback_from_stance, which")


if __name__ == "__main__":
    unittest.main()
