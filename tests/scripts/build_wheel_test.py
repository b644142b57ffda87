"""The wheel has the metadata and files that an installer needs. The wheel's library is a stand-in."""

import base64
import csv
import email
import hashlib
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]


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
        script = build_wheel()
        script.LIBRARY = self.folder / script.LIBRARY.name
        script.LIBRARY.write_bytes(b"a library")
        self.path = script.write_wheel(self.folder)
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
