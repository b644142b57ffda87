"""Defines a small transformer whose layers a test can replace."""

import torch
from torch.nn import functional

WIDTH = 16


class Attention(torch.nn.Module):
    def __init__(self, width=WIDTH, num_heads=2):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind()
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(torch.nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


class Layer(torch.nn.Module):
    """A layer with attention and a feed-forward part, each after a norm."""

    def __init__(self, width=WIDTH, dropout=0.0):
        super().__init__()
        self.attention_norm, self.attention = torch.nn.LayerNorm(width), Attention(width)
        self.feed_forward_norm, self.feed_forward = torch.nn.LayerNorm(width), FeedForward(width)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Stack(torch.nn.Module):
    """A model that returns a loss. It calls `make_layer` once for each of its layers."""

    def __init__(self, make_layer=Layer, num_layers=4, width=WIDTH):
        super().__init__()
        self.layers = torch.nn.ModuleList(make_layer() for _ in range(num_layers))
        self.head = torch.nn.Linear(width, width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x).square().mean()


def batch(length=16, size=4, width=WIDTH):
    """Returns a batch of [size, length, width]. Every call returns the same numbers."""
    return torch.randn(size, length, width, generator=torch.Generator().manual_seed(length))


def results_of(model):
    """Returns the loss of a step and the gradients of all parameters."""
    model.zero_grad(set_to_none=True)
    loss = model(batch())
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters()]
