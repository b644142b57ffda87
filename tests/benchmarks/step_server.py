"""Does the same as step_server.cpp in Python PyTorch, with the same arguments, requests, answers, models and weights
(see tests/parity). Policies are given without a schedule, because torch.utils.checkpoint has only one.

    step_server.py [--count] MODEL THREADS DIMENSION=VALUE,... POLICY ...

With --count the server answers only the request `ops`, because counting replaces the allocator and would distort
times."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))

import torch  # noqa: E402
from make_golden import MODELS, SEED, STEP  # noqa: E402
from policies import POLICIES  # noqa: E402
from torch.utils.checkpoint import create_selective_checkpoint_contexts  # noqa: E402


def dimensions_of(model, text):
    dimensions = dict(MODELS[model][2])
    for part in filter(None, text.split(",")):
        name, value = part.split("=")
        dimensions[name] = int(value)
    if "frames" in dimensions:
        dimensions["tokens"] = dimensions["frames"] * dimensions["height"] * dimensions["width"]
    return dimensions


class Workload:
    def __init__(self, model, dimensions):
        make_model, make_batch, _ = MODELS[model]
        self.model = make_model(dimensions, torch.float32)
        self.batch = make_batch(dimensions, SEED, STEP)

    def loss(self, regions):
        with regions.forward_context():
            return self.model.loss(self.batch, regions)

    def clear_gradients(self):
        for parameter in self.model.parameters.by_name.values():
            parameter.grad = None

    def step(self, regions):
        self.loss(regions).backward()
        self.clear_gradients()


def plain_contexts(regions):
    """Replaces the contexts of the parity tests by contexts that do not count ops."""
    if regions.save:
        saved = list(regions.save)
        regions.contexts = lambda: create_selective_checkpoint_contexts(saved)
    return regions


def timed(workload, regions, steps):
    start = time.perf_counter_ns()
    for _ in range(steps):
        workload.step(regions)
    return time.perf_counter_ns() - start


def counted(counting, workload, regions):
    regions.before_op = counting.see_ops_of_mode
    workload.step(regions)  # a warm-up step, because the first checkpoint imports modules
    _, measured = counting.step(lambda: workload.loss(regions))
    workload.clear_gradients()
    executed = measured["executed_ops"]
    return {name: count for name, count in executed.items() if name != "aten::detach"}


def resident_kib():
    with open("/proc/self/status", encoding="utf-8") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return [fields[name].split()[0] for name in ("VmRSS", "VmHWM")]


def main():
    arguments = sys.argv[1:]
    counting = None
    if arguments[:1] == ["--count"]:
        from counting import Counting

        arguments = arguments[1:]
        counting = Counting()
    model, threads, sizes, *names = arguments
    torch.set_num_threads(int(threads))
    workload = Workload(model, dimensions_of(model, sizes))
    policies = [POLICIES[name] if counting else plain_contexts(POLICIES[name]) for name in names]
    for line in sys.stdin:
        verb, *numbers = line.split()
        if verb == "memory":
            answer = " ".join(resident_kib())
        elif verb == "time" and not counting:
            answer = str(timed(workload, policies[int(numbers[0])], int(numbers[1])))
        elif verb == "ops" and counting:
            answer = json.dumps(counted(counting, workload, policies[int(numbers[0])]))
        else:
            sys.exit(f"step_server.py: no such request: {line.strip()}")
        print(answer, flush=True)


if __name__ == "__main__":
    main()
