"""Columns that a write may leave out: generated, numbered, with default values; and those that it brings along."""

import json
from typing import Any

import pytest

from support.spark_tables import Table
from tablelog.core.protocol.rules import Identity
from tablelog.engine.sql.fill import Turn, numbers
from tablelog.errors import ConstraintViolationError, InvalidArgumentError, MetadataChangedException
from tablelog.spark import DeltaTable, IdentityGenerator


def builder(table: Table) -> Any:
    return DeltaTable.create(table.spark).location(table.path)


def mark(table: Table, column: int = 0) -> int | None:
    for version in range(table.version, -1, -1):
        for action in table.actions(version):
            if "metaData" in action:
                field = json.loads(action["metaData"]["schemaString"])["fields"][column]
                found = field["metadata"].get("delta.identity.highWaterMark")
                return None if found is None else int(found)
    raise AssertionError


# --- generated columns --------------------------------------------------------------------------------------------


@pytest.mark.one_case
@pytest.mark.parametrize("rows", [2, 20_000])
def test_generated_columns_are_computed_or_checked(table: Table, rows: int) -> None:
    builder(table).addColumn("ts", "timestamp").addColumn("day", "date", generatedAlwaysAs="DATE(ts)").addColumn(
        "Twice", "int", nullable=False, generatedAlwaysAs="n * 2"
    ).addColumn("n", "int").partitionedBy("day").execute()
    spark = table.spark
    given = spark.range(rows).selectExpr(
        "timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, cast(id % 2 as int)) ts", "id n"
    )
    table.write(given)  # n is a bigint: the column is computed from what is stored
    wrong = "day <> date(ts) or twice <> n * 2 or twice is null"
    assert (table.read().count(), table.read().where(wrong).count()) == (rows, 0)
    assert sorted({a["add"]["partitionValues"]["day"] for a in table.actions() if "add" in a}) == [
        "2024-01-01",
        "2024-01-02",
    ]
    table.write(given.selectExpr("*", "cast(n as int) * 2 TWICE").limit(1))
    for bad in ("n * 2 + 1", "n"):
        with pytest.raises(ConstraintViolationError, match="generation expression of the column Twice"):
            table.write(given.selectExpr("ts", "n", f"cast({bad} as int) Twice"))
    with pytest.raises(ConstraintViolationError, match="Twice is NOT NULL"):
        table.write(spark.sql("select timestamp'2024-01-01 00:00:00' ts"))
    assert table.version == 2


def test_a_generated_column_of_a_field_and_with_mapped_names(table: Table) -> None:
    builder(table).addColumn("s", "struct<`a b`: int, c: string>").addColumn(
        "up per", "string", generatedAlwaysAs="upper(s.c)"
    ).addColumn("sum", "int", generatedAlwaysAs="s.`a b` + 1").property("delta.columnMapping.mode", "name").execute()
    table.write(table.spark.sql("select named_struct('a b', 1, 'c', 'x') s union all select null"))
    assert sorted(map(tuple, table.read().select("`up per`", "sum").collect()), key=str) == [("X", 2), (None, None)]


@pytest.mark.parametrize(
    ("data_type", "sql", "why"),
    [
        ("bigint", "a + 1", "has the type int, but the column has bigint"),
        ("int", "g + 1", "can't be resolved with the columns a, b"),
        ("int", "h", "can't be resolved"),
        ("double", "rand()", "not deterministic"),
        ("date", "current_date()", "differs between queries"),
        ("bigint", "count(a)", "more than one row"),
        ("int", "(select 1)", "more than one row"),
        ("int", "a +", "not a valid SQL expression"),
        ("variant", "to_variant_object(struct(a))", "a variant can't be compared"),
    ],
)
def test_what_can_generate_no_column(table: Table, data_type: str, sql: str, why: str) -> None:
    made = builder(table).addColumn("a", "int").addColumn("b", "string")
    made = made.addColumn("g", data_type, generatedAlwaysAs=sql).addColumn("h", "int", generatedAlwaysAs="a")
    with pytest.raises(InvalidArgumentError, match=why):
        made.execute()
    assert not table.root.exists() or not any(table.root.rglob("*.json"))


# --- default values -----------------------------------------------------------------------------------------------


def test_default_values_are_for_columns_that_are_left_out(table: Table) -> None:
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL("a int, b string NOT NULL, c int, d timestamp")
    columns["b"].metadata = {"CURRENT_DEFAULT": "'x' || 'y'", "EXISTS_DEFAULT": "'xy'"}
    columns["c"].metadata = {"CURRENT_DEFAULT": "41 + 1"}
    columns["d"].metadata = {"CURRENT_DEFAULT": "current_timestamp()"}
    with pytest.raises(InvalidArgumentError, match=r"delta\.feature\.allowColumnDefaults"):
        builder(table).addColumns(columns).execute()
    builder(table).addColumns(columns).property("delta.feature.allowColumnDefaults", "supported").execute()
    assert "EXISTS_DEFAULT" not in json.dumps(table.actions(0))
    table.write(table.spark.sql("select 1 a"))
    table.write(table.spark.sql("select 2 a, 'z' B, cast(null as int) c"))
    assert table.rows("a", "b", "c") == [(1, "xy", 42), (2, "z", None)]
    assert table.read().where("d is null").count() == 0
    table.write(table.spark.sql("select 3 a, 'more' e"), mergeSchema=True)
    assert table.rows("a", "b", "c", "e")[2] == (3, "xy", 42, "more")


# --- identity columns ---------------------------------------------------------------------------------------------


@pytest.fixture
def numbered(table: Table) -> Table:
    """`id` GENERATED ALWAYS AS IDENTITY, 10, 15, 20, ...; and a column v."""
    builder(table).addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(10, 5)).addColumn("v", "int").execute()
    return table


def test_rows_are_numbered_each_once(numbered: Table) -> None:
    spark = numbered.spark
    assert mark(numbered) is None
    numbered.write(spark.sql("select 1 v"))
    assert (numbered.rows("id"), mark(numbered)) == ([10], 10)
    numbered.write(spark.range(20_000).repartition(3).selectExpr("cast(id as int) v"))  # by tasks of Spark
    numbered.write(spark.createDataFrame([(i,) for i in range(5)], "v int"))  # by the driver
    ids = numbered.rows("id")
    assert len(set(ids)) == len(ids) == 20_006
    assert all(i % 5 == 0 for i in ids)
    assert mark(numbered) == max(ids) < 10 + 5 * 20_300  # tasks take turns, and leave small holes only
    assert numbered.info()["tags"] == {"delta.identity.schemaUpdate": "true"}
    version = numbered.version
    numbered.write(spark.range(0).selectExpr("cast(id as int) v"))
    assert numbered.version == version
    numbered.delta.delete("v > 3")  # rows that stay keep their numbers
    assert set(numbered.rows("id")) <= set(ids)


def test_frames_that_are_numbered_side_by_side(spark: Any) -> None:
    def frame(rows: int, tasks: int, turn: Turn) -> Any:
        return spark.range(0, rows, 1, tasks).select(numbers(spark, "id", Identity(7, -3, 1), turn).alias("id"))

    both = frame(9, 3, Turn(0, 2)).union(frame(5, 1, Turn(1, 2)))
    ids = [row.id for row in both.collect()]
    assert len(set(ids)) == 14
    assert all(i < 1 and (i - 7) % 3 == 0 for i in ids)
    assert sorted(row.id for row in frame(4, 3, Turn()).repartition(2).collect()) == [-17, -8, -5, -2]
    with pytest.raises(Exception, match="can't be generated by these tasks"):
        frame(9, 3, Turn()).coalesce(1).collect()


def test_values_from_outside(numbered: Table, tmp_path: Any) -> None:
    spark = numbered.spark
    with pytest.raises(InvalidArgumentError, match="GENERATED ALWAYS AS IDENTITY"):
        numbered.write(spark.sql("select 1L ID, 1 v"))
    other = Table(spark, tmp_path / "other")
    made = builder(other).addColumn("v", "int").partitionedBy("v").property("delta.columnMapping.mode", "name")
    made.addColumn("id", "bigint", generatedByDefaultAs=IdentityGenerator(0, -1)).execute()
    other.write(spark.sql("select 1 v, -7L id"))
    assert mark(other, 1) is None  # as in Delta, whoever brings values has to see to it that they are new
    other.write(spark.sql("select 2 v"))
    other.write(spark.sql("select 2 v"))
    assert (other.rows("id"), mark(other, 1)) == ([-7, -1, 0], -1)


def test_two_that_number_at_once(numbered: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablelog.dml.command import rows

    write, spark = rows.write_new, numbered.spark

    def held(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(rows, "write_new", write)
        done = write(*args, **more)
        numbered.write(spark.sql("select 2 v"))
        return done

    monkeypatch.setattr(rows, "write_new", held)
    with pytest.raises(MetadataChangedException):
        numbered.write(spark.sql("select 1 v"))
    assert (numbered.rows("v"), numbered.rows("id")) == ([2], [10])
    assert len(numbered.data_files()) == 1  # that of the write which lost is gone


def test_a_column_that_is_used_up(table: Table) -> None:
    top = 2**63 - 1
    builder(table).addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(top - 1, 1)).addColumn(
        "v", "int"
    ).execute()
    one = table.spark.sql("select 1 v")
    with pytest.raises(ConstraintViolationError, match="the identity column id has no values left"):
        table.write(table.spark.range(4).coalesce(1).selectExpr("cast(id as int) v"))
    table.write(one)
    table.write(one)
    assert table.rows("id") == [top - 1, top]
    with pytest.raises(ConstraintViolationError, match="no more values"):
        table.write(one)


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda b: b.addColumn("i", "int", generatedAlwaysAs=IdentityGenerator()), InvalidArgumentError, "be bigint"),
        (
            lambda b: b.addColumn("i", "bigint", generatedAlwaysAs=IdentityGenerator()).partitionedBy("i"),
            InvalidArgumentError,
            "can't be partitioned",
        ),
        (lambda b: b.addColumn("i", "bigint", generatedAlwaysAs=IdentityGenerator(1, 0)), ValueError, "non-zero"),
        (lambda b: b.addColumn("i", "bigint", generatedByDefaultAs="1"), TypeError, "IdentityGenerator"),
        (
            lambda b: b.addColumn("i", "bigint", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator()),
            ValueError,
            "cannot both",
        ),
    ],
)
def test_what_can_be_no_identity_column(table: Table, make: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        make(builder(table).addColumn("v", "int")).execute()


@pytest.mark.slow
def test_a_merge_numbers_the_rows_of_all_its_inserts(numbered: Table) -> None:
    spark = numbered.spark
    numbered.write(spark.sql("select 1 v union all select 2").coalesce(1))
    source = spark.range(8).selectExpr("cast(id as int) v")
    merge = numbered.delta.alias("t").merge(source.alias("s"), "t.v = s.v").whenMatchedUpdate(set={"v": "s.v + 100"})
    merge = merge.whenNotMatchedInsert("s.v < 4", {"v": "s.v"}).whenNotMatchedInsert(values={"v": "s.v + 1000"})
    merge.execute()
    found = dict(numbered.rows("v", "id"))
    assert {v: found[v] for v in (101, 102)} == {101: 10, 102: 15}
    assert sorted(found) == [0, 3, 101, 102, 1004, 1005, 1006, 1007]
    assert len(set(found.values())) == 8
    assert mark(numbered) == max(found.values())
    with pytest.raises(InvalidArgumentError, match="can't be updated"):
        numbered.delta.update(set={"id": "1"})
    numbered.delta.update("v = 0", {"v": "-1"})
    assert dict(numbered.rows("v", "id"))[-1] == found[0]
