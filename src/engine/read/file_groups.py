"""Selects files of a large log in groups, where a command may need more of them than the driver shall hold."""

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.checkpoint_shares import RowGroupSplit
from ...core.log_maintenance.table_buckets import TableBuckets
from ...core.protocol import schema as schemas
from .large_log import (
    NO_FILES,
    Choice,
    Chooser,
    Choosing,
    PlannedFiles,
    chosen,
    put_together,
    reading_for,
    sent,
    tuples_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

MOST_FILES = 1 << 17
"""The most files in a group: of so many the driver has the columns, and the JVM the objects of a scan."""
_UNEVEN = 4
"""A part sends its files with their number, unless it has so many times its share of `MOST_FILES`."""
_MOST_BUCKETS = 256


def chooser(*, grouped: bool) -> Chooser:
    """What selects the files of a command, with their statistics as text; with `grouped`, very many come in groups."""
    return planned if grouped else partial(chosen, texts=True)


def planned(
    spark: "SparkSession",
    log: "DeltaLog",
    snapshot: "Snapshot",
    choice: Choice,
    columns: Collection[schemas.Column] | None,
) -> PlannedFiles | None:
    """The files that `choice` selects, with their statistics as text; in groups if they are more than `MOST_FILES`.

    See `large_log.chosen`. One job counts the files, and sends them if they are few. If they aren't, each group is read
    by a job of its own.
    """
    reading = reading_for(spark, log, snapshot)
    if reading is None:
        return None
    parts = [part for task in reading.tasks for part in task]
    counting = Choosing(reading, choice, columns, texts=True, most=_UNEVEN * MOST_FILES // len(parts))
    rows = reading.run(spark, counting, Choosing.SCHEMA)
    if rows is None:
        return None
    found = put_together(snapshot, choice, rows, texts=True)
    snapshot.verify(found.totals)
    counts = rows.column("selected").to_pylist()
    newer = put_together(snapshot, choice, rows.slice(0, 0), texts=True).files
    groups = _Groups(spark, replace(counting, most=None), list(zip(parts, counts, strict=True)), newer)
    if groups.num_files > MOST_FILES:
        return replace(found, files=NO_FILES, groups=groups)
    if groups.num_files > found.files.num_rows:  # most of them are in one part, which didn't send them
        return replace(found, files=pa.concat_tables(groups))
    return found


@dataclass(frozen=True)
class _Groups:
    """Selected files, read by a job for each group of at most `MOST_FILES`.

    `parts` are those of the checkpoint, with the number of selected files in each; `newer` are the selected files of
    the commits after the checkpoint.
    """

    spark: "SparkSession"
    work: Choosing
    parts: Sequence[tuple[RowGroupSplit, int]]
    newer: pa.Table

    @property
    def num_files(self) -> int:
        """The number of files in all groups."""
        return sum(count for _, count in self.parts) + int(self.newer.num_rows)

    def __iter__(self) -> Iterator[pa.Table]:
        if self.newer.num_rows:
            yield self.newer
        for bundle in _bundles(self.parts):
            reading = replace(self.work.reading, tasks=[[part] for part in bundle])
            work = replace(self.work, reading=reading)
            rows = reading.run(self.spark, work, Choosing.SCHEMA)
            yield from _slices(pa.concat_tables(sent(reading.run_here(work) if rows is None else rows)), MOST_FILES)

    def by_partition(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The files in other groups: those of a partition are in one, unless they are too many.

        The local disk holds them meanwhile. `columns` are the partition columns. Raises StorageError.
        """
        count = min(_MOST_BUCKETS, 1 + 2 * self.num_files // MOST_FILES)
        buckets = TableBuckets(count, f"{self.work.reading.table}: the files to rewrite are sorted by partition")
        numbers = [0] * count
        try:
            for files in self:
                for bucket, own in _by_bucket(files, columns, count):
                    buckets.put(bucket, own)
                    numbers[bucket] += own.num_rows
            for bucket, number in enumerate(numbers):
                pieces = buckets.tables(bucket)
                # If one partition fills the bucket, its files can be in any order.
                yield from _sorted(pieces, columns) if number <= _UNEVEN * MOST_FILES else joined(pieces, MOST_FILES)
        finally:
            buckets.close()


def _bundles(parts: Sequence[tuple[RowGroupSplit, int]]) -> Iterator[list[RowGroupSplit]]:
    """Parts that have at most `MOST_FILES` selected files together, or a single part."""
    bundle: list[RowGroupSplit] = []
    files = 0
    for part, count in parts:
        if bundle and files + count > MOST_FILES:
            yield bundle
            bundle, files = [], 0
        if count:
            bundle.append(part)
            files += count
    if bundle:
        yield bundle


def _slices(files: pa.Table, most: int) -> Iterator[pa.Table]:
    for first in range(0, files.num_rows, most):
        yield files.slice(first, most)


def _by_bucket(files: pa.Table, columns: Sequence[str], count: int) -> Iterator[tuple[int, pa.Table]]:
    """The files of each bucket; all files of a partition have one bucket."""
    texts = tuples_of(files, columns)
    tuples = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    of_tuples = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % count for text in tuples.dictionary.to_pylist()]
    numbers = pa.array(of_tuples, pa.int32()).take(tuples.indices)
    for bucket in sorted(set(of_tuples)):
        yield bucket, files.filter(pc.equal(numbers, bucket))


def _sorted(pieces: Iterator[pa.Table], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Tables of whole partitions; a partition with more than `MOST_FILES` is divided."""
    tables = list(pieces)
    if not tables:
        return
    files = pa.concat_tables(tables)
    tuples = tuples_of(files, columns)
    order = pc.sort_indices(tuples)
    files, first, size = files.take(order), 0, 0
    for count in pc.value_counts(tuples.take(order)).field("counts").to_pylist():
        if size and size + count > MOST_FILES:
            yield from _slices(files.slice(first, size), MOST_FILES)
            first, size = first + size, 0
        size += count
    yield from _slices(files.slice(first, size), MOST_FILES)


def joined(pieces: Iterable[pa.Table], most: int | None) -> Iterator[pa.Table]:
    """The rows of the pieces, in tables of `most` rows; None: in one table. Without rows, one table is empty."""
    waiting: list[pa.Table] = []
    for piece in pieces:
        waiting.append(piece)
        if most is not None and sum(table.num_rows for table in waiting) > most:
            *full, rest = _slices(pa.concat_tables(waiting), most)
            yield from full
            waiting = [rest]
    if waiting:
        yield pa.concat_tables(waiting)


def with_last(tables: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """The tables, each with whether it is the last one."""
    waiting: pa.Table | None = None
    for table in tables:
        if waiting is not None:
            yield waiting, False
        waiting = table
    if waiting is not None:
        yield waiting, True
