"""Words for recomputed ops that gave other results than in forward."""

from __future__ import annotations

import warnings
from typing import Any


class ReportedDifferences:
    """What was said of one checkpoint, so that each op is said once."""

    def __init__(self) -> None:
        self.is_expected = False  # whether a step was verified whose differences nobody has asked for since
        self._ops: set[str] = set()

    def warn(self, found: list[dict[str, Any]], stacklevel: int) -> None:
        """Warns of those that are new. `found` is that of Checkpoint.recompute_differences()."""
        for each in found:
            if each["op"] not in self._ops:
                self._ops.add(each["op"])
                warnings.warn(f"rematch: {what_differs(each)}. {how_to_keep(each['op'])}", stacklevel=stacklevel + 1)


def what_differs(difference: dict[str, Any]) -> str:
    """In words, what recompute_differences() of a checkpoint found."""
    return (f"op {difference['index']} of region {difference['region']}, {difference['op']} in {difference['scope'] or 'its layer'}, "
            "gave other results when it was recomputed than in forward")


def how_to_keep(op: str) -> str:
    """What to do where an op is not repeatable."""
    if op.startswith("aten::"):
        return ("Either its kernel does not repeat its bits (torch.use_deterministic_algorithms(True)), or a kernel of a library "
                "wrote to what it reads; make that kernel's call rematch.opaque()")
    return f"It has a state or random numbers of its own: call rematch.keep_op({op!r}) before rematch.trace"
