#!/usr/bin/env python3
"""The steps of a report in PyTorch eager: same model (tests/parity has the twins, op for op), shape, dtype,
policies, optimizer and determinism; attention is scaled_dot_product_attention, whose kernel LibTorch chooses, as
`rematch run` leaves it to do for times. Parameters are random: no bits are compared, only times and peaks.

    pytorch_steps.py --beside REPORT --steps N [--fresh] -o FILE

Every call is a turn: it adds a round to FILE, or with --fresh begins it, and puts what REPORT says beside it. Needs torch 2.11 and numpy."""

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/parity"))

import data  # noqa: E402
import hash_init  # noqa: E402
import llama  # noqa: E402
import torch  # noqa: E402
import wan  # noqa: E402
from policies import MATMUL, Regions, no_block  # noqa: E402
from torch.utils.checkpoint import create_selective_checkpoint_contexts  # noqa: E402

aten = torch.ops.aten
WARM_UP_STEPS = 2
BACKENDS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}  # torch.nn.attention.SDPBackend
ATTENTION = [aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_cudnn_attention.default,
             aten._scaled_dot_product_efficient_attention.default,
             aten._scaled_dot_product_flash_attention_for_cpu.default]
POLICIES = {"none": Regions(no_block), "full": Regions(), "attn_only": Regions(save=ATTENTION),
            "save_mm": Regions(save=MATMUL)}
# Family of a preset: its twin's module, model and batches.
FAMILIES = {"wan": (wan, "Wan", data.shape_batch), "llama": (llama, "Llama", data.text_batch)}

attention_backend = None


def attention(q, k, v, causal):
    global attention_backend
    if attention_backend is None:
        choice = torch._fused_sdp_choice(q, k, v, is_causal=causal, enable_gqa=q.size(1) != k.size(1))
        attention_backend = BACKENDS.get(choice)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                            enable_gqa=q.size(1) != k.size(1))


class RandomParameters(hash_init.Parameters):
    """On the default device; hashing billions of values on the host would take minutes."""

    def add(self, name, sizes, values):
        centre, amplitude = values
        tensor = torch.empty(sizes, dtype=self.dtype).uniform_(centre - amplitude, centre + amplitude)
        self.by_name[name] = tensor.requires_grad_(True)
        return tensor


def settings_of(report):
    """What all points of the report share."""
    first = report["points"][0]
    identity = first["identity"]
    times = [point["time"] for point in report["points"] if point["time"]]
    return {"model": identity["model"], "dimensions": identity["dimensions"], "dtype": identity["dtype"],
            "device": "cuda" if first["device"].startswith("cuda") else first["device"],
            "optimizer": identity["optimizer"], "deterministic": bool(times and times[0]["repeatable_bits"])}


class AdamW:
    """harness/training/optimizer.cpp, op for op: moments in float32, and a master of every narrower parameter. (The
    step's rates do not change its time.)"""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        masters = [parameter.detach().to(torch.float32) for parameter in self.parameters]
        self.state = [[master, torch.zeros_like(master), torch.zeros_like(master), torch.zeros(())]
                      for master in masters]

    @torch.no_grad()
    def step(self):
        if all(parameter.dtype == torch.float32 for parameter in self.parameters):
            gradients = [parameter.grad for parameter in self.parameters]
            return self.update(*map(list, zip(*self.state)), gradients)
        for parameter, (master, first, second, step) in zip(self.parameters, self.state):
            self.update([master], [first], [second], [step], [parameter.grad.to(torch.float32)])
            parameter.copy_(master)

    def update(self, masters, firsts, seconds, steps, gradients):
        torch._foreach_add_(steps, 1.0)
        torch._fused_adamw_(masters, gradients, firsts, seconds, [], steps, lr=1e-3, beta1=0.9, beta2=0.95,
                            weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)


class Workload:
    def __init__(self, settings):
        family = next(name for name in FAMILIES if settings["model"].startswith(name))
        module, model, batch = FAMILIES[family]
        module.attention, module.Parameters = attention, RandomParameters
        dimensions = settings["dimensions"]
        self.model = getattr(module, model)(dimensions, getattr(torch, settings["dtype"]))
        self.batch = batch(dimensions, 0, 0)
        self.optimizer = None
        if settings["optimizer"] != "none":
            self.optimizer = AdamW(self.model.parameters.by_name.values())

    def step(self, regions):
        with regions.forward_context():
            loss = self.model.loss(self.batch, regions)
        loss.backward()
        if self.optimizer:
            self.optimizer.step()
        for parameter in self.model.parameters.by_name.values():
            parameter.grad = None


class Device:
    def __init__(self, name):
        self.is_cuda = name.startswith("cuda")

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()

    def name(self):
        return torch.cuda.get_device_name() if self.is_cuda else "cpu"

    def begin_peak(self):
        if self.is_cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated() if self.is_cuda else None


def timed(workload, regions, steps, device):
    """Nanoseconds of whole steps, the device waited for at their ends alone."""
    for _ in range(WARM_UP_STEPS):
        workload.step(regions)
    samples = []
    for _ in range(steps):
        device.wait()
        start = time.perf_counter_ns()
        workload.step(regions)
        device.wait()
        samples.append(time.perf_counter_ns() - start)
    return samples


def measured(workload, policy, steps, device):
    """Out of memory is a result."""
    regions = POLICIES[policy]
    if regions.save:  # as a user writes it: the list of ops
        regions.contexts = lambda: create_selective_checkpoint_contexts(list(regions.save))
    device.begin_peak()
    try:
        samples = timed(workload, regions, steps, device)
    except torch.OutOfMemoryError as error:
        for parameter in workload.model.parameters.by_name.values():
            parameter.grad = None
        return {"status": "oom", "reason": str(error), "samples_ns": [], "peak_allocated_bytes": None}
    return {"status": "ok", "reason": None, "samples_ns": samples, "peak_allocated_bytes": device.peak_bytes()}


def ours(report):
    """What is compared: of each point its step time, and how it was taken."""
    kept = ("step_median_ns", "samples_ns", "attention_backend", "repeatable_bits")
    return [{"policy": point["policy"], "schedule": point["schedule"], "status": point["status"],
             "time": {key: point["time"].get(key) for key in kept} if point["time"] else None}
            for point in report["points"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", metavar="REPORT", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--fresh", action="store_true", help="forget the rounds before")
    parser.add_argument("-o", "--output", metavar="FILE", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    report = json.loads(arguments.beside.read_text())
    settings = settings_of(report)
    torch.use_deterministic_algorithms(settings["deterministic"])
    torch.set_default_device(settings["device"])
    device = Device(settings["device"])
    workload = Workload(settings)
    policies = dict.fromkeys(point["policy"] for point in report["points"] if point["policy"] in POLICIES)
    found = {policy: measured(workload, policy, arguments.steps, device) for policy in policies}
    before = []
    if not arguments.fresh:
        before = json.loads(arguments.output.read_text())["rounds"]
    made = {"environment": {"device": device.name()}, "torch": torch.__version__, "settings": settings,
            "attention_backend": attention_backend, "rounds": [*before, found], "rematch": ours(report)}
    arguments.output.write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
