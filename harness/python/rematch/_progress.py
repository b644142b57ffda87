"""A line on stderr for what takes longer than anybody waits without a sign."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

SILENT_SECONDS = 2.0


def say(text: str) -> None:
    """One line of rematch's own on stderr."""
    print(f"rematch: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Says `what` if the block is not done after SILENT_SECONDS."""
    timer = threading.Timer(SILENT_SECONDS, say, [f"{what} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
