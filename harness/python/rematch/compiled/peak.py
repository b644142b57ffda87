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
from rematch.compiled.joint_graph import JointGraph, is_tensor
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


def peaks_of(joint: JointGraph, schedule: Schedule, *, fuses: bool, forward_peak: int | None = None) -> PhasePeaks:
    """Returns the peaks of a call of the graph. `forward_peak` is the peak of forward, if it is known from another
    schedule that saves the same values."""
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
    if forward_peak is None:
        forward_peak = forward.peak(activations) + copied
    return PhasePeaks(forward_peak, _total(joint, returned | saved) + copied,
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
        self._order = joint.table.indices(order)
        self._constants = set(joint.table.indices(constants))
        self._kept = set(joint.table.indices(kept))
        self._fuses = fuses

    def peak(self, alive: set[fx.Node]) -> int:
        """Returns the peak in bytes. `alive` are the nodes whose memory is allocated at the beginning."""
        table = self._joint.table
        size_of, made_roots = table.num_bytes, table.made_roots
        # Inductor may reuse the memory of saved tensors, but not the memory of forward's outputs or of incoming
        # gradients.
        not_donated = set(table.indices(map(self._joint.root, self._joint.forward_outputs)))
        not_donated.update(table.indices(self._joint.tangents))
        in_kernel = self._inside_kernels() if self._fuses else set()
        last_use = self._last_uses(in_kernel)
        made = set(table.indices(alive))
        ends = defaultdict(list)
        for root in {*last_use, *made}:
            if root not in self._kept and root not in self._constants:
                ends[last_use.get(root, 0)].append(root)
        live = peak = sum(size_of[root] for root in made)
        never_allocated = self._constants | in_kernel
        for index, node in enumerate(self._order):
            if not made_roots[node] and index not in ends:
                continue
            fresh = [root for root in made_roots[node] if root not in made and root not in never_allocated
                     and not table.is_placeholder[root]] if node not in in_kernel else []
            dying = [root for root in ends[index] if root in made] if index in ends else []
            if fresh:
                size = sum(map(size_of.__getitem__, fresh))
                while_it_runs = live + size + table.unread_bytes[node] + self._temporary_bytes(node)
                if while_it_runs > peak:
                    peak = max(peak, while_it_runs - self._overwritten(node, fresh, dying, not_donated))
                live += size
                made.update(fresh)
                dying = [root for root in ends[index] if root in made] if index in ends else []
            for root in dying:
                live -= size_of[root]
        return peak

    def _inside_kernels(self) -> set[int]:
        """Returns the nodes whose values are computed inside the kernels that read them."""
        users_of = self._joint.table.users
        is_run = bytearray(len(self._joint.nodes))
        for node in self._order:
            is_run[node] = True
        found = set()
        for node in self._order:
            is_inside = False
            for user, is_read, can_be_inside in users_of[node]:
                if is_run[user]:
                    if not can_be_inside:
                        is_inside = False
                        break
                    is_inside = is_inside or is_read
            if is_inside:
                found.add(node)
        return found - self._kept

    def _temporary_bytes(self, node: int) -> int:
        found = self._joint.temporary_bytes
        if node not in found:
            op = self._joint.nodes[node]
            found[node] = temporary_bytes(op) if allocates(op) else 0
        return found[node]

    def _overwritten(self, node: int, fresh: list[int], dying: list[int], not_donated: set[int]) -> int:
        """Returns the bytes of the node's result if Inductor writes it into the memory of an input, else 0."""
        table = self._joint.table
        if not self._fuses or len(fresh) != 1 or not table.can_overwrite[node]:
            return 0
        size = table.num_bytes[fresh[0]]
        return size if any(table.num_bytes[root] == size and root not in not_donated for root in dying) else 0

    def _last_uses(self, in_kernel: set[int]) -> dict[int, int]:
        """For each node that allocates memory, returns the index of the last node that reads it. A kernel may
        compute values for which it allocates no memory. The inputs of such a value stay alive until the kernel runs."""
        read_roots, made_roots = self._joint.table.read_roots, self._joint.table.made_roots
        read_by: dict[int, set[int]] = {}  # maps each value inside a kernel to the nodes that allocate its inputs
        last: dict[int, int] = {}
        for index, node in enumerate(self._order):
            roots: Collection[int] = read_roots[node]
            inside = [root for root in roots if root in read_by] if read_by else ()
            if inside:
                roots = set(roots).union(*(read_by[root] for root in inside)).difference(inside)
            if node in in_kernel:
                read_by[node] = set(roots)
            for root in roots:
                last[root] = index
            for root in made_roots[node]:
                last[root] = index
        return last
