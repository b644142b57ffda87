"""scripts/setup installs only what is missing, leaves nothing half-installed, and says what it needs."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = ("2.11", "2.12", "2.13", "2.14", "2.15")
DEFAULT = (ROOT / "scripts/libtorch/default.txt").read_text().strip()
OTHER = "2.11" if DEFAULT != "2.11" else "2.15"
PLAIN_TOOLS = ("bash cat sha256sum flock grep head sort tr mkdir rm mv uname cut wc env dirname ls ln "
               "unzip chmod sed").split()


class SetupTest(unittest.TestCase):
    """A checkout without LibTorch, and a PATH with stand-ins for all programs.

    The stand-in for pip makes small wheels instead of downloading them. `calls` lists the programs that were started.
    """

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_setup_"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "scripts").mkdir()
        (self.root / "bin").mkdir()
        shutil.copy(ROOT / "scripts/setup", self.root / "scripts/setup")
        shutil.copytree(ROOT / "scripts/libtorch", self.root / "scripts/libtorch")
        for tool in PLAIN_TOOLS:
            (self.root / "bin" / tool).symlink_to(shutil.which(tool))
        for program in "ninja git ccache clang-format-14 clang-tidy-14".split():
            self.stand_in(program, "exit 0")
        self.stand_in("g++", "echo 'g++ 12.2.0'")
        self.stand_in("cmake", "echo 'cmake version 3.25.1'")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", f"echo apt-get $* >>{self.root}/calls")
        self.make_wheels()
        self.pip("cp wheels/${folder##*/}/*.whl $folder/")

    def stand_in(self, name, body):
        path = self.root / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def pip(self, download):
        """Installs a stand-in for Python whose `-m pip download ... -d folder ...` runs `download`."""
        cp = shutil.which("cp")
        self.stand_in("python3", f"""
if [[ $1 == --version ]]; then echo Python 3.11.2; exit; fi
if [[ $3 == --version || $1 == -c ]]; then exit 0; fi
echo pip >>{self.root}/calls
while [[ $1 != -d ]]; do shift; done
folder=$2
cp() {{ {cp} "$@"; }}
{download}""")

    def make_wheels(self):
        """Makes a folder of wheels for each list of pinned packages."""
        self.make_wheel("cpu/torch-2.11.0-cp311", *(f"torch/lib/{name}" for name in (
            "libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libtorch_cuda.so", "libc10_cuda.so",
            "libtorch_nvshmem.so", "libtorch_python.so")),
                        "torch/include/ATen/Tensor.h", "torch/nn.py", "torch-2.11.0.dist-info/METADATA",
                        "torch-2.11.0.dist-info/licenses/LICENSE")
        self.make_wheel("cpu/nvidia_cuda_runtime-13", "nvidia/cu13/lib/libcudart.so.13",
                        "x.dist-info/METADATA")
        self.make_wheel("cpu/nvidia_cuda_cupti-13", "nvidia/cu13/lib/libcupti.so.13",
                        "nvidia/cu13/include/cupti.h", "y.dist-info/METADATA")
        self.make_wheel("nvcc/nvidia_cuda_nvcc-13", "nvidia/cu13/bin/nvcc", "nvidia/cu13/nvvm/bin/cicc",
                        "z.dist-info/METADATA")
        self.make_wheel("cuda/nvidia_cublas-13", "nvidia/cu13/lib/libcublas.so.13",
                        "w.dist-info/METADATA")

    def make_wheel(self, name, *members):
        path = self.root / "wheels" / f"{name}.whl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as wheel:
            for member in members:
                wheel.writestr(member, member)

    def unpacked(self, folder):
        return {str(path.relative_to(self.root / folder))
                for path in (self.root / folder).rglob("*") if path.is_file() and not path.is_symlink()
                and "lib64" not in path.parts and ".dist-info" not in str(path)}

    def setup(self, *arguments, **environment):
        clean = {key: value for key, value in os.environ.items() if key != "LIBTORCH_ROOT"}
        done = subprocess.run(
            [self.root / "scripts" / "setup", *arguments], stdin=subprocess.DEVNULL,
            env={**clean, "PATH": str(self.root / "bin"), **environment},
            capture_output=True, text=True)
        return done.returncode, done.stderr

    def calls(self):
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def leftovers(self):
        return [name for name in os.listdir(self.root) if ".partial" in name]

    def test_libtorch_is_unpacked_without_the_parts_that_a_cpu_process_does_not_load(self):
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        unpacked = {str(path.relative_to(self.root / ".libtorch"))
                    for path in (self.root / ".libtorch").rglob("*") if path.is_file()}
        self.assertEqual(unpacked, {
            "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
            "torch/include/ATen/Tensor.h", "torch-2.11.0.dist-info/METADATA",
            "torch-2.11.0.dist-info/licenses/LICENSE", "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcupti.so.13", "nvidia/cu13/include/cupti.h", "x.dist-info/METADATA",
            "y.dist-info/METADATA", "stamp"})
        pins = (ROOT / f"scripts/libtorch/{DEFAULT}/cpu.txt").read_bytes()
        self.assertEqual((self.root / ".libtorch/stamp").read_text().strip(),
                         hashlib.sha256(pins).hexdigest())
        self.assertEqual(self.leftovers(), [])

    def test_the_dry_device_gets_the_cuda_parts_of_libtorch_in_addition(self):
        status, output = self.setup("dry")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.unpacked(".libtorch-dry"), {
            "torch/lib/libtorch_cuda.so", "torch/lib/libc10_cuda.so", "torch/lib/libtorch_nvshmem.so",
            "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/include/cupti.h", "nvidia/cu13/bin/nvcc",
            "nvidia/cu13/nvvm/bin/cicc", "stamp"})
        self.assertTrue(os.access(self.root / ".libtorch-dry/nvidia/cu13/bin/nvcc", os.X_OK))
        self.assertIn("torch/lib/libtorch_cpu.so", self.unpacked(".libtorch"))
        self.assertEqual(self.calls(), ["pip", "pip"])  # one download for LibTorch, one for the compiler
        self.assertEqual(self.setup("dry"), (0, ""))
        self.assertEqual(self.setup(), (0, ""))
        self.assertEqual(self.leftovers(), [])

    def test_the_dry_device_does_not_change_an_existing_libtorch(self):
        self.setup()
        before = (self.root / ".libtorch/stamp").stat().st_mtime_ns
        self.assertEqual(self.setup("dry")[0], 0)
        self.assertEqual((self.root / ".libtorch/stamp").stat().st_mtime_ns, before)
        self.assertEqual(self.setup("dry", LIBTORCH_ROOT="/nowhere")[0], 2)

    def test_cuda_gets_every_library(self):
        status, output = self.setup("cuda")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.unpacked(".libtorch-cuda"), {
            "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
            "torch/lib/libtorch_cuda.so", "torch/lib/libc10_cuda.so", "torch/lib/libtorch_nvshmem.so",
            "torch/include/ATen/Tensor.h", "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcupti.so.13", "nvidia/cu13/include/cupti.h", "nvidia/cu13/bin/nvcc",
            "nvidia/cu13/nvvm/bin/cicc", "nvidia/cu13/lib/libcublas.so.13", "stamp"})
        self.assertFalse((self.root / ".libtorch").exists())

    def stamp(self, folder):
        return (self.root / folder / "stamp").read_text().strip()

    def pins(self, *names):
        return hashlib.sha256(b"".join((ROOT / "scripts/libtorch" / name).read_bytes() for name in names)).hexdigest()

    def test_another_version_has_separate_folders_and_is_kept(self):
        self.assertEqual(self.setup()[0], 0)
        self.assertEqual(self.setup("--torch", OTHER)[0], 0)
        self.assertEqual(self.stamp(".libtorch"), self.pins(f"{DEFAULT}/cpu.txt"))
        self.assertEqual(self.stamp(f".libtorch-{OTHER}"), self.pins(f"{OTHER}/cpu.txt"))
        self.assertEqual((self.root / ".libtorch-version").read_text(), f"{OTHER}\n")
        self.assertEqual(self.setup("dry")[0], 0)
        self.assertEqual(self.stamp(f".libtorch-dry-{OTHER}"), self.pins(f"{OTHER}/cpu.txt", f"{OTHER}/nvcc.txt"))
        self.assertNotIn("nvidia/cu13/lib/libcupti.so.13", self.unpacked(f".libtorch-dry-{OTHER}"))
        self.assertEqual(self.setup("cuda", "--torch", "2.13")[0], 0)
        self.assertEqual(self.stamp(".libtorch-cuda-2.13"), self.pins("2.13/cpu.txt", "2.13/nvcc.txt", "2.13/cuda.txt"))
        self.assertEqual(self.setup("--torch", DEFAULT), (0, ""))
        self.assertFalse((self.root / ".libtorch-version").exists())
        self.assertEqual(self.setup("dry", "--torch", OTHER), (0, ""))

    def test_a_version_that_cannot_be_fetched_is_not_kept(self):
        self.pip("exit 1")
        self.assertEqual(self.setup("--torch", "2.14")[0], 1)
        self.assertFalse((self.root / ".libtorch-version").exists())

    def test_an_unknown_version_is_refused_with_the_known_ones(self):
        for arguments in (["--torch", "2.10"], ["--torch"], ["--torch", "2.1"]):
            with self.subTest(arguments):
                status, output = self.setup(*arguments)
                self.assertEqual(status, 2)
                self.assertIn("--torch takes 2.11 2.12 2.13 2.14 2.15 - not", output)
        status, output = self.setup("--torch", OTHER, LIBTORCH_ROOT="/nowhere")
        self.assertEqual(status, 2)
        self.assertIn("give one of them", output)
        self.assertEqual(self.calls(), [])

    def test_the_wheel_gets_every_version(self):
        self.assertEqual(self.setup("versions")[0], 0)
        for version in VERSIONS:
            folder = ".libtorch" if version == DEFAULT else f".libtorch-{version}"
            self.assertEqual(self.stamp(folder), self.pins(f"{version}/cpu.txt"))
        self.assertFalse((self.root / ".libtorch-version").exists())

    def test_a_version_beside_the_chosen_one_does_not_change_the_choice(self):
        self.setup("--torch", OTHER)
        self.assertEqual(self.setup("--beside", "2.12")[0], 0)
        self.assertEqual(self.stamp(".libtorch-2.12"), self.pins("2.12/cpu.txt"))
        self.assertEqual((self.root / ".libtorch-version").read_text(), f"{OTHER}\n")
        self.assertFalse((self.root / ".libtorch").exists())

    def test_headers_are_newer_than_objects_built_with_others(self):
        before = time.time() - 10
        self.assertEqual(self.setup()[0], 0)
        self.assertGreater((self.root / ".libtorch/torch/include/ATen/Tensor.h").stat().st_mtime, before)

    def test_a_second_start_fetches_and_installs_nothing(self):
        self.setup()
        self.assertEqual(self.setup(), (0, ""))
        self.assertEqual(self.calls(), ["pip"])

    def test_other_pins_replace_the_existing_folder(self):
        self.setup()
        stale = self.root / ".libtorch" / "stale"
        stale.write_text("")
        with open(self.root / f"scripts/libtorch/{DEFAULT}/cpu.txt", "a", encoding="utf-8") as pins:
            pins.write("another==1 --hash=sha256:0\n")
        self.assertEqual(self.setup()[0], 0)
        self.assertFalse(stale.exists())
        self.assertEqual(self.calls(), ["pip", "pip"])

    def test_a_failed_download_leaves_nothing_and_the_next_start_downloads_again(self):
        self.pip("cp wheels/cpu/torch*.whl $folder/; exit 1")
        status, output = self.setup()
        self.assertEqual(status, 1)
        self.assertIn("fetching failed", output)
        self.assertFalse((self.root / ".libtorch").exists())
        self.assertEqual(self.leftovers(), [])
        self.pip("cp wheels/cpu/*.whl $folder/")
        self.assertEqual(self.setup()[0], 0)

    def test_files_of_a_killed_set_up_are_removed_and_never_used(self):
        self.pip("cp wheels/cpu/torch*.whl $folder/; kill -9 $PPID")
        self.assertNotEqual(self.setup()[0], 0)
        self.assertFalse((self.root / ".libtorch").exists())
        self.assertEqual(self.leftovers(), [".libtorch.partial"])
        self.pip("cp wheels/cpu/*.whl $folder/")
        self.assertEqual(self.setup()[0], 0)
        self.assertEqual(self.leftovers(), [])

    def test_without_root_and_sudo_it_prints_the_command_and_asks(self):
        (self.root / "bin/ninja").unlink()
        self.stand_in("id", "echo 1000")
        status, output = self.setup()
        self.assertEqual(status, 2)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends "
                      "ca-certificates ninja-build", output)
        self.assertEqual(self.calls(), [])

    def test_sudo_installs_only_what_is_missing(self):
        (self.root / "bin/ninja").unlink()
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", f"""[[ $1 == -n ]] && exit 0
"$@"
[[ $* == *ninja-build* ]] && ln -s /bin/true {self.root}/bin/ninja; exit 0""")
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertEqual(self.calls(), [
            "apt-get update -qq",
            "apt-get install -y --no-install-recommends ca-certificates ninja-build -qq -o Dpkg::Use-Pty=0", "pip"])

    def test_a_compiler_that_is_too_old_counts_as_missing(self):
        self.stand_in("g++", "echo 'g++ 11.4.0'")
        status, output = self.setup()
        self.assertEqual(status, 2)  # the stand-in for apt-get provides no newer version
        self.assertIn("still missing or too old after installing: g++", output)

    def test_a_missing_header_is_installed_by_its_package(self):
        self.stand_in("g++", """case $* in
--version) echo 'g++ 12.2.0' ;;
*) echo nlohmann-json3-dev ;;
esac""")
        self.setup()
        self.assertIn("apt-get install -y --no-install-recommends ca-certificates "
                      "nlohmann-json3-dev -qq -o Dpkg::Use-Pty=0", self.calls())

    def test_valijson_is_unpacked_without_installing_its_package(self):
        headers = "x/usr/include/valijson"
        self.stand_in("g++", """case $* in
--version) echo 'g++ 12.2.0' ;;
*) echo libvalijson-dev ;;
esac""")
        self.stand_in("apt-get", f"""echo apt-get $1 >>{self.root}/calls
[[ $1 != download || -e {self.root}/fetched ]] || {{ echo >{self.root}/fetched; exit 1; }}
echo >libvalijson-dev_1.deb""")
        self.stand_in("dpkg-deb", f"""mkdir -p {headers} x/usr/share/doc/libvalijson-dev
echo >{headers}/schema.hpp
echo >x/usr/share/doc/libvalijson-dev/copyright""")
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertEqual(sorted(os.listdir(self.root / ".valijson")), ["copyright", "include"])
        # The first download fails because there are no package lists yet.
        self.assertEqual(self.calls(), ["apt-get download", "apt-get update", "apt-get download",
                                        "pip"])
        self.assertEqual(self.leftovers(), [])

    def test_other_systems_get_the_missing_packages_named_and_continue(self):
        (self.root / "bin/apt-get").unlink()
        (self.root / "bin/ninja").unlink()
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertIn("missing here, by their Debian names: ninja-build", output)
        self.assertIn("g++ >= 12, CMake >= 3.25", output)

    def test_an_installed_libtorch_is_used_and_none_is_fetched(self):
        library = self.root / "mine/torch/lib/libtorch_cpu.so"
        library.parent.mkdir(parents=True)
        library.write_text("")
        self.assertEqual(self.setup(LIBTORCH_ROOT=str(self.root / "mine"))[0], 0)
        self.assertEqual(self.calls(), [])

    def test_preset_lite_needs_no_libtorch(self):
        status, output = self.setup("lite")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.calls(), [])
        self.assertFalse((self.root / ".libtorch").exists())

    def test_a_libtorch_root_without_libtorch_is_named(self):
        status, output = self.setup(LIBTORCH_ROOT="/nowhere")
        self.assertEqual(status, 2)
        self.assertIn("LIBTORCH_ROOT=/nowhere has no torch/lib/libtorch_cpu.so", output)

    def test_an_unknown_mode_is_a_usage_error(self):
        status, output = self.setup("gpu")
        self.assertEqual(status, 2)
        self.assertIn("usage: scripts/setup [cpu|lite|dry|cuda|fuzz|versions] [--torch VERSION] [--beside VERSION]", output)


if __name__ == "__main__":
    unittest.main()
