"""The commands that are timed inside Spark, an engine a process: `python -m benchmarks.command_work tablelog|delta`."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.spark_work import Work, seconds
from benchmarks.worker import serve


class CommandWork(Work):
    """Each command is run on a fresh copy of a table, and answers how many seconds it took."""

    def warm(self) -> None:
        """A first small pass over the commands as well, a few times: a driver's code is slow while the JVM is new."""
        super().warm()
        small = f"/tmp/tablelog-bench-warm-commands-{id(self)}"
        self.make_many(small, 8)
        for _ in range(5):
            for name in ("delete", "update", "merge_small"):
                self.command(name, small, f"{small}-copy")
        shutil.rmtree(small)

    def make_vectors(self, path: str, n: int, files: int, condition: str = "") -> None:
        """A table whose commands use deletion vectors, with some rows deleted by them already."""
        shutil.rmtree(path, ignore_errors=True)
        self.rows(n, files).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
        if condition:
            self.table.forPath(self.spark, path).delete(condition)

    def make_many(self, path: str, files: int) -> None:
        """A table of `files` small files, by as few commits as that takes."""
        shutil.rmtree(path, ignore_errors=True)
        self.rows(files * 1000, files).write.format("delta").save(path)

    def make_parquet(self, path: str, files: int) -> None:
        """A Parquet directory of `files` small files."""
        shutil.rmtree(path, ignore_errors=True)
        self.rows(1000, 1).write.parquet(path)
        (first,) = Path(path).glob("*.parquet")
        data = first.read_bytes()
        for number in range(1, files):
            (Path(path) / f"part-{number:05}.parquet").write_bytes(data)
        for sidecar in Path(path).glob(".*.crc"):
            sidecar.unlink()

    def make_litter(self, path: str, files: int) -> None:
        """A small table with `files` files beside it that no version knows, old enough to go."""
        shutil.rmtree(path, ignore_errors=True)
        self.rows(1000, 1).write.format("delta").save(path)
        for number in range(files):
            directory = Path(path) / f"d{number // 1000:03}"
            directory.mkdir(exist_ok=True)
            file = directory / f"part-{number:06}.parquet"
            file.touch()
            os.utime(file, (1_600_000_000, 1_600_000_000))

    def command(self, name: str, source: str, path: str, settings: dict[str, str] | None = None) -> float:
        """Run one of the commands below on a copy of `source`, which isn't part of the time."""
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(source, path)
        run: Callable[[str], object] = getattr(self, f"_{name}")
        for key, value in (settings or {}).items():
            self.spark.conf.set(key, value)
        try:
            return seconds(lambda: run(path))
        finally:
            for key in settings or {}:
                self.spark.conf.unset(key)
            shutil.rmtree(path)

    def rewrite_updated(self, source: str, path: str, condition: str) -> float:
        """The limit of an update: read, change and write the same files as plain Parquet."""
        shutil.rmtree(path, ignore_errors=True)
        frame = self.spark.read.parquet(*map(str, sorted(Path(source).glob("*.parquet"))))
        changed = frame.selectExpr("id", "k", f"if({condition}, x + 1, x) x", "s", "ts")
        taken = seconds(lambda: changed.write.parquet(path))
        shutil.rmtree(path)
        return taken

    def _delta(self, path: str) -> Any:
        return self.table.forPath(self.spark, path)

    def _delete(self, path: str) -> None:
        self._delta(path).delete("id % 100 = 7")

    def _update(self, path: str) -> None:
        self._delta(path).update("id % 100 = 7", {"x": "x + 1"})

    def _changes(self, n: int, of: int) -> DataFrame:
        """`n` rows, every second of which is new to a table of `of` rows."""
        step = max(1, of // n)
        return self.spark.range(n).selectExpr(
            f"if(id % 2 = 0, id * {step}, {of} + id) id",
            "1 k",
            "-1.0D x",
            "'changed' s",
            "timestamp_seconds(1700000000) ts",
        )

    def _upsert(self, path: str, changes: DataFrame) -> None:
        merge = self._delta(path).alias("t").merge(changes.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def _merge(self, path: str) -> None:
        self._upsert(path, self._changes(500_000, 10_000_000))

    def _merge_insert(self, path: str) -> None:
        merge = self._delta(path).alias("t").merge(self._changes(500_000, 10_000_000).alias("s"), "t.id = s.id")
        merge.whenNotMatchedInsertAll().execute()

    def _merge_small(self, path: str) -> None:
        self._upsert(path, self._changes(10, 100_000))

    def _optimize(self, path: str) -> None:
        self._delta(path).optimize().executeCompaction()

    def _zorder(self, path: str) -> None:
        self._delta(path).optimize().executeZOrderBy("k", "s")

    def _vacuum(self, path: str) -> None:
        self._delta(path).vacuum(0)

    def _convert(self, path: str) -> None:
        self.table.convertToDelta(self.spark, f"parquet.`{path}`")


if __name__ == "__main__":
    serve(lambda: CommandWork(sys.argv[1]))
