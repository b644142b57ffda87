"""The aims of the cuts that find the values which forward must save: the fewest bytes, or the fastest step. The library
computes the cuts: see policies/joint/fewest_saved.h."""

from __future__ import annotations

import dataclasses

from torch import fx

from rematch.compiled.joint_graph import JointGraph, is_symbolic_size


@dataclasses.dataclass(frozen=True)
class Aim:
    """The quantity that a cut minimizes. Without `traffic_per_byte`: the saved bytes, where the bytes of values inside kernels count
    `shift` sixteenths more, because such values are in memory only if they are saved. With `traffic_per_byte`: the time
    of saving and of recomputing, plus the time of moving each saved byte that many times."""

    shift: int = 0
    traffic_per_byte: int | None = None


# A plan has an option for each aim. At 4, recomputing a gelu of single precision costs less than saving its result.
AIMS = (Aim(shift=1), Aim(shift=-1), Aim(traffic_per_byte=0), Aim(traffic_per_byte=4))


def inputs_and_sizes(joint: JointGraph) -> list[fx.Node]:
    """Returns the values that forward may save and that need no memory of their own: inputs and symbolic sizes."""
    return list(dict.fromkeys((*joint.inputs, *(node for node in joint.nodes if node.op == "call_function" and joint.is_forward(node)
                                                and is_symbolic_size(node)))))
