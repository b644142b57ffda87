"""Makes plans from a policy or a search, and predicts them."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any, overload

from rematch._library import PlanError, call, call_for_json

# The key in "dimensions" that marks traces and plans of a compiled model's joint graph.
COMPILED = "compiled_graph"

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "TB": 10**12}


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
           simple: bool = ..., hull: bool = ..., baselines: Sequence[str] | None = ..., accumulate: int = ...) -> dict[str, Any]: ...


@overload
def search(trace: Traces, *, device: str | None = ..., profile: Sequence[dict[str, Any]] | None = ..., schedule: str = ...,
           optimizer: str = ..., points: int = ..., budget: str | int | None = ..., free: str | int | None = ...,
           offload: bool = ..., link_rate: str | int | None = ..., links: Links | None = ...,
           simple: bool = ..., hull: bool = ..., baselines: Sequence[str] | None = ..., accumulate: int = ...) -> list[dict[str, Any]]: ...


def search(trace: dict[str, Any] | Traces, *, device: str | None = None,
           profile: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
           schedule: str = "on_demand", optimizer: str = "adamw", points: int = 16, budget: str | int | None = None,
           free: str | int | None = None, offload: bool = False, link_rate: str | int | None = None, links: Links | None = None,
           simple: bool = False, hull: bool = False, baselines: Sequence[str] | None = None,
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

    With `hull`, the search uses only those options of each layer that lie on the layer's convex hull. It then takes less
    time and finds fewer plans.

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
                               "hull": hull, "baselines": None if baselines is None else list(baselines)}
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
