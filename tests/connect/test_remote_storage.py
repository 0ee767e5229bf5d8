"""Writes where the client reaches the storage by fsspec, and streams that write by foreachBatch."""

from pathlib import Path
from typing import Any

import pyspark.errors
import pytest

from connect.reading import by_core
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.engine.write import routes
from tablelog.engine.write.routes.remote import RemoteRoute
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.logstore.data_files import DataFiles


@pytest.fixture
def by_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local disk, reached as an object store is."""

    def remote(log: DeltaLog, below: str) -> RemoteRoute:
        return RemoteRoute(DataFiles.of(log.table, log.conf, log.storage_options), below)

    monkeypatch.setattr(routes, "_of_server", remote)


@pytest.mark.usefixtures("by_fsspec")
def test_files_stay_where_spark_writes_them(spark: Any, table: Table) -> None:
    columns = ("id", "concat('p ', id % 2, '=é%') p")
    table.write(spark.range(6).selectExpr(*columns), by=("p",), **{"delta.enableChangeDataFeed": "true"})
    table.delta.update("id = 3", {"p": "'new'"})
    table.delta.delete("id = 4")
    assert_same_rows(table.read().toArrow(), by_core(table.path))
    assert table.rows("id") == [0, 1, 2, 3, 5]
    assert all(name.startswith("data-") for name in table.logged_files())
    changes = table.read(readChangeFeed="true", startingVersion=1)
    assert changes.count() == 3
    names = table.data_files()
    assert {name for name in names if not name.startswith("_change_data/data-")} == table.logged_files()


@pytest.mark.usefixtures("by_fsspec")
def test_a_failed_job_leaves_no_file(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    before = table.data_files()
    with pytest.raises(pyspark.errors.PySparkException):
        table.write(spark.range(100).selectExpr("if(id = 99, raise_error('boom'), id) as id"))
    assert table.data_files() == before


@pytest.mark.usefixtures("by_fsspec")
def test_a_client_that_sees_other_storage(spark: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataFiles, "statuses", lambda self, below="": iter(()))
    with pytest.raises(UnsupportedEnvironmentError, match="different storage"):
        table.write(spark.range(3))
    assert not DeltaLog.for_path(table.path).exists()
    monkeypatch.undo()


@pytest.mark.usefixtures("by_fsspec")
def test_no_rows(spark: Any, table: Table) -> None:
    table.write(spark.range(0))
    assert table.rows() == []
    assert table.data_files() == set()


def test_a_stream_that_writes_by_foreach_batch(spark: Any, table: Table, tmp_path: Path) -> None:
    source, path = str(tmp_path / "source"), table.path
    spark.range(4).write.parquet(source)

    def save(batch: Any, number: int) -> None:
        from tablelog.spark import enable

        enable(batch.sparkSession)
        for _ in range(2):  # as after a failure: the second is skipped
            writer = batch.write.format("delta").mode("append").option("txnAppId", "s")
            writer.option("txnVersion", number).save(path)

    stream = spark.readStream.schema("id bigint").parquet(source).writeStream.foreachBatch(save)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query = stream.start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert table.rows() == [0, 1, 2, 3]
    assert DeltaLog.for_path(path).snapshot().transactions["s"].version == 0
