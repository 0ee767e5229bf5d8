"""Commands on a log too large for the driver: the same results as on a small one, without its columns on the driver."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import KINDS, copy_of, data_files_needed, named_files, rows_of, values
from support.large_logs import large, merged, outcome, twelve_files
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.core.txn import bulk_actions
from tablelog.dml.command.command import Command
from tablelog.engine.read import selection
from tablelog.errors import ConcurrentAppendException, ConcurrentDeleteReadException
from tablelog.settings.declarations import (
    AUTO_COMPACT,
    AUTO_COMPACT_MIN_NUM_FILES,
    CLUSTERING_MIN_CUBE_SIZE,
    OPTIMIZE_BATCH_SIZE,
    RETENTION_CHECK,
)
from tablelog.spark import DeltaTable


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return twelve_files(spark, tmp_path_factory.mktemp("large"))


def _optimize_in_two_commits(table: Table) -> None:
    with settings(table.spark, {OPTIMIZE_BATCH_SIZE.key: "1"}):
        before = table.version
        table.delta.optimize().where("p < 2").executeCompaction()
        assert table.version == before + 2


OTHERS: dict[str, Callable[[Table], Any]] = {
    "delete by opaque partitions": lambda t: t.delta.delete("concat('x', p) = 'x1'"),
    "delete by opaque partitions and data": lambda t: t.delta.delete("concat('x', p) = 'x1' and id % 2 = 0"),
    "delete nothing": lambda t: t.delta.delete("id > 1000"),
    "delete never": lambda t: t.delta.delete("p = 1 and p = 2"),
    "update by data": lambda t: t.delta.update("id between 20 and 30", {"id": "id + 500"}),
    "update a partition": lambda t: t.delta.update("p = 2", {"id": "id + 500"}),
    "merge by data": merged("t.id = s.id"),
    "merge, not matched by source": merged("t.id = s.id and t.p = s.p", by_source="t.p = 2"),
    "optimize all": lambda t: t.delta.optimize().executeCompaction(),
    "optimize opaque partitions": lambda t: t.delta.optimize().where("concat('x', p) = 'x1'").executeCompaction(),
    "optimize in two commits": _optimize_in_two_commits,
    "purge": lambda t: t.delta.reorg(),
}
COMMANDS: dict[str, tuple[Callable[[Table], Any], list[str]]] = {
    "dynamic overwrite": (KINDS["dynamic overwrite"].run, ["Filters"]),
    "replaceWhere": (KINDS["replaceWhere"].run, ["Filters"]),
    "delete": (KINDS["delete"].run, ["Filters"]),
    "delete a partition": (KINDS["delete a partition"].run, ["Filters"]),
    "update": (KINDS["update"].run, ["Filters"]),
    "merge": (KINDS["merge"].run, ["Filters"]),
    "insert-only merge": (KINDS["insert-only merge"].run, ["Filters"]),
    "optimize": (KINDS["optimize"].run, ["Then"]),
    "zorder": (KINDS["zorder"].run, ["Then"]),
    "reorg": (KINDS["reorg"].run, ["Then"]),
    **{name: (run, ["Filters"]) for name, run in OTHERS.items()},
    "delete by opaque partitions": (OTHERS["delete by opaque partitions"], ["OneOfEachTuple", "Filters"]),
    "delete by opaque partitions and data": (
        OTHERS["delete by opaque partitions and data"],
        ["OneOfEachTuple", "Filters"],
    ),
    "delete never": (OTHERS["delete never"], []),
    "optimize all": (OTHERS["optimize all"], ["RewriteCandidates"]),
    "optimize opaque partitions": (OTHERS["optimize opaque partitions"], ["OneOfEachTuple", "Then"]),
    "optimize in two commits": (_optimize_in_two_commits, ["Then"]),
    "purge": (OTHERS["purge"], ["RewriteCandidates"]),
}


OFTEN = (
    "dynamic overwrite",
    "delete",
    "delete by opaque partitions",
    "update by data",
    "merge by data",
    "optimize",
    "optimize in two commits",
)
"""The commands that each run of the tests compares; the others are slow together."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.slow) for n in COMMANDS])
def test_the_same_as_on_a_small_log(base: Table, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    run, expected = COMMANDS[name]
    before, small, other = base.version, copy_of(base, f"{name}, small"), copy_of(base, f"{name}, large")
    run(small)
    with monkeypatch.context() as patched, large(other, patched) as jobs:
        run(other)
    assert outcome(other, before) == outcome(small, before)
    assert jobs == expected


@pytest.mark.slow
def test_mapped_columns_and_generated_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are found by physical names, and by the days of timestamps in the session's time zone."""
    base = Table(spark, tmp_path / "mapped")
    created = DeltaTable.create(spark).location(base.path).addColumn("id", "long").addColumn("at", "timestamp")
    created = created.addColumn("day", "date", generatedAlwaysAs="CAST(at AS DATE)").partitionedBy("day")
    created.property("delta.columnMapping.mode", "name").execute()
    with settings(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        for hour in (1, 23):
            at = f"timestamp'2024-03-01 {hour:02}:30:00' + make_interval(0, 0, 0, id)"
            base.write(spark.range(4).selectExpr(f"id + {hour} AS id", f"{at} AS at"))
        base.delta.renameColumn("id", "number")
        DeltaLog.for_path(base.path).checkpoint()
        small, other = copy_of(base, "small"), copy_of(base, "large")

        def run(table: Table) -> list[Any]:
            table.delta.delete("at < timestamp'2024-03-01 12:00:00'")
            source = spark.sql("SELECT 24L AS number, timestamp'2024-03-02 23:30:00' AS at").alias("s")
            merge = table.delta.alias("t").merge(source, "t.at = s.at and t.day = date'2024-03-02'")
            merge.whenMatchedUpdate(set={"number": "t.number + 100"}).execute()
            table.delta.update("day = date'2024-03-03'", {"number": "number + 200"})
            removed = [
                a["remove"]["path"] for v in range(4, table.version + 1) for a in table.actions(v) if "remove" in a
            ]
            return [table.rows("number"), sorted(path for path in removed if (base.root / path).exists())]

        with monkeypatch.context() as patched, large(other, patched) as jobs:
            found = run(other)
        assert found == run(small)
        assert found[0] == [2, 4, 23, 26, 124, 203, 225]
        assert jobs == ["Filters"] * 4  # the last one is of the query


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 4, 5])
def test_restore(base: Table, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """To before the checkpoint, to it, and to a commit after it: only the files that differ are on the driver."""
    before, small, other = base.version, copy_of(base, f"{version}, small"), copy_of(base, f"{version}, large")
    metrics = small.delta.restoreToVersion(version).collect()
    with monkeypatch.context() as patched, large(other, patched) as jobs:
        assert other.delta.restoreToVersion(version).collect() == metrics
    assert outcome(other, before) == outcome(small, before)
    # A version before the checkpoint has no large log: the driver reads the commits.
    assert jobs == ["OfPaths"] * (1 if version < 4 else 2)


@pytest.mark.slow
def test_restore_after_large_commits(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the commits have too many files, the executors aren't asked, and the commit is written in pieces."""
    table = copy_of(base, "after large commits")
    expected = table.rows("id", versionAsOf=4)
    monkeypatch.setattr(selection, "_MOST_BYTES", 100)
    monkeypatch.setattr(bulk_actions, "_BYTES", 0)
    with large(table, monkeypatch) as jobs:
        table.delta.restoreToVersion(4)
    assert jobs == []
    assert table.rows("id") == expected


@pytest.mark.slow
def test_vacuum(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copy_of(base, "vacuum")
    table.delta.optimize().executeCompaction()
    DeltaLog.for_path(table.path).checkpoint()
    table.write(values(table.spark, (70, 0)))
    rows, named = rows_of(table), named_files(table)
    orphan = table.root / "p=0" / "orphan.parquet"
    orphan.write_bytes(b"of a job that died")
    unsafe = settings(table.spark, {RETENTION_CHECK.key: "false"})
    with unsafe, monkeypatch.context() as patched, large(table, patched):
        table.delta.vacuum(0)
    assert table.data_files() == data_files_needed(table)
    assert named - data_files_needed(table)
    assert rows_of(table) == rows


@pytest.mark.slow
def test_changes(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copy_of(base, "changes")
    table.delta.setProperties({"delta.enableChangeDataFeed": "true"})
    first = table.version + 1
    table.delta.delete("id in (4, 64)")
    DeltaLog.for_path(table.path).checkpoint()
    table.delta.update("id = 61", {"id": "661"})
    with monkeypatch.context() as patched, large(table, patched):
        feed = table.read(readChangeFeed="true", startingVersion=str(first)).select("_change_type", "id")
        found = sorted(tuple(row) for row in feed.collect())
    assert found == [("delete", 4), ("delete", 64), ("update_postimage", 661), ("update_preimage", 61)]


@pytest.mark.slow
def test_auto_compaction(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before, small, other = base.version, copy_of(base, "compacted, small"), copy_of(base, "compacted, large")
    compaction = {AUTO_COMPACT.key: "true", AUTO_COMPACT_MIN_NUM_FILES.key: "3"}
    with settings(base.spark, compaction):
        small.write(values(base.spark, (90, 0)))
        with monkeypatch.context() as patched, large(other, patched) as jobs:
            other.write(values(base.spark, (90, 0)))
    assert outcome(other, before) == outcome(small, before)
    assert other.info()["operation"] == "OPTIMIZE"
    assert jobs == ["RewriteCandidates"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_clustering(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    """A cube that is large enough stays, unless it was clustered by another column and all is to be clustered."""
    base = Table(spark, tmp_path / "clustered")
    created = DeltaTable.create(spark).location(base.path).addColumn("id", "long").addColumn("p", "int")
    created.clusterBy("p").execute()
    base.write(values(spark, (1, 1), (2, 2)))
    base.delta.optimize().executeCompaction()
    base.delta.clusterBy("id")
    for first in (3, 5):
        base.write(values(spark, (first, 1), (first + 1, 2)))
    with settings(spark, {CLUSTERING_MIN_CUBE_SIZE.key: "1"}):
        base.delta.optimize().executeCompaction()
        base.write(values(spark, (7, 1)))
        base.write(values(spark, (8, 1)))
        DeltaLog.for_path(base.path).checkpoint()
        before, small, other = base.version, copy_of(base, "small"), copy_of(base, "large")
        _cluster(small, full=full)
        with monkeypatch.context() as patched, large(other, patched) as jobs:
            _cluster(other, full=full)
    assert outcome(other, before, Table.rows) == outcome(small, before, Table.rows)
    assert other.info()["operationMetrics"]["numRemovedFiles"] == ("3" if full else "2")
    assert jobs == ["OneOfEachCube", "OfCubes"]


def _cluster(table: Table, *, full: bool) -> None:
    table.spark.sql(f"OPTIMIZE delta.`{table.path}`{' FULL' if full else ''}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("winner", "error"),
    [
        (lambda t: t.write(values(t.spark, (91, 1))), ConcurrentAppendException),
        (lambda t: t.delta.delete("p = 1"), ConcurrentDeleteReadException),
        (lambda t: t.write(values(t.spark, (92, 2))), None),
        (lambda t: t.delta.delete("p = 2"), None),
    ],
    ids=["append", "delete", "append elsewhere", "delete elsewhere"],
)
@pytest.mark.parametrize("name", ["delete", "merge"])
def test_conflicts(
    base: Table,
    monkeypatch: pytest.MonkeyPatch,
    winner: Callable[[Table], Any],
    error: type[Exception] | None,
    name: str,
) -> None:
    """Another command commits between the selection of the files and the commit."""
    table = copy_of(base, f"{name}, {error}, {len(os.listdir(base.root.parent))}")
    commit, first = Command.commit, [winner]

    def after(self: Command, *arguments: Any, **named: Any) -> Any:
        while first:
            first.pop()(table)
        return commit(self, *arguments, **named)

    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr(Command, "commit", after)
        run = {
            "delete": lambda: table.delta.delete("p = 1 and id % 2 = 0"),
            "merge": lambda: merged("t.p = 1 and t.id = s.id + 0 and t.p = s.p")(table),
        }[name]
        if error is None:
            run()
            assert table.version == base.version + 2
        else:
            with pytest.raises(error):
                run()
            assert table.version == base.version + 1
