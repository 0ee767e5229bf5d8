"""MERGE: which rows change and how, which files are touched, what the commit says, what is refused."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.dml.command.command import Command
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tablelog.spark import DeltaTable, IdentityGenerator

pytestmark = pytest.mark.one_case


@pytest.fixture
def table(spark, tmp_path) -> Table:
    """ids 0 to 11 in files of (0-5) and (6-11); v is 10 times the id."""
    found = Table(spark, tmp_path / "table")
    for start in (0, 6):
        rows = spark.range(start, start + 6).select("id", (F.col("id") * 10).alias("v"), F.lit("old").alias("s"))
        found.write(rows.coalesce(1))
    return found


def source(spark, *rows: tuple[Any, ...], schema: str = "id bigint, v bigint, s string") -> DataFrame:
    return spark.createDataFrame(list(rows), schema).alias("s")


def large(frame: DataFrame) -> DataFrame:
    """The same, of which Spark doesn't know that it's small."""
    return frame.repartition(2)


def changed(table: Table) -> tuple[int, int]:
    actions = table.actions()
    return sum("add" in a for a in actions), sum("remove" in a for a in actions)


def metrics(table: Table) -> dict[str, int]:
    return {key: int(value) for key, value in table.info()["operationMetrics"].items()}


def merged(table: Table, frame: DataFrame, condition: str = "t.id = s.id") -> Any:
    return table.delta.alias("t").merge(frame, condition)


@pytest.mark.parametrize("kind", ["few", "many"])
def test_upsert(table, spark, kind):
    frame = source(spark, (1, -1, "new"), (20, -20, "new"))
    frame = frame if kind == "few" else large(frame).alias("s")
    counts = merged(table, frame).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [tuple(row) for row in counts.collect()] == [(2, 1, 0, 1)]
    assert counts.columns == ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
    expected = [(i, i * 10, "old") for i in range(12) if i != 1] + [(1, -1, "new"), (20, -20, "new")]
    assert table.rows() == sorted(expected)
    assert changed(table)[1] == 1
    info = table.info()
    assert info["operation"] == "MERGE"
    parameters = info["operationParameters"]
    assert parameters.keys() == {
        "predicate",
        "matchedPredicates",
        "notMatchedPredicates",
        "notMatchedBySourcePredicates",
    }
    assert json.loads(parameters["matchedPredicates"]) == [{"actionType": "update"}]
    assert json.loads(parameters["notMatchedPredicates"]) == [{"actionType": "insert"}]
    assert parameters["notMatchedBySourcePredicates"] == "[]"
    found = metrics(table)
    assert found["numSourceRows"] == 2
    assert found["numTargetRowsUpdated"] == found["numTargetRowsMatchedUpdated"] == 1
    assert found["numTargetRowsInserted"] == 1
    assert found["numTargetRowsCopied"] == 5
    assert found["numOutputRows"] == 7
    assert found["numTargetFilesRemoved"] == 1
    assert found["numTargetFilesAdded"] == changed(table)[0]


def test_all_kinds_of_clauses_in_their_order(table, spark):
    frame = source(spark, (0, 1, "a"), (1, 2, "b"), (2, 3, "c"), (30, 4, "d"), (31, 5, "e"), (None, 6, "f"))
    counts = (
        merged(table, frame)
        .whenMatchedDelete("s.v = 1")
        .whenMatchedUpdate("s.v <= 2", {"v": "s.v + t.v", "t.s": F.lit("second")})
        .whenMatchedUpdate(F.col("s.v") > 100, {"s": "'never'"})
        .whenNotMatchedInsert("s.v = 4", {"id": "s.id", "v": "v * 2"})
        .whenNotMatchedInsertAll("s.v = 6")
        .whenNotMatchedBySourceUpdate("t.id = 7", {"s": "'unmatched'"})
        .whenNotMatchedBySourceDelete("t.id > 9")
        .execute()
    )
    assert [tuple(row) for row in counts.collect()] == [(7, 2, 3, 2)]
    expected = {i: (i, i * 10, "old") for i in range(2, 10)}
    expected |= {1: (1, 12, "second"), 7: (7, 70, "unmatched"), 30: (30, 8, None)}
    found = {row[0]: tuple(row) for row in table.read().collect()}
    assert found.pop(None) == (None, 6, "f")
    assert found == expected
    told = metrics(table)
    assert (told["numTargetRowsMatchedUpdated"], told["numTargetRowsNotMatchedBySourceUpdated"]) == (1, 1)
    assert (told["numTargetRowsMatchedDeleted"], told["numTargetRowsNotMatchedBySourceDeleted"]) == (1, 2)
    assert told["numTargetRowsCopied"] == 7


def test_insert_only_reads_and_rewrites_no_file_that_stays(table, spark):
    frame = source(spark, (3, 1, "x"), (12, 2, "x"), (12, 3, "x"), (None, 4, "x"))
    for kind in (frame, large(frame).alias("s")):
        at = DeltaLog.for_path(table.path).snapshot().version
        merged(table, kind).whenNotMatchedInsertAll("s.v < 4").execute()
        assert table.version == at + (kind is frame)
        assert changed(table) == (1, 0)
    assert [row for row in table.rows("id", "v") if row[0] == 12] == [(12, 2), (12, 3)]


def test_several_source_rows_for_one(table, spark):
    frame = source(spark, (1, 1, "x"), (1, 2, "x"), (None, 3, "x"), (None, 3, "x"))
    for kind in (frame, large(frame).alias("s")):
        with pytest.raises(InvalidArgumentError, match="several rows of the source"):
            merged(table, kind).whenMatchedUpdateAll().execute()
        with pytest.raises(InvalidArgumentError, match="several rows of the source"):
            merged(table, kind).whenMatchedDelete("s.v = 1").whenMatchedUpdateAll("s.v = 2").execute()
    assert table.version == 1
    merged(table, frame).whenMatchedDelete().execute()
    assert table.rows("id") == [0, *range(2, 12)]
    assert metrics(table)["numTargetRowsDeleted"] == 1
    merged(table, large(source(spark, (2, 1, "x"), (2, 2, "x"))).alias("s")).whenMatchedDelete().execute()
    assert table.rows("id") == [0, *range(3, 12)]
    assert metrics(table)["numTargetRowsDeleted"] == 1
    assert metrics(table)["numTargetRowsCopied"] == 4


@pytest.mark.parametrize(
    ("kind", "features", "by_source"),
    [
        ("few", (), False),
        ("many", (), True),
        ("many", ("ChangeDataFeed",), False),
        ("many", ("DeletionVectors",), True),
        ("few", ("DeletionVectors", "ChangeDataFeed"), False),
    ],
)
def test_clauses_that_only_delete_may_match_several_source_rows(spark, tmp_path, kind, features, by_source):
    table = Table(spark, tmp_path / "table")
    rows = spark.range(12).select("id", (F.col("id") * 10).alias("v"))
    table.write(rows.repartitionByRange(2, "id"), **{f"delta.enable{name}": "true" for name in features})
    # 1 and 2 go by one of two pairs each, 3 by its only one; 5 matches twice and stays.
    pairs = [(1, 2), (1, 1), (2, 5), (2, 6), (3, 1), (5, 8), (5, 9), (99, 1)]
    frame = spark.createDataFrame(pairs, "id bigint, v bigint").alias("s")
    frame = frame if kind == "few" else large(frame).alias("s")
    clauses = merged(table, frame).whenMatchedDelete("s.v = 1").whenMatchedDelete("s.v = t.v - 14")
    clauses = clauses.whenNotMatchedInsertAll()
    if by_source:
        clauses = clauses.whenNotMatchedBySourceUpdate(set={"v": "t.v + 1"})
    (counts,) = clauses.execute().collect()
    updated = {0, 4, *range(6, 12)} if by_source else set()
    expected = [(i, i * 10 + (i in updated)) for i in range(12) if i not in (1, 2, 3)] + [(99, 1)]
    assert table.rows() == expected
    assert tuple(counts) == (4 + len(updated), len(updated), 3, 1)
    told = metrics(table)
    by_vectors = "DeletionVectors" in features
    files = 2 if by_source else 1  # with vectors the second one, all of whose rows change
    assert (told["numTargetRowsMatchedDeleted"], told["numTargetFilesRemoved"]) == (
        3,
        int(by_source) if by_vectors else files,
    )
    assert told["numTargetRowsCopied"] == (0 if by_vectors else 1 if by_source else 3)
    if "ChangeDataFeed" in features:
        changes = table.read(readChangeFeed="true", startingVersion=1).select("_change_type", "id", "v").collect()
        assert sorted(map(tuple, changes)) == [*(("delete", i, i * 10) for i in (1, 2, 3)), ("insert", 99, 1)]


def test_nothing_to_do_commits_nothing(table, spark):
    counts = merged(table, source(spark, (99, 0, "x"))).whenMatchedUpdateAll().execute()
    assert [tuple(row) for row in counts.collect()] == [(0, 0, 0, 0)]
    merged(table, source(spark, (1, 0, "x"))).whenMatchedDelete("s.v = 7").execute()
    merged(table, source(spark).limit(0)).whenMatchedDelete().whenNotMatchedInsertAll().execute()
    assert table.version == 1


def test_the_rules_of_clauses(table, spark):
    builder = merged(table, source(spark, (1, 0, "x")))
    with pytest.raises(InvalidArgumentError, match="at least one WHEN"):
        builder.execute()
    with pytest.raises(InvalidArgumentError, match="only the last WHEN"):
        builder.whenMatchedDelete().whenMatchedUpdateAll("s.v = 1").execute()
    for values in ({"id": "s.id", "t.ID": "1"}, {"nope": "1"}):
        with pytest.raises((InvalidArgumentError, SchemaMismatchError)):
            builder.whenMatchedUpdate(set=values).execute()
    with pytest.raises(InvalidArgumentError, match="not deterministic"):
        builder.whenMatchedDelete("rand() < 0.5").execute()
    with pytest.raises(UnsupportedFeatureError, match="subquery"):
        merged(table, source(spark), "t.id in (select 1)").whenMatchedDelete().execute()
    with pytest.raises(AnalysisException):
        builder.whenNotMatchedInsert(values={"id": "t.id"}).execute()  # there is no row of the table
    with pytest.raises(AnalysisException):
        builder.whenNotMatchedBySourceDelete("s.id = 1").execute()
    with pytest.raises(AnalysisException):
        builder.whenMatchedUpdate(set={"v": "id"}).execute()  # both have one
    with pytest.raises(SchemaMismatchError):
        builder.whenMatchedUpdate(set={"v": "array(s.v)"}).execute()  # an array into a bigint
    with pytest.raises(SchemaMismatchError, match="needs a column s"):
        merged(table, spark.range(3).selectExpr("id", "id v").alias("s")).whenMatchedUpdateAll().execute()
    with pytest.raises(ValueError, match="must be given"):
        builder.whenMatchedUpdate()
    with pytest.raises(TypeError):
        builder.whenMatchedDelete(1)
    assert table.version == 1


def test_partitions_and_pruning(spark, tmp_path, caplog):
    table = Table(spark, tmp_path / "table")
    rows = spark.range(12).select("id", (F.col("id") % 3).alias("p"), F.lit(0).cast("bigint").alias("v"))
    table.write(rows.coalesce(1), by=("p",))
    frame = spark.createDataFrame([(4, 1, 1), (5, 2, 2), (40, 1, 3)], "id bigint, p bigint, v bigint").alias("s")
    condition = "t.p = s.p and t.id = s.id and t.p < 2"
    open_log = DeltaLog.for_path(table.path)
    before = open_log.transaction()
    merged(table, frame, condition).whenMatchedUpdate(set={"v": "s.v", "p": "0"}).whenNotMatchedInsertAll().execute()
    expected = {(i, i % 3, 0) for i in range(12)} - {(4, 1, 0)} | {(4, 0, 1), (5, 2, 2), (40, 1, 3)}
    assert table.rows() == sorted(expected)
    removed = [a["remove"] for a in table.actions() if "remove" in a]
    assert [one["partitionValues"] for one in removed] == [{"p": "1"}]
    assert before.read_version == 0


def test_a_commit_to_another_partition_is_no_conflict(spark, tmp_path, monkeypatch):
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(6).select("id", (F.col("id") % 2).alias("p")).coalesce(1), by=("p",))
    frame = spark.createDataFrame([(4, 0)], "id bigint, p bigint").alias("s")
    commit = Command.commit

    def after(partition):
        def late(work, *args, **kwargs):
            monkeypatch.undo()
            table.write(spark.sql(f"select 100L id, {partition}L p"), by=("p",))
            return commit(work, *args, **kwargs)

        monkeypatch.setattr(Command, "commit", late)

    after(1)
    merged(table, frame, "t.p = s.p and t.id = s.id").whenMatchedDelete().execute()
    after(0)
    with pytest.raises(ConcurrentAppendException):
        merged(table, frame, "t.p = s.p and t.id = s.id").whenNotMatchedInsertAll().execute()
    assert table.rows("id") == [0, 1, 2, 3, 5, 100, 100]
    assert {Path(name).name for name in table.data_files()} == {Path(name).name for name in table.logged_files()}


def test_schema_evolution(table, spark, conf):
    frame = spark.createDataFrame([(1, "one", 5), (20, "two", 6)], "id bigint, extra string, v int").alias("s")
    with pytest.raises(SchemaMismatchError, match="extra"):
        merged(table, frame).whenMatchedUpdate(set={"extra": "s.extra"}).execute()
    merged(table, frame).withSchemaEvolution().whenMatchedUpdate(set={"extra": "s.extra"}).execute()
    assert table.read().columns == ["id", "v", "s", "extra"]
    assert [row for row in table.rows("id", "extra") if row[1]] == [(1, "one")]
    assert "metaData" in {key for action in table.actions() for key in action}
    more = frame.withColumn("more", F.struct(F.lit(1).alias("a"))).alias("s")
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    merged(table, large(more).alias("s")).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = {row["id"]: row.asDict(recursive=True) for row in table.read().collect()}
    assert found[1] == {"id": 1, "v": 5, "s": "old", "extra": "one", "more": {"a": 1}}
    assert found[20] == {"id": 20, "v": 6, "s": None, "extra": "two", "more": {"a": 1}}
    assert found[0] == {"id": 0, "v": 0, "s": "old", "extra": None, "more": None}
    nested = spark.sql("select 1L id, named_struct('b', 2) more").alias("s")
    merged(table, nested).whenMatchedUpdateAll().execute()
    found = {row["id"]: row.asDict(recursive=True) for row in table.read().collect()}
    assert found[1]["more"] == {"a": 1, "b": 2}
    assert found[20]["more"] == {"a": 1, "b": None}


def test_nested_fields(spark, tmp_path):
    table = Table(spark, tmp_path / "table")
    table.write(spark.sql("select id, named_struct('a', id, 'b', named_struct('c', 'x', 'd', 1.5D)) n from range(3)"))
    frame = spark.createDataFrame([(1, "new")], "id bigint, c string").alias("s")
    merged(table, frame).whenMatchedUpdate(set={"n.b.c": "s.c", "t.n.a": "t.n.a + 5"}).execute()
    found = {row["id"]: row.asDict(recursive=True)["n"] for row in table.read().collect()}
    assert found[1] == {"a": 6, "b": {"c": "new", "d": 1.5}}
    assert found[2] == {"a": 2, "b": {"c": "x", "d": 1.5}}
    with pytest.raises(InvalidArgumentError, match="more than once"):
        merged(table, frame).whenMatchedUpdate(set={"n.b": "null", "n.b.c": "s.c"}).execute()


def test_the_table_is_its_own_source(table, spark):
    own = table.read().where("id < 3").withColumn("v", F.col("v") + 1).alias("s")
    merged(table, own).whenMatchedUpdateAll().execute()
    assert table.rows("v")[:4] == [1, 11, 21, 30]
    target = table.delta.toDF()
    frame = source(spark, (3, 0, "x"))
    table.delta.merge(frame, target["id"] == frame["id"]).whenMatchedDelete(frame["v"] == 0).execute()
    assert table.rows("id") == [0, 1, 2, *range(4, 12)]


def test_a_random_source_is_read_once(table, spark):
    frame = spark.range(6).select("id", F.rand().alias("r"), (F.rand() * 1000).cast("bigint").alias("v")).alias("s")
    merged(table, large(frame).alias("s")).whenMatchedUpdate("s.r < 0.5", {"v": "s.v"}).whenMatchedDelete().execute()
    told = metrics(table)
    assert told["numTargetRowsUpdated"] + told["numTargetRowsDeleted"] == 6
    assert len(table.rows()) == 12 - told["numTargetRowsDeleted"]


def test_rules_of_the_table(spark, tmp_path):
    table = Table(spark, tmp_path / "table")
    built = DeltaTable.create(spark).location(table.path).addColumn("id", "bigint", nullable=False)
    built = built.addColumn("v", "bigint").addColumn("twice", "bigint", generatedAlwaysAs="v * 2")
    built.addColumn("n", "bigint", generatedAlwaysAs=IdentityGenerator()).execute()
    first = spark.createDataFrame([(1, 1), (2, 2)], "id bigint, v bigint").alias("s")
    insert = {"id": "s.id", "v": "s.v"}
    merged(table, first).whenNotMatchedInsert(values=insert).execute()
    assert table.rows("id", "v", "twice") == [(1, 1, 2), (2, 2, 4)]
    numbers = dict(table.rows("id", "n"))
    second = spark.createDataFrame([(2, 20), (3, 3)], "id bigint, v bigint").alias("s")
    upsert = merged(table, second).whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values=insert)
    upsert.execute()
    assert table.rows("id", "v", "twice") == [(1, 1, 2), (2, 20, 40), (3, 3, 6)]
    after = dict(table.rows("id", "n"))
    assert {key: after[key] for key in numbers} == numbers
    assert after[3] > max(numbers.values())
    table.delta.addConstraint("small", "v < 50")
    for wrong in ({"v": "100"}, {"id": "null"}, {"twice": "7"}):
        with pytest.raises(ConstraintViolationError):
            merged(table, second).whenMatchedUpdate(set=wrong).execute()
    with pytest.raises(InvalidArgumentError, match="identity"):
        merged(table, second).whenMatchedUpdate(set={"n": "1"}).execute()
    assert {Path(name).name for name in table.data_files()} == {Path(name).name for name in table.logged_files()}


@pytest.mark.slow
def test_values_that_do_not_fit(spark, tmp_path, conf):
    table = Table(spark, tmp_path / "table")
    row = spark.sql("select 1L id, cast(1 as tinyint) t, 5 v, cast(1 as decimal(3,1)) x, array(1) a")
    table.write(row)
    conf("spark.sql.ansi.enabled", "false")
    for values, error, message in (
        ({"t": "s.n"}, SchemaMismatchError, "column `t` is out of the range"),
        ({"x": "'100.5'"}, SchemaMismatchError, "column `x` is out of the range"),
        ({"v": "concat('a', s.n)"}, Exception, "CAST_INVALID_INPUT"),
        ({"v": "array(1)"}, SchemaMismatchError, None),
        ({"a": "array(s.n)"}, SchemaMismatchError, "column `a` is out of the range"),
        ({"v": "date'2024-05-01'"}, SchemaMismatchError, None),
    ):
        few = spark.createDataFrame([(1, 5_000_000_000)], "id bigint, n bigint").alias("s")
        with pytest.raises(error, match=message):
            merged(table, few).whenMatchedUpdate(set=values).execute()
        with pytest.raises(error, match=message):
            merged(table, few, "false").whenNotMatchedInsert(values={"id": "s.id", **values}).execute()
    wide = spark.createDataFrame(
        [(1, 300, 5, 1, [1]), (2, 7, 6, 2, [2])], "id int, t int, v bigint, x int, a array<int>"
    )
    upsert = merged(table, large(wide).alias("s")).whenMatchedUpdateAll()
    with pytest.raises(SchemaMismatchError, match="column `t` is out of the range"):
        upsert.execute()
    assert table.version == 0
    assert table.data_files() == table.logged_files()
    # What isn't taken needs not fit, and a text that is a number does.
    fitting = merged(table, wide.alias("s")).whenMatchedUpdate(set={"v": "'12'", "x": "9.94", "a": "array('7')"})
    fitting.whenNotMatchedInsertAll().execute()
    assert table.rows() == [(1, 1, 12, Decimal("9.9"), [7]), (2, 7, 6, Decimal("2.0"), [2])]


def test_an_append_only_table_takes_new_rows(table, spark):
    table.delta.setProperties({"delta.appendOnly": "true"})
    merged(table, source(spark, (50, 1, "x"))).whenMatchedDelete().whenNotMatchedInsertAll().execute()
    with pytest.raises(AppendOnlyTableError):
        merged(table, source(spark, (50, 1, "x"))).whenMatchedDelete().execute()
    assert len(table.rows()) == 13


@pytest.mark.parametrize("kind", ["few", "many"])
def test_deletion_vectors_and_changes(spark, tmp_path, kind):
    table = Table(spark, tmp_path / "table")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    rows = spark.range(12).select("id", (F.col("id") * 10).alias("v"))
    table.write(rows.coalesce(1), **properties, **{"delta.columnMapping.mode": "name"})
    frame = spark.createDataFrame([(1, 5), (2, 6), (99, 7)], "id bigint, v bigint").alias("s")
    frame = frame if kind == "few" else large(frame).alias("s")
    clauses = merged(table, frame).whenMatchedDelete("s.v = 6").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    clauses.whenNotMatchedBySourceDelete("t.id = 11").execute() if kind == "many" else clauses.execute()
    gone = {2} | ({11} if kind == "many" else set())
    expected = {(i, i * 10) for i in range(12) if i not in gone} - {(1, 10)} | {(1, 5), (99, 7)}
    assert table.rows() == sorted(expected)
    actions = table.actions()
    assert [a["add"]["deletionVector"]["cardinality"] for a in actions if a.get("add", {}).get("deletionVector")] == [
        1 + len(gone)
    ]
    told = metrics(table)
    assert told["numTargetDeletionVectorsAdded"] == 1
    assert (told["numTargetRowsCopied"], told["numTargetFilesRemoved"]) == (0, 0)
    assert told["numTargetRowsInserted"] == 1
    changes = table.read(readChangeFeed="true", startingVersion=1)
    found = sorted(tuple(row) for row in changes.select("_change_type", "id", "v").collect())
    deleted = [("delete", i, i * 10) for i in sorted(gone)]
    assert found == sorted([*deleted, ("insert", 99, 7), ("update_preimage", 1, 10), ("update_postimage", 1, 5)])
    merged(table, frame).whenNotMatchedInsert(values={"id": "s.id + 1"}).whenMatchedDelete("s.v = 7").execute()
    ids = [row[0] for row in table.read().collect()]
    assert 99 not in ids
    assert ids.count(3) == 2  # the source's row with the id 2 matches no more
    assert len(ids) == len(expected)


def jobs(spark, work) -> int:
    """How many Spark jobs `work` runs."""
    spark.sparkContext.setJobGroup("counted", "")
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup("counted"))
    work()
    found = len(spark.sparkContext.statusTracker().getJobIdsForGroup("counted"))
    for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
        spark.sparkContext.setLocalProperty(key, None)
    return found - before


def test_how_many_jobs(table, spark):
    upsert = merged(table, source(spark, (1, 0, "x"), (90, 0, "x"))).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert jobs(spark, upsert.execute) <= 4
    fresh = spark.sql("select 1000L id, 1L v, 'x' s").alias("s")
    new = merged(table, fresh).whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert jobs(spark, new.execute) <= 2  # by the statistics no file has the key, and the driver writes the row
    table.delta.setProperties({"delta.enableDeletionVectors": "true"})
    marked = merged(table, spark.sql("select 8L id, 1L v, 'x' s").alias("s")).whenMatchedUpdateAll()
    assert jobs(spark, marked.execute) <= 5


def test_names_that_differ_only_in_case_are_an_error_of_a_star(table: Table, conf: Any) -> None:
    """The schema evolution ignores case, so it adds no column, and the values would be lost."""
    spark, before, version = table.spark, table.rows(), table.version
    source = spark.sql("SELECT 1L AS id, 77L AS V, 'x' AS s, 5 AS more UNION ALL SELECT 99, 78, 'y', 6")
    source.createOrReplaceTempView("source_of_case")
    by_sql = (
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{table.path}` t USING source_of_case s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    conf("spark.sql.caseSensitive", "true")
    builder = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    for run in (builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute, lambda: spark.sql(by_sql)):
        with pytest.raises(SchemaMismatchError, match="column V of the source"):
            run()
    assert (table.rows(), table.version) == (before, version)
    conf("spark.sql.caseSensitive", "false")
    spark.sql(by_sql)
    assert set(table.read().where("id IN (1, 99)").select("v", "more").collect()) == {(77, 5), (78, 6)}
