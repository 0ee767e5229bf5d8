"""Removals of whole files, without reading data; of all files of a large table in pieces."""

import time
from collections.abc import Iterator

import pyarrow as pa

from ...core.protocol.actions import AddFile
from ...core.table.snapshot import Snapshot
from ...core.txn.whole_removal import whole_removal
from .command import Command
from .removal import Removal, num_records

_SLICE = 1 << 17
"""The most files that one Spark job rewrites: its plan has an object for each of them on the driver."""


def remove_all(command: Command, *, data_change: bool = True, count_rows: bool = False) -> Removal:
    """Remove every file of the table; in a large table, the rows are only counted with `count_rows`."""
    txn = command.txn
    assert txn.snapshot is not None
    began = time.monotonic()
    txn.read_whole_table()
    now = command.log.clock.now_ms()
    whole = whole_removal(txn.snapshot, txn.metadata, now, data_change=data_change, count_rows=count_rows)
    if whole is None:
        return whole_files(txn.snapshot.add_files(), began)
    return Removal(whole=whole, deleted_rows=whole.num_records, scan_ms=elapsed_ms(began))


def slices(snapshot: Snapshot) -> Iterator[pa.Table]:
    """All files of a large version in tables for `Command.select_files`, without their statistics."""
    waiting: list[pa.Table] = []
    for piece in snapshot.pieces(with_stats=False):
        waiting.append(piece.append_column("stats", pa.nulls(piece.num_rows, pa.string())))
        while sum(table.num_rows for table in waiting) >= _SLICE:
            files = pa.concat_tables(waiting)
            waiting = [files.slice(_SLICE)]
            yield files.slice(0, _SLICE)
    files = pa.concat_tables(waiting)
    if files.num_rows:
        yield files


def whole_files(removed: list[AddFile], began: float) -> Removal:
    """The removal of these files, with the number of their rows; `began` is a monotonic time."""
    counts = [num_records(add) for add in removed]
    known = [count for count in counts if count is not None]
    rows = sum(known) if len(known) == len(counts) else None
    return Removal(removed=removed, deleted_rows=rows, scan_ms=elapsed_ms(began))


def elapsed_ms(since: float) -> int:
    """The milliseconds since a monotonic time."""
    return round((time.monotonic() - since) * 1000)
