"""Compiles a model with torch.compile so that a step follows a plan."""

from __future__ import annotations

import functools
import json
import pathlib
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from rematch._library import PlanError, Refused, RematchError, call
from rematch._recorder import recorder_of
from rematch.blocks import find_blocks
from rematch.planning import bytes_of, read_plan, require_for_compiled
from rematch.tracing import constant_bytes_of, parameters_of

if TYPE_CHECKING:
    from rematch.compiled.chosen import CompiledPlan
    from rematch.compiled.graph_plans import Option
    from rematch.compiled.joint_graph import JointGraph
    from rematch.compiled.partitioner import Partitioner

Model = TypeVar("Model", bound=torch.nn.Module)

_plans: weakref.WeakKeyDictionary[torch.nn.Module, Callable[[], CompiledPlan]] = weakref.WeakKeyDictionary()


def compile(model: Model, step: Callable[[], torch.Tensor] | None = None, *, budget: str | int | None = None,
            policy: str | None = None, per_block: bool = False, backend: str = "inductor", device: str | None = None,
            optimizer: str = "adamw", options: dict[str, Any] | None = None, **keywords: Any) -> Model:
    """Compiles the model in place, like model.compile(), so that its step follows a plan. Returns the model.
    compiled_plan_of() returns the plan.

    Give exactly one of these:
      - `budget`, "24GiB" or a number of bytes. Chooses the fastest plan whose predicted peak fits. The peak counts
        parameters, buffers, gradients, the state of `optimizer`, and the memory of compiled graphs. Of eager code outside
        of them, it counts only a loss after the last graph. `step()` runs forward on one batch and returns the loss. The first step compiles
        the graphs. If their kernels need more than the budget, it compiles a smaller plan.
      - `policy`: "full", "attn_only", "save_mm", "nth_first(2)" or another name that `rematch list` prints.

    `per_block` compiles each layer by itself, with one plan for all layers that share a graph. `backend` is "inductor",
    or "aot_eager", which runs graphs op by op. Op times come from the data sheet of `device` ("h100"), by default the
    model's device. `options` and other keywords go to torch.compile.

    For a graph that the step did not run, such as a graph for another batch size, a plan is searched when the graph is
    compiled. A graph that cannot be planned then is left to PyTorch's partitioner, with a warning. Inductor's caches
    still work: an equal plan reuses cached graphs.

    Raises PlanError, which names the lowest peak, if no plan fits. Raises PlanError for an unknown policy. Raises
    Refused for a model under rematch.apply(), for graphs that contain torch.utils.checkpoint, and for an unsupported
    torch. Raises ValueError for any other backend."""
    from rematch.compiled.backends import aot_eager, require_backend, require_torch
    from rematch.compiled.chosen import plan_so_far
    from rematch.compiled.within_budget import WithinBudget

    require_backend(backend)
    if (budget is None) == (policy is None):
        raise ValueError("compile needs either budget='24GiB' or policy='attn_only'")
    if (budget is None) != (step is None):
        raise ValueError("compile with a budget needs step=..., a function that runs forward and returns the loss; compile "
                         "with a policy takes no step")
    require_torch()
    if recorder_of(model) is not None:
        raise Refused("the model follows an eager plan; call rematch.remove(model) before rematch.compile(model)")
    options = _with_mode(keywords.pop("mode", None), options)
    device = _device_of(model) if device is None else device
    modules: list[torch.nn.Module] = [model]
    if per_block:
        modules = [module for blocks in find_blocks(model).values() for module in blocks]
    if not modules:
        raise RematchError(f"{type(model).__name__} has no list of layers, so per_block has nothing to compile")
    chosen: dict[str, Any]
    plan: Callable[[], CompiledPlan]
    if policy is not None:
        made = partitioner(policy, device=device, backend=backend)
        chosen = {"backend": backend, "options": {**made.inductor_options(), **options}}
        if backend == "aot_eager":
            chosen = {"backend": aot_eager(made)}
        plan = functools.partial(plan_so_far, made)
    else:
        assert budget is not None and step is not None
        within = WithinBudget(model, modules, step, bytes_of(budget), backend, device, optimizer, keywords, options)
        chosen, plan = {"backend": within.compiler}, within.plan
    for module in modules:
        module.compile(**chosen, **keywords)
    _plans[model] = plan
    return model


def compiled_plan_of(model: torch.nn.Module) -> CompiledPlan:
    """Returns the plan that compile() has chosen for the model: a dataclass with the predicted peak, and with the plan of
    each graph. Prints as a table.

    Graphs of a model compiled with a policy are listed once torch has compiled them, in the first step. Graphs from
    Inductor's caches are listed only for a model compiled with a budget. Raises ValueError for a model that compile()
    has not compiled."""
    if model not in _plans:
        raise ValueError(f"this {type(model).__name__} follows no compiled plan; call rematch.compile(model, step, budget=...) "
                         "first")
    return _plans[model]()


def export_joint(model: torch.nn.Module, step: Callable[[], torch.Tensor], path: str | pathlib.Path, *,
                 profile: str | pathlib.Path | None = None, name: str | None = None, backend: str = "inductor",
                 device: str | None = None, **keywords: Any) -> None:
    """Writes the joint graph of the compiled step as a file of schema rematch.trace, for `rematch search`, `predict` and
    `describe --trace`. The graph runs once, op by op, and nothing is compiled.

    Also writes the op times that compile() uses to the file `profile`, for `rematch search --profile`. The model's name
    in the files is `name`, by default its class, with " (compiled)" appended. Plans for the trace work only with
    rematch.partitioner(), not with eager models. The commands predict the peak of the graph op by op, without fusion.
    Other arguments are as for compile().

    Raises RematchError if the step runs several graphs."""
    from rematch.compiled.backends import require_backend, require_torch
    from rematch.compiled.capture import captured
    from rematch.compiled.op_costs import rates_of
    from rematch.compiled.options import Planner

    fuses = require_backend(backend) == "inductor"
    require_torch()
    capture = captured(backend, model, [model], step, keywords)
    if len(capture.calls) > 1:
        raise RematchError(f"step() runs {len(capture.calls)} compiled graphs, but a file holds only one: remove the graph breaks "
                           "(TORCH_LOGS=graph_breaks names them), or use rematch.compile, which plans several graphs")
    (joint,) = capture.graphs.values()
    planner = Planner(joint, rates_of(_device_of(model) if device is None else device), fuses=fuses,
                      model=f"{name or type(model).__name__} (compiled)")
    trace = planner.trace_with_modules() | parameters_of(model)
    trace["constant_bytes"] = constant_bytes_of(model) + planner.batch_bytes
    pathlib.Path(path).write_text(json.dumps(trace), encoding="utf-8")
    if profile is not None:
        pathlib.Path(profile).write_text(json.dumps(planner.profile(trace)), encoding="utf-8")


def partitioner(plan: str | int | dict[str, Any] | pathlib.Path, *, device: str = "cpu", optimizer: str = "adamw",
                backend: str = "inductor") -> Partitioner:
    """Returns a partitioner for torch.compile's option "custom_partitioner_fn", without running a step.

        torch.compile(model, options=rematch.partitioner("attn_only").inductor_options())

    `plan` is one of these:
      - a policy: "full", "attn_only", "save_mm" or "nth_first(2)".
      - a plan for a trace of export_joint(): a dict, or a file, such as "front.json#3".
      - a budget: "24GiB", or a number of bytes. Each graph gets the fastest plan that fits, as if the step ran only
        this graph. The peak counts the graph's inputs, the state of `optimizer` for its parameters, gradients, and all
        outputs of forward.

    Use rematch.compile() if a step runs several graphs. `device` and `backend` are as for compile().

    Raises PlanError for an unknown policy. Compiling the first graph raises PlanError if no plan fits, and names the
    lowest peak, or if the plan is for another graph. A graph to which a policy does not apply, and a later graph that
    cannot be planned, are left to PyTorch's partitioner, with a warning."""
    from rematch.compiled.backends import require_backend, require_torch
    from rematch.compiled.op_costs import rates_of
    from rematch.compiled.options import Planner, bytes_before, fitting
    from rematch.compiled.partitioner import Partitioner, warn_once

    require_torch()
    rates, fuses = rates_of(device), require_backend(backend) == "inductor"
    is_file = isinstance(plan, pathlib.Path) or isinstance(plan, str) and ".json" in plan
    found: Any = read_plan(str(plan)) if is_file else plan
    if is_file or isinstance(plan, dict):
        require_for_compiled(found)
    is_budget = isinstance(found, int) or isinstance(found, str) and found[:1].isdigit()
    limit = bytes_of(found) if is_budget else None
    if not is_budget and not isinstance(found, dict):
        call("require_policy", found)
    told: list[str] = []

    def choose(joint: JointGraph) -> Option | None:
        planner = Planner(joint, rates, fuses=fuses)
        if limit is not None:
            return fitting(planner.options(), bytes_before(planner.trace, optimizer), limit)
        if isinstance(found, dict):
            return planner.of_plan(found)
        try:
            return planner.named(found)
        except PlanError as error:
            warn_once(told, f"PyTorch chooses what a compiled graph saves, because the policy does not apply: {error}")
            return None
    return Partitioner(choose, repr((found, rates, optimizer, fuses)))


def _with_mode(mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """Returns Inductor's options for torch.compile's `mode`. torch.compile takes no mode beside options, and a plan is
    an option."""
    if mode is None:
        return options or {}
    if options:
        raise ValueError("torch.compile takes either mode or options; leave one of them out")
    from torch._inductor import list_mode_options
    return dict(list_mode_options(mode))


def _device_of(model: torch.nn.Module) -> str:
    return next((parameter.device.type for parameter in model.parameters()), "cpu")
