"""Selects files of a large log in groups, where a command may need more of them than the driver shall hold."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.log.checkpoint_shares import RowGroupSplit
from ...core.protocol import schema as schemas
from .large_log import NO_FILES, Choice, Choosing, PlannedFiles, put_together, reading_for, sent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

MOST_FILES = 1 << 17
"""The most files in a group: of so many the driver has the columns, and the JVM the objects of a scan."""
_UNEVEN = 4
"""A part sends its files with their number, unless it has so many times its share of `MOST_FILES`."""


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
    number = sum(counts) + newer.num_rows
    if found.files.num_rows == number <= MOST_FILES:
        return found
    groups = partial(_groups, spark, replace(counting, most=None), list(zip(parts, counts, strict=True)), newer)
    if number <= MOST_FILES:
        return replace(found, files=pa.concat_tables(groups()))
    return replace(found, files=NO_FILES, groups=groups)


def _groups(
    spark: "SparkSession", work: Choosing, parts: Sequence[tuple[RowGroupSplit, int]], newer: pa.Table
) -> Iterator[pa.Table]:
    """The selected files; `newer` are those of the commits after the checkpoint."""
    if newer.num_rows:
        yield newer
    for bundle in _bundles(parts):
        reading = replace(work.reading, tasks=[[part] for part in bundle])
        own = replace(work, reading=reading)
        rows = reading.run(spark, own, Choosing.SCHEMA)
        files = pa.concat_tables(sent(reading.run_here(own) if rows is None else rows))
        for first in range(0, files.num_rows, MOST_FILES):
            yield files.slice(first, MOST_FILES)


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
