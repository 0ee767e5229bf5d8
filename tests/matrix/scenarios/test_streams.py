"""A stream from table to table, which starts again."""

from pathlib import Path
from typing import Any

import pytest

from matrix.cells import CONNECT, Cell
from support.spark_tables import Table
from tablelog.errors import UnsupportedFeatureError

WITHOUT_LIMITS = ("4.1",)
"""The versions of Spark whose streams on Spark Connect have no limits for a batch."""


def _has_limits(cell: Cell) -> bool:
    return cell.mode != CONNECT or cell.spark not in WITHOUT_LIMITS


def test_rows_go_from_table_to_table_once(spark: Any, cell: Cell, table: Table, tmp_path: Path) -> None:
    target = Table(spark, tmp_path / "target")
    limits = {"maxFilesPerTrigger": 1} if _has_limits(cell) else {}

    def run() -> int:
        stream = spark.readStream.format("delta").options(**limits).load(table.path)
        writer = stream.selectExpr("id", "id * 10 v").writeStream.format("delta")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query = writer.start(target.path)
        query.awaitTermination()
        assert query.exception() is None
        return sum(progress.numInputRows for progress in query.recentProgress)

    for first in (0, 2):
        table.write(spark.range(first, first + 2).coalesce(1))
    assert run() == 4
    assert target.version == (1 if limits else 0), "a batch for each file, or for all"
    table.write(spark.range(4, 5))
    assert run() == 1
    assert run() == 0
    assert target.rows() == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]
    assert [row.operation for row in target.delta.history(1).collect()] == ["STREAMING UPDATE"]


def test_a_batch_function_merges(spark: Any, table: Table, tmp_path: Path) -> None:
    path = str(tmp_path / "target")
    target = Table(spark, tmp_path / "target")
    target.write(spark.sql("select 0L id, 'old' v"))
    table.write(spark.range(2))

    def merge(batch: Any, _number: int) -> None:
        from tablelog.spark import DeltaTable, enable

        found = DeltaTable.forPath(enable(batch.sparkSession), path).alias("t")
        found = found.merge(batch.alias("s"), "t.id = s.id")
        found.whenMatchedUpdate(set={"v": "'new'"}).whenNotMatchedInsert(
            values={"id": "s.id", "v": "'added'"}
        ).execute()

    writer = spark.readStream.format("delta").load(table.path).writeStream.foreachBatch(merge)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.exception() is None
    assert target.rows() == [(0, "new"), (1, "added")]


@pytest.mark.only(CONNECT)
def test_what_a_stream_does_not_do_on_connect(spark: Any, cell: Cell, table: Table) -> None:
    table.write(spark.range(1))
    if _has_limits(cell):
        spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(table.path)
        return
    with pytest.raises(UnsupportedFeatureError, match=r"maxFilesPerTrigger of a stream needs Spark 4\.2"):
        spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(table.path)
