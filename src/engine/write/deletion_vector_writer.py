"""Collects rows to delete from Spark by file, and writes them as deletion vectors into one new file.

Vectors are never stored inline in the log, although the protocol allows it: Delta's own writer also stores each in a
file, and so the size of a commit depends only on its number of files.
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
from ..read import vector_cache
from . import cleanup, routes
from .routes import WriteRoute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_COLLECTED = 16 << 20
"""Up to this number, rows are collected individually, 12 bytes each; above it, Spark aggregates bitmaps first."""

_BUCKET = 32_768  # rows per bitmap of Spark


def by_file(rows: "DataFrame", most: int | None) -> dict[int, DeletedRows]:
    """The deleted rows of each file, by one Spark job; duplicates count once.

    `rows` has two columns: a file number and a row index in that file. `most` is an upper bound of the number of rows
    (`None`: unknown).
    """
    from pyspark.sql import functions as F

    rows = rows.toDF("file", "row")
    if most is not None and most <= MOST_COLLECTED:
        return _of_rows(plans.collected(rows.selectExpr("cast(file as int) file", "cast(row as bigint) row")))
    bits = rows.selectExpr("cast(file as int) file", f"row div {_BUCKET} bucket", f"row % {_BUCKET} bit")
    bitmaps = bits.groupBy("file", "bucket").agg(
        F.expr("min(bit) div 8 first"), F.expr("max(bit) div 8 last"), F.bitmap_construct_agg("bit").alias("bits")
    )
    # Spark's bitmap always has 4 KiB: without its empty ends, that of a few rows has a few bytes.
    used = "substring(bits, cast(first as int) + 1, cast(last - first as int) + 1) bits"
    return _of_bitmaps(plans.collected(bitmaps.selectExpr("file", f"bucket * {_BUCKET} + first * 8 start", used)))


def _of_rows(batches: Sequence[pa.RecordBatch]) -> dict[int, DeletedRows]:
    if not batches:
        return {}
    table = pa.Table.from_batches(batches).sort_by("file")
    counts = table.group_by("file", use_threads=False).aggregate([([], "count_all")])
    rows = table.column("row").combine_chunks()
    deleted: dict[int, DeletedRows] = {}
    start = 0
    for file, count in zip(counts["file"].to_pylist(), counts["count_all"].to_pylist(), strict=True):
        deleted[file] = DeletedRows.of(rows.slice(start, count))
        start += count
    return deleted


def _of_bitmaps(batches: Sequence[pa.RecordBatch]) -> dict[int, DeletedRows]:
    import numpy as np

    parts: dict[int, list[Any]] = {}
    for batch in batches:
        for file, start, bits in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
            parts.setdefault(file, []).append(np.flatnonzero(flags) + start)
    return {file: DeletedRows.of(pa.array(np.concatenate(indexes))) for file, indexes in parts.items()}


@dataclass(frozen=True, slots=True)
class WrittenVectors:
    """A new file of deletion vectors that no commit references yet; `descriptors` are in the vectors' order."""

    descriptors: list[DeletionVectorDescriptor]
    name: str
    route: WriteRoute


def write(spark: "SparkSession", log: DeltaLog, vectors: Sequence[DeletedRows]) -> WrittenVectors:
    """Write deletion vectors (at least one) into one new file of the table.

    The file is written by the same route as data files. Raises the `StorageError` group; then no file is left.
    """
    place = routes.choose(spark, log)
    data, places = deletion_vectors.file_of(vectors)
    whole = DeletionVectorDescriptor("u", deletion_vectors.relative(uuid4(), place.prefix.rstrip("/")), 0, 0)
    name = paths.decode(deletion_vectors.path_of(whole))
    try:
        place.save(name, lambda stream: stream.write(data))
        place.publish([name], durable=True)
    except BaseException:
        with cleanup.errors_logged(log.table):
            place.clear()
        raise
    place.clear()
    descriptors = [
        replace(whole, size_in_bytes=size, cardinality=len(rows), offset=offset)
        for rows, (offset, size) in zip(vectors, places, strict=True)
    ]
    vector_cache.SHARED.add(log.table, dict(zip(descriptors, vectors, strict=True)))
    return WrittenVectors(descriptors, name, place)
