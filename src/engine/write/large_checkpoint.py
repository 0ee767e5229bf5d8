"""Writes the V2 checkpoint of a large log on Spark's executors: each task writes its live files as sidecars.

Sidecars have unique names and are only valid once a checkpoint references them, so tasks may fail, run twice or be
abandoned: the next log cleanup deletes unreferenced sidecars. Parts of a classic checkpoint have fixed names that all
writers share, so the driver writes them.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...core.log.checkpoint_shares import left, pieces
from ...core.protocol import paths
from ...core.protocol.actions import Sidecar
from ...errors import TablelogError
from ...logstore.common.uri import scheme_of
from ...logstore.data_files import DataFiles
from ...settings.declarations import CHECKPOINT_PART_SIZE
from ..read import large_log
from .routes import local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.log_maintenance.checkpoint_rows import CheckpointLayout
    from ...core.log_maintenance.checkpoint_writer import Sidecars
    from ...core.table.snapshot import Snapshot


def sidecars(
    spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot", layout: "CheckpointLayout"
) -> "Sidecars | None":
    """A `SidecarWriter` for logs that Spark plans: one job, with the same number of tasks as planning."""
    if not large_log.wanted(spark, snapshot):
        return None
    reading = large_log.reading_of(spark, log, snapshot)
    if reading is None:
        return None
    # Imported late, because it loads Parquet: needed only if a checkpoint is due.
    from ...core.log_maintenance.checkpoint_parquet import NO_BOUND

    target = DataFiles.of(log.log_path, log.conf, log.storage_options)
    most = CHECKPOINT_PART_SIZE.of(log.conf) or NO_BOUND
    rows = reading.run(spark, Writing(reading, target, layout, most), Writing.SCHEMA)
    return None if rows is None else put_together(log, rows)


def put_together(log: "DeltaLog", rows: pa.Table) -> "Sidecars":
    """The sidecars that the tasks wrote, synced to disk if the log is local."""
    from ...core.log_maintenance.checkpoint_writer import Sidecars

    now = log.clock.now_ms()
    written = [Sidecar(row["name"], row["bytes"], now) for row in rows.to_pylist()]
    if scheme_of(log.log_path) == "file":
        # As durable as the checkpoint that will reference them; object stores need no sync.
        local.sync(
            paths.absolute(log.log_path, ""), [f"{paths.SIDECAR_DIRECTORY}/{sidecar.path}" for sidecar in written]
        )
    return Sidecars(written, sum(rows.column("adds").to_pylist()))


@dataclass(frozen=True)
class Writing:
    """The task function of `sidecars`. It is sent to the executors and may contain secrets."""

    SCHEMA = "name string, bytes long, adds long, trouble string"

    reading: large_log.Reading
    target: DataFiles
    layout: "CheckpointLayout"
    most: int

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from ...core.log_maintenance.checkpoint_parquet import filled

        results: list[tuple[str | None, int, int, str | None]] = []
        try:
            for data, adds in filled(self.layout, self._rows(numbers), self.most):
                name = f"{uuid.uuid4()}.parquet"
                self.target.write(f"{paths.SIDECAR_DIRECTORY}/{name}", data)
                results.append((name, len(data), adds, None))
        except (TablelogError, OSError) as error:
            results.append((None, 0, 0, f"{type(error).__name__}: {error}"))
        columns: list[Any] = [list(column) for column in zip(*results, strict=True)] or [[], [], [], []]
        types = [pa.string(), pa.int64(), pa.int64(), pa.string()]
        arrays = [pa.array(values, type_) for values, type_ in zip(columns, types, strict=True)]
        yield pa.record_batch(arrays, names=["name", "bytes", "adds", "trouble"])

    def _rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.StructArray]]:
        return (("add", rows) for rows in self.layout.rows(self._left(numbers)))

    def _left(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        wanted = ["stats", "stats_parsed"] if self.layout.with_stats else []
        of_parts = (pieces(self.reading.opened(part), wanted) for part in self.reading.parts(numbers))
        return left(chain.from_iterable(of_parts), self.reading.table, self.reading.superseded)
