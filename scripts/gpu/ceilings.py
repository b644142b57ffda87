#!/usr/bin/env python3
"""Measures the highest rates that this card reaches: copies of device memory, and bf16 products of 8192 x 8192 random
matrices.

    ceilings.py -o FILE

Needs a Python with torch that sees the device. Exit codes: 0 written, 2 no torch or no device."""

import argparse
import json
import statistics
import sys
import time

COPY_BYTES = 1 << 30
SIZE = 8192
SECONDS = 1.0  # seconds for each measurement, long enough for the clocks to settle as in a training step


def median_seconds(call, torch):
    """Returns the median seconds of a call, after a warm-up of the same length."""
    samples = []
    end = time.monotonic() + 2 * SECONDS
    while time.monotonic() < end:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        samples.append(start.elapsed_time(stop) / 1e3)
    return statistics.median(samples[len(samples) // 2:])


def measure(torch):
    source = torch.randint(256, (COPY_BYTES,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = median_seconds(lambda: target.copy_(source), torch)
    a, b = (torch.randn(SIZE, SIZE, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    product = torch.empty_like(a)
    matmul = median_seconds(lambda: torch.mm(a, b, out=product), torch)
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
            "copy_gb_per_second": 2 * COPY_BYTES / copy / 1e9,
            "matmul_tflop_per_second": 2 * SIZE ** 3 / matmul / 1e12}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("ceilings.py: this Python has no torch", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("ceilings.py: torch sees no device", file=sys.stderr)
        return 2
    with open(arguments.output, "w") as file:
        file.write(json.dumps(measure(torch), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
