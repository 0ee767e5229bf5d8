"""Keeps what Spark's JVM writes to standard error while it starts, so that a command's error is one line."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MOST_LINES = 3
_MOST_BYTES = 64 << 10
_NOISE = ("WARNING: ", "Using Spark's default log4j profile", "at ", "... ")


@contextmanager
def kept() -> Iterator[Callable[[], str]]:
    """Send the standard error of processes that start in the block to a temporary file, as long as they run.

    Yields:
        A function that returns the last lines in the file as one text: the reason why a process ended.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        own = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: _reason(os.pread(file.fileno(), _MOST_BYTES, 0).decode(errors="replace"))
        finally:
            sys.stderr.flush()
            os.dup2(own, 2)
            os.close(own)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(_NOISE) and " WARN " not in line]
    return "; ".join(said[-_MOST_LINES:])
