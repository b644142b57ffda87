"""Records training steps."""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from rematch._in_torch import recorded_step
from rematch._library import LIBRARY, Refused, call
from rematch._program_hooks import require_enabled
from rematch._scope import (has_model_run, has_watched_groups, listed, names_of_scopes, num_changes, set_recorded,
                            warn_of_bypassed_scopes)
from rematch._sharding import refuse_split_regions
from rematch.checkpoint import Checkpoint, require_checkpoint

MAX_STEPS_WITHOUT_REGION = 20
SOME_REGIONS, NO_REGION, NO_REGION_WITHOUT_GRAD = range(3)  # the values of RegionsRun in harness/engine/recording.h


class _Notes:
    """State of a checkpoint's steps, so that each fault is reported only once."""

    num_changes = -1  # value of num_changes() when scopes and plan were last compared
    is_told = False
    has_run = False
    num_without_region = 0  # steps that called the model but no module of the plan
    num_left = 0  # result of the last call of rematch_num_left()
    types_told: frozenset[tuple[int, int]] = frozenset()  # (shape, type) pairs that a warning has already named
    num_steps = 0  # number of steps recorded under verify_every


_notes: weakref.WeakKeyDictionary[Checkpoint, _Notes] = weakref.WeakKeyDictionary()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.steps: list[_Step] = []  # the open steps, the innermost last


_thread = _Thread()


class _Step:
    """A recorded step. The engine's recordings on a thread must end on that thread, the innermost first. But a program
    that holds a recording in a generator may end it on another thread, or in another order."""

    def __init__(self, checkpoint: Checkpoint, *, verifies: bool):
        self._steps = _thread.steps
        self._is_ended = False
        self._free_ended()
        self._handle = call("begin_recording", checkpoint.handle, int(verifies))
        self._checkpoint = checkpoint
        self._steps.append(self)
        set_recorded(checkpoint)

    def end(self, *, is_whole: bool) -> int:
        """Ends the step. Returns whether regions ran. Returns NO_REGION_WITHOUT_GRAD if the engine's recording cannot
        end yet, because recordings inside it are still open."""
        if self._steps is not _thread.steps:
            self._is_ended = True
            if is_whole:
                raise Refused("rematch.recording was left on a different thread than it was entered on; enter and leave it on "
                              "the thread that runs forward")
            return NO_REGION_WITHOUT_GRAD
        if self._steps[-1] is not self:
            self._is_ended = True
            return NO_REGION_WITHOUT_GRAD
        self._steps.pop()
        try:
            if is_whole:
                return int(call("end_recording", self._handle, 1))
            return int(LIBRARY.rematch_end_recording(self._handle, 0))
        finally:
            self._free_ended()

    def _free_ended(self) -> None:
        while self._steps and self._steps[-1]._is_ended:
            LIBRARY.rematch_end_recording(self._steps.pop()._handle, 0)
        set_recorded(self._steps[-1]._checkpoint if self._steps else None)


def is_recorded(checkpoint: Checkpoint) -> bool:
    """Returns whether this thread is recording with this checkpoint."""
    return bool(_thread.steps) and _thread.steps[-1]._checkpoint is checkpoint


@contextlib.contextmanager
def recording(checkpoint: Checkpoint, *, verify_every: int = 0) -> Iterator[None]:
    """Makes the forward passes in the `with` block, on this thread, follow the plan. Backward may run in the block or
    afterwards.

    The model needs rematch.scopes(model, checkpoint). Warns once if the scopes are missing, or if steps never open
    them. A single step may skip all layers of the plan. Without grad mode, as in an evaluation, nothing is recorded.

    If the ops that the model runs differ from the planned ops, the checkpoint's `on_mismatch` decides what happens.
    With "follow", warns once for each type of region that left the plan.

    With `verify_every=N`, the first of every N steps hashes the results of ops and compares the hashes of recomputed
    results. Such a step is slow. The next step, checkpoint.report() or the end of the program warns once for each op
    whose recomputed results differ from its results in forward.

    Raises Refused where saved-tensor hooks are disabled, for regions in several units of fully_shard, and for code that
    cannot be recorded. Raises PlanError under "refuse"."""
    require_checkpoint(checkpoint)
    checkpoint.warn_of_missing_names()
    notes = _notes.setdefault(checkpoint, _Notes())
    verifies = _is_to_be_verified(checkpoint, notes, verify_every)
    is_unchecked = notes.num_changes != num_changes() and not notes.is_told and torch.is_grad_enabled()
    if is_unchecked:
        refuse_split_regions(checkpoint)
    missing = _missing_scopes(checkpoint, notes) if is_unchecked else []
    require_enabled()
    step = _Step(checkpoint, verifies=verifies)
    try:
        with recorded_step():
            yield
    except BaseException:
        step.end(is_whole=False)
        raise
    ran = step.end(is_whole=True)
    if LIBRARY.rematch_num_left(checkpoint.handle) != notes.num_left:
        _say_what_left(checkpoint, notes)
    if has_watched_groups() and warn_of_bypassed_scopes():
        notes.is_told = True
    if is_unchecked and ran != NO_REGION_WITHOUT_GRAD:
        _check_step(checkpoint, notes, missing, ran)


def _is_to_be_verified(checkpoint: Checkpoint, notes: _Notes, every: int) -> bool:
    """Returns whether to verify the step that begins. Warns of the differences in the last verified step."""
    if every < 0:
        raise ValueError(f"verify_every is {every}; it must be N, to verify one of N steps, or 0, to verify no step")
    if every == 0 or not torch.is_grad_enabled():
        return False
    checkpoint.warn_of_differences(stacklevel=5)
    notes.num_steps += 1
    verifies = notes.num_steps % every == 1 or every == 1
    if verifies:
        checkpoint.expect_differences()
    return verifies


def _say_what_left(checkpoint: Checkpoint, notes: _Notes) -> None:
    notes.num_left = LIBRARY.rematch_num_left(checkpoint.handle)
    for row in checkpoint.report():
        shape_and_type = (row["shape"], row["type"])
        if row["left"] == 0 or shape_and_type in notes.types_told:
            continue
        notes.types_told |= {shape_and_type}
        warnings.warn(f"rematch: region {row['region']} left its plan: {row['first_difference']}. Loss and gradients are as "
                      "in the step without a plan; memory and recomputed ops may differ from the prediction. To plan for this "
                      "step, trace it as well: rematch.trace and rematch.auto take a list of steps. print(checkpoint.report()) "
                      "says how often it happens", stacklevel=4)


def _missing_scopes(checkpoint: Checkpoint, notes: _Notes) -> list[str]:
    """Returns the scopes that the plan needs but that no module opens. Warns if modules have scopes of a different
    plan."""
    names = names_of_scopes()
    missing = [name for name in checkpoint.scope_names() if name not in names]
    if names and missing:
        _warn(notes, f"no module has the scope {listed(missing)}, which the plan needs; the scopes belong to another plan. "
                     "Call rematch.remove_scopes(model), then rematch.scopes(model, checkpoint) with the checkpoint that is "
                     "recorded")
    return missing


def _check_step(checkpoint: Checkpoint, notes: _Notes, missing: list[str], ran: int) -> None:
    notes.has_run = notes.has_run or ran == SOME_REGIONS or not checkpoint.scope_names()
    if not notes.has_run and not notes.is_told and not missing and has_model_run(checkpoint):
        notes.num_without_region += 1  # may be legal: the batch is text, and the plan covers only a vision tower
        if notes.num_without_region < MAX_STEPS_WITHOUT_REGION:
            return
    notes.num_changes = num_changes()
    if notes.has_run or notes.is_told:
        return
    if missing:
        _warn(notes, "no model has scopes, so nothing is checkpointed; call rematch.scopes(model, checkpoint) once, before the "
                     "first step")
    elif notes.num_without_region > 0:
        _warn(notes, f"{notes.num_without_region} recorded steps ran the model and called no module that the plan governs "
                     f"({listed(checkpoint.scope_names())}), so nothing is checkpointed; make a plan for the layers that these "
                     "steps run")
    else:
        _warn(notes, f"the recorded step called no module that the plan governs ({listed(checkpoint.scope_names())}), so "
                     "nothing is checkpointed; check that the model has these scopes and is not compiled")


def _warn(notes: _Notes, what: str) -> None:
    notes.is_told = True
    warnings.warn(f"rematch: {what}", stacklevel=5)
