"""Conditions and values as SQL text and as Columns: generated ones mean the same, and every command takes both."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from support import forms
from support.spark_tables import Table
from tablelog.engine.read import scan
from tablelog.engine.sql import assigned_values as assigned
from tablelog.engine.sql.resolution import Scope
from tablelog.spark import DeltaTable

Pair = tuple[str, Callable[[Callable[[str], Column]], Column]]
"""An expression as text, and as a function that makes a Column of it, given what makes a Column of a name."""

NUMBERS: list[Pair] = [
    ("id", lambda c: c("id")),
    ("v", lambda c: c("v")),
    ("st.a", lambda c: c("st.a")),
    ("id + v", lambda c: c("id") + c("v")),
    ("coalesce(v, id)", lambda c: F.coalesce(c("v"), c("id"))),
    ("length(s)", lambda c: F.length(c("s"))),
    ("CASE WHEN v > id THEN id ELSE st.a END", lambda c: F.when(c("v") > c("id"), c("id")).otherwise(c("st.a"))),
    ("arr[0]", lambda c: c("arr")[0]),
    ("aggregate(arr, id, (a, x) -> a + x)", lambda c: F.aggregate(c("arr"), c("id"), lambda a, x: a + x)),
    ("int(m['k'])", lambda c: c("m")["k"].cast("int")),
]
LEAVES: list[Pair] = [
    ("lower(s) = st.b", lambda c: F.lower(c("s")) == c("st.b")),
    ("s LIKE 'a%'", lambda c: c("s").like("a%")),
    ("concat(s, st.b) <=> 'aa'", lambda c: F.concat(c("s"), c("st.b")).eqNullSafe("aa")),
    ("d = DATE'2024-01-03'", lambda c: c("d") == F.lit(date(2024, 1, 3))),
    ("d > date_add(DATE'2024-01-01', p)", lambda c: c("d") > F.date_add(F.lit(date(2024, 1, 1)), c("p"))),
    ("p = 1", lambda c: c("p") == 1),
    ("st IS NULL", lambda c: c("st").isNull()),
    ("exists(arr, x -> x > id)", lambda c: F.exists(c("arr"), lambda x: x > c("id"))),
]


def _compared(left: Pair, right: Pair, number: int) -> Pair:
    (a, column_a), (b, column_b) = left, right
    return [
        (f"({a}) > ({b})", lambda c: column_a(c) > column_b(c)),
        (f"({a}) = {number}", lambda c: column_a(c) == number),
        # What Column.between is; Spark's parser makes a function of BETWEEN.
        (f"({a}) >= {number} AND ({a}) <= ({b})", lambda c: column_a(c).between(number, column_b(c))),
        (f"({a}) IN (1, {number})", lambda c: column_a(c).isin(1, number)),
    ][number % 4]


def _joined(left: Pair, right: Pair, how: str) -> Pair:
    (a, column_a), (b, column_b) = left, right
    return {
        "and": (f"({a}) AND ({b})", lambda c: column_a(c) & column_b(c)),
        "or": (f"({a}) OR ({b})", lambda c: column_a(c) | column_b(c)),
        "not": (f"NOT ({a})", lambda c: ~column_a(c)),
    }[how]


COMPARISONS = st.builds(_compared, st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.integers(0, 7))
CONDITIONS = st.recursive(
    st.one_of(COMPARISONS, st.sampled_from(LEAVES)),
    lambda inner: st.builds(_joined, inner, inner, st.sampled_from(["and", "or", "not"])),
    max_leaves=5,
)


def rows(spark: Any) -> DataFrame:
    return spark.range(12).selectExpr(
        "id", "id * 2 - 6 v", "if(id % 3 = 0, 'a', 'B') s", "date_add(date'2024-01-01', int(id)) d", "int(id % 2) p",
        "if(id = 7, null, named_struct('a', int(id % 5), 'b', 'a')) st", "array(id, v) arr", "map('k', s) m",
    )  # fmt: skip


@pytest.fixture
def table(spark, tmp_path) -> Table:
    """ids 0 to 11 in one file for each of the partitions 0 and 1."""
    found = Table(spark, tmp_path / "table")
    found.write(rows(spark).coalesce(1), by=("p",))
    return found


def test_generated_conditions_and_values(table, spark):
    snapshot = table.delta._log.snapshot()
    frame = scan.for_conditions(spark, snapshot)
    source = frame.select(*frame.columns).alias("source")
    scope = Scope(frame.alias("t"), source)

    def by_alias(name: str) -> Column:
        return F.col(f"t.{name}")

    def by_frame(name: str) -> Column:
        top, _, inner = name.partition(".")
        return frame[top][inner] if inner else frame[top]

    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(CONDITIONS, st.sampled_from(NUMBERS))
    def one(condition: Pair, value: Pair) -> None:
        text, column = condition
        wanted = scan.split_condition(frame, text, snapshot.mapping)
        for made in (column(F.col), column(by_frame)):
            found = scan.split_condition(frame, made, snapshot.mapping)
            assert (forms.plain(found.sql), found.predicate) == (forms.plain(wanted.sql), wanted.predicate), text
        as_text, *as_columns = assigned.resolved(frame, [value[0], value[1](F.col), value[1](by_frame)])
        for other in as_columns:
            assert other._expression.semanticEquals(as_text._expression), value[0]
        # A merge has both sides: the table's columns by its alias.
        found = scope.condition(column(by_alias) & (F.col("t.id") == F.col("source.id")), scope.both, "the condition")
        assert found.of_source == {0}
        (merged,) = scope.values([value[1](by_alias)], scope.both, "the values")
        assert len(scope.types([merged])) == 1

    one()


def test_delete(table):
    table.delta.delete((F.col("id") > 2) & (F.col("v") < 8) & (F.lower("s") == F.col("st.b")))
    assert table.rows("id") == [0, 1, 2, 4, 5, 7, 8, 9, 10, 11]
    table.delta.alias("t").delete((F.col("t.p") == 1) & (F.col("t.id") > F.col("t.st.a")))
    assert table.rows("id") == [0, 1, 2, 4, 7, 8, 10]
    frame = table.delta.toDF()
    table.delta.delete((frame["id"] == 0) | (frame.id == frame["st"]["a"]) & frame["s"].isin("a", "B"))
    assert table.rows("id") == [7, 8, 10]


def test_update(table):
    frame = table.delta.toDF()
    table.delta.alias("t").update(
        (F.col("t.id") > F.col("v")) & (F.col("id") < 2),
        {"v": F.col("t.id") * 100 + F.col("t.st.a"), "st.b": F.concat(F.col("s"), frame["st"]["b"]), "s": "upper(s)"},
    )
    assert [row for row in table.rows("id", "v", "s", "st.b") if row[0] < 3] == [
        (0, 0, "A", "aa"),
        (1, 101, "B", "Ba"),
        (2, -2, "B", "a"),
    ]


def test_merge(table, spark):
    source = spark.createDataFrame([(1, 1, "u"), (2, 4, "d"), (20, 1, "i"), (30, 9, "-")], "id long, a int, k string")
    (
        table.delta.alias("t")
        .merge(source.alias("s"), (F.col("t.id") == F.col("s.id")) & (F.col("t.st.a") <= source["a"]))
        .whenMatchedUpdate((F.col("k") == "u") & (F.col("t.v") < F.col("s.a")), {"v": F.col("t.v") * F.col("a") - 1})
        .whenMatchedDelete((F.col("s.k") == "d") & (F.col("t.p") == 0))
        .whenNotMatchedInsert(
            (F.col("s.id") > 10) & (F.col("a") < 5), {"id": F.col("s.id") + F.col("s.a"), "s": F.concat("k", "k")}
        )
        .whenNotMatchedBySourceUpdate(
            (F.col("t.id") > 9) & (F.col("t.p") == 1), {"s": F.concat("t.s", F.col("t.st.b"))}
        )
        .whenNotMatchedBySourceDelete((F.col("t.v") > 1) & (F.col("t.id") < 9))
        .execute()
    )
    assert table.rows("id", "v", "s") == [
        (0, -6, "a"), (1, -5, "B"), (3, 0, "a"), (9, 12, "a"), (10, 14, "B"), (11, 16, "Ba"), (21, None, "ii"),
    ]  # fmt: skip


def test_a_merge_on_a_text_made_column(table, spark):
    source = spark.createDataFrame([(1,), (40,)], "k long")
    table.delta.merge(source, F.expr("id = k")).whenMatchedDelete().execute()
    assert table.rows("id") == [0, *range(2, 12)]


@pytest.mark.parametrize("given", [F.col, F.expr])
def test_a_column_that_is_not_there(table, given):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nothing_such"):
        table.delta.delete((given("id") == 1) & (given("nothing_such") == given("v")))
    with pytest.raises(AnalysisException, match="nothing_such"):
        table.delta.update(given("id") == 1, {"v": given("v") + given("nothing_such")})
    assert table.version == 0


def test_delta_tables_of_a_name_take_columns_too(table):
    DeltaTable.forName(table.spark, f"delta.`{table.path}`").delete(F.col("id") + F.col("v") > F.lit(0))
    assert table.rows("id") == [0, 1, 2]
