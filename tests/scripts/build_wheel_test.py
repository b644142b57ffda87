"""Tests that the wheel has the metadata and files that an installer needs. A copy of a system program stands in for
each library."""

import base64
import csv
import email
import hashlib
import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
PROGRAM = pathlib.Path(shutil.which("true")).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))  # where the script finds its modules


def build_wheel():
    """Loads the script as a module, although its name has no suffix."""
    loader = importlib.machinery.SourceFileLoader("build_wheel", str(ROOT / "scripts" / "build_wheel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("build_wheel", loader))
    loader.exec_module(module)
    return module


class BuildWheelTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.script = build_wheel()
        self.write("2.11", "2.15")

    def write(self, *versions):
        """A wheel with a library for each version."""
        library = self.folder / "librematch_python.so"
        shutil.copy(PROGRAM, library)
        self.path = self.script.write_wheel(self.folder, {version: library for version in versions})
        with zipfile.ZipFile(self.path) as wheel:
            self.files = {name: wheel.read(name) for name in wheel.namelist()}

    def only(self, suffix):
        (content,) = [content for name, content in self.files.items() if name.endswith(suffix)]
        return content

    def test_the_license_of_the_project_is_in_metadata_and_files(self):
        license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
        self.assertTrue(license_text.startswith("BSD 3-Clause License\n\nCopyright (c) "))
        metadata = email.message_from_bytes(self.only(".dist-info/METADATA"))
        self.assertEqual(metadata["License-Expression"], "BSD-3-Clause")
        self.assertEqual(metadata.get_all("License-File"), ["LICENSE"])
        # PEP 639 puts the license file here, and requires metadata version 2.4.
        self.assertEqual(metadata["Metadata-Version"], "2.4")
        self.assertEqual(self.only(".dist-info/licenses/LICENSE").decode(), license_text)

    def test_it_has_a_library_for_each_version(self):
        self.assertEqual([name for name in self.files if name.endswith(".so")],
                         ["rematch/librematch_python-2.11.so", "rematch/librematch_python-2.15.so"])
        self.assertIn("rematch/__init__.py", self.files)
        self.assertIn("rematch/compiled/partitioner.py", self.files)
        self.assertIn("rematch/py.typed", self.files)

    def test_it_requires_only_torch_in_a_version_with_a_library(self):
        for versions, wanted in ((self.script.VERSIONS, "torch>=2.11,<2.16"), (["2.13"], "torch>=2.13,<2.14"),
                                 (["2.11", "2.14"], "torch>=2.11,<2.15,!=2.12.*,!=2.13.*")):
            with self.subTest(versions):
                self.write(*versions)
                metadata = email.message_from_bytes(self.only(".dist-info/METADATA"))
                self.assertEqual(metadata.get_all("Requires-Dist"), [wanted])

    def test_the_tag_names_the_oldest_glibc_that_runs_the_libraries(self):
        tag = self.path.stem.split("-", 2)[2]
        self.assertRegex(tag, r"^py3-none-manylinux_2_\d+_x86_64$")
        self.assertEqual(email.message_from_bytes(self.only(".dist-info/WHEEL"))["Tag"], tag)
        symbols = subprocess.run(["readelf", "--version-info", "--wide", PROGRAM], capture_output=True, text=True, check=True).stdout
        newest = max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", symbols))
        self.assertEqual(int(tag.split("_")[2]), max(newest, 28))

    def test_record_lists_every_file_with_its_hash(self):
        rows = list(csv.reader(self.only(".dist-info/RECORD").decode().splitlines()))
        self.assertEqual(sorted(name for name, *_ in rows), sorted(self.files))
        for name, digest, size in rows:
            if name.endswith("/RECORD"):
                continue
            expected = base64.urlsafe_b64encode(hashlib.sha256(self.files[name]).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, int(size)), (f"sha256={expected}", len(self.files[name])), name)

    def test_pip_installs_it(self):
        """An installer rejects a wheel whose metadata version it does not know."""
        if importlib.util.find_spec("pip") is None:
            self.skipTest("this Python has no pip")
        installed = self.folder / "installed"
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index",
                               "--disable-pip-version-check", "--target", installed, self.path],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(list(installed.glob("rematch-*.dist-info/licenses/LICENSE")))


if __name__ == "__main__":
    unittest.main()
