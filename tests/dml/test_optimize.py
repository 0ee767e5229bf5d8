"""OPTIMIZE and REORG: fewer files, or files laid out for filters, and the same rows."""

import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError


def metrics(row: Row | None) -> dict[str, Any]:
    assert row is not None
    return dict(row["metrics"].asDict(recursive=True))


@pytest.fixture
def small_files(spark: SparkSession, table: Table) -> Table:
    """Three files in each of two partitions, the second partition's of one row more."""
    for start in (0, 10, 20):
        table.write(spark.range(start, start + 5).selectExpr("id", "id % 2 as p").coalesce(1), by=("p",))
    return table


def test_small_files_of_a_partition_become_one(small_files: Table) -> None:
    before, version = small_files.rows(), small_files.version
    done = metrics(small_files.delta.optimize().executeCompaction().first())
    assert (done["numFilesAdded"], done["numFilesRemoved"], done["numBins"]) == (2, 6, 2)
    assert (done["partitionsOptimized"], done["totalConsideredFiles"], done["totalFilesSkipped"]) == (2, 6, 0)
    assert small_files.rows() == before
    assert small_files.version == version + 1
    files = [a[kind] for a in small_files.actions() for kind in ("add", "remove") if kind in a]
    assert len(files) == 8
    assert not any(file["dataChange"] for file in files)
    info = small_files.info()
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    assert info["operationMetrics"]["numRemovedFiles"] == "6"
    assert info["isolationLevel"] == "SnapshotIsolation"


def test_only_the_partitions_of_a_condition(small_files: Table) -> None:
    before = small_files.rows()
    done = metrics(small_files.delta.optimize().where("p = 1 AND p < 7").executeCompaction().first())
    assert (done["numFilesAdded"], done["numFilesRemoved"], done["totalConsideredFiles"]) == (1, 3, 3)
    assert json.loads(small_files.info()["operationParameters"]["predicate"]) == ["(p = 1)", "(p < 7)"]
    assert small_files.rows() == before
    with pytest.raises(InvalidArgumentError, match="only conditions on partition columns"):
        small_files.delta.optimize().where("id = 3").executeCompaction()


def test_nothing_to_gain_is_no_commit(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(10).coalesce(1))
    version = table.version
    assert metrics(table.delta.optimize().executeCompaction().first())["numFilesAdded"] == 0
    assert table.version == version


def test_files_above_the_least_size_stay_and_none_becomes_larger_than_the_most(
    spark: SparkSession, table: Table, conf: Any
) -> None:
    for count in (10, 20_000, 10, 20_000):
        table.write(spark.range(count).select(F.rand(3).alias("x")).coalesce(1))
    conf("spark.databricks.delta.optimize.minFileSize", "50000")
    done = metrics(table.delta.optimize().executeCompaction().first())
    assert (done["numFilesAdded"], done["numFilesRemoved"], done["totalFilesSkipped"]) == (1, 2, 2)
    conf("spark.databricks.delta.optimize.minFileSize", "10000000")
    conf("spark.databricks.delta.optimize.maxFileSize", "200000")
    done = metrics(table.delta.optimize().executeCompaction().first())
    assert (done["numFilesAdded"], done["numFilesRemoved"]) == (1, 2), "the large ones are too large to go together"


def test_each_batch_is_a_commit(small_files: Table, conf: Any) -> None:
    before, version = small_files.rows(), small_files.version
    conf("spark.databricks.delta.optimize.batchSize", "1")
    done = metrics(small_files.delta.optimize().executeCompaction().first())
    assert (done["numBatches"], done["numFilesAdded"], done["numFilesRemoved"]) == (2, 2, 6)
    assert small_files.version == version + 2
    assert small_files.rows() == before


def test_an_append_meanwhile_is_no_conflict(
    spark: SparkSession, small_files: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tablelog.dml.maintain import optimize

    real = optimize._rewrite
    late = spark.range(100, 101).selectExpr("id", "id % 2 as p")

    def rewrite(*arguments: Any) -> None:
        small_files.write(late)
        real(*arguments)

    monkeypatch.setattr(optimize, "_rewrite", rewrite)
    before = small_files.rows()
    small_files.delta.optimize().executeCompaction()
    assert small_files.rows() == [*before, (100, 0)]
    assert small_files.info()["operation"] == "OPTIMIZE"


@pytest.mark.slow
def test_rows_are_laid_out_by_several_columns(spark: SparkSession, table: Table, conf: Any) -> None:
    # Each file has all values of both columns, until they are laid out.
    frame = spark.range(40_000).selectExpr(
        "cast(id * 7919 % 1000 as int) a", "concat('k', lpad(id * 104729 % 997, 4, '0')) b", "nullif(id % 10, 0) n"
    )
    table.write(frame.repartition(4))
    size = DeltaLog.for_path(table.path).snapshot().size_in_bytes
    conf("spark.databricks.delta.optimize.maxFileSize", str(size // 16))
    before = table.read().groupBy().agg(F.count("*"), F.sum("a"), F.sum(F.crc32("b")), F.sum("n")).first()
    done = metrics(table.delta.optimize().executeZOrderBy("a", "b").first())
    after = table.read().groupBy().agg(F.count("*"), F.sum("a"), F.sum(F.crc32("b")), F.sum("n")).first()
    assert after == before
    assert 14 <= done["numFilesAdded"] <= 17
    gain = {one["column"]: one for one in done["lookups"]}
    for column in ("a", "b"):
        assert gain[column]["filesBefore"] == pytest.approx(4)
        assert gain[column]["filesAfter"] < 7, "of 16 files, a filter on one of two columns reads about 4"
        assert gain[column]["bytesAfter"] < gain[column]["bytesBefore"] / 2
    assert done["zOrderStats"]["mergedFiles"]["num"] == 4
    assert json.loads(table.info()["operationParameters"]["zOrderBy"]) == ["a", "b"]


def test_rows_of_each_partition_are_laid_out_alone(spark: SparkSession, table: Table, conf: Any) -> None:
    frame = spark.range(20_000).selectExpr("id * 7919 % 1000 a", "cast(id % 3 as string) p", "timestamp_seconds(id) t")
    table.write(frame.repartition(2), by=("p",))
    size = DeltaLog.for_path(table.path).snapshot().size_in_bytes
    conf("spark.databricks.delta.optimize.maxFileSize", str(size // 12))
    before = table.read().groupBy("p").agg(F.sum("a"), F.max("t")).orderBy("p").collect()
    done = metrics(table.delta.optimize().executeZOrderBy(["t", "a"]).first())
    assert table.read().groupBy("p").agg(F.sum("a"), F.max("t")).orderBy("p").collect() == before
    assert (done["numFilesRemoved"], done["partitionsOptimized"]) == (6, 3)
    assert 9 <= done["numFilesAdded"] <= 12
    assert {one["column"] for one in done["lookups"]} == {"t", "a"}


def test_columns_that_nothing_can_be_laid_out_by(spark: SparkSession, table: Table) -> None:
    table.write(spark.range(3).selectExpr("id", "id % 2 as p", "array(id) as xs", "struct(id as deep) as s"), by=("p",))
    optimize = table.delta.optimize()
    for column, why in (("p", "partition column"), ("gone", "no column gone"), ("xs", "has no statistics|no order")):
        with pytest.raises(InvalidArgumentError, match=why):
            optimize.executeZOrderBy(column)
    with pytest.raises(InvalidArgumentError, match="at least one column"):
        optimize.executeZOrderBy()
    assert metrics(optimize.executeZOrderBy("s.deep").first())["numFilesRemoved"] > 0
    assert table.rows("id") == [0, 1, 2]
