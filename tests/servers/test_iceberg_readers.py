"""pyiceberg reads a table on MinIO by the Iceberg metadata that commits write there, found by the table's URL alone."""

from typing import Any

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from support.table_work import by_route, settings
from tablelog.spark import DeltaTable

UNIFORM = {
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    "delta.universalFormat.enabledFormats": "iceberg",
}


@pytest.mark.parametrize("name", ["table", "a table ü"])
def test_pyiceberg_reads_it_on_minio(spark: SparkSession, minio: Any, name: str) -> None:
    url = minio.url(name)
    with settings(spark, {**minio.conf, **by_route("arrow")}):
        rows = spark.range(10).selectExpr("id", "concat('p ', id % 2) p", "array(id, null) a", "map('k', id) m")
        rows.write.format("delta").partitionBy("p").options(**UNIFORM).save(url)
        table = DeltaTable.forPath(spark, url)
        table.delete("id = 3")
        table.update("id = 4", {"id": "40"})
        table.optimize().executeCompaction()
        expected = {row.id: (row.p, row.a, row.m) for row in table.toDF().collect()}
    properties = {
        "s3.endpoint": minio.endpoint,
        "s3.access-key-id": minio.access_key,
        "s3.secret-access-key": minio.secret_key,
        "s3.region": "us-east-1",
    }
    read = StaticTable.from_metadata(url, properties)
    found = {row["id"]: (row["p"], row["a"], dict(row["m"])) for row in read.scan().to_arrow().to_pylist()}
    assert found == expected
    assert sorted(found) == [0, 1, 2, 5, 6, 7, 8, 9, 40]
    assert sorted(read.scan(row_filter="p = 'p 1'").to_arrow()["id"].to_pylist()) == [1, 5, 7, 9]
    before = next(one for one in read.metadata.snapshots if one.summary and one.summary["delta-version"] == "0")
    assert read.scan(snapshot_id=before.snapshot_id).to_arrow().num_rows == 10
