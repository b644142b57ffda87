"""Compiles a model under a budget, with Inductor's caches. Prints the plan's hash and the hits and misses of the caches
as JSON. Inductor's CPU kernels are not compiled; see compiled_peaks.py.

    compiled_from_cache.py BUDGET"""

import json
import sys
import warnings

import rematch
import torch
from compiled_peaks import leave_out_kernels
from stack import Stack, batch
from torch._dynamo.utils import counters


def main(budget):
    torch.manual_seed(0)
    model = Stack(num_layers=2)
    leave_out_kernels()
    rematch.compile(model, lambda: model(batch()), budget=budget, optimizer="none")
    counters.clear()
    model(batch()).backward()
    print(json.dumps({"hash": rematch.compiled_plan_of(model).uuid, "autograd": dict(counters["aot_autograd"]), "inductor": dict(counters["inductor"])}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
