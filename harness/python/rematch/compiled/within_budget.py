"""Compiles a model so that its step keeps a budget: captures the step's graphs, searches plans, and compiles the graphs
under the chosen plan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rematch._library import PlanError
from rematch._progress import announced, say
from rematch.compiled.backends import aot_eager
from rematch.compiled.capture import captured
from rematch.compiled.chosen import CompiledPlan, plan_so_far
from rematch.compiled.graph_plans import Option
from rematch.compiled.joint_graph import JointGraph
from rematch.compiled.op_costs import rates_of
from rematch.compiled.options import Planner, bytes_before, fitting, too_small
from rematch.compiled.partitioner import Partitioner, warn_once
from rematch.compiled.ranks import bucket_bytes, gathered_bytes, sharded_ratio, with_sharded_gradients
from rematch.compiled.step_plan import StepPlan
from rematch.planning import size_text
from rematch.tracing import constant_bytes_of, parameters_of


class TooManyBytes(Exception):
    """Ends the compilation of a graph whose kernels exceed the budget, so that it is compiled under another plan."""


class WithinBudget:
    """The plan of a model's step under a budget of `limit` bytes. `compiler` is the backend of torch.compile that follows
    the plan. Raises PlanError if no plan fits. `keywords` go to torch.compile, also when the graphs are captured.
    `options` are Inductor's."""

    def __init__(self, model: torch.nn.Module, modules: Sequence[torch.nn.Module], step: Callable[[], torch.Tensor], limit: int,
                 backend: str, device: str, optimizer: str, keywords: dict[str, Any], options: dict[str, Any]):
        self._limit = limit
        self._backend = backend
        self._optimizer = optimizer
        self._rates = rates_of(device)
        self._fuses = backend == "inductor"
        with announced("reading the step's graphs"):
            capture = captured(backend, model, modules, step, keywords, options)
        with announced("searching"):
            planners = {name: Planner(joint, self._rates, fuses=self._fuses) for name, joint in capture.graphs.items()}
            ratio = sharded_ratio(model)
            offered = {name: with_sharded_gradients(planner.options(), ratio) for name, planner in planners.items()}
        self._calls = [call.graph for call in capture.calls]
        self._before = _bytes_before_step(model, list(planners.values()), optimizer)
        self._steps = StepPlan(offered, self._calls, limit - self._before, capture.loss)
        if not self._steps.fits:
            raise PlanError(too_small(limit, self._before + self._steps.peak()))
        plans = ", ".join(f"{option.name} ({option.num_recomputed} ops recomputed)" for option in self._steps.chosen.values())
        say(f"compiled plan for {size_text(limit)}: {plans}; predicted peak {size_text(self._before + self._steps.peak())} instead of "
            f"{size_text(self._before + self._steps.fastest_peak)}")
        self._told: list[str] = []
        self._lowering = ""  # the graph that is being compiled
        self.partitioner = self.new_partitioner()
        self.compiler = aot_eager(self.partitioner) if backend == "aot_eager" else _Inductor(self, options, keywords.get("dynamic"))
        if capture.backend.can_follow:  # a backend that Dynamo knows already, so it does not trace the model again
            capture.backend.follow(self.compiler)
            self.compiler = capture.backend

    def plan(self) -> CompiledPlan:
        """Returns the plan. It changes if kernels exceed the budget."""
        return plan_so_far(self.partitioner, [(self._steps.chosen[name], self._calls.count(name)) for name in dict.fromkeys(self._calls)],
                           budget_bytes=self._limit, predicted_peak_allocated_bytes=self._before + self._steps.peak(),
                           fastest_peak_bytes=self._before + self._steps.fastest_peak)

    def new_partitioner(self) -> Partitioner:
        """Returns a partitioner that follows the plan as it is now."""
        chosen = sorted((name, option.saved, option.by_layer) for name, option in self._steps.chosen.items())
        key = hashlib.sha256(repr(chosen).encode()).hexdigest()
        made = Partitioner(self._choose, f"{key} {self._limit} {self._optimizer} {self._rates} {self._fuses}", may_refuse=False)
        made.kernel_order.on_lowered = self._note_kernels
        return made

    def _choose(self, joint: JointGraph) -> Option:
        self._lowering = joint.fingerprint()
        found = self._steps.chosen.get(self._lowering)
        if found is not None:
            return found
        planner = Planner(joint, self._rates, fuses=self._fuses)
        searched = planner.options()
        if len(self._calls) == 1:
            try:
                return fitting(searched, bytes_before(planner.trace, self._optimizer), self._limit)
            except PlanError as error:
                warn_once(self._told, str(error))
        else:
            warn_once(self._told, "a graph was compiled that step() did not run; that graph gets the plan with the lowest peak")
        return min(searched, key=lambda option: (option.peaks.step(), option.added_ns))

    def _note_kernels(self, is_backward: bool, peak: int, planned: int) -> None:
        """Raises TooManyBytes if the graph must be compiled under another plan."""
        if self._lowering not in self._steps.chosen:
            excess = self._before + self._steps.peak() + peak - planned - self._limit
        elif self._steps.note_kernels(self._lowering, is_backward=is_backward, peak=peak):
            excess = self._steps.excess
        else:
            raise TooManyBytes
        if excess > 0:
            warn_once(self._told, f"Inductor's kernels need {size_text(excess)} more than planned, so the peak of the step may exceed the "
                                  f"budget of {size_text(self._limit)}; use a smaller batch")


class _Inductor:
    """Inductor as a backend of torch.compile. Lowers backward together with forward, so that both peaks are known before
    the graph runs. If kernels exceed the budget, compiles the graph again under the next plan."""

    compiler_name = "inductor"

    def __init__(self, plan: WithinBudget, options: dict[str, Any], dynamic: bool | None):
        self._plan = plan
        self._options = options
        self._dynamic = dynamic

    def __call__(self, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._functorch import config

        while True:
            try:
                with config.patch(force_non_lazy_backward_lowering=True):
                    return self._compiler()(module, inputs)
            except Exception as error:
                if not _is_caused_by(error, TooManyBytes):
                    raise
                self._plan.partitioner = self._plan.new_partitioner()

    def get_compiler_config(self) -> Any:
        return self._compiler().get_compiler_config()

    def reset(self) -> None:
        self._compiler().reset()

    def _compiler(self) -> Any:
        return torch._TorchCompileInductorWrapper(None, {**self._plan.partitioner.inductor_options(), **self._options}, self._dynamic)


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Returns whether the exception is of this kind, or wraps such an exception."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return False


def _bytes_before_step(model: torch.nn.Module, planners: list[Planner], optimizer: str) -> int:
    """Returns the bytes of parameters, buffers and the optimizer's state, of the step's inputs, and what
    DistributedDataParallel and fully_shard add."""
    constants = constant_bytes_of(model) + sum(planner.batch_bytes for planner in planners)
    constants += bucket_bytes(model) + gathered_bytes(model)
    return bytes_before(planners[0].trace | parameters_of(model) | {"constant_bytes": constants}, optimizer)
