"""Messages on stderr about slow work."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

SILENT_SECONDS = 2.0


def say(text: str) -> None:
    """Prints one line on stderr."""
    print(f"rematch: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Prints `what` if the block takes longer than SILENT_SECONDS."""
    timer = threading.Timer(SILENT_SECONDS, say, [f"{what} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
