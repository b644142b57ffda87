"""Blocks that are replicated or sharded over two ranks: loss and gradients have the bits of the step without a plan."""

import os
import socket
import unittest

import rematch

rematch.count_memory()  # before the first tensor

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402
from rematch.selftest import Model  # noqa: E402

NUM_RANKS = 2


def replicated(model):
    return torch.nn.parallel.DistributedDataParallel(model)


def sharded(model):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def bits_of(model, loss):
    local = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in model.parameters()]
    return [loss.detach(), *local]


def compare_on_one_rank(rank, port, distribute, policy):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=NUM_RANKS)
    try:
        torch.manual_seed(0)
        model = Model()
        x = torch.randn(64, 32) + rank
        plan = rematch.resolve(rematch.trace(model, lambda: model(x)), policy)
        model = distribute(model)
        results = []
        for around in (None, "whole_region", "on_demand"):
            model.zero_grad(set_to_none=True)
            torch.manual_seed(1)
            if around is None:
                loss = model(x)
            else:
                with rematch.scopes(model), rematch.recording(rematch.Checkpoint(plan, around)):
                    loss = model(x)
            with rematch.watch() as figures:
                loss.backward()
            recomputed = sum(figures["ops"]["recompute"].values())
            assert (recomputed > 0) == (around is not None), (around, recomputed)
            results.append(bits_of(model, loss))
        for found in results[1:]:
            assert all(torch.equal(want, have) for want, have in zip(results[0], found, strict=True))
    finally:
        torch.distributed.destroy_process_group()


class RanksTest(unittest.TestCase):
    def run_ranks(self, distribute, policy):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.multiprocessing.spawn(compare_on_one_rank, (port, distribute, policy), NUM_RANKS)

    def test_data_parallel(self):
        self.run_ranks(replicated, "full")

    def test_fully_sharded(self):
        self.run_ranks(sharded, "full")
        self.run_ranks(sharded, "save_mm")


if __name__ == "__main__":
    unittest.main()
