"""Runs the plans of rematch and PyTorch for one compiled model. Writes their peaks, step times and compile times to a
JSON file. Runs in a separate process, because torch's profiler sees only allocations of torch's own allocator.

    python -m fronts.compiled MODEL BACKEND NUM_ROUNDS FILE"""

import contextlib
import dataclasses
import functools
import io
import json
import pathlib
import re
import resource
import statistics
import sys
import time
import warnings

import rematch
import torch
import zoo
from compiled_peaks import largest_difference, peak_of, results_of
from rematch.planning import bytes_of, size_text

from fronts import pytorch
from fronts.measured import MIB, OURS, Measured, spread_of

SCALE = 4  # multiplies the widths of the zoo's models; a step then consists mostly of matmuls, not of kernel launches
MAX_LAYERS = 2  # of each list of layers; Inductor compiles each layer separately, so more layers take longer to compile
BUDGETS = (0, 0.1, 0.3, 0.5, 0.7, 0.9)
LISTS = ("attention", "both", "every second matmul")
NUM_BUDGETS_OF_OURS = 6
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-4
# a limit far above the number of plans; by default, torch recompiles a function at most 8 times
MAX_COMPILED = 1000


def say(text):
    print(f"compare_fronts.py: {text}", file=sys.stderr, flush=True)


def processor_ns():
    """Returns the processor time of this process. Inductor's C++ compiler is not included, because it runs in other
    processes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1e9)


@dataclasses.dataclass
class Compiled:
    """A copy of the model that is compiled under one plan."""

    family: str
    name: str
    model: torch.nn.Module
    step: object
    compile_ns: int
    peak_bytes: int
    predicted_peak_bytes: int | None
    predicted_added_ns: int | None
    times_ns: list = dataclasses.field(default_factory=list)

    def measured(self):
        return Measured(self.family, self.name, self.peak_bytes, round(statistics.median(self.times_ns)),
                        round(spread_of(self.times_ns)), self.compile_ns, self.predicted_peak_bytes,
                        self.predicted_added_ns)


class ModelRun:
    """The plans of one model. Each plan has its own copy of the model."""

    def __init__(self, name, backend):
        self._name = name
        self._backend = backend
        self._plans_of_ours = set()
        self._fastest_peak = 0  # the predicted peak of our fastest plan
        self._expected = None  # loss and gradients without checkpointing
        self._checkpoints = contextlib.ExitStack()
        self.compiled = []
        self.failed = {}

    def add_all(self):
        plain, _ = self._make()
        say(f"{self._name}: compiling up to {len(BUDGETS) + len(offers_for(plain)) + NUM_BUDGETS_OF_OURS + 1} plans")
        self._add("plain", "no checkpointing", self._within(1))
        for budget in BUDGETS:
            self._add("budget", f"memory budget {budget}", self._within(budget))
        for family, name, _ in offers_for(plain):
            self._add(family, name, functools.partial(self._checkpointed, name))
        self._add_ours()

    def time_in_turns(self, num_rounds):
        for _ in range(num_rounds):
            for each in self.compiled:
                each.model.zero_grad(set_to_none=True)
                start = time.process_time_ns()
                each.step().backward()
                each.times_ns.append(time.process_time_ns() - start)
                each.model.zero_grad(set_to_none=True)

    def _make(self):
        torch.manual_seed(0)
        model, step = getattr(zoo, self._name)(scale=SCALE)
        model.train()
        for layers in rematch.find_blocks(model).values():
            remove_first_layers(model, layers)

        def seeded():
            torch.manual_seed(1)
            return step()
        return model, seeded

    def _add(self, family, name, compile_model):
        """Compiles a copy of the model, runs it, and measures the peak of a step."""
        model, step = self._make()
        try:
            start = processor_ns()
            compile_model(model, step)
            step().backward()
            compile_ns = processor_ns() - start
            plan = rematch.compiled_plan_of(model) if family == OURS else None
            results = results_of(model, step)
        except SamePlan:
            return
        except Exception as error:
            if family in ("plain", OURS):
                raise
            self._note_failed(name, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
            return
        self._expected = self._expected or results
        of_loss, of_gradients = (largest_difference(*pair) for pair in
                                 ((results[:1], self._expected[:1]), (results[1:], self._expected[1:])))
        if of_loss > LOSS_TOLERANCE or of_gradients > GRADIENT_TOLERANCE:
            differs = f"the loss differs by {of_loss:.0e} and a gradient by {of_gradients:.0e} of its norm"
            if family == OURS:
                sys.exit(f"compare_fronts.py: {self._name}: {name}: {differs}")
            self._note_failed(name, differs)
            return
        before = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
        del results
        found = Compiled(family, name, model, step, compile_ns, before + peak_of(model, step),
                         plan and plan.predicted_peak_allocated_bytes,
                         plan and sum(graph.num_calls * graph.added_ns for graph in plan.graphs))
        model.zero_grad(set_to_none=True)
        self.compiled.append(found)
        say(f"{self._name}: {name}: peak {size_text(found.peak_bytes)}, compiled in {compile_ns / 1e9:.1f} s")

    def _note_failed(self, name, why):
        self.failed[name] = why
        say(f"{self._name}: {name}: {why}")

    def _within(self, memory_budget):
        """Returns a function that compiles a model with PyTorch's own partitioner."""
        def compile_model(model, _):
            model.compile(backend=own_backend(self._backend, memory_budget))
        return compile_model

    def _checkpointed(self, name, model, step):
        put_on = {each: how for _, each, how in offers_for(model)}[name]
        self._checkpoints.enter_context(put_on())
        self._within(1)(model, step)

    def _planned(self, budget, model, step):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            rematch.compile(model, step, budget=budget, backend=self._backend, optimizer="none")
        plan, fastest = re.search(r"compiled plan for .*?: (.*); predicted peak .* instead of ([0-9.]+ .iB)", said.getvalue()).groups()
        self._fastest_peak = bytes_of(fastest)
        if plan in self._plans_of_ours:
            raise SamePlan
        self._plans_of_ours.add(plan)

    def _add_ours(self):
        """Adds plans under budgets from the lowest peak of all plans up to the peak of the fastest plan."""
        try:
            self._planned(1, *self._make())
        except rematch.PlanError as error:
            lowest = bytes_of(re.search("the lowest peak is ([0-9.]+ .iB)", str(error))[1]) + MIB // 64
        for number in range(NUM_BUDGETS_OF_OURS):
            highest = lowest if number == 0 else self._fastest_peak + MIB // 64
            budget = round(lowest * (highest / lowest) ** (number / (NUM_BUDGETS_OF_OURS - 1)))
            self._add(OURS, f"budget {size_text(budget)}", functools.partial(self._planned, budget))


class SamePlan(Exception):
    """Raised if a budget leads to the same plan as an earlier budget."""


def remove_first_layers(model, layers):
    """Removes layers until MAX_LAYERS are left. Keeps the last ones, because some models have a special last layer."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) > MAX_LAYERS and module[0] is layers[0]:
            del module[:-MAX_LAYERS]
            if hasattr(getattr(model, "config", None), "num_hidden_layers"):
                model.config.num_hidden_layers = MAX_LAYERS


def offers_for(model):
    draws = any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules())
    offers = pytorch.checkpointed_offers(rematch.find_blocks(model), draws)
    return [offer for offer in offers if offer[0] != "lists" or offer[1].removeprefix("list: ") in LISTS]


def own_backend(backend, memory_budget):
    """Returns a new backend for each plan, so that torch never reuses code that it compiled for another plan."""
    from torch._dynamo.backends.registry import lookup_backend

    compiler = lookup_backend(backend)

    def compile_within(module, inputs):
        with torch._functorch.config.patch(activation_memory_budget=memory_budget):
            return compiler(module, inputs)
    return compile_within


def main(name, backend, num_rounds, path):
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config

    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = MAX_COMPILED
    functorch_config.enable_autograd_cache = inductor_config.fx_graph_cache = False
    run = ModelRun(name, backend)
    run.add_all()
    run.time_in_turns(num_rounds)
    document = {"model": name, "points": [dataclasses.asdict(each.measured()) for each in run.compiled], "failed": run.failed}
    path.with_suffix(".part").write_text(json.dumps(document))
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4]))
