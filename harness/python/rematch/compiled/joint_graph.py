"""Analyses AOTAutograd's joint graph: finds the ops of forward and of backward, the layers, and the node that allocates
each tensor. Forward consists of all nodes that the outputs of forward need. All other nodes are backward: nodes that
depend on tangents, and nodes that are read only by such nodes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import fx
from torch._functorch import partitioners

RANDOM_ARGUMENTS = ("dropout_p", "p")  # probabilities; if the argument is 0, the op draws no random numbers
HIGHER_ORDER_WITH_COST = ("flex_attention",)  # the higher-order ops that op_costs.flops_of() knows
MIN_COVERED_RATIO = 0.5  # if a smaller share of forward's ops is in lists of modules, the whole graph is one layer
_ELEMENT = re.compile(r"(.+)\.(\d+)$")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer of the model: the `index`-th module of the list `name`."""

    name: str
    index: int


class JointGraph:
    """The nodes of a joint graph, sorted.

    `forward` contains the ops of forward in their order. `backward` contains the ops of backward, in their order
    without recomputation. Both lists leave out placeholders and the getitem nodes that unpack an op's results."""

    def __init__(self, graph: fx.Graph, inputs: Iterable[fx.Node], required_forward: Iterable[fx.Node],
                 tangents_closure: Iterable[fx.Node], static_inputs: Iterable[fx.Node], num_forward_outputs: int):
        self.nodes = list(graph.nodes)
        self.order = {node: index for index, node in enumerate(self.nodes)}
        self.inputs = list(inputs)
        self.static_inputs = set(static_inputs)
        required, after_tangents = set(required_forward), set(tangents_closure)
        self._is_forward = {node for node in self.nodes if node in required or self._unpacks(node, required)}
        outputs = _leaves(self.nodes[-1].args)
        self.forward_outputs = [node for node in outputs[:num_forward_outputs] if isinstance(node, fx.Node)]
        gradients = outputs[num_forward_outputs:]
        with_gradient = [(node, gradient) for node, gradient in zip(self.inputs, gradients, strict=False)
                         if isinstance(gradient, fx.Node)]
        self.parameters = [node for node, _ in with_gradient if node in self.static_inputs]
        self.parameter_gradients = [gradient for node, gradient in with_gradient if node in self.static_inputs]
        self.activation_inputs = [node for node, _ in with_gradient if node not in self.static_inputs]
        self.backward_outputs = [gradient for gradient in gradients if isinstance(gradient, fx.Node)]
        self.tangents = [node for node in self.nodes if node.op == "placeholder" and node in after_tangents]
        self.dropped_outputs: set[fx.Node] = set()  # outputs of forward that the program drops
        self.freed_outputs: set[fx.Node] = set()  # outputs of forward that are freed before backward of the graph
        self._roots: dict[fx.Node, fx.Node] = {}
        self._bytes: dict[fx.Node, int] = {}
        self._results: dict[fx.Node, list[fx.Node]] = {}
        self.input_indices = [tuple(map(self.order.__getitem__, node.all_input_nodes)) for node in self.nodes]
        self.forward = [node for node in self.nodes if node in self._is_forward and is_op(node)]
        self.backward_seeds = [node for node in self.nodes if node in after_tangents and node.op == "call_function"]
        wanted = set(self.backward_seeds)
        self.backward_seeds += [node for node in dict.fromkeys(self.backward_outputs)
                                if node not in wanted and node.op == "call_function" and node not in self._is_forward]
        self.backward = [node for node in map(self.nodes.__getitem__, self.demand_order(self._is_forward)) if is_op(node)]
        self.layer_of = _layers_of(self.forward)
        self._spans: dict[str, range] | None = None
        self._is_one_layer = len(self.layer_of) < MIN_COVERED_RATIO * len(self.forward)
        if self._is_one_layer:
            self.layer_of = dict.fromkeys(self.forward, Layer("layers", 0))

    def is_forward(self, node: fx.Node) -> bool:
        """Returns whether the node belongs to forward."""
        return node in self._is_forward

    def spans(self) -> dict[str, range]:
        """Returns the ops of each layer, and of each module in a layer, as indices into `forward`. A module comes before
        the modules inside of it. Leaves out modules whose ops are not consecutive."""
        if self._spans is None:
            indices: dict[str, list[int]] = {}
            for index, op in enumerate(self.forward):
                for path in self._paths_of(op):
                    indices.setdefault(path, []).append(index)
            self._spans = {path: range(found[0], found[-1] + 1) for path, found in indices.items()
                           if found[-1] - found[0] == len(found) - 1}
        return self._spans

    def _paths_of(self, op: fx.Node) -> list[str]:
        """Returns the path of the op's layer, and of the modules inside of the layer that were running."""
        layer = self.layer_of.get(op)
        if layer is None:
            return []
        path_of_layer = f"{layer.name}.{layer.index}"
        paths = [path for path, _ in _modules_of(op) if path]
        inside = [f"{path_of_layer}.{path}" for path in paths] if self._is_one_layer else [
            path for path in paths if path.startswith(f"{path_of_layer}.")]
        return list(dict.fromkeys((path_of_layer, *inside)))

    def readers_in_forward(self, node: fx.Node) -> list[fx.Node]:
        """Returns the nodes of forward that read this node's result."""
        return [user for user in node.users if user in self._is_forward]

    def _unpacks(self, node: fx.Node, required: set[fx.Node]) -> bool:
        return node.target is operator.getitem and node.args[0] in required

    @functools.cached_property
    def kept_ops(self) -> set[fx.Node]:
        """The ops of forward that no plan may recompute."""
        return set(filter(must_be_kept, self.forward))

    def demand_order(self, available: Iterable[fx.Node]) -> list[int]:
        """Returns the nodes of backward in execution order, as indices into `nodes`. Each node runs as late as its first
        use allows. Leaves out the nodes in `available`."""
        inputs = self.input_indices
        is_made = bytearray(node.op != "call_function" for node in self.nodes)
        for node in available:
            is_made[self.order[node]] = True
        found: list[int] = []
        for seed in map(self.order.__getitem__, self.backward_seeds):
            if is_made[seed]:
                continue
            needed = {seed}
            stack = [seed]
            while stack:
                for each in inputs[stack.pop()]:
                    if not is_made[each] and each not in needed:
                        needed.add(each)
                        stack.append(each)
            for index in sorted(needed):
                is_made[index] = True
                found.append(index)
        return found

    def root(self, node: fx.Node) -> fx.Node:
        """Returns the node that allocates the memory of this node's tensor. A view shares the memory of its input."""
        found = self._roots.get(node)
        if found is None:
            found = node
            if is_view(node) and node.all_input_nodes:
                found = self.root(node.all_input_nodes[0])
            elif node.target is operator.getitem and is_view(_source(node)):
                found = self.root(_source(node))
            self._roots[node] = found
        return found

    def results(self, op: fx.Node) -> list[fx.Node]:
        """Returns the nodes of the op's results. An op with several results has a getitem node for each result that is
        read."""
        found = self._results.get(op)
        if found is None:
            found = [op] if is_tensor(op) else [user for user in op.users if user.target is operator.getitem and is_tensor(user)]
            self._results[op] = found
        return found

    def bytes_of(self, node: fx.Node) -> int:
        """Returns the bytes of a tensor. Symbolic sizes count as their hints."""
        found = self._bytes.get(node)
        if found is None:
            found = self._bytes[node] = int(partitioners._size_of(node))
        return found

    def fingerprint(self) -> str:
        """Returns a hash of the ops, their arguments and their shapes."""
        digest = hashlib.sha256()
        for node in self.nodes:
            arguments = fx.node.map_arg((node.args, node.kwargs), lambda each: self.order[each])
            value = node.meta.get("val")
            shape = (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else ""
            digest.update(f"{node.op} {node.target if node.op == 'call_function' else ''} {arguments} {shape}\n".encode())
        return digest.hexdigest()

    def unread_bytes(self, op: fx.Node) -> int:
        """Returns the bytes of the op's unread results, which exist only while the op runs."""
        value = op.meta.get("val")
        if not isinstance(value, (list, tuple)) or is_view(op):
            return 0
        read = {user.args[1] for user in op.users if user.target is operator.getitem}
        return sum(tensor_bytes(each) for index, each in enumerate(value)
                   if index not in read and isinstance(each, torch.Tensor))

    def reads(self, op: fx.Node) -> list[fx.Node]:
        """Returns the nodes of the tensors that the op reads."""
        return [node for node in op.all_input_nodes if is_tensor(node)]


def needed_for(wanted: Iterable[fx.Node], is_there: Callable[[fx.Node], bool] = lambda _: False) -> set[fx.Node]:
    """Returns the wanted nodes and all nodes that they depend on. Skips nodes for which `is_there` returns true, and
    does not follow their inputs."""
    needed: set[fx.Node] = set()
    stack = list(wanted)
    while stack:
        node = stack.pop()
        if node not in needed and not is_there(node):
            needed.add(node)
            stack += node.all_input_nodes
    return needed


def is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def is_symbolic_size(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


def is_op(node: fx.Node) -> bool:
    """Returns whether the node runs an op on tensors."""
    return node.op == "call_function" and node.target is not operator.getitem and _has_tensor(node.meta.get("val"))


def op_of(node: fx.Node) -> fx.Node:
    """Returns the op that makes the node's tensor."""
    return _source(node) if node.target is operator.getitem else node


def is_view(node: fx.Node) -> bool:
    """Returns whether the op's results share the memory of its first input."""
    return isinstance(node.target, torch._ops.OpOverload) and _returns_views(node.target)


@functools.cache
def _returns_views(target: torch._ops.OpOverload) -> bool:
    if target is torch.ops.aten._unsafe_view.default:
        return True
    return any(result.alias_info is not None and not result.alias_info.is_write for result in target._schema.returns)


def tensor_bytes(tensor: torch.Tensor) -> int:
    return size_hint(tensor.numel()) * tensor.element_size()


def size_hint(size: Any) -> int:
    """Returns the size as a number. A symbolic size counts as its hint, or as 4096 without one."""
    if isinstance(size, int):
        return size
    hint = getattr(size.node, "hint", None)
    return int(hint) if hint is not None else 4096


def op_name(node: fx.Node) -> str:
    """Returns the op's name as in traces, such as "aten::add.Tensor", without the overload `default`."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return f"higher_order::{getattr(node.target, '__name__', node.target)}"
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def is_random(node: fx.Node) -> bool:
    """Returns whether the op draws random numbers, so that recomputing it would give other results. An op that takes
    the generator's state as an input is deterministic."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    for position, argument in enumerate(target._schema.arguments):
        if argument.name in RANDOM_ARGUMENTS:
            given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            return not isinstance(given, (int, float)) or given > 0
    return True


def is_collective(node: fx.Node) -> bool:
    return getattr(node.target, "namespace", "") in ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional")


def writes(node: fx.Node) -> bool:
    """Returns whether the op writes to one of its arguments."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def has_unknown_cost(node: fx.Node) -> bool:
    """Returns whether the op is a higher-order op, such as torch.cond, whose time cannot be estimated."""
    return isinstance(node.target, torch._ops.HigherOrderOperator) and node.target.name() not in HIGHER_ORDER_WITH_COST


def must_be_kept(node: fx.Node) -> bool:
    """Returns whether recomputing the op would change the step, because it draws random numbers, communicates or
    writes. torch marks ops with other effects as MUST_SAVE. An op of unknown cost must be kept too."""
    mark = node.meta.get("recompute")
    return (is_random(node) or is_collective(node) or writes(node) or getattr(mark, "name", "") == "MUST_SAVE"
            or has_unknown_cost(node))


def _has_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in value))


def _source(node: fx.Node) -> fx.Node:
    source = node.args[0]
    assert isinstance(source, fx.Node)
    return source


def _leaves(arguments: Any) -> list[Any]:
    if isinstance(arguments, (list, tuple)):
        return [leaf for each in arguments for leaf in _leaves(each)]
    return [arguments]


def _modules_of(node: fx.Node) -> Iterator[tuple[str, Any]]:
    """Yields the path and the class of each module that was running when the node was traced, outermost first."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    for path, module_class in stack.values():
        yield _plain(str(path)), module_class


def _plain(path: str) -> str:
    """Converts torch's spellings of a path, such as L['self']._modules['layers']._modules['0'], to the form
    "layers.0"."""
    path = re.sub(r"\[['\"]?([^'\"\]]*)['\"]?\]", r".\1", path)
    path = re.sub(r"getattr\((.*?), ['\"](\w+)['\"]\)", r"\1.\2", path)
    names = [name for name in path.split(".") if name not in ("", "_modules", "_checkpoint_wrapped_module", "_orig_mod")]
    return ".".join(names[2:] if names[:1] == ["L"] else names)


def _layers_of(forward: list[fx.Node]) -> dict[fx.Node, Layer]:
    """Returns the layer of each op that runs in a list of modules. The ops of a layer are consecutive: an op between two
    ops of a layer belongs to that layer, even if torch says otherwise."""
    lists: dict[str, dict[int, Any]] = {}
    for node in forward:
        for path, module_class in _modules_of(node):
            match = _ELEMENT.match(path)
            if match:
                lists.setdefault(match[1], {})[int(match[2])] = module_class
    taken = [name for name, classes in lists.items() if len(classes) > 1 and len(set(map(str, classes.values()))) == 1]
    outermost = {name for name in taken if not any(name.startswith(f"{other}.") for other in taken)}
    found = _consecutive([_layer_in(node, outermost) for node in forward])
    return {node: layer for node, layer in zip(forward, found, strict=True) if layer is not None}


def _layer_in(node: fx.Node, lists: set[str]) -> Layer | None:
    for path, _ in _modules_of(node):
        match = _ELEMENT.match(path)
        if match and match[1] in lists:
            return Layer(match[1], int(match[2]))
    return None


def _consecutive(layers: list[Layer | None]) -> list[Layer | None]:
    last_of = {layer: index for index, layer in enumerate(layers) if layer is not None}
    found: list[Layer | None] = []
    seen: set[Layer] = set()
    current: Layer | None = None
    for index, layer in enumerate(layers):
        if layer is not None and layer not in seen:
            seen.add(layer)
            current = layer
        if current is not None and index > last_of[current]:
            current = None
        found.append(current)
    return found
