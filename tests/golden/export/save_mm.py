"""The plan 'save_mm' for toy_llama, float32, with torch.utils.checkpoint.

Made by `rematch export --to torch`; needs only torch, from 2.4 on. Call apply() once, after the model is built and on its
device, and before torch.compile, DDP, FSDP or a trainer wraps it; leave other gradient checkpointing of the model off:

    import save_mm
    save_mm.apply(model)

Loss and gradients keep their bits. A region raises Mismatch if its ops differ from the plan's ops."""

import functools

import torch
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts, noop_context_fn,
                                    set_checkpoint_early_stop)

# How to checkpoint a module; equal modules share one entry. `ops` lists the ops of the module's forward in order.
# `save` contains the indices of the ops whose results are kept. If both are empty, everything is recomputed.
KINDS = [
    {"early_stop": True, "preserve_rng_state": False,
     "save": [7, 11, 15, 20, 29, 32, 35],
     "ops": ["aten::pow.Tensor_Scalar", "aten::mean.dim", "aten::add_.Scalar", "aten::rsqrt", "aten::mul.Tensor",
             "aten::mul.Tensor", "aten::t", "aten::mm", "aten::mul.Tensor", "aten::view", "aten::t", "aten::mm",
             "aten::mul.Tensor", "aten::view", "aten::t", "aten::mm", "aten::view", "rematch::attention",
             "aten::view", "aten::t", "aten::mm", "aten::add.Tensor", "aten::pow.Tensor_Scalar", "aten::mean.dim",
             "aten::add_.Scalar", "aten::rsqrt", "aten::mul.Tensor", "aten::mul.Tensor", "aten::t", "aten::mm",
             "aten::silu", "aten::t", "aten::mm", "aten::mul.Tensor", "aten::t", "aten::mm", "aten::add.Tensor"]},
]

# Maps each checkpointed module to its index in KINDS.
MODULES = {
    "blocks.0": 0,
    "blocks.1": 0,
}

# Predicted bytes of one step with the plan, without the bytes held before the step. check_plan.py compares them with a
# run.
PREDICTED = {
    "peak_bytes": 29504,
    "peak_bytes_without": 29504,
    "recomputed_ops": {
        "aten::add.Tensor": 2,
        "aten::add_.Scalar": 4,
        "aten::mean.dim": 4,
        "aten::mul.Tensor": 14,
        "aten::pow.Tensor_Scalar": 4,
        "aten::rsqrt": 4,
        "aten::silu": 2,
        "aten::t": 14,
        "aten::view": 8,
        "rematch::attention": 2,
    },
}

# Equivalent op names. The first is replaced by the second before ops are compared.
OTHER_NAMES = {"aten::_reshape_alias": "aten::view", "aten::add_.Tensor": "aten::add.Tensor"}


class Mismatch(RuntimeError):
    """The plan was made for another model."""


def find_module(model, name):
    """Returns the module with this dotted path. A number is an index into the children of a Sequential."""
    module = model
    for part in name.split("."):
        children = dict(module.named_children())
        if part not in children and part.isdigit() and int(part) < len(children):
            part = list(children)[int(part)]
        if part not in children:
            known = ", ".join(dict(module.named_children())) or "none"
            raise Mismatch(
                f"the plan checkpoints {name}, but the model has no such module; instead of {part!r}, the model has "
                f"{known}; make the plan from a trace of this model"
            )
        module = children[part]
    return module


def apply(model):
    """Checkpoints the model's modules as planned. Returns a function that undoes this."""
    changes = [change for name in MODULES for change in forwards(name, find_module(model, name))]
    for module, forward in changes:
        module.forward = forward

    def undo():
        for module, _ in changes:
            del module.forward

    return undo


def name_of(func):
    schema = getattr(func, "_schema", None)
    if schema is None:
        return str(func)
    name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    return OTHER_NAMES.get(name, name)


def contexts(module_name, kind):
    """Selective checkpointing asks about every op of forward, and again about every op of recompute."""
    ops, save = [OTHER_NAMES.get(name, name) for name in kind["ops"]], frozenset(kind["save"])
    next_op = {False: 0, True: 0}

    def policy(context, func, *args, **kwargs):
        index = next_op[context.is_recompute]
        next_op[context.is_recompute] += 1
        expected = ops[index] if index < len(ops) else "no further op"
        if name_of(func) != expected:
            raise Mismatch(f"{module_name}, op {index}: the plan was made for {expected}, the model runs {name_of(func)}")
        return CheckpointPolicy.MUST_SAVE if index in save else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def run(module_name, kind, forward, *args, **kwargs):
    if not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    context_fn = functools.partial(contexts, module_name, kind) if kind["save"] else noop_context_fn
    with set_checkpoint_early_stop(kind["early_stop"]):
        return checkpoint(forward, *args, use_reentrant=False, preserve_rng_state=kind["preserve_rng_state"],
                          context_fn=context_fn, **kwargs)


def forwards(name, module):
    """Returns the modules that are changed for a checkpointed module, each with its new forward."""
    return [(module, functools.partial(run, name, KINDS[MODULES[name]], module.forward))]
