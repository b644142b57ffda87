"""Applies a plan to a model with one call."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from rematch._recorder import Recorder, record_calls, recorder_of
from rematch._step import run_first_step
from rematch.automatic import Step, auto
from rematch.blocks import Blocks
from rematch.checkpoint import Checkpoint
from rematch.planning import resolve
from rematch.scopes import remove_scopes, scopes
from rematch.tracing import steps_of, trace

Model = TypeVar("Model", bound=torch.nn.Module)


def apply(model: Model, plan: Checkpoint | dict[str, Any] | pathlib.Path | str | int, *,
          step: Step | Sequence[Step] | None = None, schedule: str = "on_demand", device: str | None = None,
          optimizer: str = "adamw", accumulate: int = 1, blocks: Blocks | None = None, verify_every: int = 0) -> Model:
    """Makes every call of the model follow a plan. Returns the model. Nothing else in the trainer changes.

    `plan` is one of these:
      - a budget, "24GiB" or a number of bytes. auto() finds the fastest plan that fits, by measured times or by the times
        of `device`'s data sheet;
      - a policy: "full", "attn_only";
      - a plan, or a file that contains one and ends in .json: "plan.json", "front.json#3";
      - a Checkpoint.

    A budget and a policy need `step`: `step()` runs forward on one fixed batch and returns the loss. Give several steps
    as a list. A budget also takes `optimizer` and `accumulate`, as auto() does. `blocks` names the lists of layers, as
    for scopes(). `verify_every` is as for recording().

    Each call of the model, or of a part of it that contains layers, is recorded as by rematch.recording(). The loss may
    be computed outside of the call, and backward may run at any time. checkpoint_of() returns the Checkpoint, and
    remove() undoes apply(). Copies of the model follow the plan too.

    Raises PlanError if no plan fits, or if the plan belongs to another model. Raises Refused if the model cannot be
    recorded."""
    checkpoint = _checkpoint_of(model, plan, step, schedule, device, optimizer, accumulate, blocks)
    set_scopes = scopes(model, checkpoint, blocks=blocks)
    set_scopes.group.is_applied = True
    record_calls(model, set_scopes.blocks, Recorder(checkpoint, set_scopes.group, verify_every))
    return model


def checkpoint_of(model: torch.nn.Module) -> Checkpoint:
    """Returns the Checkpoint that apply() has set for the model. Raises ValueError if the model follows no plan."""
    recorder = recorder_of(model)
    if recorder is None:
        raise ValueError(f"this {type(model).__name__} follows no plan; call rematch.apply(model, plan) first")
    return recorder.checkpoint


def remove(model: torch.nn.Module) -> None:
    """Undoes apply() on a model or on a copy of it."""
    remove_scopes(model)


def _checkpoint_of(model: torch.nn.Module, plan: Checkpoint | dict[str, Any] | pathlib.Path | str | int,
                   step: Step | Sequence[Step] | None, schedule: str, device: str | None, optimizer: str, accumulate: int,
                   blocks: Blocks | None) -> Checkpoint:
    if not isinstance(plan, Checkpoint | dict | pathlib.Path | str) and type(plan) is not int:
        raise TypeError("apply takes a policy, a plan, a policy file or plan file, a Checkpoint or a budget; this is a "
                        f"{type(plan).__name__}")
    is_file = isinstance(plan, str) and re.search(r"\.json(#\d+)?$", plan) is not None
    if isinstance(plan, Checkpoint | dict | pathlib.Path) or (isinstance(plan, str) and is_file):
        if step is not None:
            raise ValueError("apply got both a plan and a step; only a policy or a budget needs a step, so leave it out")
        return plan if isinstance(plan, Checkpoint) else Checkpoint(plan, schedule)
    if step is None:
        raise ValueError(f"apply(model, {plan!r}) needs step=..., a function that runs forward on one batch and returns the loss")
    if isinstance(plan, int) or plan[:1].isdigit():
        return auto(model, step, budget=plan, device=device, schedule=schedule, optimizer=optimizer, accumulate=accumulate,
                    blocks=blocks)
    steps = steps_of("apply", step)
    for each in steps:
        run_first_step(model, each)
    return Checkpoint(resolve(trace(model, steps, blocks=blocks), plan), schedule)
