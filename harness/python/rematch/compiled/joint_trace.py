"""Converts a joint graph to a trace, and its op times to a profile, so that one search serves eager and compiled
models.

The ops of forward become the ops of the trace. Each result of forward that backward reads becomes a saved tensor."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from torch import fx

from rematch._progress import say
from rematch.compiled.joint_graph import (JointGraph, Layer, has_unknown_cost, is_tensor, is_view, must_be_kept, op_name,
                                          op_of, size_hint, tensor_bytes)
from rematch.compiled.op_costs import OpCosts
from rematch.planning import COMPILED, resolve

KEPT_TIME_NS = 10**12  # the time of ops that must be kept; so long that no plan recomputes them

_told_of_unknown_cost: set[str] = set()


def trace_of(joint: JointGraph, model: str, *, has_modules: bool) -> dict[str, Any]:
    """Returns the joint graph as a dict of schema rematch.trace. Its scopes are the layers and, with `has_modules`, the
    modules in the layers. Prints a note, once, about each op of unknown cost."""
    for name in dict.fromkeys(op_name(op) for op in joint.forward if has_unknown_cost(op)):
        if name not in _told_of_unknown_cost:
            _told_of_unknown_cost.add(name)
            say(f"the time of {name} is unknown, so compiled plans never recompute it")
    return _TraceWriter(joint, has_modules=has_modules).trace(model)


def profile_of(joint: JointGraph, trace: dict[str, Any], costs: OpCosts) -> dict[str, Any]:
    """Returns op times for the trace, as a dict of schema rematch.profile."""
    forward = [KEPT_TIME_NS if must_be_kept(op) else costs.time_ns(op) for op in joint.forward]
    backward = [costs.time_ns(op) for op in joint.backward]
    return {"schema": "rematch.profile/1.2", "model": trace["model"], "dimensions": trace["dimensions"],
            "dtype": trace["dtype"], "trace_sha256": resolve(trace, "none")["trace_sha256"], "device": costs.device,
            "source": "measured", "num_steps": 1, "optimizer_ns": 0, "forward_between_ops_ns": 0, "backward_between_ops_ns": 0,
            "forward": _in_one_piece(forward), "backward": _in_one_piece(backward)}


def _in_one_piece(times: list[int]) -> dict[str, Any]:
    if not times:
        return {"types": [], "spans": []}
    return {"types": [{"times_ns": times, "temporary_bytes": None}], "spans": [0]}


class _TraceWriter:
    def __init__(self, joint: JointGraph, *, has_modules: bool):
        self._joint = joint
        self._has_modules = has_modules
        self._values: list[dict[str, Any]] = []
        self._storage_bytes: list[int] = []
        self._freed_at: list[int | None] = []
        self._value_of: dict[fx.Node, int] = {}
        self._storage_of: dict[fx.Node, int] = {}
        self._index_of = {op: index for index, op in enumerate(joint.forward)}
        self._scope_of: dict[Layer, int] = {}
        self._scope_of_op: dict[fx.Node, int] = {}

    def trace(self, model: str) -> dict[str, Any]:
        scopes, blocks = self._scopes_and_blocks()
        ops = [self._op(index, op) for index, op in enumerate(self._joint.forward)]
        self._note_freed()
        packs, events = self._packs_and_events()
        num_ops = len(ops)
        span = {"ops": ops, "values": self._values, "storage_bytes": self._storage_bytes,
                # A negative number is an index into outside_ops: -1 is its first entry, here the end of forward.
                "storage_freed_at": [-1 if op == num_ops else op for op in self._freed_at],
                "scopes": scopes, "packs": packs}
        return {"schema": "rematch.trace/1.1", "model": model, "dimensions": {COMPILED: 1}, **self._parameters(),
                "types": [span], "spans": [{"type": 0, "outside_ops": [num_ops]}], "blocks": blocks,
                "backward_types": [events], "backward": [{"type": 0, "first_pack": 0, "first_scope": 0}]}

    def _op(self, index: int, op: fx.Node) -> dict[str, Any]:
        inputs = [self._value(node, None) for node in self._joint.reads(op)]
        outputs = [self._value(node, index) for node in self._joint.results(op)]
        if unread := self._joint.unread_bytes(op):
            self._storage_bytes.append(unread)
            self._freed_at.append(index + 1)
            self._values.append({"producer": index, "storage": len(self._storage_bytes) - 1, "shape": [unread], "dtype": "uint8"})
            outputs.append(len(self._values) - 1)
        written = {"name": op_name(op), "scope": self._scope_of_op.get(op), "inputs": inputs, "outputs": outputs}
        return written | ({"view": True} if is_view(op) else {})

    def _value(self, node: fx.Node, producer: int | None) -> int:
        if node not in self._value_of:
            tensor = node.meta["val"]
            self._value_of[node] = len(self._values)
            self._values.append({"producer": producer, "storage": self._storage(self._joint.root(node)),
                                 "shape": [size_hint(size) for size in tensor.shape],
                                 "dtype": str(tensor.dtype).removeprefix("torch.")})
            if node in self._joint.parameters:
                self._values[-1]["parameter"] = True
        return self._value_of[node]

    def _storage(self, root: fx.Node) -> int:
        if root not in self._storage_of:
            self._storage_of[root] = len(self._storage_bytes)
            self._storage_bytes.append(self._joint.bytes_of(root))
            self._freed_at.append(None)
        return self._storage_of[root]

    def _note_freed(self) -> None:
        """Sets the op after which forward drops each storage. The program holds the outputs of forward to the end of
        the step."""
        last_use: dict[int, int] = {}
        for index, op in enumerate(self._joint.forward):
            for node in (*self._joint.reads(op), *self._joint.results(op)):
                last_use[self._storage_of[self._joint.root(node)]] = index
        for node in self._joint.forward_outputs:
            if node not in self._joint.dropped_outputs:
                last_use.pop(self._storage_of.get(self._joint.root(node), -1), None)
        for root, storage in self._storage_of.items():
            if storage in last_use and root.op != "placeholder":
                self._freed_at[storage] = last_use[storage] + 1

    def _scopes_and_blocks(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Each layer is a scope. So is each module in a layer, if the trace has modules."""
        layers = {f"{layer.name}.{layer.index}": layer for layer in dict.fromkeys(self._joint.layer_of.values())}
        scopes: list[dict[str, Any]] = []
        blocks: list[dict[str, Any]] = []
        opened: list[int] = []  # the scopes that contain the current one, outermost first
        for path, ops in self._joint.spans().items():
            if path not in layers and not self._has_modules:
                continue
            while opened and scopes[opened[-1]]["end_op"] <= ops.start:
                opened.pop()
            if path in layers:
                self._scope_of[layers[path]] = len(scopes)
                blocks.append({"list": layers[path].name, "index": layers[path].index, "scope": len(scopes)})
            for index in ops:
                self._scope_of_op[self._joint.forward[index]] = len(scopes)
            scopes.append({"path": path, "parent": opened[-1] if opened else None, "first_op": ops.start, "end_op": ops.stop})
            opened.append(len(scopes) - 1)
        return scopes, blocks

    def _packs_and_events(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        joint = self._joint
        last_use: dict[fx.Node, int] = {}
        alias_of: dict[fx.Node, fx.Node] = {}  # maps views that backward makes to the saved tensors that they view
        for index, op in enumerate(joint.backward):
            for node in joint.reads(op):
                saved = alias_of.get(node, node)
                if joint.is_forward(saved) and saved.op != "placeholder" and op_of(saved) in self._index_of:
                    last_use[saved] = index
                    if is_view(op):
                        alias_of.update((result, saved) for result in joint.results(op))
        in_order = sorted(last_use, key=joint.order.__getitem__)
        packs = [{"value": self._value_of[node], "version": 0, "at_op": self._index_of[op_of(node)] + 1} for node in in_order]
        return packs, self._events({node: pack for pack, node in enumerate(in_order)}, last_use)

    def _events(self, pack_of: dict[fx.Node, int], last_use: dict[fx.Node, int]) -> list[dict[str, Any]]:
        joint = self._joint
        released = defaultdict(list)
        for node, index in last_use.items():
            released[index].append(pack_of[node])
        gradients = {joint.root(node) for node in joint.backward_outputs}
        ends: dict[fx.Node, int] = {}
        for index, op in enumerate(joint.backward):
            ends.update((joint.root(node), index) for node in (*joint.reads(op), *joint.results(op)))
        freed = defaultdict(list)
        for root, index in ends.items():
            if not joint.is_forward(root) and root not in gradients and root.op != "placeholder":
                freed[index].append(root)
        events: list[dict[str, Any]] = []
        demanded: set[fx.Node] = set()
        scope: int | None = None
        told = [0, 0]
        # Live bytes of backward, and the part that belongs to gradients. The tangents are included, because autograd
        # holds them until backward returns.
        live = [sum(joint.bytes_of(node) for node in joint.tangents if is_tensor(node)), 0]

        def note(event: dict[str, Any], extra: int = 0) -> None:
            changes = {"bytes_change": live[0] + extra - told[0], "gradient_bytes_change": live[1] - told[1]}
            told[:] = [live[0] + extra, live[1]]
            events.append(event | {"scope": scope} | {key: change for key, change in changes.items() if change != 0})

        made: set[fx.Node] = set()
        for index, op in enumerate(joint.backward):
            scope = self._scope_in_backward(op, scope)
            for node in joint.reads(op):
                if node in pack_of and node not in demanded:
                    demanded.add(node)
                    note({"demand": pack_of[node]})
            for node in joint.results(op):
                root = joint.root(node)
                if root not in made and not joint.is_forward(root) and root.op != "placeholder":
                    made.add(root)
                    live[0] += joint.bytes_of(root)
                    live[1] += joint.bytes_of(root) * (root in gradients)
            note({"op": op_name(op)}, joint.unread_bytes(op))
            events += [{"release": pack} for pack in sorted(released[index])]
            live[0] -= sum(joint.bytes_of(root) for root in freed[index] if root in made)
        self._gradient_bytes = live[1]
        return events

    def _scope_in_backward(self, op: fx.Node, before: int | None) -> int | None:
        """Returns the scope of the layer whose results the op reads. If the op reads no such results, returns the scope
        of the previous op."""
        layers = [self._joint.layer_of[made] for node in self._joint.reads(op)
                  if (made := op_of(node)) in self._joint.layer_of]
        return self._scope_of[layers[-1]] if layers else before

    def _parameters(self) -> dict[str, Any]:
        joint = self._joint
        parameters = joint.parameters
        others = [node for node in joint.inputs if node not in set(parameters) and is_tensor(node)]
        kinds = Counter((size_hint(node.meta["val"].numel()), str(node.meta["val"].dtype).removeprefix("torch."))
                        for node in parameters)
        dtypes = Counter(str(node.meta["val"].dtype).removeprefix("torch.") for node in parameters or others)
        return {"dtype": dtypes.most_common(1)[0][0] if dtypes else "float32",
                "parameter_bytes": sum(tensor_bytes(node.meta["val"]) for node in parameters),
                "parameters": [{"elements": elements, "dtype": dtype, "count": count}
                               for (elements, dtype), count in kinds.items()],
                "constant_bytes": sum(tensor_bytes(node.meta["val"]) for node in others),
                "gradient_bytes": self._gradient_bytes}
