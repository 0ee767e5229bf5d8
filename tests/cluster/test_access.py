"""The driver and its executors don't see the same files: an error says so, and nothing is committed."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from support.table_work import by_route, settings
from tablelog.errors import UnsupportedEnvironmentError

from .standalone import Cluster, can_mount

pytestmark = pytest.mark.skipif(not can_mount(), reason="this system permits no mount namespaces")


@pytest.fixture(params=["native", "arrow"])
def route(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    with settings(spark, by_route(request.param)):
        yield request.param


@pytest.mark.parametrize("shared", ["apart", "half"])
@pytest.mark.parametrize("by", [(), ("p",)])
def test_a_write_to_disks_of_executors(
    spark: SparkSession, cluster: Cluster, route: str, shared: str, by: tuple[str, ...]
) -> None:
    table = Table(spark, getattr(cluster, shared) / f"written-by-{route}-{len(by)}")
    rows = spark.range(0, 8, 1, 4).selectExpr("id", "id % 2 p").repartition(4)
    with pytest.raises(UnsupportedEnvironmentError, match="Nothing was committed") as caught:
        table.write(rows, by=by)
    assert "Spark's executors wrote 8 rows" in str(caught.value) or route == "arrow"
    assert f"{table.path}: Spark" in str(caught.value)
    assert not (table.root / "_delta_log").exists()
    assert not table.data_files()


def test_a_change_on_disks_of_executors(spark: SparkSession, cluster: Cluster, route: str) -> None:
    table = Table(spark, cluster.half / f"changed by {route}")
    table.write(spark.range(0, 8, 1, 4))
    before = table.data_files()
    with pytest.raises(UnsupportedEnvironmentError, match="same storage on each machine"):
        table.write(spark.range(8, 16).repartition(4), "overwrite")
    assert table.data_files() == before
    assert table.version == 0


def test_a_read_of_a_disk_of_the_driver(spark: SparkSession, cluster: Cluster, route: str) -> None:
    table = Table(spark, cluster.apart / f"read by {route}")
    table.write(spark.range(0, 8, 1, 4))  # so few rows are written by the driver
    with pytest.raises(UnsupportedEnvironmentError, match="executors don't find the file") as caught:
        table.read().collect()
    assert caught.value.version == 0
    assert caught.value.path is not None
    assert caught.value.path.endswith(".parquet")


def test_nothing_is_wrong_where_no_row_is_written(spark: SparkSession, cluster: Cluster, route: str) -> None:
    table = Table(spark, cluster.apart / f"empty by {route}")
    table.write(spark.range(0, 8, 1, 4).repartition(2).where("id < 0"))
    assert table.version == 0
