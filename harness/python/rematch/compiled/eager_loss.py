"""Measures the memory of a loss that eager code computes from the outputs of compiled graphs.

Such a loss saves tensors, and its backward allocates tensors, while everything that the graphs hold is in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch.autograd.graph import GradientEdge
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COMPILED = "CompiledFunctionBackward"  # the autograd node of a compiled graph


@dataclasses.dataclass(frozen=True)
class LossBytes:
    """Counts what a loss in eager code needs besides the outputs of compiled graphs. `peak` bytes are in use at its
    peak, while all graphs hold their values. `gradients` bytes stay to the end of the step: the gradients of parameters
    that only eager code reads."""

    peak: int = 0
    gradients: int = 0


def bytes_of_loss(loss: torch.Tensor, outputs: Collection[int]) -> LossBytes:
    """Runs backward of the loss up to the outputs of the compiled graphs, which `outputs` gives as ids of storages.
    Computes no gradients of parameters, so no hook of a parameter runs. Afterwards, backward of the loss cannot run
    again."""
    watch = _Watch()
    edges, gradients = _note_saved_tensors(loss, watch)
    if not edges:  # a graph computes the loss
        return LossBytes()
    saved = dict(watch.storages)
    with watch:
        torch.autograd.grad(loss, edges, allow_unused=True)
    # The program holds what outlasts backward: parameters, the batch, and tensors that it has stored.
    not_of_loss = sum(num_bytes for key, (ref, num_bytes) in saved.items() if key in outputs or not ref.expired())
    return LossBytes(max(0, watch.peak - not_of_loss), gradients)


class _Watch(TorchDispatchMode):
    """Counts the bytes of the storages that ops return, while they are alive."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def note(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        found = self.storages.get(storage._cdata)
        if found is None or found[0].expired():
            self.storages[storage._cdata] = StorageWeakRef(storage), storage.nbytes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        for each in tree_leaves(results):
            if isinstance(each, torch.Tensor):
                self.note(each)
        self.peak = max(self.peak, sum(num_bytes for ref, num_bytes in self.storages.values() if not ref.expired()))
        return results


def _note_saved_tensors(loss: torch.Tensor, watch: _Watch) -> tuple[list[GradientEdge], int]:
    """Notes the tensors that eager code has saved for backward, and keeps none of them alive. Returns the outputs of
    compiled graphs that the loss reads, and the bytes of the parameters that eager code reads."""
    edges: list[GradientEdge] = []
    num_bytes = 0
    for node in _nodes_until_graphs(loss, edges):
        if hasattr(node, "variable"):  # accumulates the gradient of a parameter
            num_bytes += node.variable.nbytes
            continue
        for tensor in _saved_by(node):
            watch.note(tensor)
    return edges, num_bytes


def _nodes_until_graphs(loss: torch.Tensor, edges: list[GradientEdge]) -> Iterator[Any]:
    """Yields the nodes of the loss's autograd graph that eager code made. Adds the outputs of compiled graphs to
    `edges`."""
    stack, seen = [loss.grad_fn], set()
    if loss.grad_fn is None or loss.grad_fn.name() == COMPILED:
        return
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        for following, number in node.next_functions:
            if following is not None and following.name() == COMPILED:
                if GradientEdge(following, number) not in edges:
                    edges.append(GradientEdge(following, number))
            else:
                stack.append(following)


def _saved_by(node: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors that an autograd node has saved. Leaves out tensors that cannot be read."""
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                value = getattr(node, name)
            except RuntimeError:  # the tensor was changed in place, or was freed
                continue
            yield from (each for each in tree_leaves(value) if isinstance(each, torch.Tensor))
