"""DELETE, UPDATE, MERGE and maintenance on Spark Connect, each compared with what the rows have to be."""

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest
from pyspark.sql import functions as F

from conftest import Corpus
from connect.reading import by_core
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.txn import bulk_actions
from tablelog.core.txn.operation import Operation
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tablelog.spark import DeltaTable
from tablelog.spark import conf as session_conf

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(params=["plain", "mapped", "vectors", "tracked"])
def numbers(request: pytest.FixtureRequest, spark: Any, table: Table) -> Table:
    """The ids 0 to 9 in two commits, each with its remainder by 2 as the partition `p`, and a name."""
    properties = {
        "plain": {},
        "mapped": {"delta.columnMapping.mode": "name"},
        "vectors": {"delta.enableDeletionVectors": "true"},
        "tracked": {"delta.enableRowTracking": "true"},
    }[request.param]
    columns = ("id", "concat('n', id) name", "id % 2 p")
    table.write(spark.range(5).selectExpr(*columns), by=("p",), **FEED, **properties)
    table.write(spark.range(5, 10).selectExpr(*columns))
    return table


def check(table: Table, expected: set[tuple[Any, ...]]) -> None:
    assert set(table.rows()) == expected
    assert len(table.rows()) == len(expected)
    assert_same_rows(table.read().toArrow(), by_core(table.path))
    kept = {name for name in table.data_files() if not name.startswith(("_change_data", "deletion_vector"))}
    assert kept <= table.logged_files()


def row(number: int, name: str | None = None) -> tuple[Any, ...]:
    return (number, name or f"n{number}", number % 2)


def feed(table: Table) -> set[tuple[Any, ...]]:
    changes = table.read(readChangeFeed="true", startingVersion=table.version)
    return {(row.id, row.name, row._change_type) for row in changes.collect()}


@pytest.mark.parametrize(
    ("condition", "gone"),
    [
        ("id > 6", {7, 8, 9}),
        ("p = 1", {1, 3, 5, 7, 9}),
        ("p = 1 and id in (3, 5) or name like 'n8%'", {3, 5, 8}),
        (lambda: F.col("id") >= 8, {8, 9}),
        (lambda: (F.col("p") == 0) & F.col("name").isin("n2", "n4"), {2, 4}),
        (lambda: F.expr("id = 1") | F.upper("name").startswith("N9"), {1, 9}),
        ("name is null", set()),
        ("cast(null as boolean)", set()),
        (None, set(range(10))),
    ],
)
def test_delete(numbers: Table, condition: Any, gone: set[int]) -> None:
    before = numbers.version
    condition = condition() if callable(condition) else condition  # a Column needs the session
    numbers.delta.delete(condition)
    check(numbers, {row(i) for i in range(10) if i not in gone})
    assert numbers.version == before + bool(gone)
    if gone:
        assert feed(numbers) == {(i, f"n{i}", "delete") for i in gone}
        assert numbers.info()["operation"] == "DELETE"
        if condition is not None:
            assert numbers.info()["operationMetrics"]["numDeletedRows"] == str(len(gone))


@pytest.mark.parametrize("condition", ["id = 100 and p", "id = 100 and p.x = 1", "ID = 100"])
def test_a_condition_is_resolved_if_no_file_can_match(spark: Any, table: Table, conf: Any, condition: str) -> None:
    table.write(spark.sql("select 1 id, 'a' name, 2 p"))
    conf("spark.sql.caseSensitive", "true")
    for command in (table.delta.delete, lambda text: table.delta.update(text, {"p": "3"})):
        with pytest.raises(pyspark.errors.AnalysisException):
            command(condition)
    assert table.version == 0


def test_delete_twice_and_by_alias(numbers: Table) -> None:
    numbers.delta.alias("t").delete("t.id = 3 and t.p = 1")
    numbers.delta.delete("id = 5")
    check(numbers, {row(i) for i in range(10) if i not in (3, 5)})


def test_update(numbers: Table) -> None:
    numbers.delta.update("id >= 8", {"name": "concat(name, '!')"})
    check(numbers, {row(i) for i in range(8)} | {row(8, "n8!"), row(9, "n9!")})
    assert feed(numbers) == {
        (i, name, kind) for i in (8, 9) for name, kind in ((f"n{i}", "update_preimage"), (f"n{i}!", "update_postimage"))
    }
    numbers.delta.alias("t").update(F.col("t.id") == 0, {"t.name": F.lit("zero")})
    numbers.delta.update(set={"p": "p + 1"})
    assert {r[0]: r[2] for r in numbers.rows()} == {i: i % 2 + 1 for i in range(10)}
    assert_same_rows(numbers.read().toArrow(), by_core(numbers.path))


def test_update_casts(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 id, named_struct('a', 1L, 'b', 'x') s"))
    table.delta.update(set={"id": "'12'", "s.a": "id"})
    assert [(r.id, tuple(r.s)) for r in table.read().collect()] == [(12, (1, "x"))]
    with pytest.raises(SchemaMismatchError):
        table.delta.update(set={"nothing": "1"})
    with pytest.raises(pyspark.errors.PySparkException):
        table.delta.update(set={"id": "'no number'"})
    assert [(r.id, tuple(r.s)) for r in table.read().collect()] == [(12, (1, "x"))]


@pytest.mark.parametrize(
    "condition",
    [
        "rand() > 0.5",
        "id in (select 1)",
        "uuid() = name",
        lambda: F.rand() > 0.5,
        lambda: F.col("id") > F.monotonically_increasing_id(),
    ],
)
def test_conditions_that_may_differ_are_refused(numbers: Table, condition: Any) -> None:
    before = numbers.version
    condition = condition() if callable(condition) else condition
    for command in (
        lambda: numbers.delta.delete(condition),
        lambda: numbers.delta.update(condition, {"id": "1"}),
        lambda: numbers.delta.merge(numbers.read(), condition).whenMatchedDelete().execute(),
    ):
        with pytest.raises(UnsupportedFeatureError, match="Spark Connect"):
            command()
    assert numbers.version == before


def test_columns_of_other_frames_are_refused(numbers: Table) -> None:
    frame = numbers.read()
    with pytest.raises(UnsupportedFeatureError, match=r"F\.col"):
        numbers.delta.delete(frame["id"] == 1)


def merge_of(table: Table, source: Any, condition: Any = "t.id = s.id") -> Any:
    return table.delta.alias("t").merge(source.alias("s"), condition)


def test_upsert(spark: Any, numbers: Table) -> None:
    source = spark.range(8, 13).selectExpr("id", "concat('s', id) name", "id % 2 p")
    result = merge_of(numbers, source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()
    assert tuple(result) == (5, 2, 0, 3)
    check(numbers, {row(i) for i in range(8)} | {row(i, f"s{i}") for i in range(8, 13)})
    assert feed(numbers) == {
        *((i, f"n{i}", "update_preimage") for i in (8, 9)),
        *((i, f"s{i}", "update_postimage") for i in (8, 9)),
        *((i, f"s{i}", "insert") for i in (10, 11, 12)),
    }
    metrics = numbers.info()["operationMetrics"]
    assert metrics["numTargetRowsInserted"] == "3"
    assert metrics["numTargetRowsUpdated"] == "2"
    assert int(metrics["numTargetRowsCopied"]) + 5 == int(metrics["numOutputRows"])


def test_each_clause(spark: Any, numbers: Table) -> None:
    source = spark.sql("select 1L k, 'a' v union all select 2, 'b' union all select 30, 'c' union all select 40, 'd'")
    (
        merge_of(numbers, source, "t.id = s.k")
        .whenMatchedUpdate("s.v = 'a'", {"name": "concat(t.name, s.v)"})
        .whenMatchedDelete("s.v = 'b'")
        .whenNotMatchedInsert("s.k = 30", {"id": "s.k", "name": "s.v", "p": "0"})
        .whenNotMatchedInsert(values={"id": "k", "p": F.lit(1)})
        .whenNotMatchedBySourceUpdate("id = 5", {"name": "'five'"})
        .whenNotMatchedBySourceDelete("id > 6")
        .execute()
    )
    rows = {r.id: (r.name, r.p) for r in numbers.read().collect()}
    assert rows == {
        0: ("n0", 0), 1: ("n1a", 1), 3: ("n3", 1), 4: ("n4", 0), 5: ("five", 1), 6: ("n6", 0),
        30: ("c", 0), 40: (None, 1),
    }  # fmt: skip
    assert_same_rows(numbers.read().toArrow(), by_core(numbers.path))
    assert {(i, kind) for i, _, kind in feed(numbers)} == {
        (1, "update_preimage"), (1, "update_postimage"), (2, "delete"), (5, "update_preimage"),
        (5, "update_postimage"), (7, "delete"), (8, "delete"), (9, "delete"), (30, "insert"), (40, "insert"),
    }  # fmt: skip


def test_several_matches(spark: Any, numbers: Table) -> None:
    source = spark.sql("select 1L id, 'x' v union all select 1, 'y' union all select 2, 'z'")
    before = numbers.version
    with pytest.raises(InvalidArgumentError, match="matches several rows"):
        merge_of(numbers, source).whenMatchedUpdate(set={"name": "s.v"}).execute()
    assert numbers.version == before
    merge_of(numbers, source).whenMatchedDelete("s.v <> 'z'").execute()
    check(numbers, {row(i) for i in range(10) if i != 1})
    assert feed(numbers) == {(1, "n1", "delete")}


def test_insert_only_and_nothing(spark: Any, numbers: Table) -> None:
    before = numbers.version
    source = spark.range(3).selectExpr("id", "'s' name", "id % 2 p")
    result = merge_of(numbers, source).whenNotMatchedInsertAll().execute().first()
    assert tuple(result) == (0, 0, 0, 0)
    assert numbers.version == before
    more = source.union(spark.sql("select cast(null as bigint), 'null', 1L"))
    merge_of(numbers, more).whenNotMatchedInsertAll().execute()
    assert {r.name for r in numbers.read().where("id is null").collect()} == {"null"}
    assert numbers.read().count() == 11


def test_the_source_is_evaluated_once(spark: Any, numbers: Table) -> None:
    source = spark.range(10).selectExpr("id", "cast(rand() * 1000 as int) r", "uuid() u")
    merge_of(numbers, source).whenMatchedUpdate("s.r >= 500", {"name": "s.u"}).whenMatchedDelete().execute()
    left = numbers.read().collect()
    assert len({r.id for r in left}) == len(left)
    assert all(len(r.name) == 36 for r in left)
    assert_same_rows(numbers.read().toArrow(), by_core(numbers.path))


def test_a_source_that_is_the_table(numbers: Table) -> None:
    source = numbers.read().where("id < 3").selectExpr("id", "concat(name, '?') name", "p")
    merge_of(numbers, source).whenMatchedUpdateAll().execute()
    check(numbers, {row(i, f"n{i}?" if i < 3 else None) for i in range(10)})


def test_merge_keeps_the_rules(spark: Any, numbers: Table) -> None:
    numbers.delta.setProperties({"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError):
        numbers.delta.delete("id = 1")
    with pytest.raises(AppendOnlyTableError):
        merge_of(numbers, spark.range(1)).whenMatchedDelete().execute()
    with pytest.raises(SchemaMismatchError, match="needs a column"):
        merge_of(numbers, spark.range(1)).whenNotMatchedInsertAll().execute()
    before = numbers.version, numbers.read().columns
    with pytest.raises(InvalidArgumentError, match="matches several rows"):
        merge_of(
            numbers, spark.sql("select 1L id, 'x' more union all select 1L, 'y'")
        ).withSchemaEvolution().whenMatchedUpdateAll().execute()
    assert (numbers.version, numbers.read().columns) == before


def test_row_ids_survive(spark: Any, table: Table) -> None:
    table.write(spark.range(6).selectExpr("id", "'a' v").coalesce(1), **{"delta.enableRowTracking": "true"})
    before = {r.id: (r._row_id, r._row_commit_version) for r in table.read(readRowIds="true").collect()}
    merge_of(
        table, spark.sql("select 1L id, 'b' v union all select 9, 'c'")
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    after = {r.id: (r._row_id, r._row_commit_version) for r in table.read(readRowIds="true").collect()}
    assert {i: after[i] for i in (0, 2, 3, 4, 5)} == {i: before[i] for i in (0, 2, 3, 4, 5)}
    assert after[1] == (before[1][0], 1)
    assert after[9][0] not in {one for one, _ in before.values()}


def race(table: Table, monkeypatch: pytest.MonkeyPatch, other: Callable[[], None]) -> None:
    """Let `other` commit after the next command has read the table, before it commits."""
    from tablelog.core.txn.transaction import Transaction

    commit = Transaction.commit

    def late(self: Transaction, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        other()
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)


def test_concurrent_appends_conflict(spark: Any, numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    appended = spark.sql("select 100L id, 'n100' name, 0L p")
    for command in (
        lambda: numbers.delta.delete("id > 8"),
        lambda: numbers.delta.update("id > 8", {"name": "'x'"}),
        lambda: merge_of(numbers, spark.range(9, 10)).whenMatchedDelete().execute(),
    ):
        files = numbers.data_files()
        race(numbers, monkeypatch, lambda: numbers.write(appended))
        with pytest.raises(ConcurrentAppendException):
            command()
        assert len(numbers.data_files() - files) == 1, "the files of the command are gone"
    race(numbers, monkeypatch, lambda: numbers.write(appended))
    numbers.write(appended)  # two appends don't conflict
    assert numbers.read().where("id = 100").count() == 5


def test_history_detail_and_restore(spark: Any, numbers: Table) -> None:
    numbers.delta.delete("id < 5")
    history = numbers.delta.history().collect()
    assert [r.operation for r in history] == ["DELETE", "WRITE", "WRITE"]
    assert numbers.delta.detail().first().numFiles == DeltaLog.for_path(numbers.path).snapshot().num_files
    restored = numbers.delta.restoreToVersion(1).first()
    assert restored.num_restored_files > 0
    check(numbers, {row(i) for i in range(10)})
    numbers.delta.restoreToTimestamp(str(history[0].timestamp))
    check(numbers, {row(i) for i in range(5, 10)})


def test_restore_and_clone_in_pieces(
    spark: Any, numbers: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bulk_actions, "_BYTES", 0)
    DeltaLog.for_path(numbers.path).checkpoint()
    session_conf.forget()
    clone = Table(spark, tmp_path / "clone")
    numbers.delta.clone(clone.path, isShallow=True)
    numbers.write(spark.sql("SELECT id, p, name FROM range(1) JOIN (SELECT 0L p, 'x' name)"), "overwrite")
    for table, change in (
        (clone, lambda: numbers.delta.clone(clone.path, isShallow=True, replace=True)),
        (numbers, lambda: numbers.delta.restoreToVersion(1)),
    ):
        change()
        assert list((table.root / "_delta_log").glob(f"{table.version:020}.checkpoint*"))
    assert clone.rows("id") == [0]
    check(numbers, {row(i) for i in range(10)})


def test_optimize_and_vacuum(spark: Any, numbers: Table, conf: Any) -> None:
    before = DeltaLog.for_path(numbers.path).snapshot().num_files
    numbers.delta.optimize().executeCompaction()
    after = DeltaLog.for_path(numbers.path).snapshot()
    assert after.num_files == 2 < before
    check(numbers, {row(i) for i in range(10)})
    assert numbers.info()["operation"] == "OPTIMIZE"
    assert all(not a["add"]["dataChange"] for a in numbers.actions() if "add" in a)
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    files = numbers.data_files()
    assert numbers.delta.vacuum(0, dryRun=True).count() > 0
    numbers.delta.vacuum(0)
    assert len(numbers.data_files()) < len(files)
    check(numbers, {row(i) for i in range(10)})


def test_schema_and_properties(spark: Any, numbers: Table) -> None:
    numbers.delta.addColumns("extra int")
    numbers.delta.setProperties({"delta.checkpointInterval": "5"})
    numbers.write(spark.sql("select 20L id, 'n20' name, 0L p, 7 extra"))
    assert [r.extra for r in numbers.read().where("id = 20").collect()] == [7]
    numbers.delta.unsetProperties(["delta.checkpointInterval"])
    assert_same_rows(numbers.read().toArrow(), by_core(numbers.path))


def test_features_and_constraints(spark: Any, numbers: Table) -> None:
    numbers.delta.addFeatureSupport("appendOnly")
    numbers.delta.upgradeTableProtocol(1, 4)
    numbers.delta.addFeatureSupport("domainMetadata")
    assert "domainMetadata" in numbers.delta.detail().first().tableFeatures
    log = DeltaLog.for_path(numbers.path)
    txn = log.transaction()
    assert txn.snapshot is not None
    configuration = {**txn.snapshot.metadata.configuration, "delta.constraints.c": "id >= 0"}
    txn.set_metadata(replace(txn.snapshot.metadata, configuration=configuration))
    txn.commit([], Operation("ADD CONSTRAINT"))
    numbers.delta.dropConstraint("c")
    numbers.write(spark.sql("select -1L id, 'n-1' name, 1L p"))
    assert numbers.read().where("id = -1").count() == 1


@pytest.mark.parametrize("name", ["dv-partitioned-with-checkpoint", "dv-with-columnmapping"])
def test_a_table_with_deletion_vectors(spark: Any, golden: Corpus, tmp_path: Path, name: str) -> None:
    shutil.copytree(golden(name) / "delta", tmp_path / "t")
    table = Table(spark, tmp_path / "t")
    rows = [tuple(one) for one in table.read().collect()]
    column = table.read().columns[0]
    value = sorted(one[0] for one in rows)[len(rows) // 2]
    literal = f"'{value}'" if isinstance(value, str) else value
    table.delta.delete(f"{column} = {literal}")
    left = [one for one in rows if one[0] != value]
    assert sorted(map(str, left)) == sorted(str(tuple(one)) for one in table.read().collect())
    assert 0 < len(left) < len(rows)
    table.delta.reorg()
    assert not any(a["add"].get("deletionVector") for a in table.actions() if "add" in a)
    assert sorted(map(str, left)) == sorted(str(tuple(one)) for one in table.read().collect())
    assert_same_rows(table.read().toArrow(), by_core(table.path))


def test_conditions_skip_files(spark: Any, numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    appended = spark.sql("select 100L id, 'n100' name, 0L p")
    for condition in ("p = 1 and id > 8", (F.col("p") == 1) & (F.col("id") == 7)):
        race(numbers, monkeypatch, lambda: numbers.write(appended))
        numbers.delta.delete(condition)  # an append to another partition is no conflict
    check_ids = sorted(one.id for one in numbers.read().collect())
    assert check_ids == [0, 1, 2, 3, 4, 5, 6, 8, 100, 100]


@pytest.mark.parametrize("damage", ["corrupt", "missing"])
def test_no_command_skips_a_damaged_file(spark: Any, table: Table, conf: Any, damage: str) -> None:
    table.write(spark.range(4).coalesce(1))
    table.write(spark.range(4, 8).coalesce(1))
    conf("spark.sql.files.ignoreCorruptFiles", "true")
    conf("spark.sql.files.ignoreMissingFiles", "true")
    (file,) = {a["add"]["path"] for a in table.actions(0) if "add" in a}
    if damage == "missing":
        (table.root / file).unlink()
    else:
        (table.root / file).write_bytes(b"no Parquet file")
    for command in (
        lambda: table.delta.delete("id % 2 = 0"),
        lambda: table.delta.update(set={"id": "id + 1"}),
        lambda: merge_of(table, spark.range(8)).whenMatchedDelete("s.id > 5").execute(),
        lambda: table.delta.optimize().executeCompaction(),
    ):
        with pytest.raises(pyspark.errors.PySparkException):
            command()
    assert table.version == 1


def test_transactions_of_commands(spark: Any, numbers: Table, conf: Any) -> None:
    conf("spark.databricks.delta.write.txnAppId", "app")
    conf("spark.databricks.delta.write.txnVersion", "3")
    numbers.delta.delete("id = 1")
    version = numbers.version
    numbers.delta.delete("id = 2")
    assert numbers.version == version
    check(numbers, {row(i) for i in range(10) if i != 1})


def test_a_checked_table(spark: Any, table: Table) -> None:
    table.write(spark.range(3))
    log = DeltaLog.for_path(table.path)
    txn = log.transaction()
    assert txn.snapshot is not None
    configuration = {**txn.snapshot.metadata.configuration, "delta.constraints.small": "id < 50"}
    txn.set_metadata(replace(txn.snapshot.metadata, configuration=configuration))
    txn.commit([], Operation("ADD CONSTRAINT"))
    with pytest.raises(ConstraintViolationError, match="small"):
        merge_of(table, spark.range(2, 100)).whenNotMatchedInsert(values={"id": "s.id"}).execute()
    with pytest.raises(ConstraintViolationError, match="small"):
        table.delta.update("id = 1", {"id": "77"})
    assert table.rows() == [0, 1, 2]
    assert DeltaTable.forPath(spark, table.path).toDF().count() == 3


def test_the_stages_of_a_merge(spark: Any, table: Table, caplog: pytest.LogCaptureFixture) -> None:
    table.write(spark.range(10).repartition(1))
    merge = merge_of(table, spark.range(5, 15))
    with caplog.at_level(logging.INFO, "tablelog.progress"):
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    stages = [record.getMessage().partition("MERGE: ")[2] for record in caplog.records]
    assert stages[:3] == ["reading the source", "searching 1 file for matching rows", "writing data files"]
