"""Makes plans from a policy or a search, predicts them, and prepares them to run."""

from __future__ import annotations

import atexit
import ctypes
import json
import pathlib
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import torch

from rematch._differences import ReportedDifferences
from rematch._hidden import HiddenEffects
from rematch._library import LIBRARY, PlanError, call, call_for_json

# The key in "dimensions" that marks traces and plans of a compiled model's joint graph.
COMPILED = "compiled_graph"

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "TB": 10**12}


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


def is_for_compiled(document: object) -> bool:
    """Returns whether a JSON document is a trace or a plan of a compiled model's graph."""
    dimensions = document.get("dimensions") if isinstance(document, dict) else None
    return isinstance(dimensions, dict) and COMPILED in dimensions


def require_for_compiled(plan: dict[str, Any]) -> None:
    """Raises PlanError for a plan of an eager model."""
    if not is_for_compiled(plan):
        raise PlanError("the plan is for an eager model, and the graph of a compiled model has other ops: give it to "
                        "rematch.Checkpoint, or make a plan from the trace of rematch.export_joint(model, step, path)")


def read_plan(name: str) -> Any:
    """Returns the plan in a file, or the plan of a front's point ("front.json#3")."""
    path, _, number = name.partition("#")
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from None
    points = document.get("points", []) if isinstance(document, dict) else []
    if not number and not points:
        return document
    if number == "simple":
        if not document.get("simple"):
            raise ValueError(f"{path} has no simple plan; search with simple=True, or with rematch search")
        return document["simple"]["plan"]
    if not number.isdecimal() or int(number) >= len(points):
        raise ValueError(f"{path} has {len(points)} points; name one by its number from 0: '{path}#0'")
    return points[int(number)]["plan"]


Traces = Sequence[dict[str, Any]]
Links = dict[str, Any] | str | pathlib.Path  # the document that `rematch profile --links` writes, or its path


def resolve(trace: dict[str, Any] | Traces, policy: str) -> dict[str, Any]:
    """Returns the plan of a named policy for a traced model, as a dict of schema rematch.plan.

    "full" recomputes every layer, "none" no layer, "nth_first(2)" every second layer, and "segments(2)" two layers at a
    time. "save_mm" keeps the results of matmuls, and "attn_only" keeps the results of attention. `rematch list` names
    all policies. For the traces of several steps, returns one plan with several shapes, as combine() does. Raises
    PlanError if the policy does not apply to the model."""
    if isinstance(trace, list | tuple):
        return combine(trace, [resolve(each, policy) for each in trace])
    return call_for_json("resolve", trace, policy)


def combine(traces: Traces, plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns one plan for steps that run different ops, such as padded and unpadded batches. Each of these steps is
    called a shape, and has one trace and one plan.

    The engine follows the shape whose ops the step runs. If one shape has a region at a scope, all shapes get a region
    there, which may recompute nothing. Shapes that run the same ops get the same plan: the plan of the shape that needs
    the most memory without checkpointing. predict(traces, plan) returns the bytes of each shape under the combined
    plan.

    Raises PlanError for plans that do not belong to the traces, and for shapes that would issue different collectives in
    backward."""
    if len(plans) == 1 == len(traces):
        return plans[0]
    return call_for_json("combine", json.dumps(list(traces)), json.dumps(list(plans)))


@overload
def predict(trace: dict[str, Any], plan: dict[str, Any], schedule: str = ..., *, optimizer: str = ...,
            accumulate: int = ...) -> dict[str, Any]: ...


@overload
def predict(trace: Traces, plan: dict[str, Any], schedule: str = ..., *, optimizer: str = ...,
            accumulate: int = ...) -> list[dict[str, Any]]: ...


def predict(trace: dict[str, Any] | Traces, plan: dict[str, Any], schedule: str = "on_demand", *,
            optimizer: str = "none", accumulate: int = 1) -> dict[str, Any] | list[dict[str, Any]]:
    """Predicts a step under a plan, without running it. Several traces give a list of results.

      - `before_bytes`, `after_forward_bytes`: bytes at the beginning of the step and after forward.
      - `peak_bytes`: the peak; `peak_phase` and `peak_scope`: its phase and its layer; `peak_bytes_by_phase`: the peak
        of each phase.
      - `holders_at_peak_bytes`: the bytes at the peak by holder ("parameters", "saved_activations", ...).
      - `recomputed_ops`: the number of recomputed ops.

    Bytes are counted between ops, and include parameters and the state of `optimizer` ("adamw"). If the plan has
    several shapes, the shape of the trace is predicted. Raises PlanError if the plan belongs to another trace.

    With `accumulate`, the step runs forward and backward on that many micro-batches of the traced step, adds up their
    gradients, and runs the optimizer once."""
    if isinstance(trace, list | tuple):
        return [predict(each, plan, schedule, optimizer=optimizer, accumulate=accumulate) for each in trace]
    return call_for_json("predict", with_micro_batches(trace, accumulate), plan, schedule, optimizer)


def with_micro_batches(trace: Any, accumulate: int) -> dict[str, Any]:
    """Returns the trace of a step that adds up the gradients of `accumulate` micro-batches of the traced step."""
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; a step has at least 1 micro-batch")
    found: dict[str, Any] = trace if accumulate == 1 else call_for_json("accumulate", trace, accumulate)
    return found


@overload
def search(trace: dict[str, Any], *, device: str | None = ..., profile: dict[str, Any] | None = ..., schedule: str = ...,
           optimizer: str = ..., points: int = ..., budget: str | int | None = ..., free: str | int | None = ...,
           offload: bool = ..., link_rate: str | int | None = ..., links: Links | None = ...,
           simple: bool = ..., baselines: Sequence[str] | None = ..., accumulate: int = ...) -> dict[str, Any]: ...


@overload
def search(trace: Traces, *, device: str | None = ..., profile: Sequence[dict[str, Any]] | None = ..., schedule: str = ...,
           optimizer: str = ..., points: int = ..., budget: str | int | None = ..., free: str | int | None = ...,
           offload: bool = ..., link_rate: str | int | None = ..., links: Links | None = ...,
           simple: bool = ..., baselines: Sequence[str] | None = ..., accumulate: int = ...) -> list[dict[str, Any]]: ...


def search(trace: dict[str, Any] | Traces, *, device: str | None = None,
           profile: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
           schedule: str = "on_demand", optimizer: str = "adamw", points: int = 16, budget: str | int | None = None,
           free: str | int | None = None, offload: bool = False, link_rate: str | int | None = None, links: Links | None = None,
           simple: bool = False, baselines: Sequence[str] | None = None,
           accumulate: int = 1) -> dict[str, Any] | list[dict[str, Any]]:
    """Searches for plans. Returns the front, from the smallest peak to the fastest step, as a dict of schema
    rematch.front.

    The front contains at most `points` points. Each has a `plan` for Checkpoint, `predicted_peak_allocated_bytes`,
    `predicted_step_time_ns` of forward and backward, and `predicted_recomputed_ops`. `saves` describes in words what
    the plan keeps. Op times come from `profile`, or from the data sheet of `device` ("h100").

    With a budget ("24GiB", or bytes), "answer" is the fastest plan whose peak fits, or None. Instead of a budget,
    `free` gives the bytes that are left after parameters and the state of `optimizer`.

    With `offload`, plans may move values that layers keep for backward to the host. Step times then include the copies,
    at `link_rate` ("25GB/s", or bytes per second), at the rates of `links`, or at the rates of the data sheet. `links`
    is a document that `rematch profile --links` writes, or its path. With `device`, the times of collectives also come
    from `links`.

    With `simple`, the front also contains "simple", the best plan of a simple form for schedule "whole_region". The
    regions of a simple plan are whole layers or modules, with one save list for all layers or for each of two groups of
    layers. "simple" is the fastest such plan that fits into the budget. Without a budget, the limit is the device's
    memory if it is known, else the peak at the front's knee. If no simple plan fits, "simple" is the one with the
    lowest peak. `more_peak_bytes` and `more_step_time_ns` say how much more it needs than plans of the front.

    `baselines` are policies to compare with, by default those of `rematch search`. Policies that do not apply to the
    model are skipped. No baseline is better than the answer. `rematch search --trace` gives the same front.

    With `accumulate`, a step has that many micro-batches, as for predict(). Figures are of the whole step. A profile may
    be of one micro-batch.

    For a list of traces, with one `device` or a list as `profile`, returns a list of fronts for the same budget.
    combine() combines their answers into one plan. Raises PlanError or ValueError for an unknown name or a malformed
    file."""
    if (device is None) == (profile is None):
        raise ValueError("search needs either device='h100' or profile=...")
    if points < 1:
        raise ValueError(f"points is {points}; it must be at least 1")
    request: dict[str, Any] = {"schedule": schedule, "optimizer": optimizer, "points": points, "simple": simple,
                               "baselines": None if baselines is None else list(baselines)}
    if budget is not None and free is not None:
        raise ValueError("search got both budget and free; give only one")
    if budget is not None or free is not None:
        request["budget_bytes" if free is None else "free_bytes"] = bytes_of(budget if budget is not None else free or 0)
    request |= _link_request(offload, link_rate, links, device)
    if not isinstance(trace, list | tuple):
        return call_for_json("search", with_micro_batches(trace, accumulate),
                             request | ({"device": device} if profile is None else {"profile": profile}))
    trace = [with_micro_batches(each, accumulate) for each in trace]
    if profile is None:
        return [call_for_json("search", each, request | {"device": device}) for each in trace]
    if isinstance(profile, dict) or len(profile) != len(trace):
        raise ValueError(f"search got {len(trace)} traces; profile must be a list with one profile for each")
    return [call_for_json("search", each, request | {"profile": times}) for each, times in zip(trace, profile, strict=True)]


def _link_request(offload: bool, link_rate: str | int | None, links: Links | None, device: str | None) -> dict[str, Any]:
    if link_rate is not None and (links is not None or not offload):
        raise ValueError("link_rate=... sets the rate of offloaded copies; use it with offload=True and without links=...")
    if links is not None and device is None and not offload:
        raise ValueError("links=... has no effect on measured times; use it with device='h100', or with offload=True for "
                         "the rates of copies")
    request: dict[str, Any] = {"offload": offload}
    if link_rate is not None:
        is_text = isinstance(link_rate, str)
        if is_text and not str(link_rate).endswith("/s"):
            raise ValueError(f"link_rate is {link_rate!r}; write it as '25GB/s', or as a whole number of bytes per second")
        request["link_rate_bytes_per_second"] = bytes_of(str(link_rate)[:-2] if is_text else link_rate)
    if links is not None:
        request["links"] = links if isinstance(links, dict) else json.loads(pathlib.Path(links).read_text(encoding="utf-8"))
    return request


def render(front: dict[str, Any], path: str | pathlib.Path) -> None:
    """Writes a searched front as an HTML file that shows the plans by peak and step time, what each plan keeps, and the
    baselines."""
    path = pathlib.Path(path)
    path.write_bytes(call("render_front", path.name, json.dumps(front)))


def bytes_of(size: str | int) -> int:
    """Converts "24GiB", "500MB" or a whole number to bytes. Raises ValueError for anything else, and for less than 1
    B."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?i?B)", size) if isinstance(size, str) else None
    if type(size) is int:
        found = size
    elif match is not None and match[2] in _UNITS:
        found = int(float(match[1]) * _UNITS[match[2]])
    else:
        raise ValueError(f"{size!r} is not a size; write it as '24GiB' or '500MB', or as a whole number of bytes")
    if found < 1:
        raise ValueError(f"{size!r} is not a size; it must be at least 1 B")
    return found


def size_text(size: int) -> str:
    """Formats bytes, for example as "24.00 GiB"."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.2f} {unit}"
    return f"{size} B"
