"""Estimates the times of a joint graph's ops in a compiled step.

The time of a matmul, of attention or of random numbers is its time for arithmetic or for memory traffic, whichever is
longer. For any other fused op, only the memory traffic of its kernel counts. Views cost nothing."""

from __future__ import annotations

import dataclasses
import functools

import torch
from torch import fx
from torch._functorch import partitioners

from rematch._progress import say
from rematch.compiled.joint_graph import JointGraph, is_tensor, is_view, op_name, size_hint, tensor_bytes

MIN_TIME_NS = 1  # above 0, so that a plan with fewer ops is faster
# A random number takes about 100 integer operations: ten rounds of Philox 4x32 (Salmon et al., Parallel random numbers: as
# easy as 1, 2, 3, 2011). Devices execute about a quarter as many integer operations as floating-point operations.
RANDOM_FLOPS = 400


@dataclasses.dataclass(frozen=True)
class DeviceRates:
    """Rates of a device for arithmetic in half precision, arithmetic in single precision, and memory traffic."""

    name: str
    half_flops_per_second: float
    float_flops_per_second: float
    bytes_per_second: float


# A CPU core does about 50 GFLOP/s and moves about 10 GB/s. Only the ratio of these rates affects the choice of plans.
CPU = DeviceRates("cpu", 5e10, 5e10, 1e10)
# From the cards' data sheets: dense bfloat16, float32 without TF32, memory bandwidth.
CARDS = (DeviceRates("h100", 989.5e12, 67e12, 3.35e12), DeviceRates("h200", 989.5e12, 67e12, 4.8e12),
         DeviceRates("l40s", 362.05e12, 91.6e12, 0.864e12), DeviceRates("a100", 312e12, 19.5e12, 2.039e12),
         DeviceRates("b200", 2250e12, 75e12, 8e12))


def rates_of(device: str) -> DeviceRates:
    """Returns the rates of "cpu", of a card such as "h100", or of "cuda", which means the card of this machine. If
    CARDS does not contain this machine's card, prints a note and uses the rates of an h100. Raises ValueError for any
    other unknown name."""
    names = torch.cuda.get_device_name().lower() if device == "cuda" and torch.cuda.is_available() else device.lower()
    found = [rates for rates in (CPU, *CARDS) if rates.name in names]
    if found:
        return found[-1]
    if device == "cuda":
        say(f"the rates of {names} are unknown, so plans are compared at the rates of {CARDS[0].name}; to choose another card, "
            f"pass device= one of {', '.join(rates.name for rates in CARDS)}")
        return CARDS[0]
    raise ValueError(f"device is {device!r}; known are {', '.join(rates.name for rates in (CPU, *CARDS))}")


_REDUCTIONS = {torch.ops.aten.sum, torch.ops.aten.mean, torch.ops.aten.amax, torch.ops.aten.amin, torch.ops.aten.var_mean,
               torch.ops.aten.var, torch.ops.aten.max, torch.ops.aten.min, torch.ops.aten.prod, torch.ops.aten.argmax,
               torch.ops.aten._softmax, torch.ops.aten._log_softmax, torch.ops.aten.cumsum}
# Inductor implements these ops as writes to the first input, or to a copy of it if the input is read later.
_WRITES_FIRST_INPUT = {torch.ops.aten.index_put, torch.ops.aten._unsafe_index_put, torch.ops.aten.scatter,
                       torch.ops.aten.scatter_add, torch.ops.aten.scatter_reduce}
if hasattr(torch.ops.aten, "_unsafe_masked_index_put_accumulate"):
    _WRITES_FIRST_INPUT.add(torch.ops.aten._unsafe_masked_index_put_accumulate)


_IS_ELEMENTWISE: dict[torch._ops.OpOverload, bool] = {}  # a cache, because the search asks often


class OpCosts:
    """Times of ops in nanoseconds. `fuses` says whether the backend fuses elementwise ops."""

    def __init__(self, joint: JointGraph, rates: DeviceRates, *, fuses: bool):
        self.device = rates.name
        self.bytes_per_second = rates.bytes_per_second
        self._joint = joint
        self._rates = rates
        self._fuses = fuses
        self._time_ns: dict[fx.Node, int] = {}
        self._saving_ns: dict[fx.Node, int] = {}

    def time_ns(self, op: fx.Node) -> int:
        """Returns the time of recomputing the op."""
        if op not in self._time_ns:
            self._time_ns[op] = self._compute_time_ns(op)
        return self._time_ns[op]

    def saving_ns(self, node: fx.Node) -> int:
        """Returns the time that saving the value adds: 0 if forward writes the value to memory anyway."""
        if node not in self._saving_ns:
            self._saving_ns[node] = self._compute_saving_ns(node)
        return self._saving_ns[node]

    def _compute_time_ns(self, op: fx.Node) -> int:
        if is_view(op) or not self._joint.results(op):
            return 0
        moved = sum(self._joint.bytes_of(node) for node in self._joint.reads(op) if not self._is_inside_kernel(node))
        moved += sum(self._joint.bytes_of(node) for node in self._joint.results(op) if not self._is_inside_kernel(node))
        seconds = max(flops_of(op) / self._rate(op), moved / self._rates.bytes_per_second)
        return max(MIN_TIME_NS, round(seconds * 1e9))

    def _compute_saving_ns(self, node: fx.Node) -> int:
        root = self._joint.root(node)
        if not self._fuses or not is_tensor(root) or not is_inside_kernel(root, self._joint.readers_in_forward(root)):
            return 0
        return round(2 * self._joint.bytes_of(root) / self._rates.bytes_per_second * 1e9)

    def _rate(self, op: fx.Node) -> float:
        is_half = any(is_tensor(node) and node.meta["val"].element_size() <= 2 for node in op.all_input_nodes)
        return self._rates.half_flops_per_second if is_half else self._rates.float_flops_per_second

    def _is_inside_kernel(self, node: fx.Node) -> bool:
        return self._fuses and is_inside_kernel(node)


def is_elementwise(node: fx.Node) -> bool:
    """Returns whether Inductor treats the op as elementwise."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    found = _IS_ELEMENTWISE.get(target)
    if found is None:
        found = not is_reduction(node) and (torch.Tag.pointwise in target.tags or bool(_op_list().is_fusible(node)))
        _IS_ELEMENTWISE[target] = found
    return found


@functools.cache
def _op_list() -> partitioners.OpTypes:
    """Returns PyTorch's lists of ops. Cached, because making the lists takes a millisecond."""
    return partitioners.get_default_op_list()


def can_overwrite(node: fx.Node) -> bool:
    """Returns whether Inductor can write the op's result into the memory of an input. The caller must check that this
    input has the size of the result and is not read later."""
    return is_elementwise(node) or getattr(node.target, "overloadpacket", None) in _WRITES_FIRST_INPUT


def is_reduction(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and _reduces(node.target)


@functools.cache
def _reduces(target: torch._ops.OpOverload) -> bool:
    return torch.Tag.reduction in target.tags or target.overloadpacket in _REDUCTIONS


def is_inside_kernel(node: fx.Node, users: list[fx.Node] | None = None) -> bool:
    """Returns whether Inductor computes the node's value inside the kernels that read the value. Such a value takes no
    memory. `users` are the nodes that read the value; if None, all users in the graph."""
    if not is_elementwise(node) or is_view(node):
        return False
    read_by = readers_of(list(node.users) if users is None else users)
    return bool(read_by) and all(is_elementwise(user) or is_reduction(user) for user in read_by)


def readers_of(users: list[fx.Node]) -> list[fx.Node]:
    """Returns the ops that read a value, directly or through views. `users` are the nodes that read the value directly."""
    found = []
    for user in users:
        found += readers_of(list(user.users)) if is_view(user) else [user]
    return found


def makes_random_numbers(op: fx.Node) -> bool:
    """Returns whether the op computes random numbers from a seed, which gives the same numbers each time."""
    return op_name(op).partition(".")[0] in ("prims::inductor_random", "prims::inductor_randint")


def flops_of(op: fx.Node) -> int:
    """Returns the floating-point operations of a matmul, a convolution, attention or random numbers; 0 for other ops."""
    name = op_name(op).partition(".")[0]
    if makes_random_numbers(op):
        return RANDOM_FLOPS * _product([size_hint(size) for size in op.meta["val"].shape])
    shapes = [[size_hint(size) for size in node.meta["val"].shape] for node in op.all_input_nodes if is_tensor(node)]
    if name in ("aten::mm", "aten::bmm", "aten::_grouped_mm") and len(shapes) >= 2:
        return 2 * _product(shapes[0]) * shapes[1][-1]
    if name in ("aten::addmm", "aten::baddbmm") and len(shapes) >= 3:
        return 2 * _product(shapes[1]) * shapes[2][-1]
    if "attention" in name and len(shapes) >= 3:
        query, key = (shapes[1], shapes[2]) if "backward" in name else (shapes[0], shapes[1])
        if len(query) == 4 and len(key) == 4:
            return (10 if "backward" in name else 4) * _product(query) * key[2]
    if name == "aten::convolution" and len(shapes) >= 2 and isinstance(op.meta["val"], torch.Tensor):
        return 2 * tensor_bytes(op.meta["val"]) // op.meta["val"].element_size() * _product(shapes[1][1:])
    return 0


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
