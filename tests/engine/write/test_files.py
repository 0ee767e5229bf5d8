"""Data files and their adds, by both routes: Spark's writer, and the driver's for a small frame."""

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tablelog.core.protocol.actions import Protocol
from tablelog.core.protocol.schema import parse_schema
from tablelog.engine.jvm import plans
from tablelog.engine.write import writer
from tablelog.engine.write.routes.local import LocalRoute
from tablelog.engine.write.write_spec import CODEC_PROPERTY
from tablelog.errors import InvalidArgumentError, SchemaMismatchError

from .conftest import NATIVE, SMALL, Table, stats

ROUTES = pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["native", "small"])

ALL_TYPES = """
    select cast(id as byte) as b, cast(id as short) as sh, cast(id as int) as i, id as l,
        cast(id as float) / 4 as f, cast(id as double) / 8 as d, id % 2 = 0 as bo, concat('s-', id) as s,
        cast(concat('b', id) as binary) as bi, date'2020-01-01' + cast(id as int) as da,
        timestamp'2020-01-01 00:00:00.123456' + make_interval(0, 0, 0, 0, 0, 0, id) as ts,
        timestamp_ntz'2020-01-01 00:00:00.123456' as tn,
        cast(id as decimal(5, 2)) as d5, cast(id as decimal(15, 3)) as d15, cast(-id as decimal(38, 10)) as d38,
        if(id = 3, null, named_struct('x', id, 'y', named_struct('z', concat('z', id)))) as st,
        if(id = 3, null, array(id, null)) as ar, map(concat('k', id), if(id = 3, null, id)) as m
    from range(0, 6, 1, 2)
"""


@ROUTES
def test_rows_of_every_type_come_back(table: Table, options: writer.WriteOptions) -> None:
    df = table.spark.sql(ALL_TYPES)
    table.write(df, options=options)
    assert table.rows() == sorted(df.collect(), key=repr)
    assert table.read().schema.simpleString() == df.schema.simpleString()


def test_both_routes_make_the_same_columns_and_statistics(tables: Any) -> None:
    small, native = tables("small"), tables("native")
    df = small.spark.sql(ALL_TYPES.replace("1, 2)", "1, 1)"))
    (one,) = native.write(df, options=NATIVE)
    (other,) = small.write(df, options=SMALL)
    # An array has null and empty elements in a footer, so that only the driver's route counts its nulls.
    expected, found = stats(other), stats(one)
    assert expected["nullCount"].pop("ar") == 1
    found["nullCount"].pop("m")
    expected["nullCount"].pop("m")
    assert found == expected
    shapes = []
    for t, add in ((native, one), (small, other)):
        schema = pq.ParquetFile(t.path / unquote(add.path)).schema
        shapes.append(
            [
                (c.path, c.physical_type, str(c.logical_type), c.length)
                for c in (schema.column(i) for i in range(len(schema)))
            ]
        )
    assert shapes[0] == shapes[1]


def test_a_small_frame_takes_no_write_job(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalRoute, "write", None)
    table.write(table.spark.range(10).select("id", (F.col("id") * 2).alias("x")))
    table.write(table.spark.createDataFrame([(1, 2), (3, 4)], "id long, x long"))
    table.write(table.spark.sql("select 5L as id, 6L as x union all select 7L, null"))
    assert table.read().count() == 14


def test_what_may_be_large_goes_through_spark(table: Table) -> None:
    spark = table.spark
    context = spark.sparkContext
    many = plans.MAX_ROWS + 5
    exploding = context.parallelize([many], 1).flatMap(lambda count: ((i,) for i in range(count)))
    df = spark.createDataFrame(exploding, "id long")
    (add,) = table.write(df)
    assert stats(add)["numRecords"] == many
    assert plans.bounded(spark.range(plans.MAX_ROWS + 1)) is None
    assert plans.bounded(spark.range(10).repartition(2)) is None
    assert plans.bounded(spark.range(10).join(spark.range(5), "id")) is None


@ROUTES
def test_no_rows_make_no_file(table: Table, options: writer.WriteOptions) -> None:
    df = table.spark.range(10).where("id < 0")
    assert table.write(df, options=options) == []
    assert table.files() == []


def test_an_empty_partition_of_the_frame_makes_no_file(table: Table) -> None:
    df = table.spark.range(0, 100, 1, 4).where("id >= 60")
    adds = table.write(df, options=NATIVE)
    assert sum(stats(add)["numRecords"] for add in adds) == 40
    assert len(table.files()) == len(adds) == 2


@ROUTES
def test_adds_say_what_lies_in_the_table(table: Table, options: writer.WriteOptions) -> None:
    written = table.write(table.spark.range(7).withColumn("p", F.col("id") % 3), "p", options=options)
    assert {add.partition_values["p"] for add in written} == {"0", "1", "2"}
    assert sorted(unquote(add.path) for add in written) == table.files()
    for add in written:
        status = os.stat(table.path / unquote(add.path))
        assert (add.size, add.modification_time) == (status.st_size, status.st_mtime_ns // 1_000_000)
        assert add.data_change
    assert "_SUCCESS" not in table.files()
    assert not [name for name in table.files() if name.endswith(".crc")]
    assert table.staging_left() == []


def test_names_stay_unique_between_jobs_and_directories(table: Table) -> None:
    df = table.spark.range(0, 40, 1, 2).withColumn("p", F.col("id") % 4)
    first = table.write(df, "p", options=NATIVE)
    second = table.write(df, "p", options=NATIVE)
    paths = [add.path for add in first + second]
    assert len(set(paths)) == len(paths) == 16
    assert table.read().count() == 80


def test_max_records_per_file(table: Table) -> None:
    adds = table.write(table.spark.range(100).coalesce(1), options=writer.WriteOptions.of({"MaxRecordsPerFile": "30"}))
    assert sorted(stats(add)["numRecords"] for add in adds) == [10, 30, 30, 30]
    table.spark.conf.set("spark.sql.files.maxRecordsPerFile", "50")
    try:
        adds = table.write(table.spark.range(100).coalesce(1))
    finally:
        table.spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert sorted(stats(add)["numRecords"] for add in adds) == [50, 50]


@ROUTES
@pytest.mark.parametrize(
    ("option", "prop", "expected"),
    [(None, None, "SNAPPY"), (None, "zstd", "ZSTD"), ("GZIP", "zstd", "GZIP"), ("none", None, "UNCOMPRESSED")],
)
def test_compression(
    table: Table, options: writer.WriteOptions, option: str | None, prop: str | None, expected: str
) -> None:
    chosen = writer.WriteOptions.of({"compression": option}) if option else writer.WriteOptions()
    chosen = writer.WriteOptions(compression=chosen.compression, small_frames=options.small_frames)
    properties = {CODEC_PROPERTY: prop} if prop else {}
    adds = table.write(table.spark.range(5), options=chosen, properties=properties)
    for add in adds:
        found = pq.read_metadata(table.path / add.path).row_group(0).column(0).compression
        assert found == expected


def test_an_unknown_codec_is_refused(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="'zip'"):
        writer.WriteOptions.of({"compression": "zip"})
    with pytest.raises(InvalidArgumentError, match="zip"):
        table.write(table.spark.range(5), properties={CODEC_PROPERTY: "zip"})
    with pytest.raises(InvalidArgumentError, match="maxRecordsPerFile"):
        writer.WriteOptions.of({"maxRecordsPerFile": "many"})


@ROUTES
def test_dates_before_the_gregorian_calendar_are_written_as_they_are(
    table: Table, options: writer.WriteOptions
) -> None:
    spark = table.spark
    df = spark.sql("select date'0001-01-01' as d, timestamp'1500-02-28 12:00:00' as t")
    for mode in ("EXCEPTION", "LEGACY"):
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        try:
            (add,) = table.write(df, options=options)
            assert spark.conf.get("spark.sql.parquet.datetimeRebaseModeInWrite") == mode
        finally:
            spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
        data = pq.read_table(table.path / add.path).to_pylist()
        assert data == [{"d": date(1, 1, 1), "t": datetime(1500, 2, 28, 12, tzinfo=UTC)}]
        assert b"org.apache.spark.legacyDateTime" not in pq.read_metadata(table.path / add.path).metadata
        assert stats(add)["minValues"] == {"d": "0001-01-01", "t": "1500-02-28T12:00:00.000Z"}
    assert table.rows() == df.collect() * 2


def test_the_users_settings_change_no_format(table: Table) -> None:
    spark = table.spark
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.session.timeZone": "America/New_York",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        df = spark.range(3).selectExpr("cast(id as decimal(7,2)) d", "timestamp_micros(id) t", "array(id) a")
        (add,) = table.write(df.coalesce(1), options=NATIVE)
        rows = table.rows()
        assert rows == sorted(df.collect(), key=repr)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    schema = pq.ParquetFile(table.path / add.path).schema
    assert [schema.column(i).physical_type for i in range(3)] == ["INT32", "INT64", "INT64"]
    assert schema.column(2).path == "a.list.element"
    assert stats(add)["maxValues"]["d"] == 2
    assert Decimal(str(stats(add)["minValues"]["d"])) == 0


def test_void_columns_are_in_no_file(table: Table) -> None:
    df = table.spark.sql("select 1 as a, null as v, named_struct('x', 2, 'n', null) as s")
    (add,) = table.write(df, options=NATIVE)
    (other,) = table.write(df)
    for one in (add, other):
        assert pq.ParquetFile(table.path / one.path).schema.names == ["a", "x"]
    assert stats(add)["maxValues"] == {"a": 1, "s": {"x": 2}}
    assert [row.a for row in table.rows()] == [1, 1]


def test_a_frame_of_void_only_is_refused(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="no column to write"):
        table.write(table.spark.sql("select null as v"))
    with pytest.raises(InvalidArgumentError, match=r"s is a struct"):
        table.write(table.spark.sql("select 1 as a, named_struct('n', null) as s"))
    for inside in ("array(null)", "map('k', null)", "array(named_struct('n', null))"):
        with pytest.raises(InvalidArgumentError, match="column c has a void type inside"):
            table.write(table.spark.sql(f"select 1 as a, {inside} as c"))
    assert table.files() == []


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a{b", "a(b", "a\nb", "a\tb", "a=b"])
def test_names_that_parquet_forbids_are_refused(table: Table, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="the column"):
        table.write(table.spark.range(1).select(F.lit(1).alias(name)))
    with pytest.raises(InvalidArgumentError, match="the column"):
        table.write(table.spark.range(1).select(F.struct(F.lit(1).alias(name)).alias("s")))


def test_names_with_dots_and_other_scripts(table: Table) -> None:
    df = table.spark.range(3).select(
        F.col("id").alias("a.b"), F.struct(F.col("id").alias("c.d")).alias("e"), (F.col("id") * 2).alias("größe`x")
    )
    for options in (NATIVE, SMALL):
        table.write(df.coalesce(1), options=options)
    assert len(table.rows()) == 6
    add = table.log.snapshot().add_files()[0]
    assert stats(add)["maxValues"] == {"a.b": 2, "e": {"c.d": 2}, "größe`x": 4}


def test_all_columns_as_partition_columns_are_refused(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="every column is a partition column"):
        table.write(table.spark.range(3), "id")


def test_columns_that_are_not_the_tables_are_refused(table: Table) -> None:
    df = table.spark.range(3)
    metadata = table.metadata(parse_schema('{"type":"struct","fields":[{"name":"x","type":"long"}]}'))
    with pytest.raises(SchemaMismatchError, match="the data's columns are id"):
        writer.write_files(df, table.log, metadata=metadata, protocol=Protocol(1, 2))


def test_what_was_written_can_be_removed(table: Table) -> None:
    df = table.spark.range(10).withColumn("p", F.lit("a/b %=ü"))
    metadata = table.metadata(parse_schema(df._jdf.schema().json()), ["p"])
    written = writer.write_files(df, table.log, metadata=metadata, protocol=Protocol(1, 2), data_change=False)
    assert written.rows == 10
    assert written.bytes == sum(os.path.getsize(table.path / name) for name in table.files())
    assert not any(add.data_change for add in written.adds)
    assert len(table.files()) == len(written.adds) > 0
    written.route.remove(written.names)
    assert table.files() == []
    written.route.remove(written.names)
