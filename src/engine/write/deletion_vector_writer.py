"""Rows to delete become deletion vectors: gathered from Spark by file, and written into one file for all.

Vectors are never put into the log inline, which the protocol allows: Delta's own writer has each in a file too, and a
commit stays as small as its number of files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from ...core.deltalog import DeltaLog
from ...core.protocol import deletion_vectors, paths
from ...core.protocol.actions import DeletionVectorDescriptor
from ...core.protocol.deletion_vectors import DeletedRows
from ..jvm import plans
from ..read.deletion_vectors import Vectors
from . import routes
from .routes import Placement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_COLLECTED = 16 << 20
"""Rows up to which they come to the driver as they are, 12 bytes each; above it Spark makes bitmaps of them first."""

_BUCKET = 32_768  # rows in one of Spark's bitmaps


def by_file(rows: "DataFrame", most: int | None) -> dict[int, DeletedRows]:
    """The rows of each file, in one Spark job; a row that comes twice counts once.

    `rows` has two columns: the number of a file and the index of a row in it. They are of no more than `most` rows
    (`None`: nobody knows).
    """
    from pyspark.sql import functions as F

    rows = rows.toDF("file", "row")
    if most is not None and most <= MOST_COLLECTED:
        return _of_rows(plans.collected(rows.selectExpr("cast(file as int) file", "cast(row as bigint) row")))
    bits = rows.selectExpr("cast(file as int) file", f"row div {_BUCKET} bucket", f"row % {_BUCKET} bit")
    return _of_bitmaps(plans.collected(bits.groupBy("file", "bucket").agg(F.bitmap_construct_agg("bit").alias("bits"))))


def _of_rows(batches: Sequence[pa.RecordBatch]) -> dict[int, DeletedRows]:
    if not batches:
        return {}
    table = pa.Table.from_batches(batches).sort_by("file")
    counts = table.group_by("file", use_threads=False).aggregate([([], "count_all")])
    rows = table.column("row").combine_chunks()
    found: dict[int, DeletedRows] = {}
    start = 0
    for file, count in zip(counts["file"].to_pylist(), counts["count_all"].to_pylist(), strict=True):
        found[file] = DeletedRows.of(rows.slice(start, count))
        start += count
    return found


def _of_bitmaps(batches: Sequence[pa.RecordBatch]) -> dict[int, DeletedRows]:
    import numpy as np

    parts: dict[int, list[Any]] = {}
    for batch in batches:
        for file, bucket, bits in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
            parts.setdefault(file, []).append(np.flatnonzero(flags) + bucket * _BUCKET)
    return {file: DeletedRows.of(pa.array(np.concatenate(indexes))) for file, indexes in parts.items()}


@dataclass(frozen=True, slots=True)
class WrittenVectors:
    """A file of vectors in a table, which no commit names yet; `descriptors` are of the vectors in their order."""

    descriptors: list[DeletionVectorDescriptor]
    name: str
    placement: Placement


def write(spark: "SparkSession", log: DeltaLog, vectors: Sequence[DeletedRows]) -> WrittenVectors:
    """Write these vectors, at least one, into one new file of the table.

    It goes where the table's data files go, by the same means. Raises the `StorageError` group; nothing is left then.
    """
    place = routes.choose(spark, log)
    data, places = deletion_vectors.file_of(vectors)
    whole = DeletionVectorDescriptor("u", deletion_vectors.relative(uuid4(), place.prefix.rstrip("/")), 0, 0)
    name = paths.decode(deletion_vectors.path_of(whole))
    try:
        place.save(name, lambda stream: stream.write(data))
        place.publish([name], durable=True)
    finally:
        place.clear()
    told = [
        replace(whole, size_in_bytes=size, cardinality=len(rows), offset=offset)
        for rows, (offset, size) in zip(vectors, places, strict=True)
    ]
    Vectors.remember(log.table, dict(zip(told, vectors, strict=True)))
    return WrittenVectors(told, name, place)
