"""Streams that read and write Delta tables on Spark Connect."""

from pathlib import Path
from typing import Any

import pytest

from support.spark_tables import Table


@pytest.fixture
def target(spark: Any, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "target")


def run(stream: Any, target: Table, checkpoint: Path, **options: Any) -> int:
    """Write everything that is new; returns the number of rows that the query read."""
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).options(**options)
    query = writer.trigger(availableNow=True).start(target.path)
    assert query.awaitTermination(120)
    assert query.exception() is None
    print([p.prettyJson for p in query.recentProgress])
    return sum(progress["numInputRows"] or 0 for progress in query.recentProgress)


def test_rows_go_from_table_to_table_once(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    def copy() -> int:
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(table.path)
        return run(stream.selectExpr("id", "id * 10 v"), target, tmp_path / "checkpoint")

    for first in (0, 2):
        table.write(spark.range(first, first + 2).coalesce(1))
    assert copy() == 4
    assert target.version == 1, "a batch for each file"
    table.write(spark.range(4, 5))
    assert copy() == 1
    assert copy() == 0
    assert target.rows() == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]
    assert [row.operation for row in target.delta.history(1).collect()] == ["STREAMING UPDATE"]
