"""Commands on a log too large for the driver: the same results as on a small one, without its columns on the driver."""

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import KINDS, copy_of, data_files_needed, named_files, rows_of, values
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.table import clustering
from tablelog.core.txn import bulk_actions
from tablelog.dml.command.command import Command
from tablelog.engine.read import file_groups, large_log, selection
from tablelog.errors import CommandInterrupted, ConcurrentAppendException, ConcurrentDeleteReadException
from tablelog.settings.declarations import (
    AUTO_COMPACT,
    AUTO_COMPACT_MIN_NUM_FILES,
    CHECKPOINT_PART_SIZE,
    CLUSTERING_MIN_CUBE_SIZE,
    DELETE_BY_VECTORS,
    LOG_DRIVER_BYTES,
    MERGE_BY_VECTORS,
    OPTIMIZE_BATCH_SIZE,
    RETENTION_CHECK,
    SNAPSHOT_PARTITIONS,
    UPDATE_BY_VECTORS,
)
from tablelog.spark import DeltaTable, conf

BY_VECTORS = DELETE_BY_VECTORS, UPDATE_BY_VECTORS, MERGE_BY_VECTORS
LARGE = {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "3"}
_TIMES = ("Time", "Bytes", "Size")
"""Parts of the names of metrics that differ between runs: a file of the same rows may have another size."""


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Twelve files in three partitions in a checkpoint with vectors and structs of statistics, and two commits more."""
    table = Table(spark, tmp_path_factory.mktemp("large") / "table")
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
    jobs: list[str] = []
    run = large_log.Reading.run

    def counted(self: large_log.Reading, spark: SparkSession, work: Any, schema: str) -> Any:
        jobs.append(type(work.choice).__name__ if isinstance(work, large_log.Choosing) else type(work).__name__)
        return run(self, spark, work, schema)

    patched.setattr(checkpoint, "_AT_ONCE", 0)
    patched.setattr(large_log.Reading, "run", counted)
    conf.forget()
    with settings(table.spark, LARGE):
        state = conf.delta_log(table.path, conf.session_conf(table.spark, table.path)).snapshot().base
        assert state is not None
        yield jobs
        assert not state.loaded


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


def _merged(condition: str, *, by_source: str | None = None) -> Callable[[Table], Any]:
    def run(table: Table) -> None:
        source = values(table.spark, (3, 0), (4, 1), (200, 2)).alias("s")
        merge = table.delta.alias("t").merge(source, condition).whenMatchedUpdate(set={"id": "t.id + 300"})
        if by_source is not None:
            merge = merge.whenNotMatchedBySourceDelete(by_source)
        merge.whenNotMatchedInsertAll().execute()

    return run


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
    "merge by data": _merged("t.id = s.id"),
    "merge, not matched by source": _merged("t.id = s.id and t.p = s.p", by_source="t.p = 2"),
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


def _from_executors(table: Table) -> None:
    source = table.spark.range(0, 900, 7, 2).where("id % 2 = 1").withColumn("n", F.col("id") % 3).alias("s")
    merge = table.delta.alias("t").merge(source, "t.id + 0 = s.id").whenMatchedUpdate("s.n > 0", set={"id": "-s.id"})
    merge.whenMatchedDelete().execute()


def _by_view(table: Table) -> None:
    table.read().createOrReplaceTempView("grouped")
    table.spark.sql("DELETE FROM grouped AS g WHERE g.id % 2 = 0 AND g.p >= 0")


GROUPED: dict[str, Callable[[Table], Any]] = {
    "delete": lambda t: t.delta.delete("id % 2 = 0"),
    "delete by opaque partitions": lambda t: t.delta.delete("concat('x', p) <> 'x1' and id % 5 = 0"),
    "delete nothing": lambda t: t.delta.delete("id % 1000 = 999"),
    "delete by a Column": lambda t: t.delta.delete((F.col("id") % 2 == 0) & (F.col("p") + 1 > 0)),
    "delete by SQL": lambda t: t.spark.sql(f"DELETE FROM delta.`{t.path}` AS x WHERE x.id % 2 = 0"),
    "delete by a view": _by_view,
    "update": lambda t: t.delta.update("id % 7 = 3", {"id": "id + 500"}),
    "replaceWhere": lambda t: t.write(values(t.spark, (990, 0)), "overwrite", replaceWhere="id % 10 = 0"),
    "merge": _merged("t.id = s.id + 20 * t.p"),
    "merge of a large source": _from_executors,
    "merge, not matched by source": _merged("t.id = s.id", by_source="t.id % 9 = 5"),
}


GROUPED_OFTEN = "delete", "delete by SQL", "delete by a view", "update", "replaceWhere", "merge, not matched by source"


@pytest.mark.parametrize(
    ("name", "by_vectors"),
    [
        pytest.param(name, by_vectors, marks=() if by_vectors and name in GROUPED_OFTEN else pytest.mark.slow)
        for name in GROUPED
        for by_vectors in (True, False)
    ],
)
def test_a_condition_that_excludes_few_files_is_searched_in_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, name: str, by_vectors: bool
) -> None:
    """The driver has the columns of one group at a time, and then those of the files with matching rows."""
    before, small, other = (
        base.version,
        copy_of(base, f"{name}, alone {by_vectors}"),
        copy_of(base, f"{name}, grouped {by_vectors}"),
    )
    persistent = {setting.key: str(by_vectors).lower() for setting in BY_VECTORS}
    monkeypatch.setattr(file_groups, "MOST_FILES", 4)
    selected: list[int] = []
    select = Command.select_files

    def noted(self: Command, files: Any) -> None:
        selected.append(files.num_rows)
        select(self, files)

    with settings(base.spark, persistent):
        GROUPED[name](small)
        with monkeypatch.context() as patched, large(other, patched) as jobs:
            patched.setattr(Command, "select_files", noted)
            GROUPED[name](other)
    assert outcome(other, before) == outcome(small, before)
    *groups, needed = selected
    assert len(groups) > 2
    assert max(groups) <= 4
    assert needed < sum(groups)
    assert jobs.count("Filters") > 2  # the first one counts the files, each other reads a part of the checkpoint


@pytest.mark.parametrize(
    ("command", "most"), [("optimize", 6), ("purge", 1), ("optimize", 1), ("zorder", 6), ("zorder", 2)]
)
def test_very_many_files_are_rewritten_in_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, command: str, most: int
) -> None:
    """Each group has its own commit; the files of a partition are in one group, unless a group can't have so many."""
    run: Callable[[Table], Any] = {
        "optimize": lambda t: t.delta.optimize().executeCompaction(),
        "purge": lambda t: t.delta.reorg(),
        "zorder": lambda t: t.delta.optimize().executeZOrderBy("id"),
    }[command]
    small, other = (copy_of(base, f"{command}, {most} {kind}") for kind in ("together", "grouped"))
    expected = run(small).collect()[0].metrics
    monkeypatch.setattr(file_groups, "MOST_FILES", most)
    with monkeypatch.context() as patched, large(other, patched):
        found = run(other).collect()[0].metrics
    assert rows_of(other) == rows_of(small)
    counts = "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped"
    if (command, most) != ("optimize", 1):
        assert [found[name] for name in counts] == [expected[name] for name in counts]
        assert found.filesRemoved == expected.filesRemoved
        assert found.deletionVectorStats == expected.deletionVectorStats
        whole = command != "purge" and most > 2  # otherwise files of one partition are in several groups
        assert (found.numFilesAdded == expected.numFilesAdded) == whole
        assert found.numBatches == other.version - base.version > 1
        assert len(expected.lookups) == (command == "zorder")
        assert not found.lookups  # they would be of the last group alone
    else:  # a group with one file has nothing to combine
        assert found.numFilesRemoved == 0
        assert other.version == base.version


@pytest.mark.parametrize(("command", "committed"), [("delete", 0), ("zorder", 1)])
def test_an_interrupt_between_groups(
    base: Table, monkeypatch: pytest.MonkeyPatch, command: str, committed: int
) -> None:
    """A search commits nothing until it has ended; OPTIMIZE keeps the groups that it has rewritten."""
    table = copy_of(base, f"interrupted {command}")
    run = {"delete": GROUPED["delete"], "zorder": lambda t: t.delta.optimize().executeZOrderBy("id")}[command]
    monkeypatch.setattr(file_groups, "MOST_FILES", 2)
    select, calls = Command.select_files, []

    def interrupted(self: Command, files: Any) -> None:
        calls.append(files.num_rows)
        if len(calls) == 2:
            raise KeyboardInterrupt
        select(self, files)

    expected = rows_of(table)
    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr(Command, "select_files", interrupted)
        with pytest.raises(CommandInterrupted) as caught:
            run(table)
    assert caught.value.versions == tuple(range(base.version + 1, base.version + 1 + committed))
    assert table.version == base.version + committed
    assert rows_of(table) == expected
    assert table.data_files() <= named_files(table)


def test_commands_in_threads_search_their_own_groups(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    small, *others = (copy_of(base, f"thread {number}") for number in range(3))
    GROUPED["delete"](small)
    monkeypatch.setattr(file_groups, "MOST_FILES", 4)
    conf.forget()
    selected: dict[str, list[int]] = {}
    select = Command.select_files

    def noted(self: Command, files: Any) -> None:
        selected.setdefault(self.log.table, []).append(files.num_rows)
        select(self, files)

    monkeypatch.setattr(Command, "select_files", noted)
    with settings(base.spark, LARGE), ThreadPoolExecutor(2) as pool:
        list(pool.map(GROUPED["delete"], others))
    assert len(selected) == 2
    assert all(len(groups) > 2 and max(groups[:-1]) <= 4 for groups in selected.values())
    assert [rows_of(table) for table in others] == [rows_of(small)] * 2


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


@pytest.mark.parametrize("version", [pytest.param(1, marks=pytest.mark.slow), 4, 5])
def test_restore(base: Table, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """To before the checkpoint, to it, and to a commit after it: only the files that differ are on the driver."""
    before, small, other = base.version, copy_of(base, f"{version}, small"), copy_of(base, f"{version}, large")
    metrics = small.delta.restoreToVersion(version).collect()
    with monkeypatch.context() as patched, large(other, patched) as jobs:
        assert other.delta.restoreToVersion(version).collect() == metrics
    assert outcome(other, before) == outcome(small, before)
    # A version before the checkpoint has no large log: the driver reads the commits.
    assert jobs == ["OfPaths"] * (1 if version < 4 else 2)


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


@pytest.mark.parametrize("full", [pytest.param(False, marks=pytest.mark.slow), True])
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


def test_very_many_files_are_clustered_in_groups(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each group has cubes of its own; a second run clusters these together, if they are small."""
    base = Table(spark, tmp_path / "clustered")
    created = DeltaTable.create(spark).location(base.path).addColumn("id", "long").addColumn("p", "int")
    created.clusterBy("id").execute()
    for first in range(0, 30, 2):
        base.write(values(spark, (first, 0), (first + 1, 1)).coalesce(1))
    DeltaLog.for_path(base.path).checkpoint()
    expected = base.rows("id")
    monkeypatch.setattr(file_groups, "MOST_FILES", 5)
    groups: list[int] = []
    select = Command.select_files

    def noted(self: Command, files: Any) -> None:
        groups.append(files.num_rows)
        select(self, files)

    before = base.version
    with monkeypatch.context() as patched, large(base, patched):
        patched.setattr(Command, "select_files", noted)
        metrics = base.delta.optimize().executeCompaction().collect()[0].metrics
    assert groups == [5, 5, 5]
    assert metrics.numBatches == base.version - before == 3
    assert metrics.numFilesRemoved == 15
    assert len({clustering.cube_of(file) for file in base.log.snapshot().add_files()}) == 3
    other = copy_of(base, "by another column")
    other.delta.clusterBy("p")
    DeltaLog.for_path(other.path).checkpoint()
    with monkeypatch.context() as patched, large(other, patched):
        patched.setattr(file_groups, "MOST_FILES", 2)
        _cluster(other, full=False)
        assert {clustering.cube_of(file)[1] for file in other.log.snapshot().add_files()} == {'["id"]'}
        _cluster(other, full=True)
    cubes = [clustering.cube_of(file) for file in other.log.snapshot().add_files()]
    assert [columns for _, columns, _ in cubes] == ['["p"]'] * 2
    assert len(set(cubes)) == 2
    assert other.rows("id") == expected
    with monkeypatch.context() as patched, large(base, patched):
        assert base.delta.optimize().executeCompaction().collect()[0].metrics.numFilesRemoved == 3
    assert base.log.snapshot().num_files == 1
    assert base.rows("id") == expected


def _cluster(table: Table, *, full: bool) -> None:
    table.spark.sql(f"OPTIMIZE delta.`{table.path}`{' FULL' if full else ''}")


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
@pytest.mark.parametrize("name", ["delete", pytest.param("merge", marks=pytest.mark.slow)])
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
            "merge": lambda: _merged("t.p = 1 and t.id = s.id + 0 and t.p = s.p")(table),
        }[name]
        if error is None:
            run()
            assert table.version == base.version + 2
        else:
            with pytest.raises(error):
                run()
            assert table.version == base.version + 1
