"""The state of the commits of one command: transactions record it, and the code that runs the command reads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class CommitRecord:
    """One commit. `committed`: True: the log has it as `version`; False: it doesn't; None: it is unknown."""

    table: str
    operation: str
    committed: bool | None = False
    version: int = -1
    token: str = ""


_lists: ContextVar[tuple[list[CommitRecord], ...]] = ContextVar("commit records", default=())


@contextmanager
def recorded() -> Iterator[list[CommitRecord]]:
    """Collect the commits of this thread in a list, in order, including those of nested commands."""
    records: list[CommitRecord] = []
    token = _lists.set((*_lists.get(), records))
    try:
        yield records
    finally:
        _lists.reset(token)


def begin(table: str, operation: str) -> CommitRecord:
    """A new record, before anything was written."""
    record = CommitRecord(table, operation)
    for records in _lists.get():
        records.append(record)
    return record
