"""Messages about ops whose recomputed results differ from their results in forward."""

from __future__ import annotations

import warnings
from typing import Any


class ReportedDifferences:
    """Warns about the ops of one checkpoint whose recomputed results differ. Names each op only once."""

    def __init__(self) -> None:
        self.is_expected = False  # True if a verified step's differences have not been read yet.
        self._ops: set[str] = set()

    def warn(self, found: list[dict[str, Any]], stacklevel: int) -> None:
        """Warns of the ops that no earlier warning has named. `found` is what Checkpoint.recompute_differences()
        returns."""
        for each in found:
            if each["op"] not in self._ops:
                self._ops.add(each["op"])
                warnings.warn(f"rematch: {what_differs(each)}. {how_to_keep(each['op'])}", stacklevel=stacklevel + 1)


def what_differs(difference: dict[str, Any]) -> str:
    """Describes one entry of Checkpoint.recompute_differences() in words."""
    return (f"op {difference['index']} of region {difference['region']}, {difference['op']} in {difference['scope'] or 'its layer'}, "
            "gave different results when it was recomputed than in forward")


def how_to_keep(op: str) -> str:
    """Advises the user what to do about an op that is not repeatable."""
    if op.startswith("aten::"):
        return ("Either its kernel is not deterministic (torch.use_deterministic_algorithms(True)), or a library kernel "
                "wrote to the op's input; call that kernel through rematch.opaque()")
    return f"If the op has its own state or random numbers, call rematch.keep_op({op!r}) before rematch.trace"
