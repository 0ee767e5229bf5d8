"""Commits with more actions than memory should hold, read in batches: the removal of all files of a large table."""

from collections.abc import Iterator
from typing import BinaryIO

from ...errors import CorruptLogError
from ..protocol.actions import Action
from ..protocol.codec import parse_line

LARGE_COMMIT = 64 << 20
"""A commit with more bytes is large. A smaller one is read as a whole."""
_BATCH_BYTES = 8 << 20


def batches(file: BinaryIO) -> Iterator[list[Action]]:
    """The actions of an open commit, in order, in batches.

    Raises CorruptLogError, which names the line (counted from 1), also for an empty file.
    """
    number, empty = 0, True
    while lines := file.readlines(_BATCH_BYTES):
        actions: list[Action] = []
        for line in lines:
            number += 1
            try:
                action = parse_line(line)
            except CorruptLogError as error:
                raise CorruptLogError(f"line {number}: {error}") from None
            empty = empty and not line.strip()
            if action is not None:
                actions.append(action)
        yield actions
    if empty:
        raise CorruptLogError("the file is empty: its write was incomplete, or it was emptied later")
