"""The whole work of a table through Spark, at any URL: the same steps for every store and every route."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.slices import noted_slices, slices_of
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import deletion_vectors
from tablelog.core.protocol.paths import decode
from tablelog.errors import ConstraintViolationError
from tablelog.logstore.data_files import DataFiles
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, SNAPSHOT_PARTITIONS, WRITE_ROUTE
from tablelog.spark import DeltaTable
from tablelog.spark import conf as session_conf


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Keys of the session for a while."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def by_route(route: str) -> dict[str, str]:
    """The keys that force reads and writes to go by one route."""
    return {READ_ROUTE.key: route, WRITE_ROUTE.key: route}


class Work:
    """A table at a URL, reached by `conf`. With `by_job` its rows are written by Spark's tasks, else by the driver."""

    def __init__(self, spark: SparkSession, url: str, conf: Mapping[str, str], *, by_job: bool) -> None:
        self.spark = spark
        self.url = url
        self.conf = conf
        self.by_job = by_job

    def frame(self, start: int, end: int) -> DataFrame:
        rows = self.spark.range(start, end, 1, 2)
        rows = rows.repartition(2) if self.by_job else rows
        return rows.select("id", F.concat(F.lit("p/ö %"), F.col("id") % 2).alias("p"), (F.col("id") * 1.5).alias("x"))

    def write(self, frame: DataFrame, mode: str = "append", **options: str) -> None:
        frame.write.format("delta").mode(mode).partitionBy("p").options(**options).save(self.url)

    def read(self, **options: str) -> DataFrame:
        return self.spark.read.format("delta").options(**options).load(self.url)

    def ids(self, **options: str) -> list[int]:
        rows = self.read(**options).collect()
        assert all(row.p == f"p/ö %{row.id % 2}" and row.x == row.id * 1.5 for row in rows)
        return sorted(row.id for row in rows)

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.url)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.url, conf=self.conf)

    def files(self) -> set[str]:
        """All that lies at the URL but the log."""
        return {name for name in self._files.list("") if not name.startswith("_delta_log/")}

    def text(self, name: str) -> str:
        """What a file there holds."""
        with self._files.open(name) as stream:
            return stream.read().decode()

    def current(self) -> set[str]:
        """The names of the newest version's data files."""
        return {decode(add.path) for add in self.log.snapshot().add_files()}

    @property
    def _files(self) -> DataFiles:
        return DataFiles.of(self.log.table, self.conf, {})

    def nothing_is_left_behind(self) -> None:
        """Every file of data or vectors at the URL was named by some commit."""
        log, there = self.log, self.files()
        named: set[str] = set()
        for version in range(log.snapshot().version + 1):
            for add in log.snapshot(version).add_files():
                named.add(decode(add.path))
                if add.deletion_vector is not None:
                    named.add(deletion_vectors.path_of(add.deletion_vector))
        assert not there - named, sorted(there - named)[:5]


def whole_work(spark: SparkSession, url: str, conf: Mapping[str, str], *, by_job: bool) -> None:
    """Create, append, read, time travel, overwrite by partition and by condition, delete, rewrite itself, look."""
    work = Work(spark, url, conf, by_job=by_job)
    assert not DeltaTable.isDeltaTable(spark, url)
    work.write(work.frame(0, 10), "error")
    work.write(work.frame(10, 20))
    assert work.ids() == list(range(20))
    assert work.ids(versionAsOf="0") == list(range(10))
    assert work.read().where("p = 'p/ö %1' and id > 15").selectExpr("sum(id)").first() == (36,)
    assert work.read().selectExpr("count(*)").first() == (20,)

    work.delta.delete("p = 'p/ö %1' and id between 3 and 6")
    work.delta.delete(F.col("x") >= 28.5)
    assert work.ids() == [0, 1, 2, 4, 6, *range(7, 19)]
    work.write(work.frame(100, 104).where("id % 2 = 0"), "overwrite", partitionOverwriteMode="dynamic")
    assert work.ids() == [1, 7, 9, 11, 13, 15, 17, 100, 102]
    work.write(work.frame(11, 12), "overwrite", replaceWhere="id between 9 and 15")
    assert work.ids() == [1, 7, 11, 17, 100, 102]
    work.write(work.frame(201, 202), "overwrite", replaceWhere="p = 'p/ö %1'")
    assert work.ids() == [100, 102, 201]
    read = work.read()
    work.write(work.frame(300, 302))
    work.write(read.where("id <> 102"), "overwrite")  # holds what came after the frame was made
    assert work.ids() == [100, 201, 300, 301]
    work.delta.delete("p = 'p/ö %1'")
    assert work.ids() == [100, 300]
    assert work.ids(versionAsOf="1") == list(range(20))
    assert [row.operation for row in work.delta.history(2).collect()] == ["DELETE", "WRITE"]
    work.nothing_is_left_behind()


def failing_work(spark: SparkSession, url: str, conf: Mapping[str, str]) -> None:
    """A write that fails when some of its files are there leaves none of them, and no commit."""
    work = Work(spark, url, conf, by_job=True)
    work.write(work.frame(0, 4))
    bad = F.when(F.col("id") < 19, F.col("id")).otherwise(F.raise_error(F.lit("a user's own error")))
    with pytest.raises(Exception, match="a user's own error"):
        work.write(work.frame(0, 20).withColumn("id", bad))
    with pytest.raises(ConstraintViolationError):
        work.write(work.frame(0, 20), "overwrite", replaceWhere="id < 10")
    assert work.ids() == [0, 1, 2, 3]
    assert work.log.snapshot().version == 0
    work.nothing_is_left_behind()


def concurrent_work(spark: SparkSession, url: str, conf: Mapping[str, str], *, writers: int = 2, each: int = 3) -> None:
    """Writers on one table at once: each of their appends is there once."""
    work = Work(spark, url, conf, by_job=False)
    work.write(work.frame(0, 1))

    def append(number: int) -> None:
        own = Work(spark, url, conf, by_job=number % 2 == 0)
        for i in range(each):
            start = 1 + number * each + i
            own.write(own.frame(start, start + 1))

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(append, range(writers)))
    assert work.ids() == list(range(1 + writers * each))
    assert work.log.snapshot().version == writers * each
    work.nothing_is_left_behind()


MOVED = {"id": "id + 100", "x": "(id + 100) * 1.5"}
MOVED_IN_MERGE = {"id": "t.id + 100", "x": "(t.id + 100) * 1.5"}


def command_work(spark: SparkSession, url: str, conf: Mapping[str, str]) -> None:
    """Every other command, by rewriting files and by deletion vectors; what each leaves is read back."""
    work = Work(spark, url, conf, by_job=False)
    work.write(work.frame(0, 6), **{"delta.enableChangeDataFeed": "true"})
    work.write(work.frame(6, 12))
    table = work.delta
    table.update("id = 3", MOVED)
    assert merged(work) == (5, 1, 2, 2)  # 11 moves, 0 and 10 go, 12 and 13 come
    changes = work.read(readChangeFeed="true", startingVersion="2").groupBy("_change_type").count()
    told = {"update_preimage": 2, "update_postimage": 2, "delete": 2, "insert": 2}
    assert {row[0]: row[1] for row in changes.collect()} == told
    ids = [1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 103, 111]
    assert work.ids() == ids

    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("x")
    assert table.detail().first()["numFiles"] == 2
    table.generate("symlink_format_manifest")
    manifests = [name for name in work.files() if name.startswith("_symlink_format_manifest/")]
    lines = {line for name in manifests for line in work.text(name).splitlines()}
    assert {line.rpartition("/")[2] for line in lines} == {Path(name).name for name in work.current()}
    assert len(manifests) == 2

    clone = Work(spark, f"{url} cloned", conf, by_job=False)
    table.clone(clone.url, isShallow=True).delete("id = 1")
    assert clone.ids() == ids[1:]
    assert work.ids() == ids
    whole = work.log.snapshot().version

    table.setProperties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 1")
    table.update("id = 2", MOVED)
    assert merged(work) == (4, 1, 1, 2)  # 12 moves, 13 goes, 10 and 11 come
    after = [*range(4, 12), 102, 103, 111, 112]
    assert work.ids() == after
    assert any(add.deletion_vector for add in work.log.snapshot().add_files())
    table.reorg()
    assert not any(add.deletion_vector for add in work.log.snapshot().add_files())
    assert work.ids() == after
    table.restoreToVersion(whole)
    with settings(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        table.vacuum(0)
    assert {name for name in work.files() if not name.startswith("_symlink_format_manifest/")} == work.current()
    assert work.ids() == ids
    assert table.history(1).first()["operation"] == "VACUUM END"

    plain = DataFiles.of(f"{url} plain", conf, {})
    for day in (1, 2):
        stream = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [day, day + 10]}), stream)
        plain.write(f"day={day}/some rows.parquet", stream.getvalue().to_pybytes())
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{url} plain`", "day int")
    converted.delete("day = 1 and id = 11")
    assert sorted(tuple(row) for row in converted.toDF().collect()) == [(1, 1), (2, 2), (12, 2)]


def merged(work: Work) -> tuple[int, ...]:
    """Merge the ids 10 to 13: of those that match 10 and 13 go and the others move; 0 goes, which none matches.

    How many rows were affected, updated, deleted and inserted.
    """
    clauses = work.delta.alias("t").merge(work.frame(10, 14).alias("s"), "t.id = s.id")
    clauses = clauses.whenMatchedDelete("s.id in (10, 13)").whenMatchedUpdate(set=MOVED_IN_MERGE)
    row = clauses.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.id = 0").execute().first()
    assert row is not None
    return tuple(row)


def sliced_work(spark: SparkSession, url: str, conf: Mapping[str, str]) -> None:
    """Commands that search and change very many files of a large log; here, a slice has three."""
    work = Work(spark, url, conf, by_job=False)
    for start in range(0, 24, 4):
        work.write(work.frame(start, start + 4), **({} if start else {"delta.enableDeletionVectors": "true"}))
    work.log.checkpoint()
    with _in_slices(3, spark) as slices:
        work.delta.delete("cast(x as string) in ('0.0', '6.0', '12.0', '13.5', '18.0', '24.0', '30.0')")
        assert len(slices) > 1
        left = [i for i in range(24) if i not in (0, 4, 8, 9, 12, 16, 20)]
        assert work.ids() == left
        slices.clear()
        session_conf.forget()  # a read by Arrow has left the columns of all files on the driver
        source = work.frame(0, 40).where("id not in (1, 2, 17)").alias("s")
        merge = work.delta.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate("s.id % 4 = 3", set=MOVED_IN_MERGE)
        merge.whenNotMatchedInsertAll("s.id > 37").whenNotMatchedBySourceDelete().execute()
        assert len(slices) > 1
    moved = [i + 100 if i % 4 == 3 else i for i in left if i not in (1, 2, 17)]
    assert work.ids() == sorted([*moved, 38, 39])
    assert work.ids(versionAsOf="5") == list(range(24))
    work.nothing_is_left_behind()


@contextmanager
def _in_slices(files: int, spark: SparkSession) -> Iterator[list[tuple[int, int]]]:
    """Every log is large, and a slice has so many files; gives the slices."""
    large = {LOG_DRIVER_BYTES.key: "0", SNAPSHOT_PARTITIONS.key: "2"}
    with pytest.MonkeyPatch.context() as patched, settings(spark, large):
        slices_of(patched, files)
        session_conf.forget()
        yield noted_slices(patched)
    session_conf.forget()


STEPS: dict[str, Any] = {
    "by tasks": lambda *at: whole_work(*at, by_job=True),
    "by the driver": lambda *at: whole_work(*at, by_job=False),
    "failing": failing_work,
    "concurrent": concurrent_work,
    "commands": command_work,
    "in slices": sliced_work,
}
