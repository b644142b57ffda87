"""Orders the kernels of a compiled graph, so that the executed step has the peak that the plan predicts.

Inductor fuses ops that read the same values, although they may be far apart: for example, the gradients of two norms'
weights. Such a kernel keeps values of both ops in memory. Inductor also pulls the inputs of a kernel to the position of
its first op. Here, kernels run as late as their last op, and a kernel is split where it raises the peak above the
plan's."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

from torch import fx
from torch._inductor import custom_graph_pass
from torch._inductor.codegen.cpp import OuterLoopFusedSchedulerNode
from torch._inductor.scheduler import FusedSchedulerNode

from rematch.compiled.kernels import Kernels, copied_inputs

LIMIT = "rematch_limit_bytes"  # the peak that a plan predicts for a graph, in the meta of the graph's output node
# How many splits are tried at most, counted in kernels, so that large graphs do not take long to compile.
MAX_TRIED_KERNELS = 60_000

_Base: Any = getattr(custom_graph_pass, "CustomSchedulerPass", custom_graph_pass.CustomGraphPass)


class KernelOrder(_Base):  # type: ignore[misc]
    """A pass for torch._inductor.config._post_fusion_custom_pass. `identity` is the uuid of the partitioner, which
    becomes part of the keys of Inductor's caches. `peaks` has the peak of each graph whose kernels were ordered. For each
    planned graph, calls `on_lowered` with whether it is a backward graph, and with its peak and the plan's peak in
    bytes. `on_lowered` may raise an exception, so that the graph is not compiled."""

    def __init__(self, identity: str):
        self._identity = identity
        self.peaks: list[int] = []
        self._copied: dict[int, set[str]] = {}
        self.on_lowered: Callable[[bool, int, int], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_identity": self._identity}

    def uuid(self) -> str:
        return self._identity

    def __call__(self, nodes: list[Any]) -> list[Any]:
        from torch._inductor.virtualized import V

        if not nodes:
            return nodes
        try:
            copied = self._copied_inputs(V.graph)
            arrangement = Arrangement(nodes, V.graph, copied)
            limit = limit_of(V.graph.module)
            if limit is not None:
                arrangement.split_until(limit)
                arrangement.end_functions(limit)
        except Exception as error:  # an unsupported graph must still compile
            warnings.warn(f"rematch: Inductor orders the kernels of a graph, so its peak may be higher than predicted: "
                          f"{type(error).__name__}: {error}", stacklevel=2)
            return nodes
        self.peaks.append(arrangement.peak)
        if limit is not None and self.on_lowered is not None:
            self.on_lowered(bool(V.graph.is_backward), arrangement.peak, limit)
        return arrangement.apply()

    def _copied_inputs(self, graph: Any) -> set[str]:
        """Returns the inputs of a backward graph for which its forward graph saved copies. Both have the same
        graph_id."""
        if graph.is_backward:
            return self._copied.pop(graph.graph_id, set())
        self._copied[graph.graph_id] = copied_inputs(graph)
        return set()


def set_limit(module: fx.GraphModule, limit: int) -> None:
    """Stores the graph's predicted peak, without memory that the graph does not free or allocate."""
    for node in module.graph.find_nodes(op="output"):
        node.meta[LIMIT] = limit


def limit_of(module: Any) -> int | None:
    """Returns the limit that set_limit() stored, or None."""
    return next((node.meta.get(LIMIT) for node in module.graph.find_nodes(op="output")), None)


class Arrangement:
    """Kernels in the order with the lowest peak of those that were tried."""

    def __init__(self, nodes: list[Any], graph: Any, copied: Collection[str] = ()):
        self._graph = graph
        self._copied = copied
        self._scheduler = nodes[0].scheduler
        self._nodes = nodes
        self._ending: set[int] = set()
        self._kernels, self._order, self.peak = self._best_order(nodes)

    def split_until(self, limit: int) -> None:
        """Splits kernels while that lowers the peak, and the peak is above the limit."""
        tried = 0
        while self.peak > limit:
            best = None
            for cuts in self._possible_cuts():
                nodes = self._cut(cuts)
                found = self._best_order(nodes)
                tried += len(nodes)
                if best is None or _is_better(found[2], best[1][2], limit):
                    best = nodes, found
            if best is None or best[1][2] >= self.peak or tried > MAX_TRIED_KERNELS:
                return
            self._nodes, (self._kernels, self._order, self.peak) = best

    def end_functions(self, limit: int) -> None:
        """Decides which kernels end their C++ functions, so that the peak is above the limit in as few as possible."""
        self._ending, self.peak = self._kernels.ending_functions(self._order, limit)

    def apply(self) -> list[Any]:
        """Tells Inductor which ops are fused, and which kernels end their functions. Returns the kernels in their
        order."""
        for node in self._nodes:
            for op in node.get_nodes():
                self._scheduler.name_to_fused_node[op.get_name()] = node
        for device in {self._nodes[number].get_device() for number in self._ending}:
            _end_functions(self._scheduler.get_backend(device), {self._nodes[number].get_first_name() for number in self._ending})
        return [self._nodes[number] for number in self._order]

    def _best_order(self, nodes: list[Any]) -> tuple[Kernels, list[int], int]:
        kernels = Kernels(nodes, self._graph, self._copied)
        orders = (kernels.ordered(lambda number: int(nodes[number].max_order)),
                  kernels.ordered(lambda number: int(nodes[number].min_order)),
                  kernels.ordered(lambda number: number))  # Inductor's order
        order = min(orders, key=lambda each: kernels.peak(each)[0])
        return kernels, order, kernels.peak(order)[0]

    def _possible_cuts(self) -> Iterator[dict[int, int]]:
        """Yields maps from indices of kernels to the number of ops before a cut. Kernels that compute the same in other
        layers are cut too. Only the two largest gaps between the ops of a kernel are tried."""
        alike = defaultdict(list)
        for number, node in enumerate(self._nodes):
            if _can_be_cut(node):
                alike[_contents(node)].append(number)
        _, at = self._kernels.peak(self._order)
        at_peak = (number for number in self._kernels.holders(self._order, at) if _can_be_cut(self._nodes[number]))
        for contents in dict.fromkeys(_contents(self._nodes[number]) for number in at_peak):
            places = [op.min_order for op in _in_order(self._nodes[alike[contents][0]])]
            for cut in sorted(range(1, len(places)), key=lambda index: places[index - 1] - places[index])[:2]:
                yield dict.fromkeys(alike[contents], cut)

    def _cut(self, cuts: dict[int, int]) -> list[Any]:
        found = []
        for number, node in enumerate(self._nodes):
            if number not in cuts:
                found.append(node)
                continue
            ops = _in_order(node)
            for part in (ops[:cuts[number]], ops[cuts[number]:]):
                found += [group[0] if len(group) == 1 else FusedSchedulerNode(self._scheduler, group) for group in _fused_groups(node, part)]
        return found


def _end_functions(backend: Any, names: set[str]) -> None:
    """Makes a backend of Inductor end its C++ function after the kernels whose first ops have these names."""
    generate = backend.codegen_node

    def codegen_node(node: Any) -> None:
        generate(node)
        if node.get_first_name() in names:
            backend._set_flush_status(True)
    backend.codegen_node = codegen_node


def _is_better(peak: int, other: int, limit: int) -> bool:
    """Prefers the lower of two peaks, unless both fit. Then prefers the higher one, because it leaves more ops fused."""
    return peak < other if max(peak, other) > limit else peak > other


def _can_be_cut(node: Any) -> bool:
    return type(node) in (FusedSchedulerNode, OuterLoopFusedSchedulerNode) and not node.is_template()


def _fused_groups(node: Any, ops: list[Any]) -> list[list[Any]]:
    """Splits some ops of a kernel into groups that can be fused. For the CPU, Inductor also puts groups with different
    inner loops into one kernel."""
    members = node.outer_fused_nodes if type(node) is OuterLoopFusedSchedulerNode else [node]
    groups = ([op for op in ops if op in member.get_nodes()] for member in members)
    return [group for group in groups if group]


def _in_order(node: Any) -> list[Any]:
    return sorted(node.get_nodes(), key=lambda op: int(op.min_order))


def _contents(node: Any) -> tuple[Any, ...]:
    return tuple((str(op.group), tuple(sorted(str(origin.target) for origin in op.node.origins))) for op in _in_order(node))
