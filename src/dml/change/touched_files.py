"""Finds the files that a condition touches and rewrites them; shared by DELETE and overwrites with replaceWhere."""

import time
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, functions

from ...engine.read import scan
from ...engine.write import writer
from ...progress import files_text, stage
from ..command import change_data, row_deletion, rows
from ..command.command import Command
from ..command.removal import Removal, num_records
from ..command.slices import change_in_slices
from ..command.whole_files import elapsed_ms as _ms
from ..command.whole_files import remove_partitions


def remove_matching(
    command: Command, condition: scan.Condition, options: writer.WriteOptions, *, data_change: bool = True
) -> Removal:
    """Remove the rows for which the condition is TRUE; without `data_change` it has partition columns only.

    A condition on partition columns only removes whole files, without reading data. Otherwise one job over the
    columns of the condition finds the rows. If deletion vectors are enabled, the rows are marked in them; else a second
    job rewrites the touched files that keep rows.
    """
    if condition.data is None:
        return remove_partitions(command, condition, data_change=data_change, count_rows=True)
    return in_slices(command, condition, lambda: _remove_selected(command, condition, options))


def _remove_selected(command: Command, condition: scan.Condition, options: writer.WriteOptions) -> Removal:
    began = time.monotonic()
    snapshot = command.snapshot
    candidates = scan.candidates(command.spark, snapshot, condition)
    command.record_read(condition.predicate, snapshot.files.take(candidates))
    if len(candidates) and row_deletion.vectors_enabled(command, "delete"):
        return row_deletion.delete_rows(command, matching_places(command, candidates, condition), numbers=candidates)
    touched = touched_files(command, candidates, condition)
    removal = Removal(deleted_rows=sum(touched.values()), scan_ms=_ms(began))
    if not touched:
        return removal

    began = time.monotonic()
    numbers = sorted(touched)
    removal.removed = snapshot.add_files(numbers)
    counts = [num_records(add) for add in removal.removed]
    kept = [number for number, count in zip(numbers, counts, strict=True) if count is None or touched[number] < count]
    if kept:
        frame = command.rows(pa.array(kept, pa.int64()), rewritten=True)
        stay = ~condition.column(frame).eqNullSafe(functions.lit(True))
        written = rows.write_kept(command, frame.where(stay), options)
        removal.added, removal.copied_rows = written.adds, written.rows
    if change_data.wanted(command):
        frame = command.rows(pa.array(numbers, pa.int64()), rewritten=True)
        deleted = frame.where(condition.column(frame)).withColumn(change_data.CHANGE_TYPE, functions.lit("delete"))
        removal.changes = change_data.write(command, deleted)
    removal.rewrite_ms = _ms(began)
    return removal


def in_slices(command: Command, condition: scan.Condition, change: Callable[[], Removal]) -> Removal:
    """What `change` does to the files that may match; if they are very many, to slices of those with matching rows."""

    def search() -> pa.Array:
        candidates = scan.candidates(command.spark, command.snapshot, condition)
        return pa.array(sorted(touched_files(command, candidates, condition)), pa.int64())

    return change_in_slices(command, condition, search, change)


def matching_places(command: Command, candidates: pa.Array, condition: scan.Condition) -> DataFrame:
    """The file number (index in `candidates`) and the row index of each matching row."""
    names = command.names
    _search(candidates)
    frame = command.rows(candidates, file_number=names.file_number, row_index=names.row_index)
    return frame.where(condition.column(frame)).select(names.file_number, names.row_index)


def touched_files(command: Command, candidates: pa.Array, condition: scan.Condition) -> dict[int, int]:
    """The files with matching rows, by index in `snapshot.files`, with the count of these rows; one Spark job."""
    if len(candidates) == 0:
        return {}
    file_number = command.names.file_number
    _search(candidates)
    frame = command.rows(candidates, file_number=file_number)
    counted = frame.where(condition.column(frame)).groupBy(file_number).count().collect()
    places = candidates.to_pylist()
    return {places[number]: count for number, count in counted}


def _search(candidates: pa.Array) -> None:
    stage(f"searching {files_text(len(candidates))} for matching rows")
