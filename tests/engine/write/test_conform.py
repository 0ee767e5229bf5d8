"""What a write does with a frame that isn't the table's: names, types, lengths, nulls, invariants."""

import json
from typing import Any

import pytest
from pyspark.sql import functions as F

from tablelog.core.protocol.schema import StructType, parse_schema
from tablelog.engine.sql import checks, conform
from tablelog.errors import ConstraintViolationError, SchemaMismatchError

from .conftest import NATIVE, SMALL, Table

ROUTES = pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["native", "small"])


def schema(*fields: tuple[Any, ...]) -> StructType:
    """A schema from (name, type, nullable, metadata), the last two optional."""
    return parse_schema(json.dumps(_struct(*fields)))


def _struct(*fields: tuple[Any, ...]) -> dict[str, Any]:
    keys = ("name", "type", "nullable", "metadata")
    return {"type": "struct", "fields": [dict(zip(keys, f, strict=False)) for f in fields]}


def rows(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in table.rows()]


# --- names --------------------------------------------------------------------------------------------------------


def test_columns_are_found_by_name_whatever_their_case(table: Table) -> None:
    wanted = schema(("id", "long"), ("Name", "string"), ("s", _struct(("A", "long"), ("b", "string"))))
    df = table.spark.sql("select named_struct('B', 'x', 'a', 1L) as S, 'n' as nAME, 7L as ID")
    table.write(df, schema=wanted)
    table.write(df, schema=wanted, options=NATIVE)
    assert table.read().columns == ["id", "Name", "s"]
    assert rows(table) == [(7, "n", (1, "x"))] * 2


def test_case_counts_where_the_session_says_so(table: Table) -> None:
    table.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatchError, match=r"columns that the table doesn't have: ID bigint"):
            table.write(table.spark.range(1).select(F.col("id").alias("ID")), schema=schema(("id", "long")))
    finally:
        table.spark.conf.unset("spark.sql.caseSensitive")


def test_missing_columns_are_null(table: Table) -> None:
    inner = _struct(("x", "long"), ("y", _struct(("z", "string"), ("new", "date"))), ("w", "double"))
    wanted = schema(
        ("a", "string"),
        ("id", "long"),
        ("s", inner),
        ("l", {"type": "array", "elementType": _struct(("p", "long"), ("q", "string")), "containsNull": True}),
    )
    df = table.spark.sql(
        "select 1L as id, named_struct('y', named_struct('z', 'z'), 'x', 2L) as s, array(named_struct('p', 3L)) as l"
    )
    table.write(df, schema=wanted, options=NATIVE)
    assert rows(table) == [(None, 1, (2, ("z", None), None), [(3, None)])]


def test_columns_that_the_table_lacks_are_refused_with_both_sides(table: Table) -> None:
    df = table.spark.sql("select 1L as id, 'x' as more, named_struct('a', 1, 'b', 2) as s")
    with pytest.raises(SchemaMismatchError) as raised:
        table.write(df, schema=schema(("id", "long"), ("s", _struct(("a", "integer")))))
    text = str(raised.value)
    assert "s.b int, more string" in text
    assert "The table has: id bigint, s struct<a: int>" in text
    assert "mergeSchema" in text


def test_columns_that_occur_twice_are_refused(table: Table) -> None:
    df = table.spark.range(1).select("id", F.col("id").alias("ID"))
    with pytest.raises(SchemaMismatchError, match="occurs twice"):
        conform.new_table_schema(df)
    with pytest.raises(SchemaMismatchError, match="occurs twice"):
        conform.conform(df, schema(("id", "long")))


# --- types --------------------------------------------------------------------------------------------------------


@ROUTES
def test_values_are_cast_as_spark_stores_them(table: Table, options: Any) -> None:
    wanted = schema(
        ("l", "long"), ("i", "integer"), ("d", "decimal(10,2)"), ("s", "string"), ("f", "double"), ("t", "timestamp")
    )
    df = table.spark.sql("select 1 as l, 2L as i, 3 as d, 4 as s, cast(0.5 as float) as f, date'2020-01-01' as t")
    table.write(df, schema=wanted, options=options)
    assert repr(rows(table)) == "[(1, 2, Decimal('3.00'), '4', 0.5, datetime.datetime(2020, 1, 1, 0, 0))]"


@pytest.mark.parametrize("ansi", ["true", "false"])
@ROUTES
def test_a_value_out_of_range_fails_by_name(table: Table, options: Any, ansi: str) -> None:
    df = table.spark.createDataFrame([(1,), (1 << 40,)], "`Big` long")
    table.spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(SchemaMismatchError, match=r"value of the column `big` is out of the range .*INT"):
            table.write(df, schema=schema(("big", "integer")), options=options)
    finally:
        table.spark.conf.unset("spark.sql.ansi.enabled")
    assert table.files() == []
    assert table.staging_left() == []


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("'1'", "integer"), ("'2020-01-01'", "date"), ("1", "boolean"), ("1", "date"), ("array(1)", "integer")],
)
def test_a_cast_that_may_lose_data_is_refused_by_name(table: Table, value: str, wanted: str) -> None:
    with pytest.raises(SchemaMismatchError, match="`c`"):
        table.write(table.spark.sql(f"select {value} as c"), schema=schema(("c", wanted)))


def test_nested_values_are_cast(table: Table) -> None:
    wanted = schema(
        ("s", _struct(("x", "long"))),
        ("a", {"type": "array", "elementType": "long", "containsNull": True}),
        ("m", {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}),
    )
    df = table.spark.sql("select named_struct('x', 1) as s, array(2) as a, map(3, 4) as m")
    table.write(df, schema=wanted, options=NATIVE)
    assert rows(table) == [((1,), [2], {"3": 4.0})]


def test_a_void_column_takes_any_type(table: Table) -> None:
    wanted = schema(("id", "long"), ("d", "date"), ("s", _struct(("x", "long"))))
    table.write(table.spark.sql("select 1L as id, null as d, null as s"), schema=wanted)
    assert rows(table) == [(1, None, None)]


def test_data_for_a_void_column_is_refused(table: Table) -> None:
    with pytest.raises(SchemaMismatchError, match=r"v int \(void in the table\)"):
        table.write(table.spark.sql("select 1L as id, 2 as v"), schema=schema(("id", "long"), ("v", "void")))


# --- lengths ------------------------------------------------------------------------------------------------------

LIMITED = schema(
    ("c", "string", True, {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}),
    ("v", "string", True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
)


@ROUTES
def test_char_is_padded_and_varchar_loses_spaces_only(table: Table, options: Any) -> None:
    table.write(table.spark.sql("select 'ab' as c, 'abc  ' as v"), schema=LIMITED, options=options)
    table.write(table.spark.sql("select null as c, 'äöü' as v"), schema=LIMITED, options=options)
    assert rows(table) == [("ab  ", "abc"), (None, "äöü")]


@ROUTES
@pytest.mark.parametrize(
    ("c", "v", "named"), [("abcde", "", r"4 characters that c \(char\(4\)\)"), ("", "abcd", r"3 characters that v")]
)
def test_a_longer_text_fails_by_name(table: Table, options: Any, c: str, v: str, named: str) -> None:
    df = table.spark.createDataFrame([(c, v)], "c string, v string")
    with pytest.raises(ConstraintViolationError, match=named):
        table.write(df, schema=LIMITED, options=options)
    assert table.files() == []


def test_a_longer_text_in_a_struct_fails_by_its_name(table: Table) -> None:
    nested = {"__CHAR_VARCHAR_TYPE_STRING": "struct<x:char(3)>"}
    limited = schema(("v", "string"), ("st", _struct(("x", "string")), True, nested))
    with pytest.raises(ConstraintViolationError, match=r"3 characters that st \(struct<x:char\(3\)>\) can hold"):
        table.write(table.spark.sql("select 'a' as v, named_struct('x', 'abcd') as st"), schema=limited)
    assert table.files() == []


# --- nulls and invariants -----------------------------------------------------------------------------------------

STRICT = schema(("id", "long", False), ("s", _struct(("x", "long", False), ("y", "string")), True))


@pytest.mark.one_case
@ROUTES
def test_a_null_where_none_may_be_fails_by_name(table: Table, options: Any) -> None:
    spark = table.spark
    form = "id long, s struct<x: long, y: string>"
    table.write(spark.createDataFrame([(1, (2, "a")), (3, None)], form), schema=STRICT, options=options)
    with pytest.raises(ConstraintViolationError, match="the column id is NOT NULL"):
        table.write(spark.createDataFrame([(None, (2, "a"))], form), schema=STRICT, options=options)
    with pytest.raises(ConstraintViolationError, match=r"the column s\.x is NOT NULL"):
        table.write(spark.createDataFrame([(1, (None, "a"))], form), schema=STRICT, options=options)
    assert len(rows(table)) == 2
    assert table.staging_left() == []


def test_a_missing_column_that_may_not_be_null_is_refused(table: Table) -> None:
    with pytest.raises(ConstraintViolationError, match="the column id is NOT NULL, and the data has no such column"):
        table.write(table.spark.sql("select named_struct('x', 1L, 'y', 'a') as s"), schema=STRICT)


def test_nulls_inside_arrays_and_maps(table: Table) -> None:
    wanted = schema(
        ("a", {"type": "array", "elementType": "long", "containsNull": False}),
        ("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}),
    )
    spark = table.spark
    form = "a array<bigint>, m map<string, bigint>"
    table.write(spark.createDataFrame([([1], {"k": 1})], form), schema=wanted)
    for bad, column in ((([1, None], {}), "a"), (([1], {"k": None}), "m")):
        with pytest.raises(ConstraintViolationError, match=f"the column {column}"):
            table.write(spark.createDataFrame([bad], form), schema=wanted)


@pytest.mark.one_case
@ROUTES
def test_invariants(table: Table, options: Any) -> None:
    rule = {"delta.invariants": json.dumps({"expression": {"expression": "x > 3 and other <> 'no'"}})}
    wanted = schema(("x", "integer", True, rule), ("other", "string"))
    spark = table.spark
    table.write(spark.createDataFrame([(4, "a"), (9, "b")], "x int, other string"), schema=wanted, options=options)
    for bad in ((3, "a"), (5, "no"), (None, "a"), (5, None)):
        with pytest.raises(ConstraintViolationError, match=r"invariant of the column x, x > 3 and other <> 'no'"):
            table.write(spark.createDataFrame([(8, "z"), bad], "x int, other string"), schema=wanted, options=options)
    assert rows(table) == [(4, "a"), (9, "b")]


@pytest.mark.one_case
@ROUTES
def test_a_condition_of_the_callers(table: Table, options: Any) -> None:
    df = table.spark.createDataFrame([(1, "a"), (2, None)], "`i d` long, p string").withColumnRenamed("i d", "i.d")
    good = checks.checked(df, F.col("`i.d`") > 0, "never")
    table.write(good, options=options)
    bad = checks.checked(df, F.expr("p = 'a'"), "the row's \"p\" isn't\n'a'")
    with pytest.raises(ConstraintViolationError, match="the row's \"p\" isn't\n'a'"):
        table.write(bad, options=options)
