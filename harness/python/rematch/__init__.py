"""Activation checkpointing for your existing PyTorch model and trainer.

The engine works below autograd: it records the ops of a region while forward runs, and recomputes values when backward
needs them. Loss, gradients and generator states are bit-identical to those of a run without checkpointing.

    import torch, rematch

    rematch.apply(model, "24GiB", step=lambda: model(batch).loss)    # once; then train as before

Or step by step, for a card that this machine does not have:

    trace = rematch.trace(model, lambda: model(batch).loss)      # one step, without checkpointing
    front = rematch.search(trace, device="h100")                 # plans, from the smallest peak to the fastest step
    plan = front["points"][0]["plan"]                            # or rematch.resolve(trace, "full")
    print(rematch.predict(trace, plan)["peak_bytes"])
    print(rematch.check(model, lambda: model(batch).loss, rematch.Checkpoint(plan)))
    rematch.apply(model, plan)

Requires a torch release that the wheel supports, see `pip show rematch`. rematch imports torch; if the program also
does, it should import torch first. """

from rematch._library import PlanError, Refused, RematchError, allocated_bytes, count_memory
from rematch.applied import apply, checkpoint_of, remove
from rematch.automatic import auto
from rematch.blocks import find_blocks
from rematch.checkpoint import Checkpoint, SearchedCheckpoint
from rematch.compiled.chosen import CompiledGraph, CompiledPlan
from rematch.compiling import compile, compiled_plan_of, export_joint, partitioner
from rematch.opaque import keep_op, opaque, opaque_module
from rematch.planning import combine, predict, render, resolve, search
from rematch.profiling import profile
from rematch.recording import recording
from rematch.scopes import BlockScopes, remove_scopes, scopes
from rematch.tracing import trace
from rematch.watching import Comparison, check, watch

__all__ = ["BlockScopes", "Checkpoint", "Comparison", "CompiledGraph", "CompiledPlan", "PlanError", "Refused", "RematchError",
           "SearchedCheckpoint", "allocated_bytes", "apply", "auto", "check", "checkpoint_of", "combine", "compile",
           "compiled_plan_of", "count_memory", "export_joint", "find_blocks", "keep_op", "opaque", "opaque_module",
           "partitioner", "predict", "profile", "recording", "remove", "remove_scopes", "render", "resolve", "scopes", "search",
           "trace", "watch"]
__version__ = "0.1.0"
