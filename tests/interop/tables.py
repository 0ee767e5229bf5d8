"""Every kind of table that we write, each made by a few commits of ours, for other engines to read."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

from tablelog.spark import DeltaTable

Builder = Callable[[SparkSession, str], None]
KINDS: dict[str, Builder] = {}


def kind(build: Builder) -> Builder:
    KINDS[build.__name__] = build
    return build


def numbers(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.range(start, stop, 1, 2).selectExpr("id", "cast(id % 7 as int) k", "id / 2 x", "concat('s', id) s")


def append(frame: DataFrame, path: str, **options: str) -> None:
    frame.write.format("delta").mode("append").options(**options).save(path)


@kind
def flat(spark: SparkSession, path: str) -> None:
    """Append, delete by data, overwrite."""
    append(numbers(spark, 0, 100), path)
    append(numbers(spark, 100, 150), path)
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")
    numbers(spark, 0, 20).write.format("delta").mode("overwrite").save(path)


@kind
def partitioned(spark: SparkSession, path: str) -> None:
    """Partitions dropped, replaced and overwritten dynamically."""
    numbers(spark, 0, 100).write.format("delta").partitionBy("k").save(path)
    DeltaTable.forPath(spark, path).delete("k = 2")
    numbers(spark, 200, 230).where("k = 3").write.format("delta").mode("overwrite").option(
        "replaceWhere", "k = 3"
    ).save(path)
    numbers(spark, 300, 330).where("k < 2").write.format("delta").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(path)


@kind
def special_partition_values(spark: SparkSession, path: str) -> None:
    """What a path must escape, and the empty string, which is null."""
    values = ["a/b", "100%", "k=v", "two words", "naïve ☃", "", None, "a:b", "#?&+", "..", "%20", "{x}", "'q'", '"dq"']
    rows = [(i, value) for i, value in enumerate(values)]
    append(spark.createDataFrame(rows, "id int, p string"), path)
    spark.createDataFrame(rows, "id int, p string").write.format("delta").mode("overwrite").partitionBy("p").option(
        "overwriteSchema", "true"
    ).save(path)
    DeltaTable.forPath(spark, path).delete("p = 'a/b' or p = '%20'")


@kind
def typed_partition_values(spark: SparkSession, path: str) -> None:
    """A partition column of every primitive type that every engine has.

    No negative decimal: delta-rs 1.6.6 reads the partition value "-0.01" as "0.-1" and fails.
    """
    rows = [
        (
            0,
            True,
            1,
            2,
            3,
            4,
            1.5,
            2.5,
            Decimal("3.14"),
            dt.date(2024, 2, 29),
            dt.datetime(2024, 3, 1, 12, 30, 15, 250000),
        ),
        (1, False, -1, -2, -3, -(2**62), -0.5, 1e300, Decimal("0.01"), dt.date(1969, 12, 31), dt.datetime(1970, 1, 1)),
        (2, *[None] * 10),
    ]
    schema = (
        "id int, b boolean, t byte, sh short, i int, l long, f float, d double, m decimal(10,2), da date, ts timestamp"
    )
    frame = spark.createDataFrame(rows, schema)
    frame.write.format("delta").partitionBy(*frame.columns[1:]).save(path)
    append(frame.where("id = 0").selectExpr("7 as id", *frame.columns[1:]), path)


@kind
def all_types(spark: SparkSession, path: str) -> None:
    """Every primitive type and nesting, with nulls and the ends of ranges."""
    append(
        spark.sql(
            """
            select * from values
              (1, true, 1Y, 2S, 3L, float(1.5), 2.5D, cast('1.23' as decimal(5,2)),
               cast('-9999999999999999.99' as decimal(38,2)), date'2024-02-29', timestamp'2024-03-01 12:30:15.123456',
               'text', x'00ff', array(1, null), map('a', 1),
               named_struct('x', 1, 'y', array(named_struct('z', 'deep')))),
              (2, false, -128Y, -32768S, -9223372036854775808L, float(-0.0), 1e308D, cast('-999.99' as decimal(5,2)),
               cast('0' as decimal(38,2)), date'1900-01-01', timestamp'1900-01-01 00:00:00',
               '', x'', array(), map(), named_struct('x', null, 'y', null)),
              (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
              as t(id, b, t, sh, l, f, d, m, mm, da, ts, s, bin, a, mp, st)
            """
        ),
        path,
    )


@kind
def widened_schema(spark: SparkSession, path: str) -> None:
    """Columns added by mergeSchema, then the schema replaced."""
    append(spark.range(5).selectExpr("id"), path)
    append(spark.range(5, 9).selectExpr("id", "named_struct('a', id) s"), path, mergeSchema="true")
    append(
        spark.range(9, 12).selectExpr("id", "named_struct('a', id, 'b', 'x') s", "1.5D extra"), path, mergeSchema="true"
    )
    spark.range(3).selectExpr("cast(id as string) other").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(path)


@kind
def with_checkpoints(spark: SparkSession, path: str) -> None:
    """More commits than a checkpoint interval, so that a reader starts from our checkpoint."""
    for i in range(12):
        append(numbers(spark, i * 10, i * 10 + 10), path, txnAppId="loader", txnVersion=str(i))
    DeltaTable.forPath(spark, path).delete("id < 15")
    append(numbers(spark, 500, 501), path)


@kind
def compacted(spark: SparkSession, path: str) -> None:
    """Small files made one, with no change of data."""
    for i in range(3):
        append(numbers(spark, i * 10, i * 10 + 10), path)
    spark.read.format("delta").load(path).repartition(1).write.format("delta").mode("overwrite").option(
        "dataChange", "false"
    ).save(path)


@kind
def emptied(spark: SparkSession, path: str) -> None:
    """No rows at first, no rows at the end."""
    append(numbers(spark, 0, 0), path)
    append(numbers(spark, 0, 10), path)
    DeltaTable.forPath(spark, path).delete()


def _mapped(spark: SparkSession, path: str, mode: str) -> None:
    """Nested columns and partitions of odd names, a delete, a column added."""
    columns = [
        "id",
        "concat('v', id) `a b`",
        "named_struct('x', cast(id as int), 'y,z', named_struct('q', concat('q', id))) st",
        "array(named_struct('u', cast(id as int), 'v', 'e')) arr",
        "map('k', named_struct('w', cast(id as int))) m",
        "case when id % 3 = 0 then null else concat('p=', id % 3) end `the p`",
    ]
    frame = spark.range(0, 20, 1, 2).selectExpr(*columns)
    frame.write.format("delta").partitionBy("the p").option("delta.columnMapping.mode", mode).save(path)
    append(spark.range(20, 40, 1, 2).selectExpr(*columns).repartition(2), path)
    DeltaTable.forPath(spark, path).delete("id % 4 = 1 and st.x < 12")
    append(spark.range(50, 52).selectExpr(*columns, "5L `more;`"), path, mergeSchema="true")


@kind
def mapped_by_name(spark: SparkSession, path: str) -> None:
    _mapped(spark, path, "name")


@kind
def mapped_by_id(spark: SparkSession, path: str) -> None:
    _mapped(spark, path, "id")


@kind
def vectors_allowed(spark: SparkSession, path: str) -> None:
    """The property that lets a writer make deletion vectors; our DELETE copies."""
    append(numbers(spark, 0, 100), path, **{"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")


def run_commands(spark: SparkSession, path: str) -> None:
    """UPDATE, MERGE, OPTIMIZE, Z-ORDER and RESTORE of a table of `numbers`."""
    table = DeltaTable.forPath(spark, path)
    table.update("id % 10 = 3", {"x": "x + 1"})
    merge = table.alias("t").merge(numbers(spark, 50, 70).selectExpr("id", "k", "-x x", "s").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.id < 5").execute()
    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("k", "s")
    table.restoreToVersion(2)


@kind
def commands(spark: SparkSession, path: str) -> None:
    append(numbers(spark, 0, 60), path)
    run_commands(spark, path)


@kind
def vectors_of_commands(spark: SparkSession, path: str) -> None:
    append(numbers(spark, 0, 60), path, **{"delta.enableDeletionVectors": "true"})
    run_commands(spark, path)


@kind
def converted(spark: SparkSession, path: str) -> None:
    """A Parquet directory that became a table, and went on."""
    numbers(spark, 0, 40).write.partitionBy("k").parquet(path)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "k int")
    append(numbers(spark, 40, 50), path)
