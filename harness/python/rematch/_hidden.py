"""Declares a plan's hidden effects in the process that runs the plan.

An autograd function or op has hidden effects if it writes without torch's knowledge. An op that cannot be repeated also
has hidden effects. The trace lists these functions and ops. Functions are recognized by name when they run, even if
their module is imported later. If an imported module lacks a function or op that the plan names, this module warns,
because the name may have changed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from rematch._functions import declare_opaque


class HiddenEffects:
    """The functions and ops of one plan that have hidden effects. The constructor declares them in this process."""

    def __init__(self, plan: dict[str, Any]):
        self._num_modules = -1  # the size of sys.modules when the names were last looked up
        # Maps each name that was not found yet to a function that looks it up. The function returns "" if it finds the
        # name, None if the module is not imported, and otherwise an error message.
        self._unseen: dict[str, Callable[[], str | None]] = {}
        for each in plan.get("opaque_functions", []):
            declare_opaque(each["name"], each["overwrites"])
            self._unseen[each["name"]] = partial(_fault_of_function, each["name"])
        for each in plan.get("silent_writers", []):
            self._unseen[each["op"]] = partial(_fault_of_op, each["op"], each["arguments"])
        for op in plan.get("kept_ops", []):
            self._unseen.setdefault(op, partial(_fault_of_op, op, []))

    def warn_of_missing_names(self) -> None:
        """Warns once about each name that an imported module lacks. Call this at the beginning of a step."""
        if not self._unseen or len(sys.modules) == self._num_modules:
            return
        self._num_modules = len(sys.modules)
        for name, fault_of in list(self._unseen.items()):
            fault = fault_of()
            if fault is None:
                continue
            del self._unseen[name]
            if fault:
                warnings.warn(f"rematch: {fault}. Its hidden effects are unknown, so bits may differ from the step without "
                              "a plan; trace the model again", stacklevel=5)


def _fault_of_function(name: str) -> str | None:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    if found is None:
        return None
    if "<locals>" in path:
        return ""  # A class inside a function cannot be looked up by name. It is recognized when it runs.
    for part in path.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, torch.autograd.Function):
        return ""
    return f"the plan names autograd function {name}, and {module} has no such function"


def _fault_of_op(name: str, arguments: list[int]) -> str | None:
    op, _, overload = name.partition(".")
    try:
        schema = torch._C._get_schema(op, overload)
    except RuntimeError:
        library = name.partition("::")[0]
        if not any(known.startswith(f"{library}::") for known in torch._C._dispatch_get_all_op_names()):
            return None
        return f"the plan names op {name}, and {library} has no such op"
    if max(arguments, default=0) >= len(schema.arguments):
        return f"the plan says that op {name} writes to argument {max(arguments)}, but the op has no such argument"
    return ""
