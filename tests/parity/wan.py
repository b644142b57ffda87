"""Matches models/families/dit.cpp op for op, with the same shapes: B batch, N video tokens, L text tokens, D dim, F
ffn."""

import math

import numpy
import torch

from hash_init import Parameters, to_tensor, uniform_by_fan_in
from layers import (
    Linear,
    apply_rotary,
    aten,
    attention,
    layer_norm_float32,
    make_norm_weight,
    make_rotary_table,
    rms_norm,
    rotary_frequencies,
    run_part,
)

EPS = 1e-6
ROTARY_THETA = 1e4
TIME_THETA = 1e4
TIME_SCALE = 1000.0
PATCH = 2


def modulate(x_BND, shift_B1D, scale_B1D):
    result = layer_norm_float32(x_BND, None, None, EPS)
    factor = aten.add.Scalar(scale_B1D, 1)
    result = torch.mul(result, factor)
    result = torch.add(result, shift_B1D)
    return result.to(x_BND.dtype)


def add_gated(x_BND, moved, gate_B1D):
    branch_BND = moved.pop()
    branch_BND = branch_BND.to(torch.float32)
    branch_BND = torch.mul(branch_BND, gate_B1D)
    total = x_BND.to(torch.float32)
    total = torch.add(total, branch_BND)
    return total.to(x_BND.dtype)


class Attention:
    def __init__(self, parameters, block, scope, dim, heads):
        self.heads = heads
        self.scope = scope
        name = f"{block}.{scope}"

        def linear(part):
            return Linear(parameters, f"{name}.{part}", dim, dim, bias=True)

        self.query = linear("query")
        self.key = linear("key")
        self.value = linear("value")
        self.output = linear("output")
        self.query_norm = make_norm_weight(parameters, name + ".query_norm.weight", dim)
        self.key_norm = make_norm_weight(parameters, name + ".key_norm.weight", dim)

    def split_heads(self, x_BND):
        return x_BND.view(x_BND.size(0), x_BND.size(1), self.heads, x_BND.size(2) // self.heads)

    def project(self, x_BND, context_BLD):
        q = self.query(x_BND)
        k = self.key(context_BLD)
        v = self.value(context_BLD)
        q = rms_norm(q, self.query_norm, EPS)
        k = rms_norm(k, self.key_norm, EPS)
        return [self.split_heads(q), self.split_heads(k), self.split_heads(v)]

    def attend(self, projected):
        q, k, v = projected
        projected.clear()
        out = run_part(self.scope + ".core", self.core, q, k, v)
        out = out.transpose(1, 2)
        out = out.reshape(out.size(0), out.size(1), out.size(2) * out.size(3))
        return self.output(out)

    def core(self, q, k, v):
        q = q.transpose(1, 2)
        k = k.transpose(1, 2)
        v = v.transpose(1, 2)
        return attention(q, k, v, causal=False)


class Block:
    def __init__(self, parameters, name, dimensions):
        dim, ffn, heads = dimensions["dim"], dimensions["ffn"], dimensions["heads"]
        by_dim = uniform_by_fan_in(dim)
        self.modulation = parameters.add(name + ".modulation", [1, 6, dim], by_dim)
        self.self_attention = Attention(parameters, name, "self_attention", dim, heads)
        cross_norm = name + ".cross_attention_norm"
        self.cross_norm_weight = make_norm_weight(parameters, cross_norm + ".weight", dim)
        self.cross_norm_bias = parameters.add(cross_norm + ".bias", [dim], by_dim)
        self.cross_attention = Attention(parameters, name, "cross_attention", dim, heads)
        self.up = Linear(parameters, name + ".ffn.up", dim, ffn, bias=True)
        self.down = Linear(parameters, name + ".ffn.down", ffn, dim, bias=True)

    def forward(self, moved, text_BLD, time_B6D, table):
        x_BND = moved.pop()
        sum_B6D = self.modulation.to(torch.float32)
        sum_B6D = torch.add(sum_B6D, time_B6D)
        table_B1D = torch.chunk(sum_B6D, 6, 1)
        del sum_B6D
        branch = [modulate(x_BND, table_B1D[0], table_B1D[1])]
        branch = [run_part("self_attention", self.self_attend, branch, table)]
        x_BND = add_gated(x_BND, branch, table_B1D[2])
        branch_BND = layer_norm_float32(x_BND, self.cross_norm_weight, self.cross_norm_bias, EPS)
        branch_BND = branch_BND.to(x_BND.dtype)
        branch_BND = run_part("cross_attention", self.cross_attend, branch_BND, text_BLD)
        x_BND = torch.add(x_BND, branch_BND)
        branch_BND = modulate(x_BND, table_B1D[3], table_B1D[4])
        branch_BND = run_part("ffn", self.feed_forward, branch_BND)
        branch = [branch_BND]
        del branch_BND
        return add_gated(x_BND, branch, table_B1D[5])

    def self_attend(self, branch, table):
        x_BND = branch[0]
        projected = self.self_attention.project(x_BND, x_BND)
        projected[0] = apply_rotary(projected[0], table)
        projected[1] = apply_rotary(projected[1], table)
        return self.self_attention.attend(projected)

    def cross_attend(self, x_BND, text_BLD):
        projected = self.cross_attention.project(x_BND, text_BLD)
        return self.cross_attention.attend(projected)

    def feed_forward(self, x_BND):
        hidden_BNF = self.up(x_BND)
        hidden_BNF = torch.nn.functional.gelu(hidden_BNF, approximate="tanh")
        return self.down(hidden_BNF)


class Wan:
    def __init__(self, dimensions, dtype):
        self.dimensions = dimensions
        self.dtype = dtype
        self.parameters = Parameters(dtype)
        dim, freq_dim = dimensions["dim"], dimensions["freq_dim"]
        patch_values = dimensions["channels"] * PATCH * PATCH
        self.table = self.make_table()
        self.time_frequencies = self.make_time_frequencies()
        self.patch = self.linear("embed.patch", patch_values, dim)
        self.time_in = self.linear("embed.time.in", freq_dim, dim)
        self.time_out = self.linear("embed.time.out", dim, dim)
        self.time_projection = self.linear("embed.time.projection", dim, 6 * dim)
        self.text_in = self.linear("embed.text.in", dimensions["text_dim"], dim)
        self.text_out = self.linear("embed.text.out", dim, dim)
        self.blocks = [
            Block(self.parameters, f"blocks.{layer}", dimensions)
            for layer in range(dimensions["layers"])
        ]
        self.head_modulation = self.parameters.add(
            "head.modulation", [1, 2, dim], uniform_by_fan_in(dim)
        )
        self.output = self.linear("head.output", dim, patch_values)

    def linear(self, name, inputs, outputs):
        return Linear(self.parameters, name, inputs, outputs, bias=True)

    def make_table(self):
        frames, height, width = (self.dimensions[n] for n in ("frames", "height", "width"))
        head_dim = self.dimensions["dim"] // self.dimensions["heads"]
        plane_dim = 2 * (head_dim // 6)
        tokens = range(frames * height * width)
        plane = rotary_frequencies(plane_dim, ROTARY_THETA)
        return make_rotary_table([
            (
                [token // (height * width) for token in tokens],
                rotary_frequencies(head_dim - 2 * plane_dim, ROTARY_THETA),
            ),
            ([token // width % height for token in tokens], plane),
            ([token % width for token in tokens], plane),
        ])

    def make_time_frequencies(self):
        half = self.dimensions["freq_dim"] // 2
        values = [1.0 / math.pow(TIME_THETA, index / half) for index in range(half)]
        return to_tensor(numpy.array([values], dtype=numpy.float32))

    def loss(self, batch, regions):
        latents, noise, time_B, text = batch
        velocity = regions.root(
            lambda *inputs: self.velocity(*inputs, regions), latents, noise, time_B, text
        )
        error = torch.sub(noise, latents)
        error = torch.sub(velocity, error)
        error = aten.pow.Tensor_Scalar(error, 2)
        return torch.mean(error)

    def velocity(self, latents, noise, time_B, text, regions):
        moved = [self.embed_video(latents, noise, time_B)]
        time_BD, modulation_B6D = self.embed_time(time_B)
        text_BLD = self.embed_text(text)
        for stretch in regions.stretches(len(self.blocks)):
            moved.append(
                regions.blocks(stretch, self.run_blocks, moved, text_BLD, modulation_B6D)
            )
        return self.head(moved, time_BD)

    def run_blocks(self, layers, moved, text_BLD, modulation_B6D):
        for layer in layers:
            block = self.blocks[layer]
            moved.append(block.forward(moved, text_BLD, modulation_B6D, self.table))
        return moved.pop()

    def embed_video(self, latents, noise, time_B):
        batch, channels, frames, height, width = (
            self.dimensions[n] for n in ("batch", "channels", "frames", "height", "width")
        )
        time = time_B.view(batch, 1, 1, 1, 1)
        step = torch.sub(noise, latents)
        step = torch.mul(step, time)
        x = torch.add(latents, step)
        x = x.view(batch, channels, frames, height, PATCH, width, PATCH)
        x = x.permute(0, 2, 3, 5, 1, 4, 6)
        x = x.reshape(batch, frames * height * width, channels * PATCH * PATCH)
        x = x.to(self.dtype)
        return self.patch(x)

    def embed_time(self, time_B):
        batch = self.dimensions["batch"]
        angle = time_B.view(batch, 1)
        angle = aten.mul.Scalar(angle, TIME_SCALE)
        angle = torch.mul(angle, self.time_frequencies)
        cosine = torch.cos(angle)
        sine = torch.sin(angle)
        x = torch.cat([cosine, sine], -1)
        x = x.to(self.dtype)
        x = self.time_in(x)
        x = torch.nn.functional.silu(x)
        x = self.time_out(x)
        time_BD = x.to(torch.float32)
        x = torch.nn.functional.silu(x)
        x = self.time_projection(x)
        x = x.view(batch, 6, x.size(1) // 6)
        return time_BD, x.to(torch.float32)

    def embed_text(self, text):
        x = text.to(self.dtype)
        x = self.text_in(x)
        x = torch.nn.functional.gelu(x, approximate="tanh")
        return self.text_out(x)

    def head(self, moved, time_BD):
        batch, channels, frames, height, width = (
            self.dimensions[n] for n in ("batch", "channels", "frames", "height", "width")
        )
        x_BND = moved.pop()
        table_B2D = self.head_modulation.to(torch.float32)
        time_B1D = time_BD.unsqueeze(1)
        table_B2D = torch.add(table_B2D, time_B1D)
        table_B1D = torch.chunk(table_B2D, 2, 1)
        x_BND = modulate(x_BND, table_B1D[0], table_B1D[1])
        x = self.output(x_BND)
        x = x.view(batch, frames, height, width, PATCH, PATCH, channels)
        x = x.permute(0, 6, 1, 2, 4, 3, 5)
        x = x.reshape(batch, channels, frames, height * PATCH, width * PATCH)
        return x.to(torch.float32)
