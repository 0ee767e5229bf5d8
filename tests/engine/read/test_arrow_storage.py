"""The Arrow route on storage that isn't local: how little it asks of the store, and that it keeps its secrets."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from pyspark.sql import SparkSession

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile
from tablelog.core.protocol.schema import parse_schema
from tablelog.core.txn.operation import Operation
from tablelog.engine.read import scan
from tablelog.engine.read.routes.arrow_source import data_source
from tablelog.settings.declarations import EXTERNAL_PATHS, READ_ROUTE

from .conftest import Make


class Counting(LocalFileSystem):
    """A file system that notes what is asked of it."""

    cachable = False
    asked: ClassVar[list[str]] = []

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
        self.asked.append(f"{start}-{end}")
        return super().cat_file(path, start=start, end=end, **kwargs)

    def info(self, path: str, **kwargs: Any) -> Any:
        self.asked.append("info")
        return super().info(path, **kwargs)

    def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return super()._open(path, *args, **kwargs)


class Together(LocalFileSystem):
    """A file system whose requests wait, for at most half a second, until four of them are under way."""

    cachable = False
    lock: ClassVar[Any] = threading.Lock()
    four: ClassVar[Any] = threading.Event()
    active: ClassVar[int] = 0

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
        with self.lock:
            Together.active += 1
            if Together.active == 4:
                self.four.set()
        self.four.wait(0.5)
        with self.lock:
            Together.active -= 1
        return super().cat_file(path, start=start, end=end, **kwargs)


class Expiring(LocalFileSystem):
    """A file system whose credentials have expired until they are taken again."""

    cachable = False
    renewed: ClassVar[int] = 0

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
        if not self.renewed:
            reply: Any = Exception("the reply")
            reply.response = {"Error": {"Code": "InvalidToken"}}
            raise OSError(22, "The provided token is malformed or otherwise invalid.") from reply  # as s3fs does
        return super().cat_file(path, start=start, end=end, **kwargs)

    def connect(self, *, refresh: bool) -> None:
        Expiring.renewed += refresh


def batches_of(system: str, paths: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of the files, as a worker reads them by this file system."""
    systems = {"file://": (f"{__name__}:{system}", {})}
    method: Any = data_source(systems, takes_filters=False)({}).reader  # type: ignore[attr-defined]
    reader_type = method.__func__.__closure__[method.__func__.__code__.co_freevars.index("reader")].cell_contents
    arrow = pa.schema([pq.read_schema(paths[0]).field(name) for name in columns])
    entries = [
        {"path": str(path), "place": "file://", "size": path.stat().st_size, "constants": {}, "named": path.name}
        for path in paths
    ]
    batches: Iterator[pa.RecordBatch] = reader_type({}, arrow, None).read(SimpleNamespace(value=entries))
    return batches


def read(path: Path, columns: list[str]) -> tuple[list[str], pa.Table]:
    """What reading the file's columns asks, and the rows."""
    Counting.asked.clear()
    batches = list(batches_of("Counting", [path], columns))
    return list(Counting.asked), pa.Table.from_batches(batches)


def small_files(directory: Path, count: int) -> list[Path]:
    paths = [directory / f"{number}" for number in range(count)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"a": [number]}), path)
    return paths


def test_the_next_files_are_requested_while_one_is_read_and_their_order_stays(tmp_path: Path) -> None:
    Together.four.clear()
    batches = list(batches_of("Together", small_files(tmp_path, 40), ["a"]))
    assert Together.four.is_set()
    assert pa.Table.from_batches(batches)["a"].to_pylist() == list(range(40))


def test_expired_credentials_are_taken_again_once(tmp_path: Path) -> None:
    Expiring.renewed = 0
    (batch,) = batches_of("Expiring", small_files(tmp_path, 1), ["a"])
    assert batch["a"].to_pylist() == [0]
    assert Expiring.renewed == 1


def test_many_small_files_are_one_request_each(tmp_path: Path) -> None:
    Counting.asked.clear()
    assert len(list(batches_of("Counting", small_files(tmp_path, 40), ["a"]))) == 40
    assert len(Counting.asked) == 40


def test_a_query_that_ends_early_requests_few_files(tmp_path: Path) -> None:
    Counting.asked.clear()
    batches: Any = batches_of("Counting", small_files(tmp_path, 40), ["a"])
    next(batches)
    batches.close()
    assert len(Counting.asked) == 1


def test_a_file_that_is_missing_is_named_when_its_turn_comes(tmp_path: Path) -> None:
    paths = small_files(tmp_path, 4)
    batches = batches_of("Counting", paths, ["a"])
    paths[2].unlink()
    assert next(batches)["a"].to_pylist() == [0]
    assert next(batches)["a"].to_pylist() == [1]
    with pytest.raises(FileNotFoundError, match="2"):
        next(batches)


def test_a_small_file_is_one_request_and_no_look(tmp_path: Path) -> None:
    rows = pa.table({"a": range(100), "b": range(100)})
    pq.write_table(rows, tmp_path / "f")
    asked, found = read(tmp_path / "f", ["a", "b"])
    assert found == rows
    assert asked == [f"0-{(tmp_path / 'f').stat().st_size}"]


def test_of_a_large_file_the_footer_and_the_wanted_columns_are_read(tmp_path: Path) -> None:
    rows = pa.table({name: pa.array([f"{name}{i}" for i in range(40_000)]) for name in "abcd"})
    pq.write_table(rows, tmp_path / "f", row_group_size=20_000, compression="none", use_dictionary=False)
    size = (tmp_path / "f").stat().st_size
    asked, found = read(tmp_path / "f", ["b"])
    assert found == rows.select(["b"])
    assert "info" not in asked
    starts, ends = zip(*(map(int, one.split("-")) for one in asked), strict=True)
    assert len(asked) <= 3
    assert sum(ends) - sum(starts) < size * 0.55


def test_a_secret_is_in_no_plan(spark: SparkSession, make: Make, conf: Any) -> None:
    conf(EXTERNAL_PATHS.key, "allow")  # the file is in another store than the table
    table = make({"id": "long"})
    columns = parse_schema('{"type":"struct","fields":[{"name":"id","type":"long"}]}')
    keys = {"fs.s3a.access.key": "who", "fs.s3a.secret.key": "HUSH", "fs.s3a.endpoint.region": "eu-west-1"}
    log = DeltaLog.for_path(str(table.root), conf=keys)
    transaction = log.transaction()
    transaction.set_metadata(table.metadata(columns))
    transaction.commit([AddFile("s3a://bucket/f", {}, 10, 0, True)], Operation("WRITE"))
    spark.conf.set(READ_ROUTE.key, "arrow")
    try:
        frame = scan.frame(spark, log)
    finally:
        spark.conf.unset(READ_ROUTE.key)
    plan = frame._jdf.queryExecution()
    options = plan.analyzed().options().asCaseSensitiveMap()
    texts = [plan.toString(), plan.analyzed().treeString(), str(dict(options)), repr(log)]
    assert "tablelog_arrow_" in texts[0]
    assert not any("HUSH" in text for text in texts)
