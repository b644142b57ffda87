"""Properties of a joint graph's nodes by index. A search schedules the graph about a hundred times, and computing the
properties anew for each plan takes most of its time."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch import fx

from rematch.compiled.joint_graph import is_op, is_tensor, is_view, op_of
from rematch.compiled.op_costs import can_overwrite, is_elementwise, is_reduction, readers_of

if TYPE_CHECKING:
    from rematch.compiled.joint_graph import JointGraph, Layer


class NodeTable:
    """Each list has one entry for each node of the graph."""

    def __init__(self, joint: JointGraph):
        nodes, self._index_of = joint.nodes, joint.order
        self._joint = joint
        self.is_call = [node.op == "call_function" for node in nodes]
        self.is_placeholder = [node.op == "placeholder" for node in nodes]
        self.is_op = list(map(is_op, nodes))
        self.is_tensor = list(map(is_tensor, nodes))
        self.is_view = list(map(is_view, nodes))
        self.is_elementwise = list(map(is_elementwise, nodes))
        self.is_forward = list(map(joint.is_forward, nodes))
        self.inputs = joint.input_indices
        self.root = [self._index_of[joint.root(node)] for node in nodes]
        self.read_roots = [tuple(dict.fromkeys(self.root[index] for index in inputs)) for inputs in self.inputs]
        self.op = [self._index_of[op_of(node)] for node in nodes]
        # The nodes that allocate the op's results.
        self.made_roots = [tuple(dict.fromkeys(self.root[self._index_of[result]] for result in joint.results(node))) if is_made else ()
                           for node, is_made in zip(nodes, self.is_op, strict=True)]

    @functools.cached_property
    def can_overwrite(self) -> list[bool]:
        return list(map(can_overwrite, self._joint.nodes))

    @functools.cached_property
    def num_bytes(self) -> list[int]:
        """The bytes of tensors that are not views."""
        return [self._joint.bytes_of(node) if self.is_tensor[index] and self.root[index] == index else 0
                for index, node in enumerate(self._joint.nodes)]

    @functools.cached_property
    def unread_bytes(self) -> list[int]:
        return [self._joint.unread_bytes(node) if self.is_op[index] else 0 for index, node in enumerate(self._joint.nodes)]

    @functools.cached_property
    def users(self) -> list[tuple[tuple[int, bool, bool], ...]]:
        """For each elementwise op that is no view: its users, whether ops read the user's value or the user is such an op,
        and whether these ops can compute the value inside of their kernels."""
        return [tuple(self._user(user) for user in node.users) if self.is_elementwise[index] and not self.is_view[index] else ()
                for index, node in enumerate(self._joint.nodes)]

    def _user(self, user: fx.Node) -> tuple[int, bool, bool]:
        read_by = readers_of([user])
        return self._index_of[user], bool(read_by), all(is_elementwise(each) or is_reduction(each) for each in read_by)

    @functools.cached_property
    def layer(self) -> list[Layer | None]:
        """The layer of the op that makes the node's value. None for nodes of backward."""
        nodes = self._joint.nodes
        return [self._joint.layer_of.get(nodes[self.op[index]]) if self.is_forward[index] else None for index in range(len(nodes))]

    def indices(self, nodes: Iterable[fx.Node]) -> list[int]:
        """Returns the indices of the nodes."""
        return list(map(self._index_of.__getitem__, nodes))
