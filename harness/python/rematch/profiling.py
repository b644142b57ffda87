"""Measures the op times of the model's own step, on the device of the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import torch

from rematch._in_torch import refuse_in_recorded_step, run_compiled_eagerly
from rematch._library import LIBRARY, RematchError, call
from rematch._pointers import open_steps
from rematch._step import left_as_it_was

FORWARD, BACKWARD, END = range(3)
NUM_WARM_UP_STEPS = 1


def profile(model: torch.nn.Module, step: Callable[[], torch.Tensor], trace: dict[str, Any], *,
            num_steps: int = 5) -> dict[str, Any]:
    """Measures the time of every op of the traced step, as a dict of schema rematch.profile for search().

    `step()` must be the traced step. Steps in which each op is timed alternate with steps that are timed as a whole,
    which show the time between ops. On a GPU, each op is timed by CUDA events. Clears gradients before and after, and
    restores generators and buffers. The model must have no scopes, and no recording may be open.

    Raises RematchError if the model is neither on the CPU nor on a GPU, or if the step does not run the ops of the
    trace."""
    refuse_in_recorded_step("profile")
    device = next(model.parameters()).device
    if device.type not in ("cpu", "cuda"):
        raise RematchError(f"op times are measured on the CPU or a GPU, but the model is on {device}; give a data sheet "
                           "instead, device='h100'")
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    handle = call("begin_op_times", json.dumps(trace), 2 * num_steps, str(device), card)
    try:
        with run_compiled_eagerly():
            for _ in range(NUM_WARM_UP_STEPS):
                _unwatched_step(model, step)
            for _ in range(num_steps):
                _watched_step(model, step, handle)
                call("note_step", handle, *_unwatched_step(model, step))
        found: dict[str, Any] = json.loads(call("finish_op_times", handle))
        return found
    finally:
        LIBRARY.rematch_free_op_times(handle)
        model.zero_grad(set_to_none=True)


def _watched_step(model: torch.nn.Module, step: Callable[[], torch.Tensor], handle: int) -> None:
    model.zero_grad(set_to_none=True)
    with left_as_it_was(model):  # restores buffers, because the ops of the next step may depend on them
        open_steps.append(None)  # makes an opaque call one op, as in the trace
        try:
            call("watch_part", handle, FORWARD)
            loss = step()
        finally:
            open_steps.pop()
        call("watch_part", handle, BACKWARD)
        loss.backward()
        call("watch_part", handle, END)


def _unwatched_step(model: torch.nn.Module, step: Callable[[], torch.Tensor]) -> tuple[int, int]:
    model.zero_grad(set_to_none=True)
    with left_as_it_was(model):
        start = _now()
        loss = step()
        middle = _now()
        loss.backward()
        end = _now()
    return middle - start, end - middle


def _now() -> int:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter_ns()
