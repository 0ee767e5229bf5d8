"""Logs that count as too large for the driver: a table with one, and what its commands ask of executors and commit."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import rows_of, values
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.dml.command.command import Command
from tablelog.engine.read import large_log
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE, LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from tablelog.spark import conf

LARGE = {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "3"}
"""Settings of a session by which executors read each log."""
_TIMES = ("Time", "Bytes", "Size")
"""Parts of the names of metrics that differ between runs: a file of the same rows may have another size."""


def twelve_files(spark: SparkSession, directory: Path) -> Table:
    """Twelve files in three partitions in a checkpoint with vectors and structs of statistics, and two commits more."""
    table = Table(spark, directory / "table")
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.feature.checkConstraints": "supported",
    }
    for first in range(0, 48, 12):
        rows = spark.range(first, first + 12, 1, 1).select("id", (F.col("id") % 3).cast("int").alias("p"))
        table.write(rows, by=("p",), **(properties if not first else {}))
    table.delta.delete("id in (1, 15)")
    DeltaLog.for_path(table.path, conf={CHECKPOINT_PART_SIZE.key: "5"}).checkpoint()
    table.write(values(spark, (60, 0), (64, 0), (61, 1)))
    table.delta.delete("id in (2, 60)")
    source = Table(spark, table.root.parent / "source")
    source.write(values(spark, (100, 0)), by=("p",))
    return table


@contextmanager
def large(table: Table, patched: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The commands' log is large; gives the jobs that read it, and asserts that the driver has none of its columns."""
    patched.setattr(checkpoint, "_AT_ONCE", 0)
    jobs = noted_jobs(patched)
    conf.forget()
    with settings(table.spark, LARGE):
        state = conf.delta_log(table.path, conf.session_conf(table.spark, table.path)).snapshot().base
        assert state is not None
        yield jobs
        assert not state.loaded


def noted_jobs(patched: pytest.MonkeyPatch) -> list[str]:
    """The kinds of work for which executors read a log, in the order of the jobs."""
    jobs: list[str] = []
    run = large_log.Reading.run

    def noted(self: large_log.Reading, spark: SparkSession, work: Any, schema: str) -> Any:
        jobs.append(type(work.choice).__name__ if isinstance(work, large_log.Choosing) else type(work).__name__)
        return run(self, spark, work, schema)

    patched.setattr(large_log.Reading, "run", noted)
    return jobs


def noted_selections(patched: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """For each table, the numbers of files to which a command restricted its snapshot, one after the other."""
    selections: dict[str, list[int]] = {}
    select = Command.select_files

    def noted(self: Command, files: Any) -> None:
        selections.setdefault(self.log.table, []).append(files.num_rows)
        select(self, files)

    patched.setattr(Command, "select_files", noted)
    return selections


def outcome(table: Table, before: int, rows: Callable[[Table], Any] = rows_of) -> list[Any]:
    """What the commits after `before` say, apart from times and the names of new files; and the rows."""
    old = {str(a["add"]["path"]) for v in range(before + 1) for a in table.actions(v) if "add" in a}
    told: list[Any] = [rows(table)]
    for version in range(before + 1, table.version + 1):
        for action in table.actions(version):
            (kind, content), *_ = action.items()
            if kind == "commitInfo":
                metrics = content.get("operationMetrics", {})
                counts = {k: v for k, v in metrics.items() if not any(part in k for part in _TIMES)}
                parameters = re.sub(r"#\d+", "", json.dumps(content["operationParameters"], sort_keys=True))
                told.append((content["operation"], parameters, content["isBlindAppend"], counts))
            elif kind in ("add", "remove", "cdc"):
                path = content["path"] if content["path"] in old else "new"
                vector = (content.get("deletionVector") or {}).get("cardinality")
                stats = json.loads(content["stats"]) if content.get("stats") else None
                parts = sorted((content.get("partitionValues") or {}).items())
                told.append((kind, path, vector, json.dumps(stats, sort_keys=True), parts, content["dataChange"]))
            else:
                told.append((kind, sorted(content)))
    return [told[0], *sorted(map(str, told[1:]))]


def merged(condition: str, *, by_source: str | None = None) -> Callable[[Table], Any]:
    """A MERGE of three rows: it updates matching rows and inserts the others.

    `by_source`: it also deletes the table's rows that match none and for which this condition is TRUE.
    """

    def run(table: Table) -> None:
        source = values(table.spark, (3, 0), (4, 1), (200, 2)).alias("s")
        merge = table.delta.alias("t").merge(source, condition).whenMatchedUpdate(set={"id": "t.id + 300"})
        if by_source is not None:
            merge = merge.whenNotMatchedBySourceDelete(by_source)
        merge.whenNotMatchedInsertAll().execute()

    return run
