"""If LibTorch is missing or has another version, configuring stops with a line that says what to do."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ConfigureTest(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="rematch_configure_"))
        self.addCleanup(shutil.rmtree, self.work)

    def configure(self, *flags):
        done = subprocess.run(
            ["cmake", "-S", ROOT, "-B", self.work / "build", "-G", "Ninja", *flags],
            capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        return " ".join(done.stderr.split())  # CMake wraps its messages

    def libtorch(self, version):
        """Makes a folder that looks like LibTorch of the given version."""
        major, minor, patch = version.split(".")
        for name, text in {
                "include/ATen/ATen.h": "", "lib/libtorch_cpu.so": "", "lib/libc10.so": "",
                "include/torch/headeronly/version.h":
                    f"#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n"
                    f"#define TORCH_VERSION_PATCH {patch}\n"}.items():
            path = self.work / "libtorch" / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self.work / "libtorch"

    def test_a_folder_without_libtorch_is_named_with_what_to_do(self):
        output = self.configure("-DLIBTORCH_ROOT=/nowhere")
        self.assertIn("no LibTorch in LIBTORCH_ROOT=/nowhere: run scripts/setup", output)

    def test_another_version_is_named(self):
        for version in ["2.10.1", "2.1.1", "2.16.0"]:
            with self.subTest(version):
                output = self.configure(f"-DLIBTORCH_ROOT={self.libtorch(version)}")
                self.assertIn(f"holds LibTorch {version}; supported are 2.11, 2.12, 2.13, 2.14, 2.15: "
                              "run scripts/setup --torch VERSION", output)

    def test_cuda_without_libtorch_is_refused(self):
        output = self.configure("-DREMATCH_LIBTORCH=OFF", "-DREMATCH_CUDA=ON")
        self.assertIn("REMATCH_CUDA=ON needs REMATCH_LIBTORCH=ON", output)

    def test_a_dry_device_without_libtorchs_cuda_libraries_is_refused(self):
        output = self.configure(f"-DLIBTORCH_ROOT={self.libtorch('2.11.0')}", "-DREMATCH_DRY=ON",
                                "-DREMATCH_DRY_ROOT=/nowhere")
        self.assertIn("CUDA libraries in /nowhere: run scripts/setup dry", output)

    def test_a_dry_device_of_another_version_is_refused(self):
        (self.work / "stamp").write_text("")
        (self.work / "torch-2.12.1.dist-info").mkdir()
        for version, refused in [("2.11.0", True), ("2.12.1", False)]:
            with self.subTest(version):
                output = self.configure(f"-DLIBTORCH_ROOT={self.libtorch(version)}", "-DREMATCH_DRY=ON",
                                        f"-DREMATCH_DRY_ROOT={self.work}", "-DCMAKE_CUDA_COMPILER=/nowhere/nvcc")
                self.assertEqual("are not of LibTorch 2.11.0: run scripts/setup dry" in output, refused, output)

    def test_a_dry_device_beside_real_cuda_is_refused(self):
        (self.work / "stamp").write_text("")
        output = self.configure("-DREMATCH_LIBTORCH=OFF", "-DREMATCH_DRY=ON",
                                f"-DREMATCH_DRY_ROOT={self.work}")
        self.assertIn("needs REMATCH_LIBTORCH=ON and REMATCH_CUDA=OFF", output)


if __name__ == "__main__":
    unittest.main()
