"""What became of the commits that one command makes: the transactions note it, and who runs the command reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class CommitRecord:
    """One commit: True: it is in the log as `version`; False: it is not; None: it may be, or may still come to be."""

    table: str
    operation: str
    committed: bool | None = False
    version: int = -1
    token: str = ""


_lists: ContextVar[tuple[list[CommitRecord], ...]] = ContextVar("commit records", default=())


@contextmanager
def recorded() -> Iterator[list[CommitRecord]]:
    """Inside, every commit of this thread is in the list, in order, also those of commands that run inside of it."""
    records: list[CommitRecord] = []
    token = _lists.set((*_lists.get(), records))
    try:
        yield records
    finally:
        _lists.reset(token)


def begin(table: str, operation: str) -> CommitRecord:
    """The record of a commit that begins: nothing of it is written yet."""
    record = CommitRecord(table, operation)
    for records in _lists.get():
        records.append(record)
    return record
