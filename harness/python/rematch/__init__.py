"""Activation checkpointing for the PyTorch model and trainer that you have.

The engine works below autograd: it records the ops of a region while forward runs, and runs them
again when backward asks for a value. Loss, gradients and generator states have the bits of the run
without it.

    import torch, rematch

    trace = rematch.trace(model, lambda: model(batch).loss)      # one step, without checkpointing
    front = rematch.search(trace, device="h100")                 # plans, from fast to small
    plan = front["points"][0]["plan"]                            # or rematch.resolve(trace, "full")
    checkpoint = rematch.Checkpoint(plan)                        # once per plan
    scopes = rematch.scopes(model)                               # once per model

    with rematch.recording(checkpoint):                          # every step
        loss = model(batch).loss
    loss.backward()

Needs torch 2.11.0: the engine is bound to its dispatcher. Import it before `rematch` or not at all.
"""

from rematch._library import RematchError, allocated_bytes, count_memory
from rematch.planning import Checkpoint, auto, predict, resolve, search
from rematch.recording import recording
from rematch.scopes import BlockScopes, find_blocks, scopes
from rematch.tracing import trace
from rematch.watching import check, watch

__all__ = ["BlockScopes", "Checkpoint", "RematchError", "allocated_bytes", "auto", "check", "count_memory", "find_blocks",
           "predict", "recording", "resolve", "scopes", "search", "trace", "watch"]
__version__ = "0.1.0"
