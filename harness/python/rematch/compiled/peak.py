"""Predicts the peak of a compiled step. Each tensor counts from the node that allocates it to the last node that reads
it. Without fusion, the prediction is exact for graphs that run op by op, as under aot_eager. With fusion, a value
inside a kernel takes no memory, and a kernel may reuse the memory of an input that is not read later. Memory that an op
frees before it returns is measured: see temporaries.py."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection

import torch
from torch import fx

from rematch._private import gradients_die_in_graphs
from rematch.compiled.joint_graph import JointGraph, is_op, is_tensor
from rematch.compiled.op_costs import can_overwrite, is_elementwise, is_inside_kernel
from rematch.compiled.schedule import Schedule
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


def peaks_of(joint: JointGraph, schedule: Schedule, *, fuses: bool) -> PhasePeaks:
    """Returns the peaks of a call of the graph."""
    activations = set(joint.activation_inputs)
    constants = {node for node in joint.nodes if node.op == "placeholder"} - set(joint.tangents) - activations
    returned = {joint.root(node) for node in joint.forward_outputs if node not in joint.dropped_outputs} - constants - activations
    saved = {joint.root(node) for node in schedule.saved if is_tensor(node)} - constants
    forward = _Run(joint, schedule.forward, constants, returned | saved | activations, fuses=fuses)
    staying = returned - {joint.root(node) for node in joint.freed_outputs}
    tangents = {node for node in joint.tangents if is_tensor(node)}
    gradients = {joint.root(node) for node in joint.backward_outputs} - constants
    outlasting = set() if gradients_die_in_graphs() else tangents
    backward = _Run(joint, schedule.backward, constants, gradients | staying | outlasting, fuses=fuses)
    for_parameters = {joint.root(node) for node in joint.parameter_gradients} - constants
    copied = _total(joint, _copied_inputs(joint).intersection(schedule.saved)) if fuses else 0
    return PhasePeaks(forward.peak(activations) + copied, _total(joint, returned | saved) + copied,
                      backward.peak(saved | tangents | staying) + copied,
                      _total(joint, staying), _total(joint, for_parameters), _total(joint, staying - saved))


def _copied_inputs(joint: JointGraph) -> set[fx.Node]:
    """Returns the inputs that Inductor copies to the channels-last layout for a convolution on the CPU. If such an input
    is saved, the copy is saved instead. See GraphLowering.decide_layout_opt() in torch._inductor."""
    if not torch.backends.mkldnn.is_available():
        return set()
    read = {node for op in joint.forward if op.target is torch.ops.aten.convolution.default for node in op.all_input_nodes[:2]}
    return {node for node in read if node.op == "placeholder" and is_tensor(node) and _needs_channels_last(node.meta["val"])}


def _needs_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dim() == 4 and not tensor.is_contiguous(memory_format=torch.channels_last)


def _total(joint: JointGraph, roots: set[fx.Node]) -> int:
    return sum(map(joint.bytes_of, roots))


class _Run:
    """Simulates one execution of a graph. Does not count the memory of `constants`. The memory of `kept` stays
    allocated at the end. Both are sets of nodes that allocate memory."""

    def __init__(self, joint: JointGraph, order: list[fx.Node], constants: set[fx.Node], kept: set[fx.Node], *, fuses: bool):
        self._joint = joint
        self._order = order
        self._constants = constants
        self._kept = kept
        self._fuses = fuses
        # Inductor may reuse the memory of saved tensors, but not the memory of forward's outputs or of incoming
        # gradients.
        self._not_donated = {joint.root(node) for node in joint.forward_outputs} | set(joint.tangents)
        self._in_kernel = self._inside_kernels() if fuses else set()

    def _inside_kernels(self) -> set[fx.Node]:
        order = set(self._order)
        return {node for node in self._order if node not in self._kept and is_elementwise(node)
                and is_inside_kernel(node, [user for user in node.users if user in order])}

    def peak(self, alive: set[fx.Node]) -> int:
        """Returns the peak in bytes. `alive` are the nodes whose memory is allocated at the beginning."""
        size_of, last_use = self._joint.bytes_of, self._last_uses()
        ends = defaultdict(list)
        for root in {*last_use, *alive}:
            if root not in self._kept and root not in self._constants:
                ends[last_use.get(root, 0)].append(root)
        live = peak = sum(map(size_of, alive))
        made = set(alive)
        for index, node in enumerate(self._order):
            fresh = self._allocated_by(node, made)
            if not fresh and index not in ends:
                continue
            while_it_runs = self._joint.unread_bytes(node) + self._temporary_bytes(node) if fresh else 0
            size = sum(map(size_of, fresh))
            dying = [root for root in ends[index] if root in made]
            peak = max(peak, live + size + while_it_runs - self._overwritten(node, fresh, dying))
            made.update(fresh)
            live += size - sum(size_of(root) for root in ends[index] if root in made)
        return peak

    def _allocated_by(self, node: fx.Node, made: set[fx.Node]) -> list[fx.Node]:
        if not is_op(node) or node in self._in_kernel:
            return []
        roots = dict.fromkeys(map(self._joint.root, self._joint.results(node)))
        return [root for root in roots if root not in made and root not in self._constants and root.op != "placeholder"
                and root not in self._in_kernel]

    def _temporary_bytes(self, node: fx.Node) -> int:
        if not allocates(node):
            return 0
        found = self._joint.temporary_bytes
        if node not in found:
            found[node] = temporary_bytes(node)
        return found[node]

    def _overwritten(self, node: fx.Node, fresh: list[fx.Node], dying: list[fx.Node]) -> int:
        """Returns the bytes of the node's result if Inductor writes it into the memory of an input, else 0."""
        if not self._fuses or len(fresh) != 1 or not can_overwrite(node):
            return 0
        size = self._joint.bytes_of(fresh[0])
        return size if any(self._joint.bytes_of(root) == size and root not in self._not_donated for root in dying) else 0

    def _last_uses(self) -> dict[fx.Node, int]:
        """For each node that allocates memory, returns the index of the last node that reads it. A kernel may
        compute values for which it allocates no memory. The inputs of such a value stay alive until the kernel runs."""
        root_of = self._joint.root
        read_by: dict[fx.Node, set[fx.Node]] = {}  # maps each value inside a kernel to the nodes that allocate its
                                                   # inputs
        last: dict[fx.Node, int] = {}
        for index, node in enumerate(self._order):
            roots: Collection[fx.Node] = self._joint.read_roots(node)
            inside = [root for root in roots if root in read_by] if read_by else ()
            if inside:
                roots = set(roots).union(*(read_by[root] for root in inside)).difference(inside)
            if node in self._in_kernel:
                read_by[node] = set(roots)
            for root in roots:
                last[root] = index
            if is_op(node):
                for result in self._joint.results(node):
                    last[root_of(result)] = index
        return last
