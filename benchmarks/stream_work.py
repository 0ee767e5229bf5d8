"""The work by streaming queries, an engine a process: `python -m benchmarks.stream_work tablelog|delta`."""

import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.spark_work import seconds
from benchmarks.sql_work import SqlWork
from benchmarks.worker import serve

_ROWS = 10
_POLL_SECONDS = 0.001
_LONGEST_WAIT = 60.0
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


class StreamWork(SqlWork):
    """One engine in one Spark, with sources whose files and commits are written without Spark."""

    def make_source(self, path: str, commits: int, files: int = 1) -> None:
        """A table of `commits` versions after the first one, each of which adds `files` files of ten rows."""
        from tablelog.core import DeltaLog, Metadata, Operation

        shutil.rmtree(path, ignore_errors=True)
        transaction = DeltaLog.for_path(path).transaction()
        transaction.set_metadata(Metadata("a source", _SCHEMA, (), {}))
        transaction.commit([], Operation("CREATE TABLE"))
        for number in range(commits):
            self.add_files(path, number * files, files)

    def add_files(self, path: str, first: int, files: int) -> None:
        """One commit that adds `files` files; all are links to one file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from tablelog.core import AddFile, DeltaLog, Operation

        Path(path).mkdir(exist_ok=True)
        one = Path(path) / "_one.parquet"
        if not one.exists():
            pq.write_table(pa.table({"id": list(range(_ROWS))}), one)
        adds = []
        for number in range(first, first + files):
            os.link(one, Path(path) / f"{number}.parquet")
            stats = f'{{"numRecords":{_ROWS}}}'
            adds.append(AddFile(f"{number}.parquet", {}, one.stat().st_size, 1_700_000_000_000, True, stats))
        DeltaLog.for_path(path).transaction().commit(adds, Operation("WRITE", {"mode": "Append", "partitionBy": []}))

    def make_changes(self, path: str, updates: int) -> None:
        """A table with a change data feed and so many updates of a tenth of its 10,000 rows."""
        shutil.rmtree(path, ignore_errors=True)
        writer = self.rows(10_000, 2).write.format("delta").option("delta.enableChangeDataFeed", "true")
        writer.save(path)
        for number in range(updates):
            self.table.forPath(self.spark, path).update(f"id % 10 = {number % 10}", {"x": "x + 1"})

    def drain(self, source: str, path: str, rows: int, options: dict[str, Any], sink: str = "noop") -> float:
        """Read all of `source` as a stream into a new table at `path`, or into nothing; check the number of rows."""
        shutil.rmtree(path, ignore_errors=True)
        query: Any = None

        def work() -> None:
            nonlocal query
            query = self._writer(source, path, options, sink).trigger(availableNow=True).start(f"{path}/table")
            query.awaitTermination()

        taken = seconds(work)
        read = sum(progress["numInputRows"] for progress in query.recentProgress)
        assert read == rows, f"{read} rows, not {rows}"
        shutil.rmtree(path)
        return taken

    def latency(self, source: str, path: str, commits: int) -> float:
        """The median time from the end of a commit to the source to the sink's commit, of a query that waits for it."""
        shutil.rmtree(path, ignore_errors=True)
        self.make_source(source, 1)
        query = self._writer(source, path, {}, "delta").trigger(processingTime="0 seconds").start(f"{path}/table")
        taken = []
        try:
            self._waited(path, 0)
            for number in range(1, commits + 4):
                self.add_files(source, number, 1)
                taken.append(self._waited(path, number))
        finally:
            query.stop()
        shutil.rmtree(path)
        return statistics.median(taken[3:])

    def _waited(self, path: str, version: int) -> float:
        """How long it takes until the table of a query has a version."""
        commit, start = self._commit_file(path, version), time.perf_counter()
        while not commit.exists():
            assert time.perf_counter() - start < _LONGEST_WAIT, f"{commit} isn't written"
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - start

    def _commit_file(self, path: str, version: int) -> Path:
        return Path(path) / "table" / "_delta_log" / f"{version:020d}.json"

    def _writer(self, source: str, path: str, options: dict[str, Any], sink: str) -> Any:
        stream: DataFrame = self.spark.readStream.format("delta").options(**options).load(source)
        if "readChangeFeed" in options:
            stream = stream.drop("_commit_version", "_commit_timestamp").withColumnRenamed("_change_type", "kind")
        # Spark keeps the progress of the last 100 batches by default.
        self.spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
        return stream.writeStream.format(sink).option("checkpointLocation", f"{path}/checkpoint")

    def memory(self, source: str, path: str, batches: int, samples: int) -> list[tuple[float, ...]]:
        """Memory during `batches` batches of one query, `samples` times.

        Each sample has the number of batches, and in MiB: Python's memory, Java's heap in use, Java's memory.
        """
        shutil.rmtree(path, ignore_errors=True)
        self.make_source(source, batches)
        options = {"maxFilesPerTrigger": 1, "startingVersion": 0}
        writer = self._writer(source, path, options, "delta")
        self.spark.conf.unset("spark.sql.streaming.numRecentProgressUpdates")
        query = writer.trigger(availableNow=True).start(f"{path}/table")
        measured = []
        for sample in range(1, samples + 1):
            version = sample * batches // samples - 1
            while query.isActive and not self._commit_file(path, version).exists():
                time.sleep(_POLL_SECONDS)
            measured.append((version + 1, *self._memory()))
        query.awaitTermination()
        shutil.rmtree(path)
        return measured

    def _memory(self) -> tuple[float, float, float]:
        jvm: Any = self.spark._jvm  # type: ignore[attr-defined]
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
        return _resident("self"), heap, _resident(jvm.java.lang.ProcessHandle.current().pid())


def _resident(pid: int | str) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    serve(lambda: StreamWork(sys.argv[1]))
