"""Looks up the time of a forward op on a device by the op's name and the shapes of its inputs."""

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_alone.op_facts import op_name, tensors_in

# Op classes that are expensive to recompute even in compiled code, where all other ops are fused.
DEAR_CLASSES = ("matmul", "attention_forward")
SMALL_UNITS = 1000


# In a compiled graph, dropout is three ops: one draws a mask, one scales the mask, and one multiplies.
DROPOUT = "aten::native_dropout"


def ops_of_dropout(shape):
    return [("aten::bernoulli.float", (shape,)), ("aten::div.Scalar", (shape,)), ("aten::mul.Tensor", (shape, shape))]


def op_key(name, shapes):
    """Normalizes an op's name and shapes. Drops scalars, which some recorders list as tensors. Drops the underscore at
    the end of in-place ops, because functorch lists these ops without it."""
    name, dot, overload = name.partition(".")
    return name.rstrip("_") + dot + overload, tuple(tuple(shape) for shape in shapes if len(shape) > 0)


class OpPrices:
    """The times of a trace's forward ops in nanoseconds, from a profile of the trace."""

    def __init__(self, trace, profile):
        self._price = {}
        self.unpriced = Counter()
        for (kind, op), time_ns in zip(_ops_of(trace), _times_of(profile), strict=True):
            inputs = [use[0] if isinstance(use, list) else use for use in op["inputs"]]
            shapes = [kind["values"][value]["shape"] for value in inputs]
            self._price[op_key(op["name"], shapes)] = time_ns

    def of(self, counts):
        """Returns the total time of ops, given their counts by key. If forward does not run an op with these shapes,
        the op counts as free, and `unpriced` records its key."""
        priced = Counter()
        for (name, shapes), count in counts.items():
            for key in ops_of_dropout(shapes[0]) if name == DROPOUT else [(name, shapes)]:
                priced[key] += count
        self.unpriced += Counter({key: count for key, count in priced.items() if key not in self._price})
        return sum(count * self._price.get(key, 0) for key, count in priced.items())


def _ops_of(trace):
    for span in trace["spans"]:
        kind = trace["types"][span["type"]]
        for op in kind["ops"]:
            yield kind, op


def _times_of(profile):
    forward = profile["forward"]
    return [time_ns for kind in forward["spans"] for time_ns in forward["types"][kind]["times_ns"]]


def with_dear_ops_alone(trace, profile):
    """Returns a profile in which every forward op except matmuls and attention takes a thousandth of a nanosecond. The
    time must not be 0, because the search drops plans whose recomputation takes no time."""
    is_dear = [op["class"] in DEAR_CLASSES for _, op in _ops_of(trace)]
    times = [SMALL_UNITS * time_ns if dear else 1 for dear, time_ns in zip(is_dear, _times_of(profile), strict=True)]
    backward = {"types": [kind | {"times_ns": [SMALL_UNITS * time_ns for time_ns in kind["times_ns"]]}
                          for kind in profile["backward"]["types"]], "spans": profile["backward"]["spans"]}
    return profile | {"forward": {"types": [{"times_ns": times, "temporary_bytes": None}], "spans": [0]},
                      "backward": backward, "optimizer_ns": SMALL_UNITS * profile["optimizer_ns"]}


class CountedOps(TorchDispatchMode):
    """Counts executed ops, by key."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten.detach.default:  # PyTorch's dispatch modes run detach when they save a tensor
            return func(*args, **kwargs)
        tensors = (tensor for value in (*args, *kwargs.values()) for tensor in tensors_in(value))
        self.counts[op_key(op_name(func), [tensor.shape for tensor in tensors])] += 1
        return func(*args, **kwargs)


def ops_of_graph(graph_module):
    """Returns the ops of a functorch graph, by key."""
    counts = Counter()
    for node in graph_module.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target is not torch.ops.aten.detach.default:
            read = []
            torch.fx.node.map_arg((node.args, node.kwargs), read.append)
            values = (other.meta.get("val") for other in read)
            counts[op_key(op_name(node.target), [value.shape for value in values if isinstance(value, torch.Tensor)])] += 1
    return counts
