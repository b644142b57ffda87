#!/usr/bin/env python3
"""Tests package rematch on a Llama from transformers with a billion parameters. Makes a plan for a budget, checks bits
and peak, and times training steps alternately with and without the plan.

    package_llama.py -o FILE [--small]

--small uses a model of four layers, on any device. Needs a supported torch, transformers and package rematch
(PYTHONPATH). Exit codes: 0 FILE is written, whatever its result; 2 usage, or something is missing."""

import argparse
import importlib.util
import json
import os
import statistics
import sys
import time

# cuBLAS is deterministic only with a workspace of this size.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

LARGE = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256}
SMALL = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 512}
BATCH = (4, 2048)
SMALL_BATCH = (2, 64)
# AdamW with moments in the dtype of the parameters, like torch.optim.AdamW
OPTIMIZER = "adamw(state=bfloat16)"
MOST_PEAK_ERROR = 0.01
TURNS = 4
STEPS = 5  # number of timed steps in each turn
WARM_UP_STEPS = 2


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--small", action="store_true", help="four layers")
    return parser.parse_args()


def is_any_missing(script, library="transformers"):
    """Returns whether this Python lacks a required module. If so, prints the module's name."""
    for module in ("torch", library, "rematch"):
        if importlib.util.find_spec(module) is None:
            print(f"{script}: this Python has no {module}", file=sys.stderr)
            return True
    return False


class Workload:
    def __init__(self, small, **changed_sizes):
        import torch
        import transformers
        torch.manual_seed(0)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        sizes = (SMALL if small else LARGE) | changed_sizes
        config = transformers.LlamaConfig(**sizes, tie_word_embeddings=True, use_cache=False)
        with torch.device(self.device):
            self.model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
            self.batch = torch.randint(0, sizes["vocab_size"], SMALL_BATCH if small else BATCH)

    def step(self):
        return self.model(input_ids=self.batch, labels=self.batch).loss


class Trainer:
    """Runs whole steps, with or without the plan."""

    def __init__(self, workload, checkpoint):
        import rematch
        import torch
        self.workload, self.checkpoint = workload, checkpoint
        self.is_cuda = workload.device == "cuda"
        self.cuda = torch.cuda
        self.recording = rematch.recording
        self.optimizer = torch.optim.AdamW(workload.model.parameters(), lr=1e-4)

    def wait(self):
        if self.is_cuda:
            self.cuda.synchronize()

    def train(self, with_plan):
        if with_plan:
            with self.recording(self.checkpoint):
                loss = self.workload.step()
        else:
            loss = self.workload.step()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def turn(self, with_plan):
        """Returns (seconds of each step, peak bytes or None)."""
        if self.is_cuda:
            self.cuda.empty_cache()
            self.cuda.reset_peak_memory_stats()
        for _ in range(WARM_UP_STEPS):
            self.train(with_plan)
        samples = []
        for _ in range(STEPS):
            self.wait()
            start = time.perf_counter()
            self.train(with_plan)
            self.wait()
            samples.append(time.perf_counter() - start)
        return samples, self.cuda.max_memory_allocated() if self.is_cuda else None


def budget_of(workload):
    """Returns a budget between the peak of policy full and the peak without a plan, so that the plan recomputes some
    layers and keeps others."""
    import rematch
    traced = rematch.trace(workload.model, workload.step)
    peaks = [rematch.predict(traced, rematch.resolve(traced, policy), optimizer=OPTIMIZER)["peak_bytes"]
             for policy in ("none", "full")]
    return sum(peaks) // 2


def unrepeatable_gradients(workload):
    """Returns the parameters whose gradients differ between two identical steps without a plan."""
    runs = []
    for _ in range(2):
        workload.model.zero_grad(set_to_none=True)
        workload.step().backward()
        runs.append({name: parameter.grad.clone() for name, parameter in workload.model.named_parameters()})
    workload.model.zero_grad(set_to_none=True)
    return [name for name, gradient in runs[0].items() if not gradient.equal(runs[1][name])]


def measure(workload):
    import rematch
    import torch
    # Disables cuDNN's and the memory-efficient attention kernels. Their gradients are not deterministic, but this
    # program compares bits.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    budget = budget_of(workload)
    start = time.perf_counter()
    checkpoint = rematch.auto(workload.model, workload.step, budget=budget, device="h100", optimizer=OPTIMIZER)
    seconds_of_auto = time.perf_counter() - start
    found = rematch.check(workload.model, workload.step, checkpoint)
    if found["bits_equal"] is None:
        found["gradients_that_differ_without_the_plan"] = unrepeatable_gradients(workload)
    torch.use_deterministic_algorithms(False)
    rematch.scopes(workload.model, checkpoint)
    trainer = Trainer(workload, checkpoint)
    turns = {False: [], True: []}
    for index in range(TURNS):
        for with_plan in ((False, True) if index % 2 == 0 else (True, False)):
            turns[with_plan].append(trainer.turn(with_plan))
    return seconds_of_auto, checkpoint.front["answer"], found, turns


def report_of(device, seconds_of_auto, answer, found, turns):
    medians = {kind: statistics.median(sample for samples, _ in made for sample in samples)
               for kind, made in turns.items()}
    peaks = {kind: max((peak for _, peak in made if peak is not None), default=None) for kind, made in turns.items()}
    problems = []
    if found["bits_equal"] is None:
        problems.append("bits were not compared, because the step without the plan is not repeatable")
    elif not found["bits_equal"]:
        problems.append("loss or gradients differ from the step without the plan")
    if not found["checkpointed"]["executed_ops"].get("recompute"):
        problems.append("nothing was recomputed")
    if None not in peaks.values() and peaks[True] >= peaks[False]:
        problems.append(f"the plan does not lower the peak: {peaks[True]} B, without it {peaks[False]} B")
    predicted = answer["predicted_peak_allocated_bytes"]
    if peaks[True] is not None and abs(peaks[True] - predicted) > MOST_PEAK_ERROR * predicted:
        problems.append(f"peak {peaks[True]} B, predicted {predicted} B")
    findings = {"seconds of auto": round(seconds_of_auto, 1),
                "predicted peak": f"{predicted} B",
                "step without the plan": f"{medians[False] * 1e3:.1f} ms, peak allocated {peaks[False]} B",
                "step with the plan": f"{medians[True] * 1e3:.1f} ms, peak allocated {peaks[True]} B",
                "ratio": f"{medians[True] / medians[False]:.3f}"}
    return {"device": device, "findings": findings, "problems": problems, "checked": found,
            "samples_seconds": {"without": [samples for samples, _ in turns[False]],
                                "with": [samples for samples, _ in turns[True]]}}


def main():
    arguments = parse()
    if is_any_missing("package_llama.py"):
        return 2
    import torch
    workload = Workload(arguments.small)
    device = torch.cuda.get_device_name() if workload.device == "cuda" else "cpu"
    made = report_of(device, *measure(workload))
    with open(arguments.output, "w") as file:
        file.write(json.dumps(made, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
