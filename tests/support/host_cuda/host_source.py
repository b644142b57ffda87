"""host_source.py SOURCE.cu OUT.cpp: rewrites kernel launches as calls that a C++ compiler accepts."""

import pathlib
import re
import sys

LAUNCH = re.compile(r"(\w+(?:<[^<>]*>)?)\s*<<<(.*?)>>>\((.*?)\);", re.DOTALL)


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    text = LAUNCH.sub(r"::host_cuda::launch(\2, [&] { \1(\3); });", source.read_text())
    if "<<<" in text:
        sys.exit(f"{source}: host_source.py cannot parse this launch")
    out.write_text(f'#include "tests/support/host_cuda/host_cuda.h"\n#line 1 "{source}"\n{text}')


main()
