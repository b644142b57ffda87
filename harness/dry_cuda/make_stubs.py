#!/usr/bin/env python3
"""make_stubs.py OUT LIBTORCH_LIBRARY...: generates sources for the dry CUDA device.

LibTorch's libraries link or open NVIDIA libraries. For each NVIDIA library, this script writes two files into OUT:
  SONAME.cpp  a weak definition of every function that LibTorch imports from it. The definition prints on stderr that
              the function has no stand-in, and returns an error. A stand-in written in C++ replaces the definition.
  SONAME.map  the linker's version script: the functions, under the symbol versions that LibTorch imports.

The dict LIBRARIES below must contain every NVIDIA library that LibTorch links. CMakeLists.txt lists the same
libraries."""

import pathlib
import re
import subprocess
import sys

# Maps a library to three values: the prefix of the functions that LibTorch imports from it without a symbol version;
# its error code for "not supported"; and patterns of functions to export although LibTorch does not import them.
LIBRARIES = {
    "libcudart.so.13": (None, 801, ["cuda*", "__cuda*"]),
    "libcublas.so.13": (None, 15, ["cublas*"]),
    "libcublasLt.so.13": ("cublasLt", 15, ["cublasLt*"]),
    "libcupti.so.13": (None, 27, ["cupti*"]),
    "libcudnn.so.9": ("cudnn", 3000, []),
    "libcufft.so.12": ("cufft", 16, []),
    "libcufile.so.0": ("cuFile", 1, []),
    "libcurand.so.10": ("curand", 1, []),
    "libcusparse.so.12": ("cusparse", 10, []),
    "libcusparseLt.so.0": ("cusparseLt", 10, []),
    "libnccl.so.2": ("nccl", 1, []),
    "libnvshmem_host.so.3": ("nvshmem", 1, []),
    "libnvrtc.so.13": ("nvrtc", 11, []),
    "libcuda.so.1": (None, 801, []),
}
NVIDIA = re.compile(r"lib(cu|nccl|nvshmem_host|nvrtc|nvJitLink)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_by(library):
    return [name for name in re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library))
            if NVIDIA.match(name)]


def imports_of(library):
    """Returns [function, version or ""] for every symbol that the library imports."""
    lines = output("nm", "-D", "--undefined-only", library).splitlines()
    return [(line.split()[-1] + "@").split("@")[:2] for line in lines if line.strip()]


def owner_of(function, version):
    """Returns the library that defines the function, or None if no NVIDIA library does."""
    if version in LIBRARIES:
        return version
    fitting = [(len(prefix), library) for library, (prefix, _, _) in LIBRARIES.items()
               if prefix and function.startswith(prefix)]
    return max(fitting)[1] if fitting else None


def collect(libraries):
    """Maps each library to its symbol versions, and each symbol version to its functions."""
    wanted = {library: {} for library in LIBRARIES}
    for path in libraries:
        unknown = set(needed_by(path)) - set(LIBRARIES)
        if unknown:
            sys.exit(f"make_stubs.py: {path} needs {', '.join(sorted(unknown))}: add them to LIBRARIES")
        for function, version in imports_of(path):
            owner = owner_of(function, version)
            if owner:
                wanted[owner].setdefault(version, set()).add(function)
    return wanted


def source(library, functions):
    code = LIBRARIES[library][1]
    bodies = (f'[[gnu::weak]] int {name}() {{ return dry_cuda_missing("{name}", {code}); }}\n'
              for name in sorted(functions))
    return 'extern "C" {\nint dry_cuda_missing(const char*, int);\n' + "".join(bodies) + "}\n"


def version_script(library, versions):
    own = LIBRARIES[library][2]
    text = ""
    for version, functions in sorted(versions.items()):
        names = sorted(functions) + (own if version == library else [])
        if version:
            text += f"{version} {{ global: {' '.join(name + ';' for name in names)} }};\n"
    if text and "" not in versions:
        return text + "DRY_CUDA { global: dry_cuda_*; local: *; };\n"
    return text or "{ global: *; };\n"  # functions without a version


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for library, versions in collect(sys.argv[2:]).items():
        functions = set().union(*versions.values())
        (out / f"{library}.cpp").write_text(source(library, functions))
        (out / f"{library}.map").write_text(version_script(library, versions))


if __name__ == "__main__":
    main()
