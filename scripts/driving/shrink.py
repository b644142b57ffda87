"""Finds a smaller case with the same kind of failure by removing or lowering one thing at a time."""

import time

from driving.case import FrontPoint

SECONDS = 90


def shrink(case, kinds, fails):
    """`fails(case)` returns the kinds of failure of a case. Stops when no smaller case fails in the same way, or at the
    time limit."""
    end = time.monotonic() + SECONDS
    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(case):
            if time.monotonic() > end:
                return case
            if fails(candidate) & kinds:
                case, smaller = candidate, True
                break
    return case


def candidates(case):
    yield from without_policies(case)
    yield from without_flags(case)
    yield from lower_extents(case)
    yield from shorter_files(case)


def changed(case, **values):
    copy = case.copy()
    for name, value in values.items():
        setattr(copy, name, value)
    return copy


def without(items, index):
    return items[:index] + items[index + 1:]


def without_policies(case):
    if len(case.policies) + len(case.plans) > 1:
        for index in range(len(case.policies)):
            yield changed(case, policies=without(case.policies, index))
        for index in range(len(case.plans)):
            yield changed(case, plans=without(case.plans, index))
    for index, plan in enumerate(case.plans):
        if isinstance(plan, FrontPoint):
            continue
        yield changed(case, policies=[*case.policies, plan.policy], plans=without(case.plans, index))


def without_flags(case):
    if case.afterwards:
        yield changed(case, afterwards=None)
    usual = {"--steps": "1", "--rounds": "0", "--threads": "1", "--optimizer": "none"}
    for flag, value in case.flags.items():
        left = {name: given for name, given in case.flags.items() if name != flag}
        if flag not in usual:
            if flag != "--schedule":
                yield changed(case, flags=left)
        elif value != usual[flag]:
            yield changed(case, flags={**left, flag: usual[flag]})
    if case.flags["--schedule"] == "both":
        for schedule in ("on_demand", "whole_region"):
            yield changed(case, flags={**case.flags, "--schedule": schedule})
    for flag in ("--dtype", "--ops", "--dropout-percent", "--tied", "--frozen-layers",
                 "--adapter-rank"):
        if flag in case.model:
            yield changed(case, model={name: value for name, value in case.model.items()
                                       if name != flag})


def lower_extents(case):
    """Lowers one size at a time. If the sizes no longer fit together, the tool rejects the case, which is a different
    kind of failure."""
    for flag, value in case.model.items():
        if not value.isdigit():
            continue
        for lower in (1, 2, int(value) // 2, int(value) - 1):
            if 0 < lower < int(value):
                yield changed(case, model={**case.model, flag: str(lower)})


def shorter_files(case):
    for name, content in case.files.items():
        if isinstance(content, str):
            continue
        for key, value in content.items():
            if key in ("schema", "name"):
                continue
            rest = {other: kept for other, kept in content.items() if other != key}
            yield changed(case, files={**case.files, name: rest})
            for index in range(len(value)) if isinstance(value, list) else ():
                shorter = {**content, key: without(value, index)}
                yield changed(case, files={**case.files, name: shorter})
