"""Delta tables by their names in the server's session catalog: reading, saveAsTable, what is refused, DROP TABLE."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, TableAlreadyExistsError, TableNotFoundError, UnsupportedFeatureError
from tablelog.spark import DeltaTable


@pytest.fixture
def named(spark: Any, table: Table) -> Iterator[Table]:
    """A Delta table with three versions, whose name in the catalog is `named`."""
    table.write(spark.range(2))
    spark.range(2, 3).write.format("delta").mode("append").option("path", table.path).saveAsTable("named")
    spark.range(3, 4).write.saveAsTable("default.named", format="delta", mode="append")
    assert table.version == 2
    yield table
    spark.sql("DROP TABLE IF EXISTS named")


def ids(rows: Any) -> list[int]:
    return sorted(row.id for row in rows.collect())


@pytest.mark.parametrize("name", ["named", "NAMED", "`default`.named", "spark_catalog.default.named"])
def test_a_table_is_read_by_its_name(spark: Any, named: Table, name: str) -> None:
    assert ids(spark.table(name)) == [0, 1, 2, 3]
    assert ids(spark.read.option("versionAsOf", 0).table(name)) == [0, 1]
    assert ids(spark.table(name).where("named.id > 2")) == [3]
    assert DeltaTable.forName(spark, name).history().count() == 3


def test_a_table_by_its_path(spark: Any, named: Table) -> None:
    name = f"Delta . `{named.path}`"
    assert ids(spark.table(name)) == [0, 1, 2, 3]
    assert ids(spark.read.option("versionAsOf", 0).table(name)) == [0, 1]
    spark.range(4, 5).write.format("delta").mode("append").saveAsTable(name)
    assert ids(spark.table(name)) == [0, 1, 2, 3, 4]


def test_a_stream_is_read_by_the_name(spark: Any, named: Table, tmp_path: Path) -> None:
    stream = spark.readStream.table("named").writeStream.format("delta").trigger(availableNow=True)
    query = stream.option("checkpointLocation", f"{tmp_path}/checkpoint").start(f"{tmp_path}/copy")
    assert query.awaitTermination(200)
    assert query.exception() is None
    assert ids(spark.read.format("delta").load(f"{tmp_path}/copy")) == [0, 1, 2, 3]


def test_a_temporary_view_comes_before_the_table(spark: Any, named: Table) -> None:
    spark.range(7, 8).createOrReplaceTempView("named")
    try:
        assert ids(spark.table("named")) == [7]
        assert ids(spark.table("default.named")) == [0, 1, 2, 3]
        with pytest.raises(InvalidArgumentError, match="is a temporary view"):
            DeltaTable.forName(spark, "named")
    finally:
        spark.catalog.dropTempView("named")


def test_other_tables_are_read_by_spark(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE plain USING parquet LOCATION '{tmp_path}/plain' AS SELECT 5L AS id")
    spark.sql("CREATE VIEW over_plain AS SELECT * FROM plain")
    try:
        assert ids(spark.table("plain")) == ids(spark.read.table("over_plain")) == [5]
        for name, message in (("plain", "provider is parquet"), ("over_plain", "is a view"), ("nothing", "no table")):
            with pytest.raises(TableNotFoundError, match=message):
                DeltaTable.forName(spark, name)
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table("nothing").collect()
    finally:
        spark.sql("DROP VIEW over_plain")
        spark.sql("DROP TABLE plain")


def test_save_as_table_creates_a_managed_table(spark: Any) -> None:
    try:
        rows = spark.range(4).withColumn("p", functions.col("id") % 2)
        rows.write.saveAsTable("managed", format="delta", partitionBy="p")
        detail = DeltaTable.forName(spark, "managed").detail().first()
        assert detail.partitionColumns == ["p"]
        with pytest.raises(TableAlreadyExistsError):
            rows.write.format("delta").saveAsTable("managed")
        rows.write.format("delta").mode("ignore").saveAsTable("managed")
        rows.where("id = 1").write.format("delta").mode("overwrite").saveAsTable("managed")
        assert ids(spark.table("managed")) == [1]
        with pytest.raises(InvalidArgumentError, match="has the location"):
            rows.write.format("delta").option("path", "/elsewhere").mode("append").saveAsTable("managed")
        directory = detail.location.removeprefix("file:")
        assert DeltaLog.for_path(directory).snapshot().version == 1
    finally:
        spark.sql("DROP TABLE managed")
    assert not Path(directory).exists()
    assert not spark.catalog.tableExists("managed")


def test_settings_that_are_not_valid_add_no_entry(spark: Any) -> None:
    writer = spark.range(1).write.format("delta")
    for write in (
        lambda: writer.bucketBy(2, "id").saveAsTable("never"),
        lambda: spark.range(1).write.saveAsTable("never", format="delta", mode="upsert"),
        lambda: spark.range(1).write.saveAsTable("never", format="delta", **{"delta.appendOnly": "perhaps"}),
    ):
        with pytest.raises(InvalidArgumentError):
            write()
    assert not spark.catalog.tableExists("never")


def test_save_as_table_does_not_replace_a_table_of_another_format(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE plain (id BIGINT) USING parquet LOCATION '{tmp_path}/plain'")
    try:
        with pytest.raises(InvalidArgumentError, match="provider is parquet"):
            spark.range(1).write.format("delta").mode("overwrite").saveAsTable("plain")
    finally:
        spark.sql("DROP TABLE plain")


@pytest.mark.parametrize("mode", ["overwrite", "append", "error"])
def test_another_format_does_not_replace_a_delta_table(spark: Any, named: Table, mode: str) -> None:
    for write in (
        lambda: spark.range(1).write.mode(mode).saveAsTable("named"),
        lambda: spark.range(1).write.saveAsTable("default.named", format="orc", mode=mode),
    ):
        with pytest.raises(InvalidArgumentError, match="is a Delta table, which saveAsTable in another format"):
            write()
    assert ids(spark.table("named")) == [0, 1, 2, 3]


def test_what_is_refused(spark: Any, named: Table) -> None:
    rows = spark.range(1)
    files = sorted(path.name for path in named.root.rglob("*"))
    for operation, what in (
        (lambda: spark.sql("SELECT * FROM named"), "An SQL statement"),
        (lambda: spark.sql("INSERT INTO named VALUES (7)"), "An SQL statement"),
        (lambda: spark.sql("INSERT OVERWRITE named VALUES (7)"), "An SQL statement"),
        (lambda: spark.sql("UPDATE named SET id = 7"), "An SQL statement"),
        (lambda: spark.sql("DELETE FROM named"), "An SQL statement"),
        (lambda: spark.sql("TRUNCATE TABLE named"), "An SQL statement"),
        (lambda: spark.sql("ALTER TABLE named ADD COLUMNS (x INT)"), "An SQL statement"),
        (lambda: spark.sql("ALTER TABLE named SET TBLPROPERTIES ('a' = 'b')"), "An SQL statement"),
        (lambda: spark.sql("DESCRIBE TABLE EXTENDED named"), "An SQL statement"),
        (lambda: rows.writeTo("named").append(), r"writeTo\(...\).append"),
        (lambda: rows.writeTo("named").overwrite(functions.lit(True)), r"writeTo\(...\).overwrite"),
        (lambda: rows.writeTo("named").overwritePartitions(), r"writeTo\(...\).overwritePartitions"),
        (lambda: rows.mergeInto("named", rows.id == 1).whenMatched().delete().merge(), r"mergeInto\(...\).merge"),
        (lambda: spark.catalog.getTable("named"), r"spark\.catalog\.getTable"),
        (lambda: spark.catalog.listColumns("named"), r"spark\.catalog\.listColumns"),
        (lambda: spark.catalog.cacheTable("named"), r"spark\.catalog\.cacheTable"),
        (lambda: spark.catalog.refreshTable("named"), r"spark\.catalog\.refreshTable"),
        (lambda: rows.write.insertInto("named"), "insertInto"),
        (lambda: rows.write.insertInto("named", overwrite=True), "insertInto"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"{what} with the name of a Delta table in the catalog"):
            operation()
    assert sorted(path.name for path in named.root.rglob("*")) == files
    assert spark.catalog.tableExists("named")
    assert not spark.catalog.tableExists("nothing")
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo("nothing").append()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE named",
        "drop /* it */ table if exists default.named",
        "DROP TABLE IDENTIFIER(:name)",
        "DROP TABLE IDENTIFIER({name})",
    ],
)
def test_drop_table(spark: Any, named: Table, statement: str) -> None:
    formatted = {"name": "named"} if "{name}" in statement else {}
    assert spark.sql(statement, {"name": "named"} if ":name" in statement else None, **formatted).collect() == []
    assert not spark.catalog.tableExists("named")
    assert named.rows() == [0, 1, 2, 3]
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("DROP TABLE named")
