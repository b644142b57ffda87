"""Computes the peak of a graph that Inductor has lowered to kernels, for any order of these kernels.

A kernel is a node of Inductor's scheduler: an extern call, or a group of fused ops. Its outputs are allocated before it
runs. Memory is freed after the last kernel that reads it. A kernel may write an output into the memory of an input that
is not read later: see SchedulerNode.decide_inplace_update() in torch._inductor. An extern call may also allocate memory
that it frees before it returns: see temporaries.py.

For the CPU, Inductor puts all kernels between two extern calls into one C++ function. The outputs of all its kernels are
allocated before the call, and nothing is freed before the function returns. A kernel can be made to end its function."""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from rematch._private import gradients_die_in_graphs
from rematch.compiled.joint_graph import tensor_bytes
from rematch.compiled.temporaries import allocates, temporary_bytes


@dataclasses.dataclass(frozen=True)
class _Write:
    """A buffer that an op of a kernel writes. `num_bytes` is 0 if the buffer stays inside the kernel. `overwritable`
    are buffers that the op may overwrite instead, once the given kernels have run."""

    buffer: str
    num_bytes: int
    overwritable: tuple[tuple[str, frozenset[int]], ...]


class Kernels:
    """The kernels of a graph, numbered in the order of `nodes`. `graph` is Inductor's GraphLowering. `copied` are the
    inputs of a backward graph for which forward saved a copy: see copied_inputs()."""

    def __init__(self, nodes: Sequence[Any], graph: Any, copied: Collection[str] = ()):
        from torch._inductor.memory import compute_size_for_scheduler_buffer

        self._nodes = nodes
        self._scheduler = nodes[0].scheduler
        self._kernel_of_op = {op.get_name(): number for number, node in enumerate(nodes) for op in node.get_nodes()}
        self._op = {op.get_name(): op for node in nodes for op in node.get_nodes()}
        self._maker_of = {name: number for number, node in enumerate(nodes) for name in node.get_buffer_names()}
        self._outputs = {self._owner(name) for name in graph.get_output_names()} | _outlasting_gradients(graph)
        sizes = compute_size_for_scheduler_buffer({buffer.get_name(): buffer for node in nodes for buffer in node.get_outputs()})
        self._allocated = {name: allocated for name, (allocated, _) in sizes.items()}
        self._freed = {name: freed for name, (_, freed) in sizes.items()}
        self._count_concatenations_once()
        inputs = _input_bytes(graph, copied)
        self._freed.update(inputs)
        self._before = [self._kernels_before(number) for number in range(len(nodes))]
        self._readers: dict[str, list[int]] = defaultdict(list)
        for number, node in enumerate(nodes):
            for name in {self._owner(name) for name in node.used_or_aliased_buffer_names()}.intersection(self._freed):
                self._readers[name].append(number)
        self._inside = {name for name, number in self._maker_of.items() if self._stays_inside(name, number)}
        self._writes = [[self._write_of(op, buffer) for op in node.get_nodes() for buffer in op.get_outputs()] for node in nodes]
        self._temporary = [_temporary_bytes(node) for node in nodes]
        self._is_joinable = [_is_in_function(node) for node in nodes]
        self._input_bytes = sum(num_bytes for name, num_bytes in inputs.items() if name in self._readers)

    def peak(self, order: Sequence[int]) -> tuple[int, int]:
        """Returns the peak in bytes if each kernel is a function of its own, and the position in `order` where the peak
        occurs."""
        peaks = self._peaks(order, [range(position, position + 1) for position in range(len(order))])
        at = max(range(len(peaks)), key=peaks.__getitem__)
        return peaks[at], at

    def ending_functions(self, order: Sequence[int], limit: int) -> tuple[set[int], int]:
        """Returns the kernels that must end their functions, so that few functions exceed the limit. Also returns the
        peak in bytes that results. Functions are not split without need, because each costs time to compile."""
        functions = list(self._functions(order))
        peaks = self._peaks(order, functions)
        lowest, _ = self.peak(order)
        ending: set[int] = set()
        found: list[range] = []
        for function, peak in zip(functions, peaks, strict=True):
            if peak > max(limit, lowest) and len(function) > 1:
                ending.update(order[position] for position in function)
                found += [range(position, position + 1) for position in function]
            else:
                found.append(function)
        return ending, max(self._peaks(order, found))

    def _functions(self, order: Sequence[int]) -> Iterator[range]:
        """Yields the positions of the kernels of each C++ function, and of each other kernel."""
        start = 0
        for position, number in enumerate(order):
            if position > start and not (self._is_joinable[number] and self._is_joinable[order[position - 1]]):
                yield range(start, position)
                start = position
        yield range(start, len(order))

    def _peaks(self, order: Sequence[int], functions: Sequence[range]) -> list[int]:
        """Returns the peak of each function. `functions` contains positions in `order`."""
        position_of = {number: position for position, number in enumerate(order)}
        ends: dict[int, int] = defaultdict(int)
        for name, readers in self._readers.items():
            if name not in self._outputs and name not in self._inside:
                ends[max(position_of[number] for number in readers)] += self._freed[name]
        live, peaks = self._input_bytes, []
        for function in functions:
            written = [self._bytes_written(order[position], position_of) for position in function]
            made = sum(made for made, _ in written)
            temporary = max(self._temporary[order[position]] for position in function)
            peaks.append(live + made + temporary - sum(overwritten for _, overwritten in written))
            live += made - sum(ends[position] for position in function)
        return peaks

    def holders(self, order: Sequence[int], at: int) -> list[int]:
        """Returns the kernels that decide which memory is in use at a position of `order`: the kernel there, and for
        each buffer in use, the kernel that wrote it and the last kernel that reads it."""
        position_of = {number: position for position, number in enumerate(order)}
        found = {order[at]}
        for name, readers in self._readers.items():
            if name in self._outputs or not self._freed[name]:
                continue
            last = max(readers, key=position_of.__getitem__)
            maker = self._maker_of.get(name)
            if position_of[last] >= at and (maker is None or position_of[maker] <= at):
                found.update((last,) if maker is None else (last, maker))
        return sorted(found)

    def ordered(self, key: Callable[[int], int]) -> list[int]:
        """Returns the kernels in an order that respects all dependencies. Of the kernels that may run next, the one
        with the lowest key runs first."""
        missing = [len(before) for before in self._before]
        after: dict[int, list[int]] = defaultdict(list)
        for number, before in enumerate(self._before):
            for each in before:
                after[each].append(number)
        ready = [(key(number), number) for number, count in enumerate(missing) if count == 0]
        heapq.heapify(ready)
        found = []
        while ready:
            _, number = heapq.heappop(ready)
            found.append(number)
            for each in after[number]:
                missing[each] -= 1
                if missing[each] == 0:
                    heapq.heappush(ready, (key(each), each))
        if len(found) != len(self._nodes):
            raise ValueError("Inductor's kernels depend on each other in a cycle")
        return found

    def _count_concatenations_once(self) -> None:
        """Kernels write the parts of a concatenation into its buffer. So the parts allocate its memory, and the
        concatenation frees it."""
        from torch._inductor.ir import ConcatKernel, NonOwningLayout

        for node in self._nodes:
            for buffer in node.get_outputs():
                if isinstance(buffer.node, ConcatKernel):
                    self._allocated[buffer.get_name()] = 0
                elif isinstance(buffer.node.get_output_spec(), NonOwningLayout):
                    self._freed[buffer.get_name()] = 0

    def _bytes_written(self, number: int, position_of: dict[int, int]) -> tuple[int, int]:
        """Returns the bytes that the kernel writes, and the part that it writes into the memory of its inputs."""
        made = overwritten = 0
        taken: set[str] = set()
        has_memory: dict[str, bool] = {}
        for write in self._writes[number]:
            # Inductor takes the first buffer that it may overwrite, even if it then has to allocate this buffer.
            found = next((name for name, others in write.overwritable if name not in taken
                          and all(position_of[other] < position_of[number] for other in others)), None)
            if found is not None:
                taken.add(found)
                if has_memory.get(found, True):
                    overwritten += write.num_bytes
            has_memory[write.buffer] = write.num_bytes > 0 or found is not None
            made += write.num_bytes
        return made, overwritten

    def _owner(self, name: str) -> str:
        """Returns the buffer whose memory this name stands for. A buffer that is written in place has several names."""
        return str(self._scheduler.mutation_real_name.get(name, name))

    def _kernels_before(self, number: int) -> set[int]:
        names = (dependency.name for dependency in self._nodes[number].unmet_dependencies)
        return {self._maker_of[name] for name in names if self._maker_of.get(name, number) != number}

    def _stays_inside(self, name: str, number: int) -> bool:
        """Returns whether the buffer needs no memory, because one loop of the kernel writes and reads it."""
        if name in self._outputs or self._readers.get(name) != [number]:
            return False
        loops = getattr(self._nodes[number], "outer_fused_nodes", [self._nodes[number]])
        using = [loop for loop in loops if name in loop.used_or_aliased_buffer_names()]
        return len(using) == 1 and len(using[0].get_nodes()) > 1

    def _write_of(self, op: Any, buffer: Any) -> _Write:
        name = buffer.get_name()
        return _Write(name, 0 if name in self._inside else self._allocated[name], self._overwritable(op, buffer))

    def _overwritable(self, op: Any, buffer: Any) -> tuple[tuple[str, frozenset[int]], ...]:
        if op.is_extern() or op.is_template() or not buffer.node.should_allocate():
            return ()
        found = []
        for read in op.read_writes.reads:
            old = self._scheduler.name_to_donated_buffer.get(read.name) or self._scheduler.name_to_buf.get(read.name)
            if old is None or not old.users or read.name in self._outputs \
                    or self._freed.get(read.name) != self._allocated[buffer.get_name()]:
                continue
            uses = {user.node.get_name(): user.can_inplace for user in old.users}
            others = frozenset(self._kernel_of_op.get(name, -1) for name in uses if name != op.get_name() and name not in op.ancestors)
            if uses.get(op.get_name()) and not others.intersection((-1, self._kernel_of_op[op.get_name()])) \
                    and self._has_one_index(read.name, op, uses):
                found.append((read.name, others))
        return tuple(found)

    def _has_one_index(self, name: str, op: Any, users: Iterable[str]) -> bool:
        """Returns whether all ops of the kernel read and write the buffer at the same index."""
        number = self._kernel_of_op[op.get_name()]
        inside = [self._op[user] for user in users if self._kernel_of_op.get(user) == number]
        return len({access for each in inside for access in each.read_writes.reads_and_writes() if access.name == name}) <= 1


def _is_in_function(node: Any) -> bool:
    """Returns whether the kernel is part of a C++ function, which may contain several kernels."""
    if node.get_device() is None or node.is_extern() or node.is_template():
        return False
    return hasattr(node.scheduler.get_backend(node.get_device()), "_set_flush_status")


def _temporary_bytes(node: Any) -> int:
    """Returns the bytes that the kernel needs at its peak besides its outputs."""
    from torch._inductor.ir import MultiOutput

    if not node.is_extern() or isinstance(node.node, MultiOutput):
        return 0
    origin = next((each for each in node.node.get_origins() if allocates(each)), None)
    if origin is None:
        return 0
    strides = [tuple(read.get_stride()) for read in node.node.inputs if hasattr(read, "get_stride")]
    are_known = all(str(step).isdigit() for stride in strides for step in stride)
    return temporary_bytes(origin, [tuple(map(int, stride)) for stride in strides] if are_known else ())


def _outlasting_gradients(graph: Any) -> set[str]:
    """Returns the incoming gradients of a backward graph, if autograd holds them until the graph returns."""
    if gradients_die_in_graphs():
        return set()
    return {node.name for node in graph.module.graph.find_nodes(op="placeholder") if node.name.startswith("tangents_")}


def _input_bytes(graph: Any, copied: Collection[str]) -> dict[str, int]:
    """Returns the bytes of each input that is freed after its last use. The program holds all other inputs."""
    return {node.name: tensor_bytes(node.meta["val"]) for node in graph.module.graph.nodes
            if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
            and (node.name in copied or not node.name.startswith(("primals_", "arg")))}


def copied_inputs(graph: Any) -> set[str]:
    """Returns the inputs of a forward graph that it saves as copies in another layout, such as the weight of a
    convolution."""
    (returned,) = graph.module.graph.find_nodes(op="output")[0].args
    return {node.name for node, buffer in zip(returned, graph.graph_outputs, strict=False)
            if isinstance(node, fx.Node) and node.op == "placeholder" and node.name in graph.graph_inputs
            and isinstance(node.meta.get("val"), torch.Tensor) and buffer.get_name() != node.name}
