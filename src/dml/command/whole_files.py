"""Removals of whole files, without reading data: of all files or of partitions; in pieces if they are very many."""

import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol.actions import AddFile
from ...core.skipping.predicates import Predicate, with_columns
from ...core.skipping.pruning import may_match
from ...core.txn.bulk_actions import is_large
from ...core.txn.bulk_removal import BulkRemoval, Mask, bulk_removal
from ...engine.jvm.connection import settings
from ...engine.read import file_groups, scan
from .command import Command
from .removal import Removal, RemovalCounts, num_records

_SLICE = 1 << 17
"""The most files that one Spark job rewrites: its plan has an object for each of them on the driver."""


def remove_all(command: Command, *, data_change: bool = True, count_rows: bool = False) -> Removal:
    """Remove every file of the table; in a large table, the rows are only counted with `count_rows`."""
    txn = command.txn
    assert txn.snapshot is not None
    began = time.monotonic()
    txn.read_whole_table()
    removal = _bulk_removal(command, None, began, data_change=data_change, count_rows=count_rows)
    return removal or whole_files(txn.snapshot.add_files(), began)


def remove_partitions(
    command: Command, partitions: scan.Condition | Predicate, *, data_change: bool = True, count_rows: bool = False
) -> Removal:
    """Remove the files for which a condition on partition columns only is TRUE.

    `count_rows`: as in `remove_all`.
    """
    began = time.monotonic()
    predicate = partitions.predicate if isinstance(partitions, scan.Condition) else partitions
    if not command.select_unless_many(partitions):
        bulk = _bulk_removal(command, partitions, began, data_change=data_change, count_rows=count_rows)
        if bulk is not None:
            command.record_read(predicate)
            return bulk
        command.select(partitions)
    snapshot = command.snapshot
    if isinstance(partitions, scan.Condition):
        numbers = scan.exact_partitions(command.spark, snapshot, partitions)
    else:
        numbers = pc.indices_nonzero(snapshot.prune_mask(predicate, time_zone=settings.time_zone(command.spark)))
    command.record_read(predicate, snapshot.files.take(numbers))
    removal = whole_files(snapshot.add_files(numbers), began)
    removal.numbers = numbers.to_pylist()
    return removal


def _bulk_removal(
    command: Command,
    partitions: scan.Condition | Predicate | None,
    began: float,
    *,
    data_change: bool,
    count_rows: bool,
) -> Removal | None:
    txn, now = command.txn, command.log.clock.now_ms()
    snapshot = txn.snapshot
    assert snapshot is not None
    if not is_large(snapshot, snapshot.metadata, txn.metadata):
        return None
    mask = None
    if partitions is not None:
        mask = _mask_of(command, partitions)
        if mask is None:
            return None
    bulk = bulk_removal(snapshot, txn.metadata, now, data_change=data_change, count_rows=count_rows, mask=mask)
    if bulk is None:
        return None
    files = bulk.num_files
    counts = RemovalCounts(files, files, bulk.size_in_bytes, vectors_removed=bulk.num_vectors)
    rows = bulk.num_records
    return Removal(in_bulk=bulk, counts_in_bulk=counts, deleted_rows=rows, scan_ms=elapsed_ms(began))


def _mask_of(command: Command, partitions: scan.Condition | Predicate) -> "Mask | None":
    """None if the executors, which evaluate a condition, can't read the log."""
    snapshot = command.snapshot
    if isinstance(partitions, scan.Condition):
        return scan.partition_mask(command.spark, command.log, snapshot, partitions)
    zone, mapping = settings.time_zone(command.spark), snapshot.mapping
    predicate, names = with_columns(partitions, mapping.to_physical), mapping.physical_partition_columns
    return lambda piece: may_match(piece, predicate, mapping.physical, names, use_stats=False, time_zone=zone)


def slices(removal: BulkRemoval) -> Iterator[pa.Table]:
    """The files of a removal in tables for `Command.select_files`, without their statistics."""
    pieces = removal.files(with_stats=False)
    without = (piece.append_column("stats", pa.nulls(piece.num_rows, pa.string())) for piece in pieces)
    return file_groups.joined(without, _SLICE)


def whole_files(removed: list[AddFile], began: float) -> Removal:
    """The removal of these files, with the number of their rows; `began` is a monotonic time."""
    counts = [num_records(add) for add in removed]
    known = [count for count in counts if count is not None]
    rows = sum(known) if len(known) == len(counts) else None
    return Removal(removed=removed, deleted_rows=rows, scan_ms=elapsed_ms(began))


def elapsed_ms(since: float) -> int:
    """The milliseconds since a monotonic time."""
    return round((time.monotonic() - since) * 1000)
