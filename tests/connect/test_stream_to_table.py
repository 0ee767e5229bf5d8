"""`writeStream.toTable` on Spark Connect: Delta tables by their names in the server's session catalog."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.table import clustering
from tablelog.engine.connect import data_sources
from tablelog.errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError


@pytest.fixture
def name(spark: Any) -> Iterator[str]:
    """The name of a table that is dropped after the test."""
    yield "Streamed"
    spark.sql("DROP TABLE IF EXISTS streamed")


@pytest.fixture
def source(spark: Any, table: Table) -> Table:
    table.write(spark.sql("SELECT id, id % 2 p, named_struct('a', id) s FROM range(4)"))
    return table


def information(spark: Any, pattern: str) -> list[str]:
    return [row.information for row in spark.sql(f"SHOW TABLE EXTENDED LIKE '{pattern}'").collect()]


def location(spark: Any, pattern: str) -> str:
    (found,) = information(spark, pattern)
    return next(line for line in found.splitlines() if line.startswith("Location: ")).removeprefix("Location: file:")


def writer_of(source: Table, checkpoint: Path, **options: Any) -> Any:
    stream = source.spark.readStream.format("delta").load(source.path).writeStream
    return stream.options(checkpointLocation=str(checkpoint), **options).trigger(availableNow=True)


def finish(query: Any) -> None:
    assert query.awaitTermination(200)
    error = query.exception()
    if error is not None:
        raise error


def rows(spark: Any, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


def test_a_table_that_is_missing_is_created(spark: Any, source: Table, name: str, tmp_path: Path) -> None:
    def copy() -> Any:
        return writer_of(source, tmp_path / "checkpoint").toTable(name, format="delta", partitionBy="p")

    query = copy()
    path = location(spark, "streamed")
    first = DeltaLog.for_path(path).snapshot(0)
    assert (first.files.num_rows, first.partition_columns) == (0, ("p",)), "it exists before the first batch"
    assert first.schema.names == ("id", "p", "s")
    finish(query)
    (found,) = information(spark, "streamed")
    assert "Type: MANAGED" in found
    assert "Provider: delta" in found
    source.write(spark.sql("SELECT 7L id, 1L p, null s"), mode="append")
    finish(copy())
    assert rows(spark, path) == [0, 1, 2, 3, 7]
    assert DeltaLog.for_path(path).snapshot().version == 2


def test_a_table_that_a_stream_clusters(spark: Any, source: Table, name: str, tmp_path: Path) -> None:
    writer = writer_of(source, tmp_path / "checkpoint").clusterBy("id")
    finish(writer.toTable(name, format="delta"))
    snapshot = DeltaLog.for_path(location(spark, "streamed")).snapshot()
    assert clustering.columns_of(snapshot.domain_metadata) == (("id",),)
    other = str(tmp_path / "by path")
    finish(writer_of(source, tmp_path / "other").clusterBy("p").format("delta").start(other))
    assert clustering.columns_of(DeltaLog.for_path(other).snapshot().domain_metadata) == (("p",),)
    with pytest.raises(PySparkException, match="is clustered by p, not by id"):
        finish(writer_of(source, tmp_path / "third").clusterBy("id").format("delta").start(other))


def test_a_directory_of_the_caller(spark: Any, source: Table, name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a b%20ü")
    finish(
        writer_of(source, tmp_path / "checkpoint", path=path).format("delta").toTable(f"spark_catalog.default.{name}")
    )
    assert "Type: EXTERNAL" in information(spark, "streamed")[0]
    assert location(spark, "streamed") == path
    assert rows(spark, path) == [0, 1, 2, 3]
    for given in ({}, {"path": path}):
        finish(
            writer_of(source, tmp_path / f"other{len(given)}", **given).format("delta").toTable("`default`.STREAMED")
        )
    assert len(rows(spark, path)) == 12
    with pytest.raises(InvalidArgumentError, match="given location"):
        writer_of(source, tmp_path / "checkpoint", path=f"{path}2").toTable(name, format="delta")
    for format_ in (None, "parquet"):
        with pytest.raises(InvalidArgumentError, match="is a Delta table"):
            writer_of(source, tmp_path / "checkpoint").toTable(name, format=format_)
    assert len(spark.table(name).collect()) == 12


def test_a_name_that_is_a_path(spark: Any, source: Table, tmp_path: Path) -> None:
    path = str(tmp_path / "by path")
    finish(writer_of(source, tmp_path / "checkpoint").format("delta").toTable(f"delta.`{path}`"))
    assert rows(spark, path) == [0, 1, 2, 3]


def test_a_server_with_a_delta_source(
    spark: Any, source: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark refuses a source with the name of one of the server's own, here `orc` in place of `delta`."""

    def register(session: Any, _: Any) -> None:
        class Orc(DataSource):
            @classmethod
            def name(cls) -> str:
                return "orc"

        session.dataSource.register(Orc)

    writer = writer_of(source, tmp_path / "checkpoint")
    monkeypatch.setattr(data_sources, "register", register)
    with pytest.raises(UnsupportedEnvironmentError, match="Delta source of its own"):
        writer.toTable("unheard", format="delta", path=str(tmp_path / "t"))
    assert information(spark, "unheard") == []
    assert not (tmp_path / "t").exists()


def test_names_that_can_not_be_written(spark: Any, source: Table, tmp_path: Path) -> None:
    spark.range(1).createOrReplaceTempView("temporary_one")
    spark.sql("CREATE VIEW permanent_one AS SELECT 1 one")
    spark.sql(f"CREATE TABLE of_parquet (id INT) USING parquet LOCATION '{tmp_path}/p'")
    spark.sql(f"CREATE TABLE imitated (id INT) USING parquet LOCATION '{tmp_path}/p' COMMENT 'x\\nLocation: file:/tmp'")
    before = sorted(information(spark, "*"))
    writer = writer_of(source, tmp_path / "checkpoint").format("delta")
    try:
        for name, error, message in (
            ("temporary_one", InvalidArgumentError, "temporary view"),
            ("permanent_one", InvalidArgumentError, "it is a view"),
            ("of_parquet", InvalidArgumentError, "its provider is parquet"),
            ("imitated", InvalidArgumentError, "several lines for Location"),
            ("new one", InvalidArgumentError, "isn't a valid table name"),
            ("new*", InvalidArgumentError, "isn't a valid table name"),
            ("missing.new", pyspark.errors.AnalysisException, "SCHEMA_NOT_FOUND"),
            ("other.default.new", UnsupportedFeatureError, "another catalog"),
            ("spark_catalog.missing.new", pyspark.errors.AnalysisException, "SCHEMA_NOT_FOUND"),
        ):
            with pytest.raises(error, match=message):
                writer.toTable(name)
        with pytest.raises(InvalidArgumentError, match="output mode Update"):
            writer.toTable("new", outputMode="update")
        assert sorted(information(spark, "*")) == before
    finally:
        spark.catalog.dropTempView("temporary_one")
        spark.sql("DROP VIEW permanent_one")
        for table in ("of_parquet", "imitated"):
            spark.sql(f"DROP TABLE {table}")
