"""Commits with more actions than memory should hold, read in batches: the removal of all files of a large table."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from ...errors import CorruptLogError
from ...logstore.base import FileStatus
from ..protocol.actions import Action
from ..protocol.codec import parse_line
from .segment import LogEntry

LARGE_COMMIT = 64 << 20
"""A commit with more bytes is large. A smaller one is read as a whole."""
_BATCH_BYTES = 8 << 20


def is_large(status: FileStatus) -> bool:
    """Whether a listed commit is too large to be read as a whole."""
    return status.size > LARGE_COMMIT


def up_to_large(entries: Sequence[LogEntry]) -> int:
    """The number of entries up to the last large one, which aren't replayed in memory; 0 if none is large."""
    return max((number for number, entry in enumerate(entries, 1) if is_large(entry.status)), default=0)


def batches(file: BinaryIO) -> Iterator[list[tuple[bytes, Action]]]:
    """The lines of an open commit and their actions, in order, in batches; without lines that have no action.

    Raises CorruptLogError, which names the line (counted from 1), also for an empty file.
    """
    number, empty = 0, True
    while lines := file.readlines(_BATCH_BYTES):
        batch: list[tuple[bytes, Action]] = []
        for line in lines:
            number += 1
            try:
                action = parse_line(line)
            except CorruptLogError as error:
                raise CorruptLogError(f"line {number}: {error}") from None
            empty = empty and not line.strip()
            if action is not None:
                batch.append((line, action))
        yield batch
    if empty:
        raise CorruptLogError("the file is empty: its write was incomplete, or it was emptied later")
