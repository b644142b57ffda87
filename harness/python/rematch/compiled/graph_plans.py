"""Passes a joint graph to the library, which schedules plans of the graph and predicts their peaks (policies/joint)."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from rematch._library import LIBRARY, call
from rematch._private import gradients_die_in_graphs
from rematch.compiled.joint_graph import JointGraph, Layer, is_op, is_symbolic_size, is_tensor, is_view, op_of
from rematch.compiled.op_costs import OpCosts, can_overwrite, is_elementwise, is_reduction
from rematch.compiled.temporaries import allocates, temporary_bytes


@dataclasses.dataclass(frozen=True)
class PhasePeaks:
    """Bytes of one call of a graph, without parameters, constants and gradients from earlier calls.

    `forward` and `backward` are the peaks of the two graphs. `held` bytes are alive from the end of forward on;
    `returned` bytes of these stay alive to the end of the step. `gradients` are the bytes of the parameters'
    gradients. `outside` is the part of `returned` that backward does not read."""

    forward: int
    held: int
    backward: int
    returned: int
    gradients: int
    outside: int = 0

    def step(self) -> int:
        """Returns the peak of a step that calls the graph once."""
        return max(self.forward, self.backward)


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The order of nodes in the forward and the backward graph, including the nodes that unpack results. `saved` are
    the values that forward passes to backward, including inputs. `recomputed` are the ops that run in both graphs, in no
    particular order."""

    forward: list[fx.Node]
    backward: list[fx.Node]
    saved: list[fx.Node]
    recomputed: list[fx.Node]


@dataclasses.dataclass(frozen=True)
class Option:
    """A plan for a joint graph. `saved` contains indices of the graph's nodes. With `by_layer`, backward recomputes a
    whole layer at the first use of a recomputed value. Otherwise, it recomputes each value at its first use. `fuses` says
    whether the backend fuses elementwise ops. `added_ns` is the time of recomputation, plus the time that saving adds
    (OpCosts.saving_ns). `num_recomputed` does not count views."""

    name: str
    saved: tuple[int, ...]
    by_layer: bool
    peaks: PhasePeaks
    added_ns: int
    num_recomputed: int
    fuses: bool = False


@dataclasses.dataclass(frozen=True)
class Aim:
    """The quantity that minimum cuts minimize to find the values which forward saves. Without `traffic_per_byte`: the
    saved bytes, where the bytes of values inside kernels count `shift` sixteenths more, because such values are in memory
    only if they are saved. With `traffic_per_byte`: the time of saving and of recomputing, plus the time of moving each
    saved byte that many times."""

    shift: int = 0
    traffic_per_byte: int | None = None


class GraphPlans:
    """Plans of one joint graph. Without `costs`, recomputing and saving take no time. `fuses` says whether the backend
    fuses elementwise ops. `aims` are those of options()."""

    def __init__(self, joint: JointGraph, costs: OpCosts | None = None, *, fuses: bool, aims: Sequence[Aim] = ()):
        self._joint = joint
        self._fuses = fuses
        document = _lists_of(joint, costs) | {"fuses": fuses, "aims": list(map(dataclasses.asdict, aims))}
        self._handle = call("make_joint", json.dumps(document, separators=(",", ":")))
        weakref.finalize(self, LIBRARY.rematch_free_joint, self._handle)

    def options(self, recomputed: Iterable[fx.Node]) -> list[Option]:
        """Returns an option for each aim. `recomputed` are the ops that may run again in addition to elementwise ops.
        Options have no name."""
        return list(map(self._option, json.loads(call("joint_options", self._handle, *self._indices(recomputed)))))

    def option(self, saved: Iterable[fx.Node]) -> Option:
        """Returns the option that saves those of these nodes that backward reads. It has no name."""
        return self._option(json.loads(call("joint_option", self._handle, *self._indices(saved))))

    def _option(self, found: dict[str, Any]) -> Option:
        return Option("", tuple(found["saved"]), found["by_layer"], PhasePeaks(**found["peaks"]), found["added_ns"],
                      found["num_recomputed"], self._fuses)

    def schedule(self, saved: Iterable[fx.Node], *, by_layer: bool) -> Schedule:
        """Returns the order of nodes in both graphs."""
        found = json.loads(call("joint_schedule", self._handle, *self._indices(saved), by_layer))
        return Schedule(**{name: [self._joint.nodes[index] for index in indices] for name, indices in found.items()})

    def _indices(self, nodes: Iterable[fx.Node]) -> tuple[ctypes.Array[ctypes.c_int32], int]:
        found = list(map(self._joint.order.__getitem__, nodes))
        return (ctypes.c_int32 * len(found))(*found), len(found)


def _lists_of(joint: JointGraph, costs: OpCosts | None) -> dict[str, Any]:
    """Returns the lists that policies/joint/joint_graph.h reads. A node is given by its index."""
    nodes = joint.nodes
    roots = [joint.root(node) for node in nodes]
    ops = list(map(is_op, nodes))
    tensors = list(map(is_tensor, nodes))
    forward = list(map(joint.is_forward, nodes))
    layers: dict[Layer | None, int | None] = {None: None}
    for layer in joint.layer_of.values():
        layers.setdefault(layer, len(layers) - 1)

    def where(is_member: Iterable[bool]) -> list[int]:
        return [index for index, member in enumerate(is_member) if member]

    def indices(found: Iterable[fx.Node]) -> list[int]:
        return list(map(joint.order.__getitem__, found))

    is_recomputable = [made and before for made, before in zip(ops, forward, strict=True)]
    return {
        "inputs": joint.input_indices,
        "results": [indices(joint.results(node)) if made else () for node, made in zip(nodes, ops, strict=True)],
        "root": indices(roots), "op": indices(map(op_of, nodes)),
        "bytes": [joint.bytes_of(node) if holds and root is node else 0 for node, root, holds in zip(nodes, roots, tensors, strict=True)],
        "unread_bytes": [joint.unread_bytes(node) if made else 0 for node, made in zip(nodes, ops, strict=True)],
        "temporary_bytes": [temporary_bytes(node) if made and allocates(node) else 0 for node, made in zip(nodes, ops, strict=True)],
        "time_ns": [costs.time_ns(node) if costs and can_run else 0 for node, can_run in zip(nodes, is_recomputable, strict=True)],
        "saving_ns": [costs.saving_ns(node) if costs and before else 0 for node, before in zip(nodes, forward, strict=True)],
        "layer": [layers[joint.layer_of.get(node)] for node in nodes],
        "placeholders": where(node.op == "placeholder" for node in nodes), "calls": where(node.op == "call_function" for node in nodes),
        "ops": where(ops), "tensors": where(tensors), "views": where(map(is_view, nodes)),
        "elementwise": where(map(is_elementwise, nodes)), "reductions": where(map(is_reduction, nodes)), "forward": where(forward),
        "kept": indices(joint.kept_ops), "overwriting": where(map(can_overwrite, nodes)),
        "forward_outputs": indices(joint.forward_outputs), "dropped_outputs": indices(joint.dropped_outputs),
        "freed_outputs": indices(joint.freed_outputs), "activation_inputs": indices(joint.activation_inputs),
        "copied_inputs": indices(_copied_inputs(joint)), "tangents": indices(joint.tangents),
        "backward_seeds": indices(joint.backward_seeds), "backward_outputs": indices(joint.backward_outputs),
        "parameter_gradients": indices(joint.parameter_gradients), "frees_tangents": gradients_die_in_graphs(),
        "bytes_per_second": costs.bytes_per_second if costs else 1.0, "free": indices(_free_nodes(joint))}


def _free_nodes(joint: JointGraph) -> list[fx.Node]:
    """Returns the values that forward may save and that need no memory of their own: inputs and symbolic sizes."""
    sizes = (node for node in joint.nodes if node.op == "call_function" and joint.is_forward(node) and is_symbolic_size(node))
    return list(dict.fromkeys((*joint.inputs, *sizes)))


def _copied_inputs(joint: JointGraph) -> set[fx.Node]:
    """Returns the inputs that Inductor copies to the channels-last layout for a convolution on the CPU. If such an input
    is saved, the copy is saved instead. See GraphLowering.decide_layout_opt() in torch._inductor."""
    if not torch.backends.mkldnn.is_available():
        return set()
    read = {node for op in joint.forward if op.target is torch.ops.aten.convolution.default for node in op.all_input_nodes[:2]}
    return {node for node in read if node.op == "placeholder" and is_tensor(node) and _needs_channels_last(node.meta["val"])}


def _needs_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dim() == 4 and not tensor.is_contiguous(memory_format=torch.channels_last)
