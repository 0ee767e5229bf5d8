"""Runs in the peer's own environment: delta-spark, told by JSON lines what to do."""

import json
import sys
from pathlib import Path
from typing import Any

import sql_outcomes
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from benchmarks.worker import serve

from support.sessions import DELTA_SPARK, session_builder


def session() -> SparkSession:
    settings = {
        "spark.driver.memory": "2g",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # its VACUUM takes 40 s with 10,000
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    return session_builder("local[2]", {**settings, **DELTA_SPARK}).getOrCreate()


class Peer:
    """What a test may ask of delta-spark."""

    def __init__(self) -> None:
        self.spark = session()

    def read(self, path: str, out: str, version: int | None = None) -> int:
        """Write the rows of a version as one Parquet directory that the test compares with."""
        reader = self.spark.read.format("delta")
        frame = (reader if version is None else reader.option("versionAsOf", version)).load(path)
        frame.coalesce(1).write.mode("overwrite").parquet(out)
        return frame.count()

    def append(self, path: str, rows: str) -> None:
        """Append the rows of a Parquet directory."""
        self.spark.read.parquet(rows).write.format("delta").mode("append").save(path)

    def delete(self, path: str, condition: str) -> None:
        DeltaTable.forPath(self.spark, path).delete(condition)

    def sql(self, text: str) -> list[dict[str, Any]]:
        return [json.loads(row) for row in self.spark.sql(text).toJSON().collect()]

    def history(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(row) for row in DeltaTable.forPath(self.spark, path).history().toJSON().collect()]

    def detail(self, path: str) -> dict[str, Any]:
        return dict(json.loads(DeltaTable.forPath(self.spark, path).detail().toJSON().collect()[0]))

    def checkpoint(self, path: str) -> None:
        """Let delta-spark write a checkpoint of the newest version."""
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, path)
        none = self.spark._jvm.scala.Option.empty()
        log.checkpoint(log.update(False, none, none), none)

    def statements(self, statements: list[str], root: str, tables: dict[str, str]) -> list[dict[str, Any]]:
        return sql_outcomes.run(self.spark, statements, root, tables)

    def cross_read(self, path: str) -> dict[str, Any]:
        return sql_outcomes.cross_read(self.spark, path)

    def run(self, code: str, path: str) -> Any:
        """Run a few lines of PySpark that the test wrote; `result` is answered."""
        scope: dict[str, Any] = {"spark": self.spark, "path": path, "DeltaTable": DeltaTable}
        exec(code, scope)
        return scope.get("result")


if __name__ == "__main__":
    serve(Peer)
