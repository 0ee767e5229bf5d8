"""The change data feed as a DataFrame: the files with changes, each with its commit version as a constant column.

If the deletion vector of a file changed, the changed rows are selected by a temporary deletion vector that deletes all
other rows. So all changes are read by the ordinary scan, on each route, and filters on version, timestamp and change
type skip files.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...core.log.columns import DELETION_VECTOR, STRING_MAP
from ...core.protocol import deletion_vectors
from ...core.protocol import schema as schemas
from ...core.protocol.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
from ...core.protocol.change_data import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, DELETE, INSERT
from ...core.protocol.deletion_vectors import DeletedRows
from ...core.protocol.schema import StructField
from ...core.table.changed_files import Changes, ColumnChange, Commit, VectorChange
from ...errors import CorruptLogError
from . import scan
from .deletion_vectors import Vectors
from .extra_columns import ExtraColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

_TYPE = StructField(CHANGE_TYPE, schemas.STRING)
_OF_COMMIT = (
    (StructField(COMMIT_VERSION, schemas.LONG), COMMIT_VERSION),
    (StructField(COMMIT_TIMESTAMP, schemas.TIMESTAMP), COMMIT_TIMESTAMP),
)
FILES = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("deletionVector", DELETION_VECTOR),
        ("stats", pa.string()),
    ]
)
"""The columns of a table of files for `scan.frame`; the files may belong to several snapshots."""
_CHANGES = pa.schema(
    [*FILES, (CHANGE_TYPE, pa.string()), (COMMIT_VERSION, pa.int64()), (COMMIT_TIMESTAMP, pa.timestamp("us", "UTC"))]
)


def frame(
    spark: "SparkSession",
    log: "DeltaLog",
    read: "Snapshot",
    changes: Iterable[Changes],
) -> "DataFrame":
    """The changed rows with the schema of version `read`, then `_change_type` and the columns of the commit."""
    found = tables(Vectors(spark, log), log.table, changes)
    frames = [scan.frame(spark, log, snapshot=read, files=table, extra=extra) for table, extra in found]
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])


def tables(reader: Vectors, table: str, changes: Iterable[Changes]) -> list[tuple[pa.Table, ExtraColumns]]:
    """The files with changed rows, and the columns that a scan of them adds: at most one table of each kind of file."""
    rows: list[dict[str, Any]] = []
    vectors: list[VectorChange] = []
    columns: list[ColumnChange] = []
    for of_files, of_vectors, of_columns in changes:
        rows += [_row(file.commit, file.file, file.change_type, _vector_of(file.file)) for file in of_files]
        vectors += of_vectors
        columns += of_columns
    of_changes = _table([row for row in rows if row[CHANGE_TYPE] is None], columns, None)
    of_data = [row for row in rows if row[CHANGE_TYPE] is not None]
    of_data += _of_vectors(reader, vectors, table)
    data = _table(of_data, columns, INSERT, DELETE)
    found = []
    if of_changes.num_rows:
        found.append((of_changes, ExtraColumns(stored=(_TYPE,), per_file=_OF_COMMIT)))
    if data.num_rows or not found:
        found.append((data, ExtraColumns(per_file=((_TYPE, CHANGE_TYPE), *_OF_COMMIT))))
    return found


def _table(rows: list[dict[str, Any]], columns: Sequence[ColumnChange] = (), *change_types: str | None) -> pa.Table:
    """The rows, and the files of `columns` with one of these change types."""
    parts = [_with_constants(change) for change in columns if change.change_type in change_types]
    return pa.concat_tables([pa.Table.from_pylist(rows, schema=_CHANGES), *parts])


def _with_constants(change: ColumnChange) -> pa.Table:
    files, count = change.files, change.files.num_rows
    constants = {
        CHANGE_TYPE: change.change_type,
        COMMIT_VERSION: change.commit.version,
        COMMIT_TIMESTAMP: change.commit.timestamp_ms * 1000,
    }
    columns = []
    for field in _CHANGES:
        if field.name in constants:
            columns.append(pa.repeat(pa.scalar(constants[field.name], field.type), count))
        elif field.name in files.column_names:
            columns.append(files[field.name])
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=_CHANGES)


def file_row(file: AddFile | RemoveFile | AddCDCFile) -> dict[str, Any]:
    """A row of a table with the columns `FILES`."""
    vector = _vector_of(file)
    return {
        "path": file.path,
        "partitionValues": list((file.partition_values or {}).items()),
        "size": file.size,
        "modificationTime": file.modification_time if isinstance(file, AddFile) else None,
        "deletionVector": None if vector is None else _vector(vector),
        "stats": None if isinstance(file, AddCDCFile) else file.stats,
    }


def _row(
    commit: Commit,
    file: AddFile | RemoveFile | AddCDCFile,
    change_type: str | None,
    vector: DeletionVectorDescriptor | None,
) -> dict[str, Any]:
    return {
        **file_row(file),
        "deletionVector": None if vector is None else _vector(vector),
        CHANGE_TYPE: change_type,
        COMMIT_VERSION: commit.version,
        COMMIT_TIMESTAMP: commit.timestamp_ms * 1000,
    }


def _vector(vector: DeletionVectorDescriptor) -> dict[str, Any]:
    return {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
    }


def _vector_of(file: AddFile | RemoveFile | AddCDCFile) -> DeletionVectorDescriptor | None:
    return None if isinstance(file, AddCDCFile) else file.deletion_vector


def _of_vectors(vectors: Vectors, changes: Sequence[VectorChange], table: str) -> Iterator[dict[str, Any]]:
    """One entry for the rows deleted from each file, and one for the rows restored (as by RESTORE), if any."""
    nothing = DeletedRows.of(())
    before = vectors.rows(
        _table([_row(change.commit, change.removed, None, change.removed.deletion_vector) for change in changes])
    )
    after = vectors.rows(
        _table([_row(change.commit, change.added, None, change.added.deletion_vector) for change in changes])
    )
    for change, old, new in zip(changes, before, after, strict=True):
        old, new = old or nothing, new or nothing
        for rows, change_type in ((new - old, DELETE), (old - new, INSERT)):
            if len(rows):
                rest = rows.others(_records(change, table))
                yield _row(change.commit, change.added, change_type, deletion_vectors.inline(rest))


def _records(change: VectorChange, table: str) -> int:
    """The physical number of rows of the file; the protocol requires it for a file with a deletion vector."""
    for text in (change.added.stats, change.removed.stats):
        try:
            num_records = json.loads(text or "{}").get("numRecords")
        except (ValueError, AttributeError):
            num_records = None
        if isinstance(num_records, int):
            return num_records
    raise CorruptLogError(
        f"version {change.commit.version} of {table} changes the deletion vector of {change.added.path}, but doesn't "
        "record how many rows the file has, so the changed rows can't be read",
        table=table,
        version=change.commit.version,
        path=change.added.path,
    )
