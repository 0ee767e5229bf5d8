"""UPDATE: which rows change and how, which files are written, what the commit says, what is refused."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
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

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(params=[{}, VECTORS], ids=["rewriting", "vectors"])
def numbers(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """ids 0 to 11 in two files of each of the partitions 0, 1, 2; v is null where id is 7."""
    found = Table(spark, tmp_path / "table")
    for start in (0, 6):
        rows = spark.range(start, start + 6).selectExpr("id", "id % 3 p", "if(id = 7, null, cast(id * 2 as int)) v")
        found.write(rows.coalesce(1), by=("p",), **request.param)
    return found


def kinds(table: Table) -> list[str]:
    return sorted(kind for action in table.actions() for kind in action if kind != "commitInfo")


def metrics(table: Table) -> dict[str, int]:
    return {key: int(value) for key, value in table.info()["operationMetrics"].items()}


def before(changes: dict[int, Any]) -> list[Any]:
    rows = {i: (i, i % 3, None if i == 7 else i * 2) for i in range(12)}
    return sorted((rows | changes).values(), key=str)


def test_a_scalar_subquery_is_a_value(numbers: Table, spark: SparkSession) -> None:
    spark.range(3, 6).createOrReplaceTempView("others")
    try:
        numbers.delta.update(
            "id = 4", {"v": "(select max(id) from others) + v", "p": F.expr("(select id from others where id > 100)")}
        )
        # It is computed once: with what is random in it, it is the same for all rows.
        numbers.delta.update("id > 9", {"v": "(select cast(rand() * 1e9 as int))"})
        source = spark.range(5, 7).alias("s")
        merge = numbers.delta.alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdate(set={"v": "(select min(id) from others)"}).execute()
    finally:
        spark.catalog.dropTempView("others")
    found = {id_: (p, v) for id_, p, v in numbers.rows("id", "p", "v")}
    assert (found[4], found[5][1], found[6][1], found[8][1]) == ((None, 5 + 8), 3, 3, 16)
    assert found[10][1] == found[11][1] not in (20, 22)


def test_an_empty_set_changes_no_value(numbers: Table, spark: SparkSession) -> None:
    rows = sorted(numbers.rows(), key=str)
    numbers.delta.update("id = 4", {})
    assert (numbers.version, metrics(numbers)["numUpdatedRows"]) == (2, 1)
    source = spark.range(3, 14).alias("s")
    merge = numbers.delta.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdate(set={}).whenNotMatchedBySourceUpdate(set={}).whenNotMatchedInsert(
        "s.id = 12", {"id": "s.id"}
    ).whenNotMatchedInsert(values={}).execute()
    assert metrics(numbers)["numTargetRowsInserted"] == 2
    assert metrics(numbers)["numTargetRowsUpdated"] == 0
    assert sorted(map(tuple, numbers.read().collect()), key=str) == sorted(
        [*rows, (12, None, None), (None, None, None)], key=str
    )
    merge.whenMatchedUpdate("s.id = 5", {}).execute()
    assert metrics(numbers)["numTargetRowsUpdated"] == 1


def test_rows_of_a_condition(numbers: Table) -> None:
    assert numbers.delta.update("id in (4, 7)", {"v": "id + p", "P": F.col("p") + 1}) is None
    assert sorted(numbers.rows(), key=str) == before({4: (4, 2, 5), 7: (7, 2, 8)})
    info, found = numbers.info(), metrics(numbers)
    assert info["operation"] == "UPDATE"
    (predicate,) = json.loads(info["operationParameters"]["predicate"])
    assert " IN (" in predicate
    assert (found["numUpdatedRows"], found["numRemovedFiles"], found["numAddedChangeFiles"]) == (2, 2, 0)
    if found["numDeletionVectorsAdded"]:
        assert (found["numCopiedRows"], found["numAddedBytes"] > 0, found["numRemovedBytes"]) == (0, True, 0)
        assert kinds(numbers).count("remove") == 2
    else:
        assert found["numCopiedRows"] == 2
        assert found["numRemovedBytes"] == sum(a["remove"]["size"] for a in numbers.actions() if "remove" in a)
    numbers.delta.update("v > 8 and p < 2", {"v": "null"})
    assert sorted(numbers.rows(), key=str) == before(
        {4: (4, 2, 5), 7: (7, 2, 8), 6: (6, 0, None), 9: (9, 0, None), 10: (10, 1, None)}
    )


def test_partitions_and_all_rows(numbers: Table) -> None:
    numbers.delta.update("p = 1", {"v": "0"})
    assert kinds(numbers).count("remove") == 2
    found = metrics(numbers)
    assert (found["numUpdatedRows"], found["numCopiedRows"], found["numDeletionVectorsAdded"]) == (4, 0, 0)
    numbers.delta.alias("t").update(set={"t.v": "t.v + 1", "id": numbers.delta.toDF()["id"] + 100})
    assert numbers.info()["operationParameters"] == {"predicate": "[]"}
    rows = {i: (100 + i, i % 3, 1 if i % 3 == 1 else i * 2 + 1) for i in range(12)}
    assert sorted(numbers.rows()) == sorted(rows.values())
    assert metrics(numbers)["numUpdatedRows"] == 12


def test_nothing_matched_nothing_committed(numbers: Table) -> None:
    for condition in ("id = 99", "p = 7", "v is null and id < 7", "false", "id > null"):
        numbers.delta.update(condition, {"v": "1"})
    assert numbers.version == 1
    assert numbers.data_files() == numbers.logged_files()


def test_nested_fields_and_types(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "nested")
    nested = "named_struct('a', id, 'b', named_struct('x', 1, 'y', 'q'))"
    frame = (
        spark.range(4).coalesce(1).selectExpr("id", f"if(id = 3, null, {nested}) s", "array(named_struct('u', 1)) arr")
    )
    more = ("map('k', id) m", "cast(null as date) d", "cast(1 as decimal(4,1)) x", "cast(1 as tinyint) t")
    table.write(frame.selectExpr("*", *more))
    table.delta.update("id > 0", {"s.b.x": "id * 10", "S.A": "-1", "d": "'2024-02-01'", "t": "id + 1"})
    day = datetime.date(2024, 2, 1)
    assert table.rows("id", "s.a", "s.b.x", "s.b.y", "d", "t") == [
        (0, 0, 1, "q", None, 1),
        (1, -1, 10, "q", day, 2),
        (2, -1, 20, "q", day, 3),
        (3, -1, 30, None, day, 4),
    ]
    table.delta.update(
        "id = 2",
        {
            "s": "named_struct('b', named_struct('y', 'w', 'x', 5), 'a', 7)",
            "arr": "array(named_struct('u', 300L))",
            "m": "map('z', 1)",
            "x": "cast(x as string)",
        },
    )
    shown = table.read().where("id = 2").selectExpr("s.a", "s.b.x", "s.b.y", "arr[0].u", "m['z']", "x")
    assert tuple(shown.first() or ()) == (7, 5, "w", 300, 1, 1)


NESTED = (
    "id bigint, s string, st struct<a: int, b: string>, items array<struct<a: int, b: string>>, "
    "m map<string, struct<a: int, b: string>>, numbers array<bigint>"
)


@pytest.mark.slow
def test_nested_values_are_cast_by_the_names_of_their_fields(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    table = Table(spark, tmp_path / "nested")
    empty = spark.createDataFrame([(1, None, None, None, None, None)], NESTED)
    table.write(empty)
    source = spark.range(1, 2).alias("s")
    for column, value, expected in (
        ("items", "array(named_struct('b', 7, 'a', '5'), null)", [{"a": 5, "b": "7"}, None]),
        ("items", "array(named_struct('A', 5.0D, 'B', date'2024-01-02'))", [{"a": 5, "b": "2024-01-02"}]),
        ("items", "array()", []),
        ("m", "map(1, named_struct('b', true, 'a', 7L))", {"1": {"a": 7, "b": "true"}}),
        ("m", "map()", {}),
        ("st", "named_struct('b', 1, 'a', '5')", {"a": 5, "b": "1"}),
        ("st", "if(id = 1, null, named_struct('b', 1, 'a', '5'))", None),
        ("st.b", "array(1, 2)", {"a": None, "b": "[1, 2]"}),
        ("numbers", "array('1', '-2')", [1, -2]),
        ("s", "named_struct('a', 1, 'b', 'x')", "{1, x}"),
        ("s", "array(1, null)", "[1, null]"),
        ("s", "map('k', array(1))", "{k -> [1]}"),
    ):
        top = column.partition(".")[0]
        table.delta.update("id = 1", {column: value})
        assert table.read().select(top).first().asDict(recursive=True)[top] == expected, (column, value)
        table.delta.update("id = 1", {top: "null"})
    merge = table.delta.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdate(
        set={
            "items": "array(named_struct('b', t.id, 'a', '5'))",
            "s": "array(s.id)",
            "st": "named_struct('b', 1, 'a', 2L)",
        }
    ).execute()
    row = table.read().first().asDict(recursive=True)
    assert (row["items"], row["s"], row["st"]) == ([{"a": 5, "b": "1"}], "[1]", {"a": 2, "b": "1"})
    at = table.version
    for column, value in (
        ("items", "array(named_struct('a', 5))"),
        ("items", "array(named_struct('a', 5, 'b', 'x', 'c', 1))"),
        ("items", "array(named_struct('x', 5, 'y', 'x'))"),
        ("st", "s"),
        ("numbers", "s"),
    ):
        with pytest.raises(SchemaMismatchError):
            table.delta.update("id = 1", {column: value})
    for column, value in (
        ("items", "array(named_struct('a', 'five', 'b', 'x'))"),
        ("st", "named_struct('a', 1e10, 'b', 1)"),
    ):
        with pytest.raises(Exception, match=r"(?i)cast|overflow"):
            table.delta.update("id = 1", {column: value})
    assert table.version == at


def test_values_that_do_not_fit(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    table = Table(spark, tmp_path / "types")
    frame = spark.sql("select 1 id, cast(1 as tinyint) t, 5 v, cast(1 as decimal(3,1)) x, named_struct('a', 1) s")
    table.write(frame.unionAll(frame.selectExpr("2", "t", "v", "x", "s")))
    conf("spark.sql.ansi.enabled", "false")
    with pytest.raises(SchemaMismatchError, match="column `t` is out of the range"):
        table.delta.update("id = 1", {"t": "id * 1000"})
    with pytest.raises(SchemaMismatchError, match="column `x` is out of the range"):
        table.delta.update("id = 1", {"x": "100.5"})
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        table.delta.update("id = 1", {"v": "concat('a', id)"})
    with pytest.raises(SchemaMismatchError, match=r"SET v|SET x|DATATYPE_MISMATCH"):
        table.delta.update("id = 1", {"v": "array(1)"})
    with pytest.raises(SchemaMismatchError):
        table.delta.update("id = 1", {"s": "named_struct('b', 1)"})
    with pytest.raises(SchemaMismatchError):
        table.delta.update("id = 1", {"s": "named_struct('a', 1, 'b', 2)"})
    assert table.version == 0
    assert table.data_files() == table.logged_files()
    table.delta.update("id = 1", {"t": "id * 100", "x": "'99.9'"})  # a row that isn't changed needs not fit
    table.delta.update("id = 2", {"t": "100 / (id - 1)"})
    assert table.rows("id", "t", "x") == [(1, 100, Decimal("99.9")), (2, 100, Decimal("1.0"))]


def test_what_is_refused(numbers: Table) -> None:
    update = numbers.delta.alias("t").update
    for columns, message in (
        ({"nope": "1"}, "sets the column nope"),
        ({"v.a": "1"}, r"v\.a"),
        ({"s.v": "1"}, r"s\.v"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            update("id = 1", columns)
    for columns, message in (
        ({"v": "1", "V": "2"}, "v more than once"),
        ({"v": "1", "t.v": "2"}, "v more than once"),
        ({"v": "rand()"}, "not deterministic"),
        ({"v": "max(v)"}, "aggregates"),
        ({"v": "row_number() over (order by id)"}, "windows"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            update("id = 1", columns)
    with pytest.raises(InvalidArgumentError, match="deterministic"):
        update("rand() > 0.5", {"v": "1"})
    for condition, value in (
        ("id in (select 1)", "1"),
        ("id = 1", "(select max(r.id) from range(3) r where r.id = t.id)"),
        ("id = 1", "if(exists (select 1 from range(3)), 1, 2)"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="subquery"):
            update(condition, {"v": value})
    with pytest.raises(InvalidArgumentError, match="more than one row"):
        update("id = 1", {"v": "1 + (select id from range(3))"})
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        update("id = 1", {"v": "nope + 1"})
    for wrong in ({"v": 1}, {1: "v"}, [("v", "1")]):
        with pytest.raises(TypeError, match="set"):
            update("id = 1", wrong)
    with pytest.raises(ValueError, match="set"):
        update("id = 1")
    with pytest.raises(TypeError, match="condition"):
        update(1, {"v": "1"})
    assert numbers.version == 1


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rules_of_the_table(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    table = Table(spark, tmp_path / "ruled")
    built = DeltaTable.create(spark).location(table.path).addColumn("id", "bigint", nullable=False)
    built = built.addColumn("at", "timestamp").addColumn("day", "date", generatedAlwaysAs="CAST(at AS DATE)")
    built = built.addColumn("n", "bigint", generatedAlwaysAs=IdentityGenerator(100, 10)).partitionedBy("day")
    built = built.property("delta.constraints.small", "id < 50").property("delta.enableDeletionVectors", vectors)
    built.property("delta.enableChangeDataFeed", "true").execute()
    table.write(spark.range(4).coalesce(1).selectExpr("id", "timestamp'2024-05-01 10:00:00' at"))
    numbers = dict(table.rows("id", "n"))

    # A generated partition column follows, the row moves; the one that is set has to agree with its expression.
    table.delta.update("id = 1", {"at": "'2024-06-01 00:00:00'"})
    table.delta.update("id = 2", {"at": "timestamp'2024-07-01 00:00:00'", "day": "'2024-07-01'"})
    days = [(i, f"2024-0{month}-01") for i, month in enumerate((5, 6, 7, 5))]
    assert [(i, str(day)) for i, day in table.rows("id", "day")] == days
    assert {a["add"]["partitionValues"]["day"] for a in table.actions() if "add" in a} >= {"2024-07-01"}
    assert dict(table.rows("id", "n")) == numbers
    changes = table.read(readChangeFeed="true", startingVersion=3)
    changes = changes.selectExpr("_change_type", "cast(day as string)", "n")
    assert sorted(map(tuple, changes.collect())) == [
        ("update_postimage", "2024-07-01", numbers[2]),
        ("update_preimage", "2024-05-01", numbers[2]),
    ]
    before = table.version
    for columns, message in (
        ({"day": "'2020-01-01'"}, "day"),
        ({"id": "60"}, "small"),
        ({"id": "null"}, "id is NOT NULL"),
    ):
        with pytest.raises(ConstraintViolationError, match=message):
            table.delta.update("id >= 2", columns)
    with pytest.raises(InvalidArgumentError, match="identity column n can't be updated"):
        table.delta.update("id >= 2", {"n": "1"})
    assert table.version == before
    table.delta.update(set={"id": "id + 10"})
    assert table.rows("id", "n") == [(i + 10, n) for i, n in sorted(numbers.items())]
    table.write(spark.range(1).selectExpr("id", "timestamp'2024-05-01 10:00:00' at"))
    assert dict(table.rows("id", "n"))[0] not in numbers.values()
    assert {Path(name).name for name in table.logged_files()} >= {
        Path(name).name for name in table.data_files() if "_change_data" not in name and name.endswith(".parquet")
    }


def test_append_only(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "log")
    table.write(spark.range(3), **{"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError, match=r"delta\.appendOnly"):
        table.delta.update("id = 7", {"id": "1"})


def test_one_instant_for_condition_and_values(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "time")
    table.write(spark.range(3).coalesce(1).selectExpr("id", "current_timestamp() - interval 1 hour at", "false old"))
    table.delta.update("at < current_timestamp()", {"at": "current_timestamp()", "old": "at < now()"})
    assert table.read().where("old").select("at").distinct().count() == 1


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewriting", "vectors"])
def test_mapped_columns_and_changes(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    table = Table(spark, tmp_path / "mapped")
    rows = spark.range(6).coalesce(1).selectExpr("id", "concat('v', id) `a b`", "id % 2 `p,q`")
    given = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", **properties}
    table.write(rows, by=("p,q",), **given)
    table.delta.update("id between 2 and 3", {"`a b`": "upper(`a b`)", "`p,q`": "9"})
    expected = [(i, f"V{i}", 9) if i in (2, 3) else (i, f"v{i}", i % 2) for i in range(6)]
    assert table.rows() == expected
    changed = [action["cdc"] for action in table.actions() if "cdc" in action]
    assert metrics(table)["numAddedChangeFiles"] == len(changed) == 4
    table.delta.delete("id = 5 or id = 3")
    assert table.rows() == [row for row in expected if row[0] not in (3, 5)]
    deleted = [action["cdc"] for action in table.actions() if "cdc" in action]
    assert len(deleted) == metrics(table)["numAddedChangeFiles"] == (0 if properties else 2)


def test_an_append_meanwhile_is_a_conflict(numbers: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablelog.core.txn.transaction import Transaction

    commit = Transaction.commit

    def after_an_append(self: Transaction, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        numbers.write(numbers.spark.sql("select 20L id, 1L p, 1 v"))
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", after_an_append)
    with pytest.raises(ConcurrentAppendException, match="p=1"):
        numbers.delta.update("p = 1 and id > 3", {"v": "0"})
    assert numbers.read().where("v = 0").count() == 1
    assert numbers.data_files() == numbers.logged_files()
