"""Compares a training step with torch.utils.checkpoint. With rematch, the step must have the same bits as without
checkpointing, must need no more memory than with torch.utils.checkpoint, and must not leak memory."""

import contextlib
import gc
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")
POLICIES = ("full", "segments(2)", "save_mm")
NUM_GROWTH_RECORDINGS = 50


class Step:
    """A training step that can be repeated. `train(around)` runs each forward pass inside `with around():`, then runs
    backward, and returns tensors. `reset()` restores state that the step changes outside of parameters and buffers,
    such as a cache of the model."""

    def __init__(self, models, train, reset):
        self._models, self._train, self._reset = models, train, reset
        self._start = [(tensor, tensor.detach().clone()) for model in models for tensor in (*model.parameters(), *model.buffers())]

    def run(self, around):
        """Returns the step's results, all gradients and buffers, and the generator's state."""
        self.begin()
        returned = self._train(around)
        found = [each.detach().clone() for each in (returned if isinstance(returned, (list, tuple)) else [returned])]
        for model in self._models:
            found += [None if each.grad is None else each.grad.clone() for each in model.parameters()]
            found += [each.clone() for each in model.buffers()]
        return [*found, torch.get_rng_state()]

    def watched(self, around):
        """Returns the number of recomputed ops, and the bytes that the step adds at its peak."""
        self.begin()
        gc.collect()
        with rematch.watch(self._models[0]) as figures:
            returned = self._train(around)
        del returned
        return sum(figures["ops"].get("recompute", {}).values()), max(figures["peak_bytes"].values()) - figures["before_bytes"]

    def held_after(self, around, num_recordings):
        """Repeats the step until it has called `around` at least `num_recordings` times. Returns the bytes of all live
        tensors."""
        done = []

        def counted():
            done.append(1)
            return around()

        while len(done) < num_recordings:
            self.begin()
            self._train(counted)
        self.begin()
        gc.collect()
        return rematch.allocated_bytes()

    def begin(self):
        for model in self._models:
            model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for tensor, value in self._start:
                if not torch.equal(tensor, value):
                    tensor.copy_(value)
        self._reset()
        torch.manual_seed(1)


class BesideTorch(unittest.TestCase):
    def plans_of(self, model, step, policies=POLICIES, blocks=None):
        trace = rematch.trace(model, step, blocks=blocks)
        return {policy: rematch.resolve(trace, policy) for policy in policies}

    def compare(self, model, train, plans, *, reset=lambda: None, blocks=None, draws=False, leaves=None, torch_runs=True,
                torch_layers=None, recomputes=True, prepare=lambda _: None, beyond_bytes=0, kept_ratio=1, num_growth_recordings=NUM_GROWTH_RECORDINGS):
        """Compares a Step of one or several models with torch.utils.checkpoint, under each plan and in both schedules.

        `draws`: whether layers draw random numbers. `leaves`: whether some layer does not run its planned ops; None
        allows both. `torch_runs`: False if torch.utils.checkpoint cannot run the step; memory is then compared with the step without
        checkpointing. `torch_layers`: the layers that run under torch.utils.checkpoint; by default all layers.
        `recomputes`: False if no layer of the step is checkpointed. `prepare(checkpoint)` runs before scopes are set.
        `beyond_bytes`: by how many bytes the highest peak exceeds the memory that is allowed; the caller states the
        reason. `kept_ratio`: bytes of a kept result divided by its bytes in the plan. `num_growth_recordings`: after
        this many recordings, the process must hold no more bytes than after one recording."""
        models = model if isinstance(model, (list, tuple)) else [model]
        step = Step(models, train, reset)
        gc.collect()
        gc.freeze()  # makes garbage collections faster, because they skip torch's many objects
        expected = step.run(contextlib.nullcontext)
        self.assert_equal(expected, step.run(contextlib.nullcontext))
        if torch_layers is None:
            found = [blocks or rematch.find_blocks(each) for each in models]
            torch_layers = [layer for each in found for layers in each.values() for layer in layers]
        with checkpointed_by_torch(torch_layers if torch_runs else [], draws):
            self.assert_equal(expected, step.run(contextlib.nullcontext))
            _, limit = step.watched(contextlib.nullcontext)
        excesses = []
        for name, plan in plans.items():
            for schedule in SCHEDULES:
                recorded = rematch.Checkpoint(plan, schedule)
                prepare(recorded)
                with self.subTest(plan=name, schedule=schedule), contextlib.ExitStack() as stack:
                    stack.enter_context(silent_but_for_left_plans())
                    for each in models:
                        stack.enter_context(rematch.scopes(each, recorded, blocks=blocks))
                    around = lambda recorded=recorded: rematch.recording(recorded)  # noqa: E731
                    self.assert_equal(expected, step.run(around))
                    report = recorded.report()
                    if leaves is not None:
                        self.assertEqual(any(row["left"] for row in report), leaves, report)
                    num_recomputed, peak = step.watched(around)
                    self.assertEqual(num_recomputed > 0, recomputes, num_recomputed)
                    if is_by_layer(plan):
                        excesses.append(peak - limit - kept_bytes(recorded, report, kept_ratio))
                        self.assertLessEqual(excesses[-1], beyond_bytes)
                    if name == list(plans)[-1]:  # only for one plan, because the steps take time
                        self.assertEqual(step.held_after(around, 1), step.held_after(around, num_growth_recordings))
        if beyond_bytes:
            self.assertEqual(max(excesses), beyond_bytes)

    def assert_equal(self, expected, found):
        """Requires that both lists have None at the same positions, and bitwise equal tensors elsewhere."""
        self.assertEqual(len(expected), len(found))
        for index, (want, have) in enumerate(zip(expected, found, strict=True)):
            self.assertEqual(want is None, have is None, index)
            self.assertTrue(want is None or torch.equal(want, have), index)


@contextlib.contextmanager
def checkpointed_by_torch(layers, draws=False):
    """Makes the layers run under torch.utils.checkpoint."""
    def checkpointed(forward):
        def run(*arguments, **keywords):
            if not torch.is_grad_enabled():
                return forward(*arguments, **keywords)
            return checkpoint(forward, *arguments, use_reentrant=False, preserve_rng_state=draws, **keywords)
        return run

    with contextlib.ExitStack() as stack:
        for layer in {id(each): each for each in layers}.values():
            before = layer.__dict__.get("forward")
            layer.forward = checkpointed(layer.forward)
            stack.callback(layer.__dict__.pop, "forward") if before is None else stack.callback(setattr, layer, "forward", before)
        yield


def is_by_layer(plan):
    """Returns whether each region of the plan is a single layer, as with torch.utils.checkpoint."""
    return all(region["first_scope"] == region["last_scope"] for region in plan["regions"])


def kept_bytes(recorded, report, kept_ratio=1):
    """Returns the bytes that all passes in a report kept, according to the plan and beyond it."""
    total = 0
    for row in report:
        ops = recorded.shapes()[row["shape"]]["types"][row["type"]]["ops"]
        planned = sum(op["bytes"] for op in ops if op["treatment"] == "save")
        total += row["passes"] * kept_ratio * planned + row["kept_beyond_plan_bytes"]
    return total


@contextlib.contextmanager
def silent_but_for_left_plans():
    """Turns warnings of rematch into errors, except warnings that a step does not follow the plan."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="rematch")
        warnings.filterwarnings("ignore", message=r"rematch: region .* left its plan")
        yield
