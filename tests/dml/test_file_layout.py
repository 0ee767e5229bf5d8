"""What a table, or the session, says of its files: large ones at each write, compaction after it, clustering."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.table import clustering
from tablelog.errors import InvalidArgumentError


def live(table: Table) -> int:
    return DeltaLog.for_path(table.path).snapshot().num_files


def test_an_optimized_write_makes_few_files(spark: SparkSession, table: Table, conf: Any) -> None:
    scattered = spark.range(400).selectExpr("id", "id % 2 as p").repartition(4)
    table.write(scattered, "overwrite", by=("p",))
    assert live(table) == 8
    table.write(scattered, "overwrite", by=("p",), optimizeWrite="true")
    assert live(table) == 2, "the option"
    conf("spark.databricks.delta.optimizeWrite.enabled", "true")
    table.write(scattered, "overwrite", by=("p",))
    assert live(table) == 2, "the session"
    table.write(scattered, "overwrite", by=("p",), optimizeWrite="false")
    assert live(table) == 8, "the option goes before the session"
    conf("spark.databricks.delta.optimizeWrite.binSize", "2 elephants")
    with pytest.raises(InvalidArgumentError, match="number of MiB"):
        table.write(scattered, "overwrite", by=("p",))


def test_small_files_are_compacted_after_a_commit(spark: SparkSession, table: Table, conf: Any) -> None:
    conf("spark.databricks.delta.autoCompact.minNumFiles", "3")
    for start in (0, 1):
        table.write(
            spark.range(start, 4, 2).selectExpr("id", "id % 2 as p"),
            by=("p",),
            **{"delta.autoOptimize.autoCompact": "true"},
        )
    table.write(spark.range(4, 6, 2).selectExpr("id", "id % 2 as p"))
    assert live(table) == 3, "no partition has three small files"
    table.write(spark.range(6, 8, 2).selectExpr("id", "id % 2 as p"))
    assert live(table) == 2
    assert table.info()["operation"] == "OPTIMIZE"
    assert table.info()["operationParameters"]["auto"] is True
    assert table.rows("id") == [0, 1, 2, 3, 4, 6]


def test_a_compaction_that_fails_leaves_the_commit(
    spark: SparkSession, table: Table, conf: Any, caplog: pytest.LogCaptureFixture
) -> None:
    conf("spark.databricks.delta.autoCompact.enabled", "true")
    conf("spark.databricks.delta.autoCompact.minNumFiles", "few")
    table.write(spark.range(3))
    assert table.rows() == [0, 1, 2]
    assert "version 0 is committed, but its small files were not compacted" in caplog.text


@pytest.mark.slow
def test_a_clustered_table_is_clustered_once(spark: SparkSession, table: Table, conf: Any) -> None:
    frame = spark.range(6_000).selectExpr("id * 7919 % 1000 a", "id * 104729 % 997 b")
    frame.repartition(2).write.format("delta").clusterBy("a", "b").save(table.path)
    detail = table.delta.detail().first()
    assert detail is not None
    assert detail["clusteringColumns"] == ["a", "b"]
    assert {"clustering", "domainMetadata"} <= set(detail["tableFeatures"])
    size = DeltaLog.for_path(table.path).snapshot().size_in_bytes
    conf("spark.databricks.delta.optimize.maxFileSize", str(size // 4))

    done = table.delta.optimize().executeCompaction().first()
    assert done is not None
    assert done["metrics"]["numFilesAdded"] == 4
    assert json.loads(table.info()["operationParameters"]["clusterBy"]) == ["a", "b"]
    adds = [a["add"] for a in table.actions() if "add" in a]
    assert {add["clusteringProvider"] for add in adds} == {"liquid"}
    assert len({add["tags"]["ZCUBE_ID"] for add in adds}) == 1
    version = table.version
    table.delta.optimize().executeCompaction()
    assert table.version == version, "all that is there is one cube"

    table.write(frame.limit(100))
    table.delta.optimize().executeCompaction()
    assert len({file["ZCUBE_ID"] for file in tags(table)}) == 1, "a cube that small takes in what is new"
    assert table.read().count() == 6_100
    with pytest.raises(InvalidArgumentError, match="ZORDER BY"):
        table.delta.optimize().executeZOrderBy("a")
    with pytest.raises(InvalidArgumentError, match="doesn't support a condition"):
        table.delta.optimize().where("a = 1").executeCompaction()

    table.delta.clusterBy("b")
    table.delta.optimize().executeCompaction()
    assert {file["ZCUBE_ZORDER_BY"] for file in tags(table)} == {'["a", "b"]'}, "clustered by other columns: it stays"
    table.delta.optimize().executeFull()
    assert {file["ZCUBE_ZORDER_BY"] for file in tags(table)} == {'["b"]'}
    table.delta.clusterBy()
    assert clustering.columns_of(DeltaLog.for_path(table.path).snapshot().domain_metadata) == ()
    assert table.info()["operation"] == "CLUSTER BY"


def tags(table: Table) -> list[dict[str, str]]:
    return [dict(file.tags or {}) for file in DeltaLog.for_path(table.path).snapshot().add_files()]


def test_what_a_table_can_not_be_clustered_by(spark: SparkSession, table: Table) -> None:
    frame = spark.range(2).selectExpr("id", "id as p", "array(id) as xs", "1 c", "2 d", "3 e", "4 f")
    writer = frame.write.format("delta")
    for columns, why in (
        (["gone"], "no column gone"),
        (["id", "ID"], "twice"),
        (["xs"], "has no statistics for xs"),
        (["id", "c", "d", "e", "f"], "4 columns at most"),
    ):
        with pytest.raises(InvalidArgumentError, match=why):
            writer.clusterBy(*columns).save(table.path)
    assert not (table.root / "_delta_log").exists()
    table.write(frame, by=("p",))
    with pytest.raises(InvalidArgumentError, match="both partitioned and"):
        table.delta.clusterBy("id")
    with pytest.raises(InvalidArgumentError, match="both partitioned and"):
        frame.write.format("delta").mode("append").clusterBy("id").save(table.path)
