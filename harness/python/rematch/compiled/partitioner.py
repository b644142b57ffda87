"""Splits a joint graph into forward and backward according to a plan. PyTorch's own partitioner does the work; class
Partitioner decides which values to save, and in which order backward runs."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._functorch import partitioners
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from rematch._library import Refused, RematchError
from rematch.compiled.graph_plans import GraphPlans, Option
from rematch.compiled.joint_graph import JointGraph, needed_for
from rematch.compiled.kernel_order import KernelOrder, set_limit
from rematch.compiled.options import nodes_of
from rematch.compiled.saved_masks import save_masks_as_bytes

CHECKPOINT_MARKS = ("MUST_RECOMPUTE", "PREFER_RECOMPUTE")

Choose = Callable[[JointGraph], Option | None]


class Partitioner(CustomPartitionerFn):
    """A partitioner for torch._inductor.config.custom_partitioner_fn. `choose` returns the option for a joint graph, or
    None if PyTorch should choose. `identity` is a text that differs whenever `choose` might decide differently.

    A training run must not end because of a plan. So a graph that cannot be planned is left to PyTorch's partitioner,
    with a warning. Only if `may_refuse` is set and no graph was planned yet, which means before the first step, raises
    RematchError: Refused for a graph with checkpoint regions of its own, and the errors of `choose`."""

    def __init__(self, choose: Choose, identity: str, *, may_refuse: bool = True):
        self._choose = choose
        self._identity = identity
        self._may_refuse = may_refuse
        self.chosen: list[Option] = []  # one entry for each planned graph. Has no entry for a graph from Inductor's cache
        self.kernel_order = KernelOrder(self.uuid())

    def __getstate__(self) -> dict[str, Any]:
        """Makes partitioners picklable, because Inductor's caches pickle all compile settings for their keys."""
        return {"_identity": self.uuid()}

    def uuid(self) -> str:
        """Returns a hash of this folder's sources and of the plan, which becomes part of the keys of Inductor's
        caches."""
        return hashlib.sha256("\n".join((sources_sha256(), torch.__version__, self._identity)).encode()).hexdigest()

    def inductor_options(self) -> dict[str, Any]:
        """Returns the options of torch.compile under which Inductor partitions the graphs and executes their kernels
        as planned. Inductor must not assign freed memory to later buffers, because it then keeps this memory until the
        later buffer is needed. The allocator reuses the memory anyway."""
        return {"custom_partitioner_fn": self, "_post_fusion_custom_pass": self.kernel_order, "reorder_for_peak_memory": False,
                "allow_buffer_reuse": False}

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object],
                 **kwargs: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        num_forward_outputs: int = kwargs["num_fwd_outputs"]
        is_checkpointed = has_checkpoint(gm)  # before PyTorch's partitioner removes the marks
        ordered_names: list[str] = []
        chosen: list[Option] = []
        original = partitioners.choose_saved_values_set

        def choose_saved(graph: fx.Graph, info: Any, memory_budget: float = 1) -> list[fx.Node]:
            planned = None
            try:
                if is_checkpointed:
                    raise Refused("torch.utils.checkpoint marks ops of this compiled graph, where the plan decides what is kept; "
                                  "turn it off (model.gradient_checkpointing_disable())")
                joint = JointGraph(graph, info.inputs, info.required_fw_nodes, info.tangents_closure,
                                   info.static_lifetime_input_nodes, num_forward_outputs)
                planned = self._planned(joint)
            except Exception as error:  # an unsupported graph must still compile
                if isinstance(error, RematchError) and self._may_refuse:
                    raise
                what = str(error) if isinstance(error, RematchError) else f"its plan failed: {type(error).__name__}: {error}"
                warnings.warn(f"rematch: PyTorch chooses what this compiled graph saves, because {what}", stacklevel=2)
            if planned is None:
                return list(original(graph, info, memory_budget=memory_budget))
            saved, names, option = planned
            chosen.append(option)
            ordered_names.extend(names)
            return saved

        with _decisions_replaced(choose_saved, ordered_names):
            forward, backward = partitioners.min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)
        if any(option.fuses for option in chosen):
            save_masks_as_bytes(forward, backward, num_forward_outputs)
        for option in chosen:
            set_limit(forward, option.peaks.forward)
            set_limit(backward, option.peaks.backward - option.peaks.outside)
        return forward, backward

    def _planned(self, joint: JointGraph) -> tuple[list[fx.Node], list[str], Option] | None:
        """Returns the values to save, the names of backward's nodes in order, and the plan. Returns None if PyTorch
        should choose."""
        option = self._choose(joint)
        if option is None:
            return None
        saved = nodes_of(joint, option)
        order = GraphPlans(joint, fuses=option.fuses).schedule(saved, by_layer=option.by_layer).backward
        self.chosen.append(option)
        self._may_refuse = False
        return saved, [node.name for node in order], option


@contextlib.contextmanager
def _decisions_replaced(choose_saved: Callable[..., list[fx.Node]], ordered_names: list[str]) -> Iterator[None]:
    """Replaces two decisions of PyTorch's partitioner. This is safe, because torch compiles one graph at a time, under
    a lock."""
    reorder = partitioners.reordering_to_mimic_autograd_engine

    def order(module: fx.GraphModule) -> fx.GraphModule:
        return in_order(module, ordered_names) if ordered_names else reorder(module)

    with mock.patch.object(partitioners, "choose_saved_values_set", choose_saved), \
            mock.patch.object(partitioners, "reordering_to_mimic_autograd_engine", order):
        yield


def in_order(module: fx.GraphModule, names: Sequence[str]) -> fx.GraphModule:
    """Returns the module with the named nodes in the given order. A node's inputs always come before the node. Other
    nodes keep their order."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    order = {node: index for index, node in enumerate(module.graph.nodes)}
    by_name = {node.name: node for node in module.graph.nodes}

    def add(node: fx.Node) -> None:
        for each in sorted(needed_for([node], copies.__contains__), key=order.__getitem__):
            copies[each] = graph.node_copy(each, copies.__getitem__)

    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            add(node)
    for name in names:
        if name in by_name:
            add(by_name[name])
    for node in module.graph.nodes:
        add(node)
    return fx.GraphModule(module, graph)


def has_checkpoint(module: fx.GraphModule) -> bool:
    """Returns whether torch.utils.checkpoint or its selective form has marked nodes of the graph."""
    return any("ac_graph_id" in node.meta or getattr(node.meta.get("recompute"), "name", "") in CHECKPOINT_MARKS
               for node in module.graph.nodes)


def sources_sha256() -> str:
    """Returns a hash of the Python sources in this folder."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def warn_once(told: list[str], what: str) -> None:
    if what not in told:
        told.append(what)
        warnings.warn(f"rematch: {what}", stacklevel=2)
