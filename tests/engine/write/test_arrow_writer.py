"""Data files that Python workers write: rows, values and statistics as of Spark's own, and nothing left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tablelog.engine.storage import access_errors
from tablelog.engine.write.routes import arrow as writing
from tablelog.engine.write.writer import WriteOptions
from tablelog.errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError
from tablelog.logstore.data_files import DataFiles
from tablelog.logstore.s3.settings import EXPIRED
from tablelog.settings.declarations import WRITE_ROUTE

from . import test_partitions
from .conftest import NATIVE, SMALL, Table, stats
from .test_files import ALL_TYPES


@pytest.fixture(autouse=True)
def _forced(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(WRITE_ROUTE.key, "arrow")
    yield
    spark.conf.unset(WRITE_ROUTE.key)


def natively(table: Table, *args: Any, **kwargs: Any) -> Any:
    table.spark.conf.set(WRITE_ROUTE.key, "native")
    try:
        return table.write(*args, **kwargs)
    finally:
        table.spark.conf.set(WRITE_ROUTE.key, "arrow")


@pytest.mark.parametrize("options", [NATIVE, SMALL], ids=["workers", "driver"])
def test_rows_of_every_type_come_back(table: Table, options: WriteOptions) -> None:
    df = table.spark.sql(ALL_TYPES)
    adds = table.write(df, options=options)
    assert table.rows() == sorted(df.collect(), key=repr)
    assert {add.path.partition("-")[0] for add in adds} == {"data"}
    assert sorted(add.path for add in adds) == table.files()
    assert all(os.path.getsize(table.path / add.path) == add.size for add in adds)


def test_the_files_are_like_sparks_own(tables: Any) -> None:
    ours, theirs = tables("arrow"), tables("native")
    df = ours.spark.sql(ALL_TYPES.replace("1, 2)", "1, 1)"))
    (one,) = ours.write(df, options=NATIVE)
    (other,) = natively(theirs, df, options=NATIVE)
    assert stats(one) == stats(other)
    found = []
    for path in (ours.path / one.path, theirs.path / other.path):
        metadata = pq.read_metadata(path)
        columns = [metadata.schema.column(i) for i in range(len(metadata.schema))]
        marks = {key for key in metadata.metadata if key.startswith(b"org.apache.spark")}
        found.append((marks, [(c.path, c.physical_type, str(c.logical_type), c.length) for c in columns]))
    assert found[0] == found[1]


@pytest.mark.slow
def test_partition_values_of_every_type(tables: Any) -> None:
    test_partitions.test_values_of_every_type(tables, NATIVE, "Europe/Berlin")


@pytest.mark.slow
def test_several_partition_columns_and_what_is_refused(tables: Any) -> None:
    test_partitions.test_several_columns_with_nulls(tables("a"), NATIVE)
    test_partitions.test_bytes_that_are_no_text_are_refused(tables("b"), NATIVE, "X'FF', X'FE'")
    text = "cast(X'FF' as string), cast(X'FE' as string)"
    test_partitions.test_bytes_that_are_no_text_are_refused(tables("d"), NATIVE, text)
    test_partitions.test_no_value_turns_into_null_by_its_spelling(tables("e"), NATIVE)
    test_partitions.test_an_empty_text_is_a_null_where_none_may_be(tables("c"), NATIVE)


def test_a_bound_is_not_known_where_there_is_a_number_that_has_no_order(table: Table) -> None:
    df = table.spark.sql("select if(id = 3, cast('NaN' as double), id) x, cast(id as double) y, id z from range(9)")
    (add,) = table.write(df.coalesce(1), options=NATIVE)
    assert stats(add)["minValues"] == {"y": 0.0, "z": 0}
    assert stats(add)["maxValues"] == {"y": 8.0, "z": 8}
    assert table.read().where("x > 100").count() == 1


def test_a_later_row_group_with_nan_starts_a_file(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_ROW_GROUP_BYTES", 1)
    table.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    try:
        df = table.spark.sql("select if(id = 25, cast('NaN' as double), id) x, id z from range(0, 40, 1, 1)")
        adds = table.write(df, options=NATIVE)
    finally:
        table.spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert [stats(add)["numRecords"] for add in adds] == [20, 20]
    assert [stats(add)["minValues"] for add in adds] == [{"x": 0.0, "z": 0}, {"z": 20}]
    assert pq.read_metadata(table.path / adds[0].path).num_row_groups == 2
    assert table.read().where("x > 100").count() == 1


def test_size_and_compression_of_files(table: Table) -> None:
    options = WriteOptions(compression="zstd", max_records_per_file=7, small_frames=False)
    df = table.spark.range(0, 20, 1, 1).withColumn("p", F.col("id") % 2)
    adds = table.write(df, "p", options=options)
    assert sorted(stats(add)["numRecords"] for add in adds) == [3, 3, 7, 7]
    assert {add.path.split("/")[1] for add in adds} == {"p=0", "p=1"}
    for add in adds:
        assert pq.read_metadata(table.path / add.path).row_group(0).column(0).compression == "ZSTD"
    with pytest.raises(UnsupportedEnvironmentError, match="don't support the compression lzo"):
        table.write(df, "p", options=WriteOptions(compression="lzo", small_frames=False))


def test_types_that_arrow_changes_are_refused(table: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="Arrow can't represent"):
        table.write(table.spark.sql("select parse_json('1') as v"), options=NATIVE)


def test_a_failing_job_leaves_nothing(table: Table) -> None:
    bad = F.when(F.col("id") < 9, F.col("id")).otherwise(F.raise_error(F.lit("a user's own error")))
    df = table.spark.range(0, 10, 1, 2).select(bad.alias("id"), (F.col("id") % 2).alias("p"))
    with pytest.raises(PySparkException, match="a user's own error"):
        table.write(df, "p", options=NATIVE)
    assert os.listdir(table.path) == []


def test_what_a_lost_attempt_left_goes_with_one_listing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    listing = DataFiles.list

    def with_a_stranger(self: DataFiles, below: str) -> list[str]:
        listed.append(below)
        self.write(f"{below}/part-00000-of-a-lost-attempt.parquet", b"PAR1")
        return listing(self, below)

    monkeypatch.setattr(DataFiles, "list", with_a_stranger)
    adds = table.write(table.spark.range(0, 10, 1, 2), options=NATIVE)
    assert sorted(add.path for add in adds) == table.files()
    assert len(listed) == 1
    table.write(table.spark.range(3), options=SMALL)  # the driver knows what it wrote
    assert len(listed) == 1


def a_batch() -> pa.RecordBatch:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    return pa.record_batch([pa.array([1, 2, 3]), pa.array(["a", "a", None])], schema=schema)


def a_plan(directory: Path, implementation: str) -> dict[str, Any]:
    """What a task is told about a write of such batches below `out`."""
    return {
        "implementation": implementation,
        "options": {"auto_mkdir": True},
        "expired": EXPIRED,
        "refusal": access_errors.refusal_in_task(),
        "remedy": "",
        "shown": "store://out",
        "directory": str(directory / "out"),
        "schema": a_batch().schema,
        "partition_columns": ["p"],
        "data_columns": ["id"],
        "leaves": {"id": ["id"]},
        "limit": 0,
        "null": "NULL",
        "suffix": ".parquet",
        "row_group_bytes": 1,
        "marks": {"k": "v"},
        "parquet": {},
    }


class Expiring(LocalFileSystem):
    """A file system whose credentials have expired until they are taken again."""

    renewed: ClassVar[int] = 0

    def put_file(self, path: str, target: str, **kwargs: Any) -> Any:
        if not self.renewed:
            reply: Any = Exception("the reply")
            reply.response = {"Error": {"Code": "InvalidToken"}}
            raise OSError(22, "The provided token is malformed or otherwise invalid.") from reply  # as s3fs does
        return super().put_file(path, target, **kwargs)

    def connect(self, *, refresh: bool) -> None:
        Expiring.renewed += refresh


def test_expired_credentials_are_taken_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: 4))
    task = writing._task(a_plan(tmp_path, f"{__name__}:Expiring"))
    assert sum(found.num_rows for found in task(iter([a_batch()]))) == 2
    assert Expiring.renewed == 1


def test_a_full_disk_of_an_executor_is_told_on_one_line(tmp_path: Path) -> None:
    """A limit on the size of files fails a write as a full disk does; nothing is left on the disk."""
    from pyspark import cloudpickle

    (tmp_path / "scratch").mkdir()
    plan = {**a_plan(tmp_path, "fsspec.implementations.local:LocalFileSystem"), "partition_columns": []}
    plan |= {"schema": pa.schema([("id", pa.int64())]), "parquet": {"compression": "none", "use_dictionary": False}}
    batch = pa.record_batch({"id": pa.array(range(100_000), pa.int64())})
    target = tmp_path / "task"
    target.write_bytes(cloudpickle.dumps((writing._task(plan), batch)))  # type: ignore[no-untyped-call]
    program = (
        "import pickle, pyspark, resource, signal\n"
        "pyspark.TaskContext.get = lambda: type('Context', (), {'partitionId': lambda self: 4})()\n"
        f"task, batch = pickle.load(open({str(target)!r}, 'rb'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    list(task(iter([batch])))\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(tmp_path / "scratch")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    (told,) = done.stdout.splitlines() or [done.stderr]
    assert told.startswith("tablelog.errors.StorageError: writing store://out: an executor can't write to its own disk")
    assert f"{tmp_path}/scratch" in told
    assert "SPARK_LOCAL_DIRS" in told
    assert not list((tmp_path / "scratch").iterdir())
    assert not (tmp_path / "out").exists()


def test_the_workers_need_no_tablelog(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    plan, batch = a_plan(tmp_path, "fsspec.implementations.local:LocalFileSystem"), a_batch()
    target = tmp_path / "task"
    target.write_bytes(cloudpickle.dumps((writing._task(plan), batch)))  # type: ignore[no-untyped-call]
    program = (
        "import sys; sys.modules['tablelog'] = None\n"
        "import pickle, pyspark\n"
        "pyspark.TaskContext.get = lambda: type('Context', (), {'partitionId': lambda self: 4})()\n"
        f"task, batch = pickle.load(open({str(target)!r}, 'rb'))\n"
        "print([row for found in task(iter([batch])) for row in found['name'].to_pylist()])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.parquet"))
    assert sorted(eval(done.stdout or "None") or []) == names, done.stderr
    assert [name.partition("-")[0] for name in names] == ["p=NULL/part", "p=a/part"]


def test_an_unknown_route_is_refused(table: Table) -> None:
    table.spark.conf.set(WRITE_ROUTE.key, "fast")
    with pytest.raises(InvalidArgumentError, match="must be auto, native or arrow"):
        table.write(table.spark.range(3))
