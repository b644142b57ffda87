"""Measures the peak of compiled steps under budgets, and prints a line of JSON for each budget. Must run in a separate
process, because torch's profiler sees only allocations of torch's own allocator.

    compiled_peaks.py MODEL BACKEND BUDGET...

A budget is a fraction of the peak of the eager step. "torch=0.5" means 0.5 as PyTorch's own activation_memory_budget.
"own=0.5" means budget 0.5, but Inductor orders the kernels itself.
Inductor's CPU kernels are not compiled, because compiling takes minutes and the kernels allocate nothing. Losses and
gradients are then meaningless. If REMATCH_COMPILE_KERNELS is 1, the kernels are compiled."""

import contextlib
import gc
import io
import json
import os
import sys
import warnings

import rematch
import torch
import zoo
from rematch.compiled.partitioner import Partitioner
from stack import Layer, Stack, batch

WIDTH, LENGTH = 64, 64


def stack(**keywords):
    model = Stack(lambda: Layer(WIDTH), num_layers=4, width=WIDTH)
    x = batch(LENGTH, width=WIDTH)
    return model, lambda: model(x), keywords


def llama(**keywords):
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=64, intermediate_size=172, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, vocab_size=256, use_cache=False))
    ids = torch.randint(0, 256, (2, 128))
    return model, lambda: model(input_ids=ids, labels=ids).loss, keywords


class WithHead(torch.nn.Module):
    """A model whose vocabulary is so large that logits and loss take most of the memory. It returns the loss, or the
    logits."""

    def __init__(self, vocabulary, returns_loss=True):
        super().__init__()
        self.returns_loss = returns_loss
        self.embedding = torch.nn.Embedding(vocabulary, WIDTH)
        self.layers = torch.nn.ModuleList(Layer(WIDTH) for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(x).flatten(0, 1)
        return torch.nn.functional.cross_entropy(logits, ids.flatten()) if self.returns_loss else logits


def head(**keywords):
    model = WithHead(vocabulary=4096)
    ids = torch.randint(0, 4096, (2, LENGTH))
    return model, lambda: model(ids), keywords


class AttentionLayer(Layer):
    """A layer whose peak is in attention, which allocates a workspace while it runs."""

    def forward(self, x):
        return x + self.attention(self.attention_norm(x))


def attention(**keywords):
    model = Stack(lambda: AttentionLayer(WIDTH), num_layers=2, width=WIDTH)
    x = batch(4 * LENGTH, size=1, width=WIDTH)
    return model, lambda: model(x), keywords


def eager_loss(**keywords):
    model = WithHead(vocabulary=1024, returns_loss=False)
    ids = torch.randint(0, 1024, (2, LENGTH))
    return model, lambda: torch.nn.functional.cross_entropy(model(ids), ids.flatten()), keywords


MODELS = {"stack": stack, "blocks": lambda: stack(per_block=True), "llama": llama, "head": head, "attention": attention,
          "eager_loss": eager_loss}


def model_of(name):
    """Returns a model, its step, and keywords for rematch.compile. "zoo.bert" is a model of zoo.py; "wide.bert" is four
    times as wide."""
    if name in MODELS:
        return MODELS[name]()
    kind, name = name.split(".")
    model, step = getattr(zoo, name)(**({"scale": 4} if kind == "wide" else {}))
    return model.train(), step, {}


def peak_of(model, step):
    """Returns the bytes that forward and backward add at their peak, without parameters and the batch."""
    return max(phase_peaks(model, step))


def phase_peaks(model, step):
    """Returns the bytes that are added at the peak of forward, and at the peak of backward."""
    model.zero_grad(set_to_none=True)
    gc.collect()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
        loss = step()
        with torch.profiler.record_function("backward of the step"):
            loss.backward()
    events = profiled.profiler.kineto_results.events()
    (end_of_forward,) = (event.start_ns() for event in events if event.name() == "backward of the step")
    live, forward, backward = 0, 0, 0
    for time, change in sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"):
        live += change
        if time < end_of_forward:
            forward = max(forward, live)
        else:
            backward = max(backward, live)
    return forward, backward


def results_of(model, step):
    """Returns the loss and all gradients of a step. Each call draws the same random numbers."""
    torch.manual_seed(1)
    model.zero_grad(set_to_none=True)
    loss = step()
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def largest_difference(results, expected):
    return max(float((found - reference).norm() / reference.norm().clamp(min=1e-12))
               for found, reference in zip(results, expected))


def difference_of_gradients(results, expected):
    """Returns the norm of the difference of all gradients, divided by their norm."""
    def norm_of(tensors):
        return sum(float(each.square().sum()) for each in tensors) ** 0.5
    return norm_of(found - reference for found, reference in zip(results[1:], expected[1:])) / norm_of(expected[1:])


def batch_bytes(step):
    """Returns the bytes of the tensors that the step reads from its closure. Only predicted peaks include them."""
    return sum(cell.cell_contents.nbytes for cell in step.__closure__ if isinstance(cell.cell_contents, torch.Tensor))


def leave_out_kernels():
    import torch._inductor.async_compile
    torch._inductor.async_compile.AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None


def main(name, backend, ratios):
    torch.set_num_threads(1)
    if backend == "inductor":
        from torch._functorch import config as functorch_config
        from torch._inductor import config as inductor_config
        functorch_config.enable_autograd_cache = inductor_config.fx_graph_cache = False
        if os.environ.get("REMATCH_COMPILE_KERNELS") != "1":
            leave_out_kernels()

    def made():
        torch._dynamo.reset()
        torch.manual_seed(0)
        return model_of(name)
    used = []  # the partitioners
    make_options = Partitioner.inductor_options

    def noted_options(partitioner):
        used.append(partitioner)
        return {"custom_partitioner_fn": partitioner} if ratio.startswith("own=") else make_options(partitioner)
    Partitioner.inductor_options = noted_options
    model, step, _ = made()
    step().backward()  # fills the model's caches
    before = sum(parameter.nbytes for parameter in model.parameters())
    eager = before + peak_of(model, step)
    model, step, _ = made()
    model.compile(backend=backend)
    expected = results_of(model, step)
    for ratio in ratios:
        if ratio.startswith("torch="):
            model, step, _ = made()
            with torch._functorch.config.patch(activation_memory_budget=float(ratio.removeprefix("torch="))):
                model.compile(backend=backend)
                results_of(model, step)
            print(json.dumps({"ratio": ratio, "measured_peak_bytes": before + peak_of(model, step)}), flush=True)
            continue
        budget = int(eager * float(ratio.removeprefix("own=")))
        model, step, keywords = made()
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                rematch.compile(model, step, budget=budget, backend=backend, optimizer="none", **keywords)
        except rematch.PlanError as error:
            print(json.dumps({"ratio": ratio, "budget_bytes": budget, "error": str(error)}), flush=True)
            continue
        planned = rematch.compiled_plan_of(model).predicted_peak_allocated_bytes  # before Inductor has lowered the graphs
        results = [results_of(model, step) for _ in range(2)][1]
        print(json.dumps({
            "ratio": ratio, "budget_bytes": budget, "measured_peak_bytes": before + peak_of(model, step),
            "planned_peak_mib": planned / 2**20, "predicted_peak_mib": rematch.compiled_plan_of(model).predicted_peak_allocated_bytes / 2**20,
            "batch_bytes": batch_bytes(step) + sum(buffer.nbytes for buffer in model.buffers()),
            "bits": all(map(torch.equal, results, expected)), "difference": largest_difference(results, expected),
            "loss_difference": float((results[0] - expected[0]).abs()), "gradient_difference": difference_of_gradients(results, expected),
            "kernels_peak_bytes": before + max(used[-1].kernel_order.peaks, default=0) if backend == "inductor" else None}), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
