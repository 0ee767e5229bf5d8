"""Statistics of Spark's files: only what surely holds, as Delta writes them."""

import json
from typing import Any

import pytest
from pyspark.sql import functions as F

from .conftest import NATIVE, SMALL, Table, stats

ROUTES = pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["native", "small"])


def one(table: Table, sql: str, options: Any = NATIVE, **more: Any) -> Any:
    df = table.spark.sql(sql)
    (add,) = table.write(df if options.small_frames else df.coalesce(1), options=options, **more)
    return stats(add)


@ROUTES
def test_numbers_that_have_no_order(table: Table, options: Any) -> None:
    found = one(
        table,
        """select * from values
            (cast('NaN' as double), cast('NaN' as float), -0.0D, cast('Infinity' as double), cast('NaN' as double)),
            (1.5D, cast(2 as float), 0.0D, 1.0D, cast('NaN' as double)),
            (-3.5D, null, null, 2.0D, null) as t(a, b, c, d, e)""",
        options,
    )
    # NaN is the greatest number for Spark: no maximum is known, and a file of NaN has no minimum either.
    assert found["minValues"] == {"a": -3.5, "b": 2.0, "c": 0.0, "d": 1.0}
    assert found["maxValues"] == {"c": 0.0}
    assert found["nullCount"] == {"a": 0, "b": 1, "c": 1, "d": 0, "e": 1}
    assert table.read().where("a > 100").count() == 1
    assert table.read().where("b > 100").count() == 1


@ROUTES
@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("short", "short", "short"),
        ("a" * 32, "a" * 32, "a" * 32),
        ("a" * 40, "a" * 32, "a" * 32 + "\x7f"),
        ("ü" * 40, "ü" * 32, "ü" * 32 + "\U0010ffff"),
        ("日" * 3000, "日" * 32, "日" * 32 + "\U0010ffff"),
        ("😀" * 40, "😀" * 16, "😀" * 16 + "\U0010ffff"),
        ("x" * 5000, "x" * 32, "x" * 32 + "\x7f"),
    ],
)
def test_long_strings_are_cut(table: Table, options: Any, text: str, low: str, high: str) -> None:
    df = table.spark.range(1).select(F.lit(text).alias("s"))
    (add,) = table.write(df, options=options)
    found = stats(add)
    assert found["minValues"] == {"s": low}
    assert found["maxValues"] == {"s": high}
    assert found["nullCount"] == {"s": 0}


@ROUTES
def test_types_with_no_bounds_have_null_counts(table: Table, options: Any) -> None:
    found = one(
        table,
        """select * from values (true, X'01', 1, named_struct('x', 1, 'b', false)), (null, null, null, null)
            as t(b, bi, i, s)""",
        options,
    )
    assert found["minValues"] == {"i": 1, "s": {"x": 1}}
    assert found["nullCount"] == {"b": 1, "bi": 1, "i": 1, "s": {"x": 1, "b": 1}}


@ROUTES
def test_a_column_of_nulls_has_a_count_only(table: Table, options: Any) -> None:
    found = one(table, "select cast(null as int) as i, 1 as x", options)
    assert found == {"numRecords": 1, "minValues": {"x": 1}, "maxValues": {"x": 1}, "nullCount": {"i": 1, "x": 0}}


@ROUTES
def test_timestamps_are_cut_to_milliseconds(table: Table, options: Any) -> None:
    found = one(
        table,
        """select timestamp'2020-01-01 00:00:00.123999Z' as t, timestamp'1969-12-31 23:59:59.999999Z' as o,
            timestamp_ntz'2020-06-01 10:11:12.9876' as n, date'+12345-01-02' as d""",
        options,
    )
    expected = {
        "t": "2020-01-01T00:00:00.123Z",
        "o": "1969-12-31T23:59:59.999Z",
        "n": "2020-06-01T10:11:12.987",
        "d": "+12345-01-02",
    }
    assert found["minValues"] == found["maxValues"] == expected
    assert table.read().where("t >= timestamp'2020-01-01 00:00:00.123999Z'").count() == 1


def test_row_groups_are_merged(table: Table) -> None:
    spark = table.spark
    # Groups of 1,000 bytes: the check comes with each 100th record.
    spark.sparkContext._jsc.hadoopConfiguration().set("parquet.block.size", "1000")
    try:
        df = spark.range(0, 3000, 1, 1).selectExpr(
            "if(id < 1500, null, id) as late",
            "id - 2000 as i",
            "cast(id - 1500 as decimal(30,2)) as d",
            "concat('k', lpad(id, 4, '0')) as s",
        )
        (add,) = table.write(df, options=NATIVE)
    finally:
        spark.sparkContext._jsc.hadoopConfiguration().unset("parquet.block.size")
    import pyarrow.parquet as pq

    assert pq.read_metadata(table.path / add.path).num_row_groups > 1
    text = json.loads(add.stats or "")
    assert text["numRecords"] == 3000
    assert text["minValues"] == {"late": 1500, "i": -2000, "d": -1500, "s": "k0000"}
    assert text["maxValues"] == {"late": 2999, "i": 999, "d": 1499, "s": "k2999"}
    assert text["nullCount"] == {"late": 1500, "i": 0, "d": 0, "s": 0}


@ROUTES
@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"delta.dataSkippingNumIndexedCols": "2"}, {"a": 1, "s": {"x": 2}}),
        ({"delta.dataSkippingNumIndexedCols": "0"}, None),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"a": 1, "s": {"x": 2, "y": 3}, "z": 5}),
        ({"delta.dataSkippingStatsColumns": "z, S.y"}, {"s": {"y": 3}, "z": 5}),
        ({"delta.dataSkippingStatsColumns": "s"}, {"s": {"x": 2, "y": 3}}),
    ],
)
def test_which_columns_have_statistics(
    table: Table, options: Any, properties: dict[str, str], expected: dict[str, Any] | None
) -> None:
    sql = "select 'q' as p, 1 as a, named_struct('x', 2, 'y', 3) as s, array(4) as l, 5 as z"
    (add,) = table.write(table.spark.sql(sql), "p", options=options, properties=properties)
    found = stats(add)
    assert found.get("minValues") == expected
    assert found["numRecords"] == 1
    if expected is None:
        assert found == {"numRecords": 1}


@ROUTES
def test_the_first_32_leaves_have_statistics(table: Table, options: Any) -> None:
    df = table.spark.range(1).select(
        F.struct(*[F.lit(i).alias(f"n{i}") for i in range(30)]).alias("s"),
        F.array(F.lit(1)).alias("l"),
        *[F.lit(i).alias(f"c{i}") for i in range(5)],
    )
    (add,) = table.write(df, options=options)
    found = stats(add)
    assert len(found["minValues"].pop("s")) == 30
    assert found["minValues"] == {"c0": 0}
    assert set(found["nullCount"]) == {"s", "l", "c0"}


def test_a_null_count_of_an_array_is_told_only_when_it_is_certain(table: Table) -> None:
    none = one(table, "select array(1, 2) as l, map('a', 1) as m")
    assert none["nullCount"] == {"l": 0, "m": 0}
    unsure = one(table, "select array(1, null) as l, cast(null as map<string, int>) as m")
    assert "nullCount" not in unsure
