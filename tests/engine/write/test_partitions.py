"""Partition columns: every primitive type, odd values, time zones; by both routes, to the same strings of the log."""

import os
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tablelog.core.protocol import paths
from tablelog.core.protocol.schema import parse_schema
from tablelog.engine.write import writer
from tablelog.errors import ConstraintViolationError

from .conftest import NATIVE, SMALL, Table

ROUTES = pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["native", "small"])

# (type, SQL of each value, what the log says)
VALUES = [
    ("tinyint", ["cast(-7 as tinyint)", "null"], ["-7", None]),
    ("smallint", ["cast(300 as smallint)"], ["300"]),
    ("int", ["2147483647"], ["2147483647"]),
    ("bigint", ["-9223372036854775808"], ["-9223372036854775808"]),
    ("float", ["cast(0.1 as float)", "cast('NaN' as float)", "cast(1e10 as float)"], ["0.1", "NaN", "1.0E10"]),
    ("double", ["0.1D", "cast('-Infinity' as double)", "1e-7D"], ["0.1", "-Infinity", "1.0E-7"]),
    ("boolean", ["true", "false", "null"], ["true", "false", None]),
    ("decimal(20,8)", ["0.00000001", "-12345678901.5"], ["0.00000001", "-12345678901.50000000"]),
    ("date", ["date'2024-02-29'", "date'0001-01-01'", "null"], ["2024-02-29", "0001-01-01", None]),
    (
        "timestamp",
        ["timestamp'2024-03-31 00:30:00Z'", "timestamp'2024-10-27 01:30:00.123456Z'", "null"],
        ["2024-03-31T00:30:00.000000Z", "2024-10-27T01:30:00.123456Z", None],
    ),
    ("timestamp_ntz", ["timestamp_ntz'2024-03-31 02:30:00.5'"], ["2024-03-31 02:30:00.5"]),
    ("binary", ["X'6162'", "X'C3A4'", "null"], ["ab", "ä", None]),
    (
        "string",
        ["'a/b'", "'100%'", "'x=y'", "'two words'", "'ü ✓ 日本'", "'a:b?c#d'", "'a+b&c'", "'%20'", "'.'", "'null'"],
        ["a/b", "100%", "x=y", "two words", "ü ✓ 日本", "a:b?c#d", "a+b&c", "%20", ".", "null"],
    ),
    ("string", ["''", "null", "'x'"], [None, None, "x"]),
]


@pytest.mark.slow
@ROUTES
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_values_of_every_type(tables: Any, options: writer.WriteOptions, zone: str) -> None:
    for n, (sql_type, literals, texts) in enumerate(VALUES):
        table: Table = tables(f"t{n}")
        spark = table.spark
        union = " union all ".join(f"select {i} as i, cast({v} as {sql_type}) as p" for i, v in enumerate(literals))
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            df = spark.sql(union)
            adds = table.write(df, "p", options=options)
            expected = {row.i: row.p for row in df.collect()}
            found = {row.i: row.p for row in table.read().collect()}
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        by_row = {}
        for add in adds:
            name = paths.absolute(str(table.path), add.path)
            for i in pq.read_table(name, columns=["i"], partitioning=None).column("i").to_pylist():
                by_row[i] = add.partition_values["p"]
        assert [by_row[i] for i in range(len(texts))] == texts, sql_type
        if sql_type == "string":
            expected = {i: v or None for i, v in expected.items()}
        assert repr(sorted(found.items())) == repr(sorted(expected.items())), sql_type


@ROUTES
def test_several_columns_with_nulls(table: Table, options: writer.WriteOptions) -> None:
    df = table.spark.sql(
        "select id, if(id % 2 = 0, 'e/v', null) as `a b`, date'2020-01-01' + cast(id % 3 as int) as d from range(12)"
    ).withColumnRenamed("a b", "a.b")
    adds = table.write(df, "d", "a.b", options=options)
    assert len({tuple(add.partition_values.items()) for add in adds}) == 6
    assert all(list(add.partition_values) == ["d", "a.b"] for add in adds)
    assert table.rows() == sorted(df.collect(), key=repr)


@ROUTES
@pytest.mark.parametrize("values", ["X'FF', X'FE'", "cast(X'FF' as string), cast(X'FE' as string)"])
def test_bytes_that_are_no_text_are_refused(table: Table, options: writer.WriteOptions, values: str) -> None:
    one, other = values.split(", ")
    df = table.spark.sql(f"select 1 as i, {one} as p union all select 2, {other}")
    with pytest.raises(ConstraintViolationError, match=r": .* isn't UTF-8, .* partition column p\."):
        table.write(df, "p", options=options)
    assert table.files() == []
    assert table.staging_left() == []


@ROUTES
def test_an_empty_text_is_a_null_where_none_may_be(table: Table, options: writer.WriteOptions) -> None:
    schema = parse_schema(
        '{"type":"struct","fields":[{"name":"i","type":"integer"},{"name":"p","type":"string","nullable":false}]}'
    )
    table.write(table.spark.sql("select 1 as i, 'a' as p"), "p", schema=schema, options=options)
    for bad in ("''", "cast(null as string)"):
        with pytest.raises(ConstraintViolationError, match="column p is NOT NULL"):
            table.write(table.spark.sql(f"select 1 as i, {bad} as p"), "p", schema=schema, options=options)
    assert len(table.files()) == 1


NULL_NAMES = [None, "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION___", "", "a\0b"]


@ROUTES
def test_no_value_turns_into_null_by_its_spelling(table: Table, options: writer.WriteOptions) -> None:
    df = table.spark.createDataFrame([(p, i) for i, p in enumerate(NULL_NAMES)], "p string, i int")
    adds = table.write(df, "p", options=options)
    assert {add.partition_values["p"] for add in adds} == {p or None for p in NULL_NAMES}
    assert {(row.i, row.p) for row in table.read().collect()} == {(i, p or None) for i, p in enumerate(NULL_NAMES)}
    assert len(table.files()) == len(adds)
    assert table.staging_left() == []


def test_a_directory_that_vanishes_is_made_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def vacuumed_once(source: str, target: str) -> None:
        monkeypatch.setattr(os, "rename", rename)
        os.rmdir(os.path.dirname(target))
        rename(source, target)

    monkeypatch.setattr(os, "rename", vacuumed_once)
    (add,) = table.write(table.spark.sql("select 1 as i, 'a' as p"), "p")
    assert table.files() == [add.path]


def test_partition_columns_keep_their_place_in_the_schema(table: Table) -> None:
    df = table.spark.range(4).select(F.lit("x").alias("p"), "id", (F.col("id") % 2).alias("q"))
    table.write(df, "q", "p", options=NATIVE)
    assert table.read().columns == ["p", "id", "q"]
    assert table.rows() == sorted(df.collect(), key=repr)


def test_a_char_partition_is_padded(table: Table) -> None:
    schema = parse_schema(
        '{"type":"struct","fields":[{"name":"i","type":"integer"},'
        '{"name":"p","type":"string","metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(3)"}}]}'
    )
    (add,) = table.write(table.spark.sql("select 1 as i, 'a' as p"), "p", schema=schema)
    assert add.partition_values == {"p": "a  "}
