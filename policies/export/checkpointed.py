"""@TITLE@

Made by `rematch export --to @TARGET@`; needs only torch, from 2.4 on. @CALL@

Loss and gradients keep their bits. A region raises Mismatch if its ops differ from the plan's ops."""

import functools

import torch
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts, noop_context_fn,
                                    set_checkpoint_early_stop)

# How to checkpoint a module; equal modules share one entry. `ops` lists the ops of the module's forward in order.
# `save` contains the indices of the ops whose results are kept. If both are empty, everything is recomputed.
KINDS = [
@KINDS@]

# Maps each checkpointed module to its index in KINDS.
MODULES = {
@MODULES@}

# Predicted bytes of one step with the plan, without the bytes held before the step. check_plan.py compares them with a
# run.
PREDICTED = {
@PREDICTED@}

@APPLY@


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
