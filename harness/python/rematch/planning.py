"""Plans: from a policy or a search, their prediction, and a plan made ready to run."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence

from rematch._library import LIBRARY, call, call_for_json

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "TB": 10**12}


class Checkpoint:
    """A plan made ready to run; serves any number of recordings.

    `plan` is a dict of schema rematch.plan, or a file of one; a point of a front is "front.json#3". `schedule` is
    "on_demand", which recomputes what backward asks for, or "whole_region", which runs as torch.utils.checkpoint.
    `front` is the search that the plan is from, if auto() made it."""

    front: dict | None = None

    def __init__(self, plan: dict | str | pathlib.Path, schedule: str = "on_demand"):
        self.handle = None
        self.plan = plan if isinstance(plan, dict) else _read_plan(str(plan))
        self.schedule = schedule
        self.handle = call("make_checkpoint", json.dumps(self.plan), schedule)

    def __del__(self) -> None:
        if self.handle is not None:
            LIBRARY.rematch_free_checkpoint(self.handle)


def _read_plan(name: str) -> dict:
    path, _, number = name.partition("#")
    document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    if not number:
        return document
    points = document.get("points", [])
    if not number.isdigit() or int(number) >= len(points):
        raise ValueError(f"{path} has points 0 to {len(points) - 1}; {name} asks for another")
    return points[int(number)]["plan"]


def resolve(trace: dict, policy: str) -> dict:
    """A named policy's plan for a traced model: "full", "save_mm", "nth_first(2)", as `rematch list` names them."""
    return call_for_json("resolve", trace, policy)


def predict(trace: dict, plan: dict, schedule: str = "on_demand", *, optimizer: str = "none") -> dict:
    """Peak bytes, what holds them, and recomputed ops of a step under a plan, without running it."""
    return call_for_json("predict", trace, plan, schedule, optimizer)


def search(trace: dict, *, device: str | None = None, profile: dict | None = None, schedule: str = "on_demand",
           optimizer: str = "adamw", points: int = 16, budget: str | int | None = None,
           baselines: Sequence[str] = ("full", "attn_only", "save_mm")) -> dict:
    """The plans worth having, from the smallest peak to the fastest step, as a dict of schema rematch.front.

    Times are those of `profile`, or of the data sheet of `device` ("h100"). With a budget ("24GiB", or bytes),
    "answer" is the fastest plan whose peak fits, None if none does. `baselines` are policies to compare with; those
    that do not apply to the model are left out."""
    if (device is None) == (profile is None):
        raise ValueError("search needs one of device='h100' and profile=...")
    request = {"schedule": schedule, "optimizer": optimizer, "points": points, "baselines": list(baselines)}
    request |= {"device": device} if profile is None else {"profile": profile}
    if budget is not None:
        request["budget_bytes"] = bytes_of(budget)
    return call_for_json("search", trace, request)


def render(front: dict, path: str | pathlib.Path) -> None:
    """Writes a searched front as one HTML file: plans by peak and step time, what each keeps, and the baselines."""
    path = pathlib.Path(path)
    path.write_bytes(call("render_front", path.name, json.dumps(front)))


def bytes_of(size: str | int) -> int:
    """Bytes of "24GiB" or "500MB"; a number is bytes."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?i?B)", size)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"'{size}' is not a size; write it as '24GiB' or '500MB'")
    return int(float(match[1]) * _UNITS[match[2]])


def size_text(size: int) -> str:
    """Bytes for people: "24.00 GiB"."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.2f} {unit}"
    return f"{size} B"
