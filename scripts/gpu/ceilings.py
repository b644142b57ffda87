#!/usr/bin/env python3
"""Measures the highest rates that this card reaches, for `rematch predict --ceilings`: copies of device memory,
products of 8192 x 8192 random matrices in bfloat16 and float32, attention in bfloat16 over 8192 tokens, and
elementwise ops.

    ceilings.py -o FILE

The matmuls of bfloat16 are measured twice: between copies of about the same length, as in a training step, and one
after the other, which makes a card reduce its clocks.

Needs a Python with torch that sees the device. Exit codes: 0 written, 2 no torch or no device."""

import argparse
import json
import statistics
import sys
import time

SCHEMA = "rematch.ceilings/1.0"
COPY_BYTES = 1 << 30
SIZE = 8192
HEADS, TOKENS, HEAD_WIDTH = 16, 8192, 128
SECONDS = 1.0  # seconds for each measurement, long enough for the clocks to settle as in a training step
TERA, GIGA = 1e12, 1e9


def median_seconds(call, torch, between=None):
    """Returns the median seconds of a call, after a warm-up of the same length. `between` runs before each call, and is
    not timed."""
    samples = []
    end = time.monotonic() + 2 * SECONDS
    while time.monotonic() < end:
        if between is not None:
            between()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        samples.append(start.elapsed_time(stop) / 1e3)
    return statistics.median(samples[len(samples) // 2:])


def product(torch, dtype):
    """Returns a function that multiplies two random matrices."""
    a, b = (torch.randn(SIZE, SIZE, dtype=dtype, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def attention_rates(torch, between):
    """Returns the FLOPs per second of attention in forward and in backward, which has 2.5 times the FLOPs of forward."""
    q, k, v = (torch.randn(1, HEADS, TOKENS, HEAD_WIDTH, dtype=torch.bfloat16, device="cuda", requires_grad=True)
               for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    gradient = torch.randn_like(out)
    flops = 4 * HEADS * TOKENS ** 2 * HEAD_WIDTH
    with torch.no_grad():
        forward = median_seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), torch, between)
    backward = median_seconds(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True), torch, between)
    return flops / forward, 2.5 * flops / backward


def elementwise_rate(torch):
    """Returns the bytes per second of three ops of an eager norm: bfloat16 to float32, a product with a row, and back."""
    x = torch.randn(COPY_BYTES // 2 // 4096, 4096, dtype=torch.bfloat16, device="cuda")
    row = torch.randn(4096, device="cuda")
    moved = x.numel() * ((2 + 4) + (4 + 4) + (4 + 2))
    return moved / median_seconds(lambda: (x.float() * row).to(torch.bfloat16), torch)


def measure(torch):
    source = torch.randint(256, (COPY_BYTES,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)

    def copy():
        target.copy_(source)

    flops = 2 * SIZE ** 3
    multiply = product(torch, torch.bfloat16)
    forward, backward = attention_rates(torch, copy)
    return {"schema": SCHEMA, "device": torch.cuda.get_device_name(), "torch": torch.__version__,
            "copy_gb_per_second": 2 * COPY_BYTES / median_seconds(copy, torch) / GIGA,
            "matmul_tflop_per_second": flops / median_seconds(multiply, torch, copy) / TERA,
            "sustained_matmul_tflop_per_second": flops / median_seconds(multiply, torch) / TERA,
            "float32_matmul_tflop_per_second": flops / median_seconds(product(torch, torch.float32), torch, copy) / TERA,
            "attention_forward_tflop_per_second": forward / TERA,
            "attention_backward_tflop_per_second": backward / TERA,
            "elementwise_gb_per_second": elementwise_rate(torch) / GIGA}


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
