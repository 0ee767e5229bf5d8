"""Rows deleted by deletion vectors: their files stay, and the log says which of their rows are gone
(PROTOCOL.md, "Deletion Vectors").
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ...core.protocol import features
from ...core.protocol.actions import AddFile
from ...core.protocol.deletion_vectors import DeletedRows
from ...core.protocol.properties import TableProperties
from ...core.skipping import wide_bounds
from ...engine.read.deletion_vectors import Vectors
from ...engine.write import deletion_vectors as vector_writer
from ...errors import CorruptLogError
from ...settings.honoured import DELETE_BY_VECTORS, MERGE_BY_VECTORS, UPDATE_BY_VECTORS
from .command import Command
from .removal import Removal, num_deleted, physical_records

_PERSISTENT = {"delete": DELETE_BY_VECTORS, "update": UPDATE_BY_VECTORS, "merge": MERGE_BY_VECTORS}


def enabled(command: Command, operation: Literal["delete", "update", "merge"]) -> bool:
    """Whether the command marks rows as deleted: the table may have new vectors, and the session doesn't forbid them.

    `delta.enableDeletionVectors`, `spark.databricks.delta.<operation>.deletionVectors.persistent`.
    """
    if not _PERSISTENT[operation].of(command.log.conf):
        return False
    supported = "deletionVectors" in features.supported(command.txn.protocol)
    return supported and TableProperties.of(command.txn.metadata).enable_deletion_vectors


def marked(command: Command, rows: DataFrame, *, numbers: pa.Array | None = None) -> Removal:
    """Delete rows of the table by deletion vectors, which are written; one Spark job.

    The first column of `rows` is the number of a file (where in `numbers` it stands, else in `snapshot.files`), the
    second a row's index in it; a row may come more than once. In the result each file that loses rows goes, and comes
    again with its new vector unless no row is left. CorruptLogError for a row that no file can have.
    """
    began = time.monotonic()
    snapshot = command.snapshot
    records = snapshot.num_records() if numbers is None else snapshot.num_records().take(numbers)
    found = vector_writer.by_file(rows, None if records.null_count else pc.sum(records).as_py() or 0)
    if numbers is not None:
        places = numbers.to_pylist()
        found = {places[at]: gone for at, gone in found.items()}
    chosen = sorted(found)
    adds = snapshot.add_files(chosen)
    before = Vectors(command.spark, command.log).rows(snapshot.files.take(pa.array(chosen, pa.int64())))
    after = [found[n] if known is None else known | found[n] for n, known in zip(chosen, before, strict=True)]
    touched = [one for one in zip(chosen, adds, after, strict=True) if len(one[2]) > num_deleted(one[1])]
    removal = Removal(
        removed=[add for _, add, _ in touched],
        numbers=[number for number, _, _ in touched],
        deleted_rows=sum(len(gone) - num_deleted(add) for _, add, gone in touched),
        scan_ms=round((time.monotonic() - began) * 1000),
        by_vectors=True,
    )
    told = _told(command, removal.numbers, removal.removed)
    removal.added = _with_vectors(command, told, [gone for _, _, gone in touched])
    return removal


def _told(command: Command, numbers: Sequence[int], adds: list[AddFile]) -> list[AddFile]:
    """The files with wide statistics; those whose statistics don't say how many rows they have are counted."""
    stats = [wide_bounds.widened(add.stats, num_deleted(add)) for add in adds]
    unknown = [i for i, text in enumerate(stats) if text is None]
    if unknown:
        file_number = command.names.file_number
        frame = command.rows(pa.array([numbers[i] for i in unknown], pa.int64()), file_number=file_number)
        for at, live in frame.groupBy(file_number).count().collect():
            add = adds[unknown[at]]
            stats[unknown[at]] = wide_bounds.bare(live + num_deleted(add))
    return [replace(add, stats=text) for add, text in zip(adds, stats, strict=True)]


def _with_vectors(command: Command, adds: list[AddFile], gone: list[DeletedRows]) -> list[AddFile]:
    """The files with these rows gone by new vectors, without those that have no row left."""
    kept = []
    for add, rows in zip(adds, gone, strict=True):
        records = physical_records(add)
        if records is None or rows.last >= records:
            raise CorruptLogError(
                f"{command.log.table}: the file {add.path} has a row {rows.last}, "
                f"and {records} rows by its statistics: "
                "one of the two is damaged, or the statistics are wrong; nothing was committed"
            )
        if len(rows) < records:
            kept.append((add, rows))
    if not kept:
        return []
    written = vector_writer.write(command.spark, command.log, [rows for _, rows in kept])
    command.keep_files(written.placement, [written.name])
    return [
        replace(add, deletion_vector=told, data_change=True)
        for (add, _), told in zip(kept, written.descriptors, strict=True)
    ]
