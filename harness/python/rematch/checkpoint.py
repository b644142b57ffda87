"""The plan that is ready to run, and its report."""

from __future__ import annotations

import atexit
import ctypes
import json
import pathlib
import re
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from rematch._differences import ReportedDifferences
from rematch._hidden import HiddenEffects
from rematch._library import LIBRARY, PlanError, call
from rematch.planning import is_for_compiled, read_plan, size_text

_asked_by_engine: list[Any] = []  # C callbacks, kept alive because a graph may call them even after its Checkpoint is
                                  # deleted
_ON_MISMATCH = ("follow", "refuse")
_OF_PROCESS = ("handle", "_gathered", "_hidden", "_reported")  # attributes of a Checkpoint that pickle must not store
_verified: weakref.WeakSet[Checkpoint] = weakref.WeakSet()


@atexit.register
def _warn_at_exit() -> None:
    for checkpoint in list(_verified):
        checkpoint.warn_of_differences(stacklevel=1)


class Report(list[dict[str, Any]]):
    """Counts how often regions left the plan, which means that they ran other ops than planned. A list with one dict
    for each type of region that ran. Prints as a table.

      - `shape`: 0 for the plan's first shape, i for its i-th other shape; `type`: the index of the region type.
      - `passes`: number of passes through such regions; `left`: how many of them left the plan.
      - `region`: the first region that left the plan; `first_difference`: why it left.
      - `extra_ops`, `missing_ops`: totals over all passes; `kept_beyond_plan_bytes`: maximum over all passes."""

    def __str__(self) -> str:
        has_shapes = any(row["shape"] > 0 for row in self)
        rows = ["| shape " * has_shapes + "| region type | passes | passes that left the plan | extra ops | missing ops "
                "| kept beyond the plan | first difference |", "| --- " * (7 + has_shapes) + "|"]
        for row in self:
            first = f"{row['region']}, {row['first_difference']}" if row["left"] else "-"
            rows.append(f"| {row['shape']} " * has_shapes
                        + f"| {row['type']} | {row['passes']} | {row['left']} | {row['extra_ops']} | {row['missing_ops']} "
                        f"| {size_text(row['kept_beyond_plan_bytes'])} | {first} |")
        return "\n".join(rows)


class Checkpoint:
    """A plan that is ready to run. A Checkpoint serves any number of recordings.

    `plan` is a dict of schema rematch.plan, or a file that contains such a dict. "front.json#3" is a point of a front,
    and "front.json#simple" its simple plan, which was made for schedule "whole_region". `schedule` is "on_demand",
    which recomputes a value when backward needs it, or "whole_region", which recomputes a whole region like
    torch.utils.checkpoint.

    A step may run other ops than its plan expects, for example for a padded batch or if it skips a layer.
    `on_mismatch` says what happens then. With "follow" the affected layer leaves the plan: its planned ops are treated
    as planned, and its other ops are recomputed. The results still equal those of the step without a plan, bit for bit.
    recording() warns once for each kind of layer, and report() says how often it happened. With "refuse" the step
    raises PlanError.

    A plan from combine() contains one plan for each shape of a step, such as padded and unpadded. A step follows the
    plan for the ops that it runs.

    A checkpoint is immutable, so copy and deepcopy return the checkpoint itself. Pickle stores the plan and its
    settings; loading prepares the plan again."""

    handle: int | None = None  # exists even if __init__ failed, because __del__ reads it

    def __init__(self, plan: dict[str, Any] | str | pathlib.Path, schedule: str = "on_demand", *, on_mismatch: str = "follow"):
        if on_mismatch not in _ON_MISMATCH:
            raise ValueError(f"on_mismatch is {on_mismatch!r}; allowed: 'follow', which continues without the plan if a step runs "
                             "different ops, and 'refuse', which then raises RematchError")
        self.plan: dict[str, Any] = plan if isinstance(plan, dict) else read_plan(str(plan))
        if is_for_compiled(self.plan):
            raise PlanError("the plan is for the graph of a compiled model, and an eager model runs other ops: give it to "
                            "rematch.partitioner, or make a plan from rematch.trace(model, step)")
        self.schedule = schedule
        self.on_mismatch = on_mismatch
        self._prepare()

    def _prepare(self) -> None:
        self._gathered: set[int] = set()
        self._reported = ReportedDifferences()
        self.handle = call("make_checkpoint", json.dumps(self.plan), self.schedule, int(self.on_mismatch == "refuse"))
        self._hidden = HiddenEffects(self.plan)

    def shapes(self) -> list[dict[str, Any]]:
        """Returns the plan's shapes, for steps that run different ops. The first is the plan itself."""
        return [self.plan, *self.plan.get("other_shapes", [])]

    def scope_names(self) -> list[str]:
        """Returns the first and the last scope of each region of the plan."""
        return list(dict.fromkeys(region[end] for shape in self.shapes() for region in shape["regions"]
                                  for end in ("first_scope", "last_scope")))

    def report(self) -> Report:
        """Returns how often steps left the plan since this checkpoint was made. The result prints as a table. Also
        warns of recomputed ops whose results differed, if verify_every is set."""
        require_checkpoint(self)
        self.warn_of_differences(stacklevel=3)
        return Report(json.loads(call("departures", self.handle)))

    def recompute_differences(self) -> list[dict[str, Any]]:
        """Returns a dict for each region whose recomputed results differed from the results in forward, in a step under
        check() or verify_every. `op` is the first op that differed, `index` its index among the region's ops, and
        `scope` its module ("" if the region left its plan)."""
        require_checkpoint(self)
        found: list[dict[str, Any]] = json.loads(call("recompute_differences", self.handle))
        for each in found:
            each["scope"] = self._scope_of_op(each["region"], each["index"], each["op"])
        return found

    def warn_of_missing_names(self) -> None:
        """Warns once of each function or op that the plan names as a hidden effect, if an imported module lacks it."""
        self._hidden.warn_of_missing_names()

    def expect_differences(self) -> None:
        """Call this when a verified step begins. Its differences are known only after backward."""
        self._reported.is_expected = True
        _verified.add(self)

    def warn_of_differences(self, *, stacklevel: int) -> None:
        """Warns once of each op whose recomputed results differed in a step under verify_every."""
        if self._reported.is_expected:
            self._reported.warn(self.recompute_differences(), stacklevel)

    def take_differences(self) -> list[dict[str, Any]]:
        """Returns recompute_differences() and suppresses the warning, because the caller reports them."""
        self._reported.is_expected = False
        return self.recompute_differences()

    def _scope_of_op(self, name: str, index: int, op: str) -> str:
        for region, shape in ((region, shape) for shape in self.shapes() for region in shape["regions"]):
            first, last = region["first_scope"], region["last_scope"]
            ops = shape["types"][region["type"]]["ops"]
            if name == (first if first == last else f"{first}..{last}") and index < len(ops) and ops[index]["name"] == op:
                return _whole_scope(first, ops[index]["scope"])
        return ""

    def gathered_by(self, is_back: Callable[[torch.Tensor], bool], parameters: Iterable[torch.Tensor]) -> None:
        """Registers parameters whose content may be missing between forward and backward, as in DeepSpeed ZeRO-3, block
        swap, or with one buffer for several layers.

        Before backward reads such a parameter, the engine calls `is_back(parameter)`. This function must return whether
        the parameter has the same content as in forward, or restore the content and return True. The engine does not
        verify the answer. If the answer is False, backward raises an error. For DeepSpeed ZeRO-3:

            checkpoint.gathered_by(lambda p: p.ds_status.name == "AVAILABLE", model.parameters())"""
        require_checkpoint(self)
        known = {parameter._cdata: weakref.ref(parameter) for parameter in parameters}

        def is_back_at(address: int) -> int:
            parameter = known[address]()
            return int(parameter is not None and is_back(parameter))

        ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(is_back_at)
        _asked_by_engine.append(ask)
        addresses = (ctypes.c_void_p * len(known))(*known)
        call("add_gathered", self.handle, addresses, len(known), ctypes.cast(ask, ctypes.c_void_p))
        self._gathered |= set(known)

    def is_gathered(self, parameter: torch.Tensor) -> bool:
        """Returns whether gathered_by() has registered the parameter."""
        return parameter._cdata in self._gathered

    def __del__(self) -> None:
        if self.handle is not None:
            if not sys.is_finalizing():
                self.warn_of_differences(stacklevel=2)
            LIBRARY.rematch_free_checkpoint(self.handle)

    # A copy is the object itself, because two objects would free the handle twice.
    def __copy__(self) -> Checkpoint:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Checkpoint:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _OF_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()


def _whole_scope(first: str, scope: str) -> str:
    """Returns the full scope of an op. For example, "+2.attention" means layers.5.attention in a region that begins at
    layers.3."""
    match = re.fullmatch(r"\+([0-9]+)(?:\.(.*))?", scope)
    layers, _, number = first.rpartition(".")
    if match and number.isdecimal():
        first, scope = f"{layers}.{int(number) + int(match[1])}", match[2] or ""
    return f"{first}.{scope}" if scope else first


class SearchedCheckpoint(Checkpoint):
    """The result of auto(). `fronts` contains the searched front of each step, as a dict of schema rematch.front;
    `front` is the first of them."""

    def __init__(self, front: dict[str, Any], plan: dict[str, Any], schedule: str,
                 fronts: list[dict[str, Any]] | None = None):
        super().__init__(plan, schedule)
        self.front = front
        self.fronts = [front] if fronts is None else fronts


def require_checkpoint(checkpoint: object) -> None:
    """Raises TypeError unless the argument is an initialized Checkpoint."""
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"a rematch.Checkpoint is needed, but this is a {type(checkpoint).__name__}; make one from a plan: "
                        "rematch.Checkpoint(plan)")
    if checkpoint.handle is None:
        raise TypeError(f"this {type(checkpoint).__name__} was not initialized; call super().__init__(plan) in its __init__")
