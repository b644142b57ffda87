"""Runs the user's step: forward on one batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch


@contextlib.contextmanager
def left_as_it_was(model: torch.nn.Module) -> Iterator[None]:
    """Restores generators and buffers after steps that the package runs itself, because such steps draw random numbers
    and update running statistics."""
    devices = sorted({parameter.device.index for parameter in model.parameters() if parameter.is_cuda})
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers() if not buffer.is_meta]
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            for buffer, before in buffers:
                # Restores only buffers that have changed, because a write can invalidate a graph.
                if not torch.equal(buffer, before):
                    with torch.no_grad():
                        buffer.copy_(before)


def run_first_step(model: torch.nn.Module, step: Callable[[], torch.Tensor]) -> None:
    """Runs a step before any measurement, because a model's first step may run extra ops to fill caches. Clears
    gradients before and after."""
    model.zero_grad(set_to_none=True)
    with left_as_it_was(model):
        loss_of(model, step).backward()
    model.zero_grad(set_to_none=True)


def loss_of(model: torch.nn.Module, step: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Returns the loss of step(). Raises TypeError or ValueError if backward cannot be called on the result, or if
    step() has already run backward. The model must have no gradients before the call."""
    loss = step()
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"step() must return the loss, a tensor of one number; it returned a {type(loss).__name__}")
    if loss.numel() != 1:
        raise ValueError(f"step() must return the loss, a tensor of one number; it returned {list(loss.shape)}")
    if any(parameter.grad is not None for parameter in model.parameters()):
        raise ValueError("step() ran backward; it must run forward alone and return the loss")
    if not loss.requires_grad:
        raise ValueError("step() returned a loss that needs no gradient; is every parameter frozen, or does step() run "
                         "under torch.no_grad?")
    return loss
