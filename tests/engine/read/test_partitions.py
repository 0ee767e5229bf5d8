"""Partition values of every primitive type, applied exactly, whatever the directory is called."""

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from tablelog.engine.read import bulk_listing, scan

from .conftest import Make


@pytest.mark.parametrize(
    ("kind", "texts", "condition", "matching"),
    [
        ("string", ["a/b", "%41", "a=b", " lead", "ünï", "it's", "__HIVE_DEFAULT_PARTITION__", ""], "p = '%41'", {1}),
        ("string", ["x", "X", ""], "p is null", {2}),
        ("byte", ["-128", "127"], "p < 0", {0}),
        ("short", ["-32768", "5"], "p = 5", {1}),
        ("integer", ["10", "9"], "p > 9", {0}),
        ("long", ["9223372036854775807", "0"], "p = 9223372036854775807", {0}),
        ("float", ["NaN", "1.5", "-Infinity", "0.1"], "p > 1", {0, 1}),
        ("double", ["NaN", "-0.0", "1E10", "0.1"], "p = 0.0", {1}),
        ("decimal(10,2)", ["1.50", "10.00", "-3.25"], "p between 1.5 and 9", {0}),
        ("decimal(38,18)", ["12345678901234567890.123456789012345678", "1"], "p > 1", {0}),
        ("boolean", ["true", "false", ""], "not p", {1}),
        ("date", ["1500-02-28", "0001-01-01", "9999-12-31", "2020-02-29"], "p < date'1582-10-15'", {0, 1}),
        ("date", ["2020-02-29", ""], "month(p) = 2", {0}),
        (
            "timestamp",
            ["1500-02-28 01:02:03", "2020-01-01 00:00:00.000001", "2020-01-01T00:00:00.000000Z"],
            "p > timestamp'2020-01-01 00:00:00'",
            {1},
        ),
        ("timestamp_ntz", ["1500-02-28 01:02:03.5", "2020-01-01 00:00:00"], "year(p) = 1500", {0}),
        ("binary", ["abc", "ü"], "p = X'616263'", {0}),
    ],
)
def test_every_type(
    spark: SparkSession, make: Make, kind: str, texts: list[str], condition: str, matching: set[int]
) -> None:
    table = make({"id": "long", "p": kind}, ["p"])
    table.commit(
        [
            table.file(pa.table({"id": pa.array([i], pa.int64())}), {"p": text}, name=f"odd %/näme {i}.parquet")
            for i, text in enumerate(texts)
        ]
    )
    frame = scan.frame(spark, table.log)
    assert {row.id for row in frame.where(condition).collect()} == matching
    assert {row.id for row in frame.where(f"not coalesce({condition}, false)").collect()} == (
        set(range(len(texts))) - matching
    )
    # The value read is the one filtered by: the same answer where Spark may not push the condition down.
    kept = frame.withColumn("hit", frame["id"] >= 0).repartition(2).where(condition)
    assert {row.id for row in kept.collect()} == matching
    assert frame.groupBy("p").count().count() == len(set(texts) - {""}) + ("" in texts)


@pytest.mark.parametrize("count", [3, 4, 10])
def test_many_files_are_passed_to_the_jvm_in_slices(
    spark: SparkSession, make: Make, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(bulk_listing, "_FILES_AT_ONCE", 3)
    table = make({"id": "long", "p": "long"}, ["p"])
    files = [pa.table({"id": pa.array([i], pa.int64())}) for i in range(count)]
    table.commit([table.file(rows, {"p": str(i % 4)}, name=f"{i}.parquet") for i, rows in enumerate(files)])
    frame = scan.frame(spark, table.log)
    assert sorted(map(tuple, frame.collect())) == [(i, i % 4) for i in range(count)]
    assert sorted(row.id for row in frame.where("p = 1").collect()) == list(range(1, count, 4))


def test_ancient_values_come_out_as_they_are(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "d": "date", "t": "timestamp"}, ["d", "t"])
    data = pa.table({"id": pa.array([1], pa.int64())})
    table.commit([table.file(data, {"d": "1500-02-28", "t": "1500-02-28 01:02:03.000004"})])
    frame = scan.frame(spark, table.log)
    assert frame.selectExpr("cast(d as string) d", "cast(t as string) t").first() == Row(
        d="1500-02-28", t="1500-02-28 01:02:03.000004"
    )


def test_two_columns_in_another_order_than_in_the_schema(spark: SparkSession, make: Make) -> None:
    table = make({"b": "string", "id": "long", "a": "integer"}, ["a", "b"])
    table.commit(
        [table.file(pa.table({"id": pa.array([i], pa.int64())}), {"a": str(i % 2), "b": f"b{i % 3}"}) for i in range(6)]
    )
    frame = scan.frame(spark, table.log)
    assert frame.columns == ["b", "id", "a"]
    assert frame.where("a = 1 and b = 'b0'").collect() == [Row(b="b0", id=3, a=1)]
    assert frame.where("a = 1 or b = 'b0'").count() == 4


def test_a_timestamp_with_no_zone_is_in_the_zone_of_the_session(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "t": "timestamp"}, ["t"])
    table.append(pa.table({"id": pa.array([1], pa.int64())}), {"t": "2020-07-01 12:00:00"})
    log = table.log
    seconds = "cast(t as long) as seconds"
    assert scan.frame(spark, log).selectExpr(seconds).first() == (1_593_604_800,)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert scan.frame(spark, log).selectExpr(seconds).first() == (1_593_604_800 + 4 * 3600,)
        assert scan.frame(spark, log).where("t = timestamp'2020-07-01 12:00:00'").count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
