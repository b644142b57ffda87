"""Layers that llama.py and wan.py share. The layers match models/layers op for op.

Each op is one statement, so that a temporary is freed at the same point as in C++. `torch.ops.aten` is used where a
plain call would run another overload.
"""

import contextlib
import math
import re

import numpy
import torch

from hash_init import NEAR_ONE, to_tensor, uniform_by_fan_in

aten = torch.ops.aten


# A stack of functions that run the parts of a block. run_part() passes the part, its name and its inputs to the last
# function. If the stack is empty, run_part() calls the part itself.
runners = []


def run_part(name, part, *inputs):
    return runners[-1](name, part, *inputs) if runners else part(*inputs)


@contextlib.contextmanager
def parts_run_by(runner):
    runners.append(runner)
    yield
    runners.pop()


class Linear:
    """A part of a block, with a name such as "ffn.w2"."""

    def __init__(self, parameters, name, inputs, outputs, bias):
        self.part = re.sub(r"^blocks\.\d+\.", "", name)
        values = uniform_by_fan_in(inputs)
        self.weight = parameters.add(name + ".weight", [outputs, inputs], values)
        self.bias = parameters.add(name + ".bias", [outputs], values) if bias else None

    def __call__(self, x):
        return run_part(self.part, torch.nn.functional.linear, x, self.weight, self.bias)


def make_norm_weight(parameters, name, dim):
    return parameters.add(name, [dim], NEAR_ONE)


def normalise(x, eps):
    statistic = aten.pow.Tensor_Scalar(x, 2)
    statistic = torch.mean(statistic, dim=-1, keepdim=True)
    statistic = aten.add.Scalar(statistic, eps)
    statistic = torch.rsqrt(statistic)
    return torch.mul(x, statistic)


def rms_norm(x, weight, eps):
    wide = x.to(torch.float32)
    normalised = normalise(wide, eps)
    normalised = normalised.to(x.dtype)
    return torch.mul(normalised, weight)


def layer_norm_float32(x, weight, bias, eps):
    wide = x.to(torch.float32)
    wide_weight = None if weight is None else weight.to(torch.float32)
    wide_bias = None if bias is None else bias.to(torch.float32)
    return torch.native_layer_norm(wide, [x.size(-1)], wide_weight, wide_bias, eps)[0]


def rotary_frequencies(head_dim, theta):
    return [1.0 / math.pow(theta, (2 * pair) / head_dim) for pair in range(head_dim // 2)]


def make_rotary_table(axes):
    """`axes` holds pairs of positions and frequencies. Computes angles in double, as C++ does. Calls module math,
    because numpy's vectorized cosine rounds differently."""
    num_tokens = len(axes[0][0])
    angles = [
        positions[token] * frequency
        for token in range(num_tokens)
        for positions, frequencies in axes
        for frequency in frequencies
    ]
    shape = (num_tokens, 1, len(angles) // num_tokens)
    table = []
    for function in (math.cos, math.sin):
        values = numpy.array([function(angle) for angle in angles], dtype=numpy.float32)
        table.append(to_tensor(values.reshape(shape)))
    return tuple(table)


def apply_rotary(x_BSHD, table):
    cosine, sine = table
    wide = x_BSHD.to(torch.float32)
    pair = torch.unbind(
        wide.view(wide.size(0), wide.size(1), wide.size(2), wide.size(3) // 2, 2), -1
    )
    left = torch.mul(pair[0], cosine)
    right = torch.mul(pair[1], sine)
    turned_even = torch.sub(left, right)
    left = torch.mul(pair[0], sine)
    right = torch.mul(pair[1], cosine)
    turned_odd = torch.add(left, right)
    turned = torch.stack([turned_even, turned_odd], -1)
    turned = turned.view(wide.size())
    return turned.to(x_BSHD.dtype)


def attention(q, k, v, causal):
    """Runs rematch::attention's CPU kernel, through the op that Python users call."""
    return aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)[0]
