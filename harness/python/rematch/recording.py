"""The recording of a training step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rematch._in_torch import recorded_step
from rematch._library import LIBRARY, call
from rematch.planning import Checkpoint, require_checkpoint


@contextlib.contextmanager
def recording(checkpoint: Checkpoint) -> Iterator[None]:
    """Runs forward passes inside it, on this thread, as the plan says; backward may run inside or after.

    Needs rematch.scopes(model) on the model. Raises RematchError, with the region's name, where the model runs other
    ops than the plan was made for."""
    require_checkpoint(checkpoint)
    handle = call("begin_recording", checkpoint.handle)
    try:
        with recorded_step():
            yield
    except BaseException:
        LIBRARY.rematch_end_recording(handle, 0)
        raise
    call("end_recording", handle, 1)
