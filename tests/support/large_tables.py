"""Tables for commands that work on all files in pieces, and the settings that make a small log count as a large one."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.log.columns import adds_of, removes_of
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn import bulk_actions
from tablelog.core.txn.bulk_removal import BulkRemoval
from tablelog.spark import conf

FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "false",
}
CHANGE_FEED = {"delta.enableChangeDataFeed": "true"}
WITH_CHANGE_FEED = {**FEATURES, **CHANGE_FEED}


def rows(spark: SparkSession, first: int, count: int) -> Any:
    """Rows with the ids from `first` on, in partitions `p` with odd names."""
    part = F.element_at(
        F.array(F.lit("a b/%"), F.lit('"é\\'), F.lit(None).cast("string")), (F.col("id") % 3 + 1).cast("int")
    )
    return spark.range(first, first + count, 1, 1).select("id", part.alias("p"))


def with_history(table: Table, some: Any, **properties: str) -> Table:
    """Files in a checkpoint with vectors and tombstones, and later commits that add, mark and remove files.

    `some(first, count)` gives rows like `rows`.
    """
    table.write(some(0, 12), by=("p",), **properties)
    table.write(some(12, 12))
    table.delta.delete("id in (1, 15)")
    table.delta.delete("p = 'a b/%' and id < 12")
    DeltaLog.for_path(table.path).checkpoint()
    table.write(some(60, 6))
    table.delta.delete("id in (2, 61)")
    table.delta.delete("p is null and id >= 60")
    return table


def table_with_history(spark: SparkSession, directory: Path) -> Table:
    """A table `with_history` of all features and a change feed."""
    return with_history(Table(spark, directory / "table"), partial(rows, spark), **WITH_CHANGE_FEED)


def every_log_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written and read in pieces, whatever their number."""
    monkeypatch.setattr(bulk_actions, "_BYTES", 0)
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)
    conf.forget()


def noted_lines(monkeypatch: pytest.MonkeyPatch, kind: Any, check: Callable[[Any], None]) -> list[str]:
    """Every log is large; gives the calls of `kind.lines`, each made after `check` of the value."""
    calls: list[str] = []
    lines = kind.lines

    def noted(self: Any) -> Any:
        check(self)
        calls.append("lines")
        return lines(self)

    monkeypatch.setattr(kind, "lines", noted)
    monkeypatch.setattr(sys.modules[kind.__module__], "LINES", 2)
    every_log_is_large(monkeypatch)
    return calls


def check_not_loaded(snapshot: Snapshot) -> None:
    """The columns of the files are not on the driver."""
    assert snapshot.base is not None
    assert not snapshot.base.loaded


_OF_ONE_RUN = "modificationTime", "deletionTimestamp", "stats", "tags"


def committed(table: Table, known: set[str], version: int | None = None) -> list[str]:
    """The actions of a commit but times, names of new files, and the statistics of removes."""
    told = []
    for action in table.actions(version):
        ((kind, content),) = action.items()
        if kind == "commitInfo":
            metrics = content.get("operationMetrics", {})
            metrics = {k: v for k, v in metrics.items() if "Time" not in k and "OutputBytes" not in k}
            content = {k: content.get(k) for k in ("operation", "isBlindAppend", "isolationLevel", "readVersion")}
            content |= {"metrics": metrics}
        elif kind in ("add", "remove", "cdc"):
            left_out = _OF_ONE_RUN if kind == "remove" else (*_OF_ONE_RUN, "size")
            path = content["path"] if content["path"] in known else "new"
            content = {k: v for k, v in content.items() if k not in left_out} | {"path": path}
        elif kind == "metaData":
            content = sorted(content)
        told.append(json.dumps({kind: content}, sort_keys=True))
    return sorted(told)


def state(table: Table, known: set[str]) -> tuple[Any, ...]:
    """The live files and the tombstones by key, the rest of the state, and the rows."""
    snapshot = DeltaLog.for_path(table.path).snapshot()
    adds = sorted(str(replace(a, data_change=True)) if a.path in known else "new" for a in adds_of(snapshot.files))
    removes = removes_of(snapshot.tombstones)
    gone = sorted((r.path, str(r.deletion_vector), r.base_row_id, r.size, str(r.partition_values)) for r in removes)
    protocol, domains = snapshot.protocol, dict(snapshot.domain_metadata)
    return adds, gone, protocol, domains, sorted(map(str, table.read().collect()))


def between(monkeypatch: pytest.MonkeyPatch, other: Callable[[], Any]) -> None:
    """Do `other` at the moment that the lines of the removal are first read."""
    lines, done = BulkRemoval.lines, []

    def interleaved(self: BulkRemoval) -> Any:
        if not done:
            done.append(True)
            other()
        return lines(self)

    monkeypatch.setattr(BulkRemoval, "lines", interleaved)
