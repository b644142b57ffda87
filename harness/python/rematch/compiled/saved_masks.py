"""Saves boolean masks as bytes, because Inductor's kernels for the CPU store booleans slowly.

A kernel holds a vector of booleans as floats. To store it, at::vec::VecMask::store() converts it in scalar loops over
Vectorized<bool>. On an EPYC core with AVX2, this takes 11 to 16 ns per element, about as long as drawing a random number.
Kernels that convert floats to uint8 use vector instructions, which take 0.2 ns per element. Figures are those of torch
2.11 and 2.15. A stored byte takes as much memory as a stored boolean."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from rematch.compiled.op_costs import is_elementwise, is_inside_kernel, is_reduction, readers_of

_convert = torch.ops.prims.convert_element_type.default


def save_masks_as_bytes(forward: fx.GraphModule, backward: fx.GraphModule, num_outputs: int) -> None:
    """Changes what forward saves and backward reads. The first `num_outputs` results of forward are the program's. Leaves
    out booleans that are in memory anyway, because the program or an extern kernel reads them."""
    (output,) = forward.graph.find_nodes(op="output")
    results = list(output.args[0])
    of_program = set(results[:num_outputs])
    inputs = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    for index, saved in enumerate(results[num_outputs:], num_outputs):
        if not _is_mask(saved) or saved in of_program or not _is_made_in_kernel(saved, output):
            continue
        read = inputs.get(saved.name)
        if read is None or not _is_read_in_kernels(read):
            continue
        results[index] = _as_bytes(saved)
        _read_bytes(read, results[index].meta["val"])
    output.args = (type(output.args[0])(results),)
    forward.recompile()
    backward.recompile()


def _is_mask(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.device.type == "cpu"


def _is_made_in_kernel(node: fx.Node, output: fx.Node) -> bool:
    """Returns whether the node's value is in memory only because it is saved."""
    return is_inside_kernel(node, [user for user in node.users if user is not output])


def _is_read_in_kernels(node: fx.Node) -> bool:
    """Returns whether kernels can convert the value while they read it."""
    return all(is_elementwise(reader) or is_reduction(reader) for reader in readers_of(list(node.users)))


def _as_bytes(mask: fx.Node) -> fx.Node:
    """Adds the conversion of the mask to bytes. A direct conversion from booleans would take 5 ns per element."""
    with mask.graph.inserting_after(mask):
        as_floats = _added(mask, _convert, mask, torch.float32)
    with mask.graph.inserting_after(as_floats):
        return _added(mask, _convert, as_floats, torch.uint8)


def _read_bytes(read: fx.Node, stored: torch.Tensor) -> None:
    """Makes backward's input one of bytes, which its readers compare with 0."""
    users = list(read.users)
    last = list(read.graph.find_nodes(op="placeholder"))[-1]
    read.meta["val"] = stored
    read.meta.pop("tensor_meta", None)
    with read.graph.inserting_after(last):
        as_floats = _added(read, _convert, read, torch.float32)
    with read.graph.inserting_after(as_floats):
        mask = _added(read, torch.ops.aten.ne.Scalar, as_floats, 0)
    for user in users:
        user.replace_input_with(read, mask)


def _added(source: fx.Node, target: Any, node: fx.Node, *arguments: Any) -> fx.Node:
    """Adds an op on `node` to the graph, with the meta of `source`."""
    added = source.graph.call_function(target, (node, *arguments))
    added.meta = {name: value for name, value in source.meta.items() if name != "tensor_meta"}
    added.meta["val"] = target(node.meta["val"], *arguments)
    return added
