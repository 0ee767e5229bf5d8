"""Methods of DeltaTable that change the log, the layout or the rules of a table, on Spark Connect."""

from pathlib import Path
from typing import Any

import pyspark.errors
import pytest

from support.spark_tables import Table
from tablelog.errors import ConstraintViolationError, InvalidArgumentError, UnsupportedFeatureError
from tablelog.spark import DeltaTable


@pytest.fixture
def other(spark: Any, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "other")


def test_tables_are_created_by_location(spark: Any, table: Table) -> None:
    def defined(builder: Any) -> Any:
        columns = builder.location(table.path).addColumn("id", "bigint", nullable=False)
        return columns.addColumn("twice", "bigint", generatedAlwaysAs="id * 2").partitionedBy("twice").comment("c")

    defined(DeltaTable.create(spark)).property("delta.appendOnly", "false").execute()
    table.write(spark.range(3))
    assert table.rows() == [(0, 0), (1, 2), (2, 4)]
    with pytest.raises(pyspark.errors.PySparkException, match="There is a Delta table"):
        defined(DeltaTable.create(spark)).execute()
    assert defined(DeltaTable.createIfNotExists(spark)).execute().toDF().count() == 3
    DeltaTable.replace(spark).location(table.path).addColumn("v", "string").execute()
    assert table.read().columns == ["v"]
    assert table.rows() == []
    with pytest.raises(UnsupportedFeatureError, match="name t in the catalog"):
        DeltaTable.createOrReplace(spark).tableName("t").addColumn("v", "string").execute()
    bad = DeltaTable.createOrReplace(spark).tableName(f"delta.`{table.path}`").addColumn("a", "bigint")
    with pytest.raises(InvalidArgumentError, match="rand"):
        bad.addColumn("b", "double", generatedAlwaysAs="rand()").execute()
    assert table.version == 2


def test_a_constraint_checks_the_rows_that_are_there(spark: Any, table: Table) -> None:
    table.write(spark.range(3))
    with pytest.raises(ConstraintViolationError, match="1 rows"):
        table.delta.addConstraint("small", "id < 2")
    with pytest.raises(InvalidArgumentError, match="boolean"):
        table.delta.addConstraint("small", "id + 1")
    with pytest.raises(InvalidArgumentError, match="current_timestamp"):
        table.delta.addConstraint("small", "id < unix_seconds(current_timestamp())")
    assert table.version == 0
    table.delta.addConstraint("small", "id < 5")
    with pytest.raises(pyspark.errors.PySparkException, match="small"):
        table.write(spark.range(5, 6))
    assert table.rows() == [0, 1, 2]


def test_columns_are_altered(spark: Any, table: Table) -> None:
    options = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    table.write(spark.sql("SELECT 1 a, 2 b"), **options, **{"delta.feature.allowColumnDefaults": "supported"})
    table.delta.alterColumn("a", dataType="bigint", comment="wide", position="after b")
    table.delta.alterColumn("b", default="1 + 2")
    assert table.read().dtypes == [("b", "int"), ("a", "bigint")]
    table.write(spark.sql("SELECT 7L a"))
    assert table.rows() == [(2, 1), (3, 7)]
    for default, message in (("a", "a in it is no column"), ("rand()", "rand")):
        with pytest.raises(UnsupportedFeatureError, match=message):
            table.delta.alterColumn("b", default=default)
    with pytest.raises(InvalidArgumentError, match="can't be stored"):
        table.delta.alterColumn("b", default="date'2024-01-01'")
    table.delta.addConstraint("positive", "a > 0 and b > 0")
    with pytest.raises(InvalidArgumentError, match="positive"):
        table.delta.renameColumn("a", "c")
    table.delta.dropConstraint("positive")
    table.delta.renameColumn("a", "c")


def test_a_clone_manifests_and_a_dropped_feature(spark: Any, table: Table, other: Table) -> None:
    table.write(spark.range(4).selectExpr("id", "id % 2 p"), by=("p",))
    table.delta.generate("symlink_format_manifest")
    assert (table.root / "_symlink_format_manifest" / "p=1" / "manifest").exists()
    clone = table.delta.clone(other.path, isShallow=True)
    clone.delete("id = 3")
    assert other.rows("id") == [0, 1, 2]
    assert table.rows("id") == [0, 1, 2, 3]
    with pytest.raises(UnsupportedFeatureError, match="name t in the catalog"):
        table.delta.clone("t", isShallow=True)
    table.delta.addFeatureSupport("deletionVectors")
    table.delta.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in str(table.delta.detail().first().tableFeatures)
    assert table.rows("id") == [0, 1, 2, 3]


def test_files_are_converted(spark: Any, table: Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    spark.range(4).selectExpr("id", "id % 2 p").write.partitionBy("p").parquet(table.path)
    pq.write_table(pa.table({"id": pa.array([9], pa.int64())}), table.root / "p=1" / "of_arrow.parquet")
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{table.path}`", "p int")
    assert sorted(map(tuple, converted.toDF().collect())) == [(0, 0), (1, 1), (2, 0), (3, 1), (9, 1)]
    assert "numRecords" in table.actions(0)[-1]["add"]["stats"]


def test_optimize_of_some_partitions(spark: Any, table: Table) -> None:
    for first in (0, 4):
        table.write(
            spark.range(first, first + 4).selectExpr("id", "date'2024-01-01' + cast(id % 2 as int) d"), by=("d",)
        )
    metrics = table.delta.optimize().where("d = date'2024-01-02' and d is not null").executeCompaction().first().metrics
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (4, 1)
    assert metrics.partitionsOptimized == 1
    for condition in ("id = 1", "d = date'2024-01-01' or id > 3"):
        with pytest.raises(InvalidArgumentError, match="only conditions on partition columns"):
            table.delta.optimize().where(condition).executeCompaction()
    assert table.rows("id") == list(range(8))


def test_rows_are_laid_out(spark: Any, table: Table, conf: Any) -> None:
    conf("spark.databricks.delta.optimize.maxFileSize", "4000")
    rows = spark.range(4000).selectExpr("id * 7919 % 4000 a", "cast(id * 104729 % 4000 as string) b")
    table.write(rows.repartition(2))
    metrics = table.delta.optimize().executeZOrderBy("a", "b").first().metrics
    assert metrics.numFilesAdded > 4
    assert table.read().where("a < 100").select("a").count() == 100
    spans = [add["add"]["stats"] for add in table.actions() if "add" in add]
    assert len(spans) == metrics.numFilesAdded
    clustered = Table(spark, table.root.with_name("clustered"))
    DeltaTable.create(spark).location(clustered.path).addColumns(rows.schema).clusterBy("a").execute()
    clustered.write(rows)
    clustered.delta.optimize().executeCompaction()
    assert clustered.info()["operation"] == "OPTIMIZE"
    assert all(action["add"].get("clusteringProvider") for action in clustered.actions() if "add" in action)
    assert clustered.read().exceptAll(rows).count() == 0
