"""A stream from table to table, which starts again; on Spark Connect it is refused."""

from pathlib import Path
from typing import Any

import pytest

from matrix.cells import CLASSIC, CONNECT
from support.spark_tables import Table
from tablelog.errors import UnsupportedFeatureError


@pytest.mark.only(CLASSIC)
def test_rows_go_from_table_to_table_once(spark: Any, table: Table, tmp_path: Path) -> None:
    target = Table(spark, tmp_path / "target")

    def run() -> int:
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(table.path)
        writer = stream.selectExpr("id", "id * 10 v").writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query = writer.start(target.path)
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    for first in (0, 2):
        table.write(spark.range(first, first + 2).coalesce(1))
    assert run() == 4
    assert target.version == 1, "a batch for each file"
    table.write(spark.range(4, 5))
    assert run() == 1
    assert run() == 0
    assert target.rows() == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]
    assert [row.operation for row in target.delta.history(1).collect()] == ["STREAMING UPDATE"]


@pytest.mark.only(CLASSIC)
def test_a_batch_function_merges(spark: Any, table: Table, tmp_path: Path) -> None:
    target = Table(spark, tmp_path / "target")
    target.write(spark.sql("select 0L id, 'old' v"))
    table.write(spark.range(2))

    def merge(batch: Any, _number: int) -> None:
        found = target.delta.alias("t").merge(batch.alias("s"), "t.id = s.id")
        found.whenMatchedUpdate(set={"v": "'new'"}).whenNotMatchedInsert(
            values={"id": "s.id", "v": "'added'"}
        ).execute()

    writer = spark.readStream.format("delta").load(table.path).writeStream.foreachBatch(merge)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert target.rows() == [(0, "new"), (1, "added")]


@pytest.mark.only(CONNECT)
def test_streams_are_refused_on_connect(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    with pytest.raises(UnsupportedFeatureError):
        spark.readStream.format("delta").load(table.path)
    with pytest.raises(UnsupportedFeatureError):
        spark.readStream.format("rate").load().writeStream.format("delta").start(table.path)
    assert table.version == 0
