"""Tests compiled models that are replicated or sharded over two ranks. Loss and gradients must have the same bits as
under PyTorch's own partitioner, both ranks must choose the same plan, and budgets must be kept."""

import contextlib
import gc
import io
import os
import socket
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402
from stack import Layer, Stack, batch  # noqa: E402

NUM_RANKS = 2
NUM_LAYERS = 4
WIDTH, LENGTH = 64, 64
MAX_SCALARS_BYTES = 64  # for numbers that DistributedDataParallel holds
BUCKET_BYTES = 64 * 2**10  # a third of a layer's parameters


def made(wrap):
    torch._dynamo.reset()
    torch.manual_seed(0)
    return wrap(Stack(lambda: Layer(WIDTH), num_layers=NUM_LAYERS, width=WIDTH))


def replicated(model):
    return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=BUCKET_BYTES / 2**20)


def sharded(model):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def results_of(model, x):
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    loss = model(x)
    loss.backward()
    gradients = [getattr(parameter.grad, "_local_tensor", parameter.grad) for parameter in model.parameters()]
    return [loss.detach().clone(), *(gradient.clone() for gradient in gradients)]


def peak_of(model, x):
    """Returns the bytes of parameters, of the batch, of DDP's buckets, and what a step adds at its peak. Other models
    of this process do not count."""
    model.zero_grad(set_to_none=True)
    gc.collect()
    with rematch.watch(model) as figures:
        model(x).backward()
    held = sum(getattr(parameter, "_local_tensor", parameter).nbytes for parameter in model.parameters())
    is_replicated = isinstance(model, torch.nn.parallel.DistributedDataParallel)
    return held * (1 + is_replicated) + x.nbytes + max(figures["peak_bytes"].values()) - figures["before_bytes"]


def require_equal_on_all_ranks(text):
    found = [None] * NUM_RANKS
    torch.distributed.all_gather_object(found, text)
    assert len(set(found)) == 1, found


def compiled(model, *arguments, **keywords):
    with contextlib.redirect_stderr(io.StringIO()):
        return rematch.compile(model, *arguments, backend="aot_eager", **keywords)


def compare(wrap, x, expected, budgets, **keywords):
    """Compares steps under each budget and under a policy. Returns the plans of the budgets."""
    plans = []
    for budget in budgets:
        model = made(wrap)
        compiled(model, lambda model=model: model(x), budget=budget, optimizer="none", **keywords)
        assert all(map(torch.equal, results_of(model, x), expected)), budget
        plan = rematch.compiled_plan_of(model)
        require_equal_on_all_ranks(plan.uuid)
        peak = peak_of(model, x)
        assert plan.predicted_peak_allocated_bytes <= plan.budget_bytes, (budget, plan)
        assert peak <= plan.predicted_peak_allocated_bytes + MAX_SCALARS_BYTES, (budget, peak, plan)
        plans.append(plan)
    model = compiled(made(wrap), policy="full", **keywords)
    assert all(map(torch.equal, results_of(model, x), expected)), "full"
    return plans


def compile_replicated(rank, optimize_ddp):
    torch._dynamo.config.optimize_ddp = optimize_ddp
    torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = BUCKET_BYTES
    x = batch(LENGTH, width=WIDTH) + rank
    model = made(replicated)
    model.compile(backend="aot_eager")
    expected = results_of(model, x)
    small, large = compare(replicated, x, expected, ("4500KiB", "1GiB"))
    # DDPOptimizer compiles each bucket by itself. Without it, the model is one graph.
    assert (len(small.graphs) > 1) == optimize_ddp, small
    assert sum(graph.recomputed_ops for graph in small.graphs) > sum(graph.recomputed_ops for graph in large.graphs)


def compile_sharded(rank, _):
    x = batch(LENGTH, width=WIDTH) + rank
    model = made(sharded)
    for layer in model.layers:
        layer.compile(backend="aot_eager")
    expected = results_of(model, x)
    plans = compare(sharded, x, expected, ("3MiB", "3700KiB", "1GiB"), per_block=True)
    peaks = [plan.predicted_peak_allocated_bytes for plan in plans]
    assert peaks == sorted(peaks) and peaks[0] < peaks[-1], peaks
    # The first layer has its own graph, because its input needs no gradient. The other three layers share a graph.
    assert [graph.num_calls for graph in plans[0].graphs] == [1, NUM_LAYERS - 1], plans[0]


def run_rank(rank, port, on_one_rank, argument):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=NUM_RANKS)
    on_one_rank(rank, argument)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)  # see ranks_test.py


class CompiledRanksTest(unittest.TestCase):
    def run_ranks(self, on_one_rank, argument=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.multiprocessing.spawn(run_rank, (port, on_one_rank, argument), NUM_RANKS)

    def test_data_parallel_in_buckets(self):
        self.run_ranks(compile_replicated, True)

    def test_data_parallel_in_one_graph(self):
        self.run_ranks(compile_replicated, False)

    def test_fully_sharded_block_by_block(self):
        self.run_ranks(compile_sharded)


if __name__ == "__main__":
    unittest.main()
