"""Writes partitioner_points.json beside this file. Runs llama_small under PyTorch 2.11.0's own partitioner, with
several values of activation_memory_budget. Records the peak bytes that a step adds, and how many matmuls and attentions
are recomputed. As in torch.compile, AOTAutograd runs first, and then the min-cut partitioner. The resulting graphs are
interpreted, and each input is freed after its last use. Needs the requirements of ../make_golden.py, scipy and
networkx:

    DIR/bin/python tests/parity/planners/make_partitioner_points.py"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import torch
import torch._dynamo
import torch._functorch.config as config
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop

from counting import Counting
from make_golden import MODELS, SEED, STEP, THREADS
from policies import POLICIES

# budgets 0 and 1 are solved without a solver
BUDGETS = {"dp": [0, 0.05, 0.1, 0.2, 0.4, 0.7, 1], "ilp": [0.05, 0.1, 0.2, 0.4, 0.7]}
DEAR = ("aten::mm", "rematch::attention")
MAX_STEPS = 6


def measure(counting, model, batch, loss):
    """Runs steps until two consecutive steps have equal figures, and returns these figures."""
    previous = None
    for _ in range(MAX_STEPS):
        for parameter in model.parameters.by_name.values():
            parameter.grad = None
        _, found = counting.step(loss)
        figures = (found["peak_bytes"], [found["executed_ops"].get(op, 0) for op in DEAR])
        if figures == previous:
            return figures
        previous = figures
    sys.exit("consecutive steps still differ after the last step")


def main():
    torch.set_num_threads(THREADS)
    counting = Counting()
    make_model, make_batch, dimensions = MODELS["llama_small"]
    model = make_model(dimensions, torch.float32)
    batch = make_batch(dimensions, SEED, STEP)
    regions = POLICIES["none"]
    peak, ops = measure(counting, model, batch, lambda: model.loss(batch, regions))
    points = {"torch": torch.__version__.split("+")[0], "dimensions": dimensions,
              "eager": {"peak_bytes": peak, "matmuls": ops[0], "attentions": ops[1]}, "points": []}
    for solver, budgets in BUDGETS.items():
        for budget in budgets:
            torch._dynamo.reset()
            backend = aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop,
                                   partition_fn=min_cut_rematerialization_partition)
            with config.patch(activation_memory_budget=budget, activation_memory_budget_solver=solver):
                compiled = torch.compile(lambda: model.loss(batch, regions), backend=backend, fullgraph=True)
                peak, again = measure(counting, model, batch, compiled)
            points["points"].append({"solver": solver, "budget": budget, "peak_bytes": peak,
                                     "recomputed_matmuls": again[0] - ops[0],
                                     "recomputed_attentions": again[1] - ops[1]})
            print(points["points"][-1], flush=True)
    lines = [" " + json.dumps(point) for point in points.pop("points")]
    text = json.dumps(points)[:-1] + ', "points": [\n' + ",\n".join(lines) + "\n]}\n"
    (HERE / "partitioner_points.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
