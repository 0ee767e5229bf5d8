"""Deletes rows by deletion vectors: data files stay as they are, and the log lists their deleted rows
(PROTOCOL.md, "Deletion Vectors").
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from ...core.log.columns import exact_sum
from ...core.protocol import features
from ...core.protocol.actions import AddFile
from ...core.protocol.deletion_vectors import DeletedRows
from ...core.protocol.properties import TableProperties
from ...core.skipping import wide_bounds
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read.deletion_vectors import Vectors
from ...engine.write import deletion_vector_writer
from ...errors import CorruptLogError
from ...settings.declarations import DELETE_BY_VECTORS, MERGE_BY_VECTORS, UPDATE_BY_VECTORS
from .command import Command
from .removal import Removal, num_deleted, physical_records

_PERSISTENT = {"delete": DELETE_BY_VECTORS, "update": UPDATE_BY_VECTORS, "merge": MERGE_BY_VECTORS}


def vectors_enabled(command: Command, operation: Literal["delete", "update", "merge"]) -> bool:
    """Whether `operation` writes deletion vectors: the table has them enabled, and the session doesn't disable them.

    Settings: `delta.enableDeletionVectors`, `spark.databricks.delta.<operation>.deletionVectors.persistent`. On Spark
    Connect, commands rewrite files.
    """
    if not is_classic(command.spark):
        return False
    if not _PERSISTENT[operation].of(command.log.conf):
        return False
    supported = "deletionVectors" in features.supported(command.txn.protocol)
    return supported and TableProperties.of(command.txn.metadata).enable_deletion_vectors


def delete_rows(command: Command, rows: DataFrame, *, numbers: pa.Array | None = None) -> Removal:
    """Delete rows by writing deletion vectors; one Spark job, and one more if statistics lack row counts.

    The first column of `rows` is a file number: an index in `numbers` if it is given, else in `snapshot.files`. The
    second is the row's index in the file. Duplicates are allowed. In the result, each changed file is removed, and
    re-added with its new deletion vector unless no row is left. Raises CorruptLogError for a row index that is larger
    than the file's row count.
    """
    began = time.monotonic()
    snapshot = command.snapshot
    records = snapshot.num_records() if numbers is None else snapshot.num_records().take(numbers)
    deleted = deletion_vector_writer.by_file(rows, None if records.null_count else exact_sum(records))
    if numbers is not None:
        places = numbers.to_pylist()
        deleted = {places[at]: rows for at, rows in deleted.items()}
    chosen = sorted(deleted)
    adds = snapshot.add_files(chosen)
    before = Vectors(command.spark, command.log).rows(snapshot.files.take(pa.array(chosen, pa.int64())))
    after = [deleted[n] if known is None else known | deleted[n] for n, known in zip(chosen, before, strict=True)]
    touched = [(n, add, rows) for n, add, rows in zip(chosen, adds, after, strict=True) if len(rows) > num_deleted(add)]
    removal = Removal(
        removed=[add for _, add, _ in touched],
        numbers=[number for number, _, _ in touched],
        deleted_rows=sum(len(rows) - num_deleted(add) for _, add, rows in touched),
        scan_ms=round((time.monotonic() - began) * 1000),
        by_vectors=True,
    )
    counted = _with_row_counts(command, removal.numbers, removal.removed)
    removal.added = _with_vectors(command, counted, [rows for _, _, rows in touched])
    return removal


def _with_row_counts(command: Command, numbers: Sequence[int], adds: list[AddFile]) -> list[AddFile]:
    """The files with wide bounds in their statistics. Where the row count is missing, the rows are counted by Spark."""
    stats = [wide_bounds.widened(add.stats, num_deleted(add)) for add in adds]
    unknown = [i for i, text in enumerate(stats) if text is None]
    if unknown:
        file_number = command.names.file_number
        frame = command.rows(pa.array([numbers[i] for i in unknown], pa.int64()), file_number=file_number)
        for at, live in frame.groupBy(file_number).count().collect():
            add = adds[unknown[at]]
            stats[unknown[at]] = wide_bounds.bare(live + num_deleted(add))
    return [replace(add, stats=text) for add, text in zip(adds, stats, strict=True)]


def _with_vectors(command: Command, adds: list[AddFile], deleted_rows: list[DeletedRows]) -> list[AddFile]:
    """The files with new deletion vectors for these rows; files without remaining rows are left out."""
    kept = []
    for add, rows in zip(adds, deleted_rows, strict=True):
        records = physical_records(add)
        if records is None or rows.last >= records:
            raise CorruptLogError(
                f"{command.log.table}: the file {add.path} has a deleted row with the index {rows.last}, but "
                f"{records} rows by its statistics: "
                "the file or its deletion vector is damaged, or the statistics are wrong; nothing was committed",
                version=command.txn.read_version,
                path=add.path,
            )
        if len(rows) < records:
            kept.append((add, rows))
    if not kept:
        return []
    written = deletion_vector_writer.write(command.spark, command.log, [rows for _, rows in kept])
    command.keep_files(written.route, [written.name])
    return [
        replace(add, deletion_vector=descriptor, data_change=True)
        for (add, _), descriptor in zip(kept, written.descriptors, strict=True)
    ]
