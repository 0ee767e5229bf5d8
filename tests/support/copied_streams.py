"""Three streams over one table: its rows, its changes, and its rows by `foreachBatch` with MERGE."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tablelog.core import AddFile
from tablelog.core.protocol.paths import decode
from tablelog.logstore.data_files import DataFiles
from tablelog.spark import DeltaTable, conf


def same(column: Column) -> Column:
    return column


def copied_by_streams(
    spark: SparkSession, url: str, checkpoints: Path, passed: Callable[[Column], Column] = same
) -> None:
    """Each target has each row or change once, after two runs of each stream. Each id goes through `passed`."""
    spark.range(0, 8, 1, 2).repartition(2).write.format("delta").option("delta.enableChangeDataFeed", "true").save(url)
    spark.range(0, 1).where("id < 0").write.format("delta").save(f"{url} merged")
    _run(spark, url, checkpoints, passed)
    spark.range(8, 16, 1, 2).repartition(2).write.format("delta").mode("append").save(url)
    DeltaTable.forPath(spark, url).update("id = 9", {"id": "id + 100"})
    _run(spark, url, checkpoints, passed)
    ids = [*range(9), *range(10, 16), 109]
    assert _ids(spark, url) == ids
    assert _ids(spark, f"{url} rows") == sorted([*range(16), *_rewritten(spark, url)])
    assert set(_ids(spark, f"{url} merged")) == {*range(16), 109}
    assert len(_ids(spark, f"{url} merged")) == 17
    changes = spark.read.format("delta").load(f"{url} changes").groupBy("_change_type").count().collect()
    assert {row[0]: row[1] for row in changes} == {"insert": 16, "update_preimage": 1, "update_postimage": 1}


def _run(spark: SparkSession, url: str, checkpoints: Path, passed: Callable[[Column], Column]) -> None:
    def merge(batch: DataFrame, number: int) -> None:
        target = DeltaTable.forPath(batch.sparkSession, f"{url} merged").alias("t")
        rows = batch.select(passed(F.col("id")).alias("id")).distinct()
        target.merge(rows.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()

    feeds: dict[str, dict[str, str]] = {
        "rows": {"ignoreChanges": "true"},
        "changes": {"readChangeFeed": "true", "startingVersion": "0"},
        "merged": {"ignoreChanges": "true"},
    }
    for name, options in feeds.items():
        stream = spark.readStream.format("delta").options(**options).load(url)
        kept = ["_change_type"] if name == "changes" else []
        rows = stream.select(*kept, (F.col("id") if name == "merged" else passed(F.col("id"))).alias("id"))
        writer: Any = rows.writeStream.option("checkpointLocation", str(checkpoints / name)).trigger(availableNow=True)
        writer = writer.foreachBatch(merge) if name == "merged" else writer.format("delta")
        query = writer.start() if name == "merged" else writer.start(f"{url} {name}")
        query.awaitTermination()


def _ids(spark: SparkSession, url: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(url).select("id").collect())


def _rewritten(spark: SparkSession, url: str) -> list[int]:
    """The rows that `ignoreChanges` reads again: those of the file that the update rewrote."""
    log = conf.delta_log(url, conf.session_conf(spark, url))
    (added,) = (action for action in log.reader.commit(2) if isinstance(action, AddFile))
    with DataFiles.of(log.table, log.conf, {}).open(decode(added.path)) as file:
        ids: list[int] = pq.read_table(file, columns=["id"]).column("id").to_pylist()
    return ids
