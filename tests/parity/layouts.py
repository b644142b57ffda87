#!/usr/bin/env python3
"""Llama on two Gloo ranks, sharded by Python PyTorch 2.15.0: torch's tensor parallel and FSDP2, each with
torch.utils.checkpoint. make_golden.py starts one process per rank; rank 0 prints JSON.

The blocks are llama.py's, with modules where torch's parallel styles need them. Embedding and head are not sharded
under tensor parallel, as in models/language."""

import collections
import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

import data
from layers import apply_rotary, attention, rms_norm
from llama import EPS, Llama

WORLD = 2
SEED = 1
STEP = 0
DIMENSIONS = {
    "layers": 2,
    "dim": 32,
    "heads": 4,
    "kv_heads": 2,
    "ffn": 64,
    "vocab": 256,
    "batch": 2,
    "tokens": 16,
    "tied": 0,
}
POLICIES = ["none", "full", "full_nostop"]
LAYOUTS = {
    "tp=2": POLICIES,
    "tp=2,sp": POLICIES,
    "fsdp=2": [*POLICIES, "no_reshard(none)"],
}

# Maps collective ops to the kinds that appear in reports. The last two are FSDP2's in-place collectives.
KINDS = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "_allgather_base_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
}
NOT_COLLECTIVES = {"wait_tensor", "_wrap_tensor_autograd"}


class Collectives(TorchDispatchMode):
    """Counts collectives by kind, after DTensor has lowered its ops."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented
        if function.namespace in ("_c10d_functional", "c10d"):
            name = function._schema.name.split("::")[1]
            if name not in NOT_COLLECTIVES:
                self.counts[KINDS[name]] += 1
        return function(*arguments, **(keywords or {}))


def linear(source):
    made = nn.Linear(source.weight.size(1), source.weight.size(0), bias=False)
    made.weight = nn.Parameter(source.weight.detach().clone())
    return made


class Norm(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight.detach().clone())

    def forward(self, x_TD):
        return rms_norm(x_TD, self.weight, EPS)


class Attention(nn.Module):
    def __init__(self, block, table):
        super().__init__()
        self.batch, self.tokens, self.head_dim = block.batch, block.tokens, block.head_dim
        self.table = table
        self.wq, self.wk, self.wv, self.wo = (
            linear(part) for part in (block.wq, block.wk, block.wv, block.wo)
        )

    def heads_of(self, x):
        return x.view(self.batch, self.tokens, -1, self.head_dim)

    def forward(self, x_TD):
        q, k, v = (self.heads_of(part(x_TD)) for part in (self.wq, self.wk, self.wv))
        q, k = apply_rotary(q, self.table), apply_rotary(k, self.table)
        out = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal=True)
        out = out.transpose(1, 2)
        return self.wo(out.reshape(self.batch * self.tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.w1, self.w3, self.w2 = linear(block.w1), linear(block.w3), linear(block.w2)

    def forward(self, x_TD):
        return self.w2(torch.mul(nn.functional.silu(self.w1(x_TD)), self.w3(x_TD)))


class Block(nn.Module):
    def __init__(self, block, table):
        super().__init__()
        self.attention_norm = Norm(block.attention_norm)
        self.attention = Attention(block, table)
        self.ffn_norm = Norm(block.ffn_norm)
        self.ffn = FeedForward(block)

    def forward(self, x_TD):
        x_TD = torch.add(x_TD, self.attention(self.attention_norm(x_TD)))
        return torch.add(x_TD, self.ffn(self.ffn_norm(x_TD)))


class Embed(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight.detach().clone())

    def forward(self, tokens_T):
        return torch.ops.aten.embedding(self.weight, tokens_T)


class Head(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.norm = Norm(model.head_norm)
        self.output = linear(model.head_output)

    def forward(self, x_TD):
        return self.output(self.norm(x_TD))


class Whole(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.embed = Embed(model.embedding)
        self.blocks = nn.ModuleList(Block(block, model.table) for block in model.blocks)
        self.head = Head(model)

    def forward(self, tokens_T, run_block):
        x_TD = self.embed(tokens_T)
        for block in self.blocks:
            x_TD = run_block(block, x_TD)
        return self.head(x_TD)


def split_block(block, mesh, splits_tokens):
    """Shards a Llama block as torchtitan does. The rows of an activation are the tokens of all sequences."""
    rows = Shard(0) if splits_tokens else Replicate()
    enter = PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(Replicate(),))
    plan = {
        "attention": enter,
        "attention.wo": RowwiseParallel(output_layouts=rows),
        "ffn": enter,
        "ffn.w2": RowwiseParallel(output_layouts=rows),
    }
    for name in ("attention.wq", "attention.wk", "attention.wv", "ffn.w1", "ffn.w3"):
        plan[name] = ColwiseParallel()
    if splits_tokens:
        for name in ("attention_norm", "ffn_norm"):
            plan[name] = SequenceParallel(sequence_dim=0, use_local_output=True)
    parallelize_module(block, mesh, plan)


def split(model, layout, policy, mesh):
    if layout == "fsdp=2":
        # FSDP2 frees a block's gathered weights after forward and gathers them again in backward. Policy
        # no_reshard(none) turns this off. The weights of embedding and head stay gathered.
        for block in model.blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=policy != "no_reshard(none)")
        for part in (model.embed, model.head):
            fully_shard(part, mesh=mesh, reshard_after_forward=False)
        fully_shard(model, mesh=mesh)
        return
    for block in model.blocks:
        split_block(block, mesh, splits_tokens=layout.endswith(",sp"))


def between_blocks(layout, mesh):
    """Returns two functions, for the input of the first block and for the output of the last block."""
    if not layout.endswith(",sp"):
        return lambda x_TD: x_TD, lambda x_TD: x_TD
    rows, whole = [Shard(0)], [Replicate()]

    def own_rows(x_TD):
        return DTensor.from_local(x_TD, mesh, whole).redistribute(mesh, rows).to_local()

    def all_rows(x_TD):
        return DTensor.from_local(x_TD, mesh, rows).redistribute(mesh, whole).to_local()

    return own_rows, all_rows


def whole_gradient(parameter):
    gradient = parameter.grad
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient


def measure(layout, policy, rank, mesh):
    model = Whole(Llama(DIMENSIONS, torch.float32))
    split(model, layout, policy, mesh)
    own_rows, all_rows = between_blocks(layout, mesh)
    tokens_T, targets_T = data.text_batch(
        DIMENSIONS, SEED, STEP * WORLD + rank if layout == "fsdp=2" else STEP
    )

    def run_block(block, x_TD):
        if not policy.startswith("full"):
            return block(x_TD)
        return checkpoint(block, x_TD, use_reentrant=False, preserve_rng_state=False)

    model.embed.register_forward_hook(lambda module, inputs, x_TD: own_rows(x_TD))
    model.head.register_forward_pre_hook(lambda module, inputs: (all_rows(inputs[0]),))
    with Collectives() as collectives, set_checkpoint_early_stop(policy != "full_nostop"):
        logits = model(tokens_T, run_block)
        loss = torch.ops.aten.cross_entropy_loss(logits.to(torch.float32), targets_T)
        forward = dict(sorted(collectives.counts.items()))
        collectives.counts.clear()
        loss.backward()
        behind = dict(sorted(collectives.counts.items()))
    mean = loss.detach().to(torch.float64)
    dist.all_reduce(mean)
    norms = {
        name: whole_gradient(parameter).to(torch.float64).norm().item()
        for name, parameter in model.named_parameters()
    }
    return {
        "loss": mean.item() / WORLD,
        "forward": forward,
        "recompute_and_backward": behind,
        "gradient_norms": norms,
    }


def main():
    rank, store = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (WORLD,))
    found = {
        layout: {policy: measure(layout, policy, rank, mesh) for policy in policies}
        for layout, policies in LAYOUTS.items()
    }
    if rank == 0:
        made = {"model": "llama_small", "dtype": "float32", "dimensions": DIMENSIONS}
        print(json.dumps({**made, "seed": SEED, "step": STEP, "layouts": found}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
