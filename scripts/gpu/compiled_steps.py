#!/usr/bin/env python3
"""Compiles a Llama from transformers or a Wan from diffusers under rematch's plans and under PyTorch's memory budgets.
Measures the peak and the time of a step for each, and compares losses and gradients with those of torch.compile.

    compiled_steps.py -o FILE [--model llama|wan] [--seconds N] [--small]

--small uses a small model of four layers, on any device. Measurements that may not finish within N seconds are skipped,
and FILE names them. Needs a supported torch, package rematch (PYTHONPATH), and transformers or diffusers. Exit codes: 0
FILE is written, whatever its result; 2 usage, or something is missing."""

import argparse
import contextlib
import io
import json
import re
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.package_llama import Workload, is_any_missing  # noqa: E402

LAYERS = 8  # of the Llama's 16 and the Wan's 30 layers, to save compile time
WARM_UP_STEPS = 2
STEPS = 6
# Values of torch._functorch.config.activation_memory_budget; 1 is PyTorch's default.
TORCH_BUDGETS = (0.6, 0.3, 0.1, 0.0)
# Budgets for rematch, on a scale from 0 to 1: 0 is the lowest predicted peak, and 1 is the peak of the fastest plan.
SHARES = (0.7, 0.4, 0.02)
MOST_DIFFERENCE = 1e-2  # largest allowed relative difference of bfloat16 gradients
MOST_PEAK_ERROR = 0.01


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--model", choices=("llama", "wan"), default="llama", help="default: llama")
    parser.add_argument("--seconds", type=float, metavar="N", default=300, help="hard limit (default: 300)")
    parser.add_argument("--small", action="store_true", help="four layers")
    return parser.parse_args()


class WanWorkload:
    """A step of Wan 2.1 with 1.3 billion parameters, but with fewer layers, on a video of 31,200 tokens."""

    def __init__(self, small):
        import torch
        from diffusers import WanTransformer3DModel
        torch.manual_seed(0)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        heads, head_dim, ffn_dim, layers = (2, 32, 128, 4) if small else (12, 128, 8960, LAYERS)
        text, latents = ((8, 32), (1, 16, 2, 16, 16)) if small else ((512, 4096), (1, 16, 20, 60, 104))
        with torch.device(self.device):
            self.model = WanTransformer3DModel(num_attention_heads=heads, attention_head_dim=head_dim, ffn_dim=ffn_dim,
                                               text_dim=text[1], num_layers=layers).to(torch.bfloat16)
            self.batch = torch.randn(latents, dtype=torch.bfloat16)
            self.text = torch.randn(1, *text, dtype=torch.bfloat16)
            self.timestep = torch.tensor([500])

    def step(self):
        velocity = self.model(hidden_states=self.batch, timestep=self.timestep, encoder_hidden_states=self.text,
                              return_dict=False)[0]
        return velocity.float().square().mean()


def workload_of(model, small):
    if model == "wan":
        return WanWorkload(small)
    return Workload(small) if small else Workload(small, num_hidden_layers=LAYERS)


class Bench:
    """Compiles the same model once per arm, and measures its steps."""

    def __init__(self, workload, seconds):
        import torch
        self.torch = torch
        self.workload = workload
        self.model = self.workload.model
        self.is_cuda = self.workload.device == "cuda"
        self.end = time.monotonic() + seconds
        self.expected = None
        self.rows = []
        self.left_out = []
        self.longest = 0

    def train(self):
        loss = self.workload.step()
        loss.backward()
        return loss.detach()

    def wait(self):
        if self.is_cuda:
            self.torch.cuda.synchronize()

    def results(self):
        self.model.zero_grad(set_to_none=True)
        loss = self.train()
        gradients = {name: parameter.grad.float().norm().item() for name, parameter in self.model.named_parameters()
                     if parameter.grad is not None}
        return loss.item(), gradients

    def measured(self):
        """Returns (seconds of each step, peak bytes or None)."""
        self.model.zero_grad(set_to_none=True)
        for _ in range(WARM_UP_STEPS):
            self.train()
            self.model.zero_grad(set_to_none=True)
        self.wait()
        if self.is_cuda:
            self.torch.cuda.empty_cache()
            self.torch.cuda.reset_peak_memory_stats()
        samples = []
        for _ in range(STEPS):
            self.wait()
            start = time.perf_counter()
            self.train()
            self.wait()
            samples.append(time.perf_counter() - start)
            self.model.zero_grad(set_to_none=True)
        return samples, self.torch.cuda.max_memory_allocated() if self.is_cuda else None

    def arm(self, name, compile_model, surroundings=contextlib.nullcontext):
        """Compiles the model with compile_model() and measures its step."""
        import rematch
        start = time.monotonic()
        if start + 1.1 * self.longest > self.end:
            self.left_out.append(name)
            return
        self.torch._dynamo.reset()
        self.model._compiled_call_impl = None
        said = io.StringIO()
        row = {"arm": name}
        self.rows.append(row)
        try:
            with contextlib.redirect_stderr(said), surroundings():
                compile_model()
                loss, gradients = self.results()
                row["compile_seconds"] = round(time.monotonic() - start, 2)
                samples, peak = self.measured()
        except (rematch.RematchError, RuntimeError, self.torch._dynamo.exc.TorchDynamoException) as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:2000]}"
            return
        finally:
            row["said"] = said.getvalue()[-2000:]
            self.longest = max(self.longest, time.monotonic() - start)
        if self.expected is None:
            self.expected = loss, gradients
        row |= {"loss": loss, "largest_difference": difference(gradients, self.expected[1]), "peak_allocated_bytes": peak,
                "predicted_peak_bytes": bytes_after("predicted peak", row["said"]),
                "samples_seconds": samples, "median_seconds": statistics.median(samples)}
        print(f"{name}: {row['median_seconds'] * 1e3:.1f} ms, peak {peak} B, {row['compile_seconds']} s to compile",
              file=sys.stderr, flush=True)


def difference(gradients, expected):
    """Returns the largest relative difference between a gradient's norm and its expected norm."""
    return max(abs(gradients[name] - norm) / max(norm, 1e-12) for name, norm in expected.items())


def bytes_after(words, text):
    """Returns the number of bytes that follows `words` in the package's message `text`, or None if `text` does not
    contain `words`."""
    from rematch.planning import bytes_of
    found = re.search(words + r" ([\d.]+ [KMG]?i?B)", text)
    return bytes_of(found[1]) if found else None


def lowest_and_plain(bench):
    """Returns the lowest predicted peak of all plans, and the predicted peak of the fastest plan."""
    import rematch
    said = io.StringIO()
    try:
        rematch.compile(bench.model, bench.workload.step, budget=1, optimizer="none")
    except rematch.PlanError as error:
        lowest = bytes_after("lowest peak is", str(error))
    with contextlib.redirect_stderr(said):
        rematch.compile(bench.model, bench.workload.step, budget="1000GiB", optimizer="none")
    return lowest, bytes_after("predicted peak", said.getvalue())


def measure(bench):
    import rematch
    from torch._functorch import config
    bench.arm("torch.compile", bench.model.compile)
    lowest, plain = lowest_and_plain(bench)
    for share in SHARES:
        budget = int(lowest + share * (plain - lowest))
        bench.arm(f"rematch, {share:g} of the way to the fastest plan",
                  lambda budget=budget: rematch.compile(bench.model, bench.workload.step, budget=budget, optimizer="none"))
    for budget in TORCH_BUDGETS:
        bench.arm(f"activation_memory_budget {budget:g}", bench.model.compile,
                  lambda budget=budget: config.patch(activation_memory_budget=budget))
    bench.arm("rematch, full", lambda: rematch.compile(bench.model, policy="full"))
    bench.arm("torch.compile again", bench.model.compile)


def report_of(device, rows, left_out):
    problems = [f"{row['arm']}: {row['error']}" for row in rows if "error" in row]
    ran = [row for row in rows if "error" not in row]
    for row in ran:
        if row["largest_difference"] > MOST_DIFFERENCE:
            problems.append(f"{row['arm']}: gradients differ by {row['largest_difference']:.2g}")
        predicted, peak = row["predicted_peak_bytes"], row["peak_allocated_bytes"]
        if predicted and peak and abs(peak - predicted) > MOST_PEAK_ERROR * predicted:
            problems.append(f"{row['arm']}: peak {peak} B, predicted {predicted} B")
    findings = {row["arm"]: f"{row['median_seconds'] * 1e3:.1f} ms, peak {row['peak_allocated_bytes']} B, "
                            f"{row['compile_seconds']} s to compile" for row in ran}
    if left_out:
        findings["not run, for lack of time"] = ", ".join(left_out)
    return {"device": device, "findings": findings, "problems": problems, "arms": rows}


def main():
    arguments = parse()
    if is_any_missing("compiled_steps.py", "diffusers" if arguments.model == "wan" else "transformers"):
        return 2
    bench = Bench(workload_of(arguments.model, arguments.small), arguments.seconds)
    measure(bench)
    device = bench.torch.cuda.get_device_name() if bench.is_cuda else "cpu"
    with open(arguments.output, "w") as file:
        file.write(json.dumps(report_of(device, bench.rows, bench.left_out), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
