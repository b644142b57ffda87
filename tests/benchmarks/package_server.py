"""One arm of `scripts/compare_with_pytorch --package`. Runs steps of a Llama made of torch's own modules on request:
without checkpointing, under package rematch, or under torch.utils.checkpoint.

    package_server.py [--count] MODEL THREADS "" ARM

ARM is `none`, or a policy followed by a schedule (`save_mm/on_demand`) or by `torch` (`save_mm/torch`). Requests and
answers are those of step_server.py, plus `peak 0`: the bytes that a step adds at its highest op boundary. With --count
the server answers only `ops` and `peak`, because counting replaces the allocator and would distort times. Times are CPU
time of the process, which other processes disturb less than wall-clock time."""

import functools
import gc
import json
import sys
import time

import rematch
import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, noop_context_fn

# dim, layers, batch, tokens. The ops of the first are so small that dispatch dominates.
MODELS = {"dispatch-bound": (16, 8, 1, 4), "dim 128": (128, 4, 4, 128)}
NUM_HEADS = 2
VOCABULARY = 64
WARM_UP_STEPS = 3


class Attention(torch.nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(dim, dim, bias=False) for _ in range(4))
        angle = torch.outer(torch.arange(tokens), 1e4 ** -torch.arange(0, 1, 2 * NUM_HEADS / dim)).repeat(1, 2)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def rotated(self, x_BHTD):
        low, high = x_BHTD.chunk(2, -1)
        return x_BHTD * self.cosine + torch.cat((-high, low), -1) * self.sine

    def forward(self, x_BTC):
        q_BHTD, k_BHTD, v_BHTD = (project(x_BTC).unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)
                                  for project in (self.query, self.key, self.value))
        mixed_BHTD = torch.nn.functional.scaled_dot_product_attention(
            self.rotated(q_BHTD), self.rotated(k_BHTD), v_BHTD, is_causal=True)
        return self.output(mixed_BHTD.transpose(1, 2).flatten(2))


class FeedForward(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate, self.up = (torch.nn.Linear(dim, 2 * dim, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x_BTC):
        return self.down(torch.nn.functional.silu(self.gate(x_BTC)) * self.up(x_BTC))


class Layer(torch.nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.attention_norm, self.feed_forward_norm = torch.nn.RMSNorm(dim), torch.nn.RMSNorm(dim)
        self.attention, self.feed_forward = Attention(dim, tokens), FeedForward(dim)

    def forward(self, x_BTC):
        x_BTC = x_BTC + self.attention(self.attention_norm(x_BTC))
        return x_BTC + self.feed_forward(self.feed_forward_norm(x_BTC))


class Llama(torch.nn.Module):
    def __init__(self, dim, num_layers, tokens):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, dim)
        self.layers = torch.nn.ModuleList(Layer(dim, tokens) for _ in range(num_layers))
        self.norm, self.head = torch.nn.RMSNorm(dim), torch.nn.Linear(dim, VOCABULARY, bias=False)

    def forward(self, ids_BT):
        x_BTC = self.embedding(ids_BT)
        for layer in self.layers:
            x_BTC = layer(x_BTC)
        return torch.nn.functional.cross_entropy(self.head(self.norm(x_BTC)).flatten(0, 1), ids_BT.flatten())


def saved_ops(plan):
    """Returns the ops that a plan keeps, as a user of selective checkpointing lists them."""
    names = {op["name"].removeprefix("aten::") for kind in plan["types"] for op in kind["ops"] if op["treatment"] == "save"}
    packets = (name.partition(".") for name in sorted(names))
    return [getattr(getattr(torch.ops.aten, name), overload or "default") for name, _, overload in packets]


class Arm:
    """Runs steps of the model, checkpointed as the arm specifies."""

    def __init__(self, model_name, arm):
        dim, num_layers, batch, tokens = MODELS[model_name]
        torch.manual_seed(0)
        self.model = Llama(dim, num_layers, tokens)
        self.ids = torch.randint(0, VOCABULARY, (batch, tokens))
        self.checkpoint = None
        policy, _, way = arm.partition("/")
        if policy == "none":
            return
        plan = rematch.resolve(rematch.trace(self.model, lambda: self.model(self.ids)), policy)
        if way == "torch":
            self.checkpoint_layers(saved_ops(plan))
        else:
            self.checkpoint = rematch.Checkpoint(plan, way)
            rematch.scopes(self.model, self.checkpoint)

    def checkpoint_layers(self, saved):
        contexts = functools.partial(create_selective_checkpoint_contexts, saved) if saved else noop_context_fn
        for layer in self.model.layers:
            layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False, context_fn=contexts)

    def loss(self):
        if self.checkpoint is None:
            return self.model(self.ids)
        with rematch.recording(self.checkpoint):
            return self.model(self.ids)

    def step(self):
        self.loss().backward()
        self.model.zero_grad(set_to_none=True)

    def nanoseconds(self, num_steps):
        start = time.process_time_ns()
        for _ in range(num_steps):
            self.step()
        return time.process_time_ns() - start

    def counted(self):
        gc.collect()
        gc.disable()  # a collection would free the tensors held by cycles at an arbitrary time
        try:
            with rematch.watch() as figures:
                self.step()
        finally:
            gc.enable()
        return figures


def main():
    arguments = sys.argv[1:]
    is_counting = arguments[0] == "--count"
    if is_counting:
        rematch.count_memory()
    model, threads, _, arm_name = arguments[1:] if is_counting else arguments
    torch.set_num_threads(int(threads))
    arm = Arm(model, arm_name)
    for _ in range(WARM_UP_STEPS):
        arm.step()
    for line in sys.stdin:
        request, _, *rest = line.split()
        if request == "time":
            print(arm.nanoseconds(int(rest[0])), flush=True)
            continue
        figures = arm.counted()
        if request == "ops":
            print(json.dumps({phase: sum(ops.values()) for phase, ops in figures["ops"].items()}), flush=True)
        else:
            print(max(figures["peak_bytes"].values()) - figures["before_bytes"], flush=True)


if __name__ == "__main__":
    main()
