"""Matches models/families/llama.cpp op for op, with the same shapes: T tokens of the batch, D dim, F ffn."""

import math

import torch

from hash_init import Parameters, uniform_by_fan_in
from layers import (
    Linear,
    apply_rotary,
    attention,
    make_norm_weight,
    make_rotary_table,
    rms_norm,
    rotary_frequencies,
    run_part,
)

EPS = 1e-5
THETA = 5e5
SCALE_FACTOR = 8.0
LOW_FREQUENCY_FACTOR = 1.0
HIGH_FREQUENCY_FACTOR = 4.0
OLD_CONTEXT = 8192.0


def scale_frequency(frequency):
    wavelength = 2.0 * math.pi / frequency
    if wavelength < OLD_CONTEXT / HIGH_FREQUENCY_FACTOR:
        return frequency
    if wavelength > OLD_CONTEXT / LOW_FREQUENCY_FACTOR:
        return frequency / SCALE_FACTOR
    smooth = (OLD_CONTEXT / wavelength - LOW_FREQUENCY_FACTOR) / (
        HIGH_FREQUENCY_FACTOR - LOW_FREQUENCY_FACTOR
    )
    return (1.0 - smooth) * frequency / SCALE_FACTOR + smooth * frequency


class Block:
    def __init__(self, parameters, name, dimensions):
        dim, ffn = dimensions["dim"], dimensions["ffn"]
        self.batch, self.tokens = dimensions["batch"], dimensions["tokens"]
        self.heads, self.kv_heads = dimensions["heads"], dimensions["kv_heads"]
        self.head_dim = dim // self.heads
        kv_dim = self.kv_heads * self.head_dim

        def linear(part, inputs, outputs):
            return Linear(parameters, f"{name}.{part}", inputs, outputs, bias=False)

        self.attention_norm = make_norm_weight(parameters, name + ".attention_norm.weight", dim)
        self.wq = linear("attention.wq", dim, dim)
        self.wk = linear("attention.wk", dim, kv_dim)
        self.wv = linear("attention.wv", dim, kv_dim)
        self.wo = linear("attention.wo", dim, dim)
        self.ffn_norm = make_norm_weight(parameters, name + ".ffn_norm.weight", dim)
        self.w1 = linear("ffn.w1", dim, ffn)
        self.w3 = linear("ffn.w3", dim, ffn)
        self.w2 = linear("ffn.w2", ffn, dim)

    def forward(self, moved, table):
        x_TD = moved.pop()
        branch_TD = rms_norm(x_TD, self.attention_norm, EPS)
        branch_TD = run_part("attention", self.attend, branch_TD, table)
        x_TD = torch.add(x_TD, branch_TD)
        branch_TD = rms_norm(x_TD, self.ffn_norm, EPS)
        branch_TD = run_part("ffn", self.feed_forward, branch_TD)
        return run_part("last_add", torch.add, x_TD, branch_TD)

    def attend(self, x_TD, table):
        q = self.wq(x_TD)
        k = self.wk(x_TD)
        v = self.wv(x_TD)
        q = q.view(self.batch, self.tokens, self.heads, self.head_dim)
        k = k.view(self.batch, self.tokens, self.kv_heads, self.head_dim)
        v = v.view(self.batch, self.tokens, self.kv_heads, self.head_dim)
        q = apply_rotary(q, table)
        k = apply_rotary(k, table)
        out = run_part("attention.core", self.core, q, k, v)
        return run_part("attention.output", self.output, out)

    def core(self, q, k, v):
        q = q.transpose(1, 2)
        k = k.transpose(1, 2)
        v = v.transpose(1, 2)
        return attention(q, k, v, causal=True)

    def output(self, out):
        out = out.transpose(1, 2)
        out = out.reshape(self.batch * self.tokens, self.heads * self.head_dim)
        return self.wo(out)

    def feed_forward(self, x_TD):
        hidden_TF = self.w1(x_TD)
        hidden_TF = torch.nn.functional.silu(hidden_TF)
        up_TF = self.w3(x_TD)
        hidden_TF = torch.mul(hidden_TF, up_TF)
        return self.w2(hidden_TF)


class Llama:
    def __init__(self, dimensions, dtype):
        dim = dimensions["dim"]
        self.parameters = Parameters(dtype)
        head_dim = dim // dimensions["heads"]
        frequencies = [scale_frequency(f) for f in rotary_frequencies(head_dim, THETA)]
        self.table = make_rotary_table([(list(range(dimensions["tokens"])), frequencies)])
        vocab = dimensions["vocab"]
        self.embedding = self.parameters.add("embed.weight", [vocab, dim], uniform_by_fan_in(dim))
        self.blocks = [
            Block(self.parameters, f"blocks.{layer}", dimensions)
            for layer in range(dimensions["layers"])
        ]
        self.head_norm = make_norm_weight(self.parameters, "head.norm.weight", dim)
        if dimensions.get("tied"):
            self.head_output = lambda x_TD: torch.nn.functional.linear(x_TD, self.embedding)
        else:
            self.head_output = Linear(self.parameters, "head.output", dim, vocab, bias=False)

    def loss(self, batch, regions):
        tokens_T, targets_T = batch
        x = regions.root(lambda tokens: self.logits(tokens, regions), tokens_T)
        x = x.to(torch.float32)
        return torch.ops.aten.cross_entropy_loss(x, targets_T)

    def logits(self, tokens_T, regions):
        moved = [torch.ops.aten.embedding(self.embedding, tokens_T)]
        for stretch in regions.stretches(len(self.blocks)):
            moved.append(regions.blocks(stretch, self.run_blocks, moved))
        return self.head(moved)

    def run_blocks(self, layers, moved):
        for layer in layers:
            moved.append(self.blocks[layer].forward(moved, self.table))
        return moved.pop()

    def head(self, moved):
        x_TD = moved.pop()
        x_TD = rms_norm(x_TD, self.head_norm, EPS)
        return self.head_output(x_TD)
