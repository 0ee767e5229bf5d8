"""The work that is timed inside Spark, one engine a process: `python -m benchmarks.spark_work tablelog|delta`."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.worker import serve

DELTA = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "6g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        **settings,
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once all is on disk that was written before: who flushes would wait for that too."""
    os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def directory_size(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*.parquet"))


class Work:
    """One engine in one Spark. Each method does a piece of work and answers how many seconds it took."""

    def __init__(self, engine: str) -> None:
        if engine == "delta":
            self.spark = session(DELTA)
            from delta.tables import DeltaTable as Table
        else:
            from tablelog.spark import DeltaTable as Table
            from tablelog.spark import enable

            self.spark = session({})
            enable(self.spark)
        self.table: Any = Table

    def rows(self, n: int, files: int = 8) -> DataFrame:
        """The rows of every benchmark: id long, k int = id % 1000, x double, s string, ts timestamp."""
        return self.spark.range(0, n, 1, files).selectExpr(
            "id",
            "cast(id % 1000 as int) k",
            "id / 7.0D x",
            "concat('row-', id % 100003) s",
            "timestamp_seconds(1700000000 + id % 10000000) ts",
        )

    def warm(self) -> None:
        """A first small pass over everything, so that no engine pays its class loading in a measured run."""
        for format_ in ("parquet", "delta"):
            path = f"/tmp/tablelog-bench-warm-{format_}-{id(self)}"
            for _ in range(3):
                self.rows(20_000).write.format(format_).mode("overwrite").save(path)
                self.hash(path, format_)
            if format_ == "delta":
                self.table.forPath(self.spark, path).delete("id % 100 = 7")
            shutil.rmtree(path)

    def hash(self, path: str, format_: str = "delta") -> float:
        frame = self.spark.read.format(format_).load(path)
        return seconds(lambda: frame.selectExpr("count(*)", f"bit_xor(xxhash64({', '.join(frame.columns)}))").collect())

    def range_filter(self, path: str, low: int, high: int) -> float:
        def work() -> None:
            frame = self.spark.read.format("delta").load(path).where(f"id between {low} and {high}")
            assert frame.count() == high - low + 1

        return seconds(work)

    def make(self, path: str, n: int, files: int, partitions: int = 0) -> None:
        """A table for the other works to use."""
        shutil.rmtree(path, ignore_errors=True)
        self._save(self.rows(n, files), path, "delta", partitions)

    def _save(self, frame: DataFrame, path: str, format_: str, partitions: int) -> None:
        writer = frame.write
        if partitions:
            writer = frame.withColumn("p", frame.k % partitions).write.partitionBy("p")
        writer.format(format_).mode("append").save(path)

    def write(self, path: str, n: int, format_: str = "delta", partitions: int = 0) -> float:
        shutil.rmtree(path, ignore_errors=True)
        taken = seconds(lambda: self._save(self.rows(n), path, format_, partitions))
        shutil.rmtree(path)
        return taken

    def delete(self, source: str, path: str, condition: str) -> float:
        """Delete from a fresh copy of `source`."""
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        taken = seconds(lambda: self.table.forPath(self.spark, path).delete(condition))
        shutil.rmtree(path)
        return taken

    def rewrite(self, source: str, path: str, condition: str) -> float:
        """The limit of a delete: read, filter and write the same files as plain Parquet."""
        shutil.rmtree(path, ignore_errors=True)
        frame = self.spark.read.parquet(*map(str, sorted(Path(source).glob("*.parquet"))))
        taken = seconds(lambda: frame.where(f"not ({condition})").write.parquet(path))
        shutil.rmtree(path)
        return taken

    def appends(self, path: str, times: int) -> float:
        """`times` appends of ten rows, one after another, to one new table."""
        shutil.rmtree(path, ignore_errors=True)
        rows = [(i, i / 3, f"row {i}") for i in range(10)]

        def work() -> None:
            for _ in range(times):
                frame = self.spark.createDataFrame(rows, "id long, x double, s string")
                frame.write.format("delta").mode("append").save(path)

        taken = seconds(work)
        assert self.spark.read.format("delta").load(path).count() == 10 * times
        shutil.rmtree(path)
        return taken


if __name__ == "__main__":
    serve(lambda: Work(sys.argv[1]))
