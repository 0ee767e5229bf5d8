"""Clones of a large table: the same commit and state as of a small one, written in pieces."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import copy_of
from support.large_tables import FEATURES, check_not_loaded, noted_lines, rows, with_history
from support.spark_tables import Table
from tablelog.core import AddFile, DeltaLog
from tablelog.core.log.columns import ADD_TYPES, adds_of, table_of
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.txn import adopted_files, bulk_actions
from tablelog.core.txn.file_replacement import FileReplacement
from tablelog.dml.maintain.clone import adopted
from tablelog.errors import (
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
    UntrustedTableError,
)
from tablelog.logstore.local.store import LocalLogStore
from tablelog.settings.declarations import EXTERNAL_PATHS
from tablelog.spark import conf


def _rows(spark: SparkSession, first: int, count: int) -> Any:
    return rows(spark, first, count).withColumn("d", F.date_add(F.lit("2020-01-01"), F.col("id").cast("int")))


def _source(spark: SparkSession, place: Path, **properties: str) -> Table:
    return with_history(Table(spark, place), partial(_rows, spark), **properties)


@pytest.fixture(scope="module")
def sources(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    place = tmp_path_factory.mktemp("clones")
    plain = _source(spark, place / "plain ü", **{"delta.checkpointPolicy": "v2"})
    return {"features": _source(spark, place / "features", **FEATURES), "plain": plain}


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every log is large; gives the calls that wrote files in pieces."""
    return noted_lines(monkeypatch, FileReplacement, lambda files: check_not_loaded(files.source))


_RANDOM = "timestamp", "inCommitTimestamp", "txnId", "engineInfo", "id", "createdTime"


def _committed(table: Table) -> list[str]:
    """The actions of the first version but times and random names."""
    lines = []
    for action in table.actions(0):
        ((kind, content),) = action.items()
        content = {key: value for key, value in content.items() if key not in _RANDOM}
        if "configuration" in content and kind == "metaData":
            content["configuration"] = {k: v for k, v in content["configuration"].items() if "materialized" not in k}
        if isinstance(content.get("stats"), str):
            content["stats"] = json.loads(content["stats"])
        lines.append(json.dumps({kind: content}, sort_keys=True))
    return sorted(lines)


def _state(table: Table) -> tuple[Any, ...]:
    conf.forget()
    snapshot = DeltaLog.for_path(table.path).snapshot()
    # A file in a checkpoint isn't new data.
    adds = sorted(str(replace(add, data_change=False)) for add in adds_of(snapshot.files))
    stats = [json.loads(text) for text in snapshot.files_with_stats_text().column("stats").to_pylist()]
    stats = sorted(json.dumps(one, sort_keys=True) for one in stats)
    rows = sorted(map(str, table.read().collect()))
    return adds, stats, snapshot.protocol, dict(snapshot.domain_metadata), snapshot.totals(), rows


def _checksum(table: Table) -> dict[str, Any]:
    content = json.loads((table.root / "_delta_log" / f"{0:020}.crc").read_text())
    left_out = "metadata", "txnId", "inCommitTimestampOpt", "allFiles"
    return {key: value for key, value in content.items() if key not in left_out}


def _clone(source: Table, target: Path, version: int | None = None, **properties: str) -> Table:
    delta, where = source.delta, str(target)
    if version is None:
        delta.clone(where, isShallow=True, properties=properties)
    else:
        delta.cloneAtVersion(version, where, isShallow=True, properties=properties)
    return Table(source.spark, target)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["features", "plain"])
@pytest.mark.parametrize("changed", [{}, {"delta.checkpoint.writeStatsAsJson": "true"}], ids=["", "changed"])
def test_the_same_as_of_a_small_log(
    sources: dict[str, Table],
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    changed: dict[str, str],
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        small = _clone(sources[name], tmp_path / "small", **changed)
    assert not in_pieces
    conf.forget()
    large = _clone(sources[name], tmp_path / "large", **changed)
    assert in_pieces == ["lines"]
    assert _committed(large) == _committed(small)
    assert _checksum(large) == _checksum(small)
    assert _state(large) == _state(small)
    commit = large.root / "_delta_log" / f"{0:020}.json"
    content = commit.read_bytes()
    commit.write_bytes(content.partition(b"\n")[0])  # the checkpoint has the state, the commit only its time
    assert _state(large) == _state(small)
    commit.write_bytes(content)
    for checkpoint_file in (large.root / "_delta_log").glob("*.checkpoint*"):
        checkpoint_file.unlink()  # as the commit alone
    assert _state(large) == _state(small)
    assert large.rows("id") == sources[name].rows("id")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["features", "plain"])
def test_a_version_and_a_clone_of_a_clone(
    sources: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    source = sources[name]
    version = source.version - 1
    states = []
    for limit in (0, 1 << 40):
        with monkeypatch.context() as patched:
            patched.setattr(bulk_actions, "_BYTES", limit)
            conf.forget()
            first = _clone(source, tmp_path / f"a b%{limit}", version)
            assert first.rows("id") == source.rows("id", versionAsOf=version)
            first.write(_rows(source.spark, 90, 3))
            first.delta.delete("id in (60, 90)")
            DeltaLog.for_path(first.path).checkpoint()
            conf.forget()
            second = _clone(first, tmp_path / f"second {limit}")
            assert second.rows("id") == first.rows("id")
            added = [a["add"] for a in second.actions(0) if "add" in a]
            own = str(first.path).split("/")[-1].replace("%", "%25").replace(" ", "%20")
            states.append(sorted((a["size"], json.dumps(a["partitionValues"]), own in a["path"]) for a in added))
    assert in_pieces == ["lines", "lines"]
    assert states[0] == states[1]
    assert any(of_clone for *_, of_clone in states[0])
    assert not all(of_clone for *_, of_clone in states[0])


@pytest.mark.slow
def test_what_follows(sources: dict[str, Table], in_pieces: list[str], tmp_path: Path) -> None:
    """Changes, checkpoints, VACUUM, RESTORE and replacement of a clone."""
    source = sources["features"]
    files, before = source.data_files(), source.rows("id")
    conf.forget()
    table = _clone(source, tmp_path / "clone")
    table.write(_rows(source.spark, 70, 3))
    log = DeltaLog.for_path(table.path)
    ids = log.snapshot().files.select(["baseRowId"]).column(0).to_pylist()
    assert len(set(ids)) == len(ids)
    assert None not in ids
    table.delta.delete("id < 70")
    log.checkpoint()
    conf.forget()
    assert table.rows("id") == [70, 71, 72]
    table.delta.vacuum()
    assert source.data_files() == files
    table.delta.restoreToVersion(0)
    assert table.rows("id") == before
    source.delta.clone(table.path, isShallow=True, replace=True)
    assert table.rows("id") == before
    assert in_pieces == ["lines", "lines", "lines"]


@pytest.mark.slow
def test_by_sql(sources: dict[str, Table], in_pieces: list[str], tmp_path: Path) -> None:
    source = sources["plain"]
    statement = f"CREATE OR REPLACE TABLE delta.`{tmp_path}/sql` SHALLOW CLONE delta.`{source.path}`"
    row = source.spark.sql(statement).collect()[0]
    snapshot = DeltaLog.for_path(source.path).snapshot()
    assert in_pieces == ["lines"]
    assert (row.source_table_size, row.source_num_of_files) == (snapshot.size_in_bytes, snapshot.num_files)
    assert Table(source.spark, tmp_path / "sql").rows("id") == source.rows("id")


@pytest.mark.slow
def test_a_session_default_gives_row_ids(
    sources: dict[str, Table], in_pieces: list[str], tmp_path: Path, spark: SparkSession
) -> None:
    """A default property of the session adds a feature that the source doesn't have."""
    key = "spark.databricks.delta.properties.defaults.enableRowTracking"
    spark.conf.set(key, "true")
    try:
        conf.forget()
        table = _clone(sources["plain"], tmp_path / "clone")
    finally:
        spark.conf.unset(key)
    assert in_pieces == ["lines"]
    adds = [a["add"] for a in table.actions(0) if "add" in a]
    counts = {a["baseRowId"]: json.loads(a["stats"])["numRecords"] for a in adds}
    expected = 0
    for base in sorted(counts):
        assert base == expected
        expected += counts[base]
    (mark,) = [a["domainMetadata"] for a in table.actions(0) if "domainMetadata" in a]
    assert json.loads(mark["configuration"]) == {"rowIdHighWaterMark": expected - 1}
    assert table.rows("id") == sources["plain"].rows("id")


@pytest.mark.slow
def test_a_table_that_is_created_meanwhile(
    sources: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table, lines = Table(sources["plain"].spark, tmp_path / "clone"), FileReplacement.lines

    def interleaved(self: FileReplacement) -> Iterator[bytes]:
        if not (table.root / "_delta_log").exists():
            table.write(table.spark.range(3))
        return lines(self)

    monkeypatch.setattr(FileReplacement, "lines", interleaved)
    with pytest.raises(DeltaConcurrentModificationException):
        _clone(sources["plain"], table.root)
    assert table.version == 0
    assert table.rows() == [0, 1, 2]


@pytest.mark.slow
def test_nothing_is_left_of_a_failed_write(
    sources: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pieces = adopted_files.adopted
    calls: list[int] = []

    def broken(files: pa.Table, source: str) -> pa.Table:
        calls.append(len(files))
        if in_pieces:
            raise StorageError("the disk is gone")
        return pieces(files, source)

    monkeypatch.setattr(adopted_files, "adopted", broken)
    with pytest.raises(StorageError, match="the disk is gone"):
        _clone(sources["features"], tmp_path / "clone")
    assert len(calls) > 1
    assert not [path for path in (tmp_path / "clone").rglob("*") if path.is_file()]
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path(str(tmp_path / "clone")).snapshot()


@pytest.mark.slow
def test_a_failed_checkpoint_doesnt_undo_the_commit(
    sources: dict[str, Table],
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write = LocalLogStore.write_pieces

    def refused(self: LocalLogStore, path: str, *args: Any, **kwargs: Any) -> None:
        if ".checkpoint." in path:
            raise StorageError("the disk is full")
        write(self, path, *args, **kwargs)

    monkeypatch.setattr(LocalLogStore, "write_pieces", refused)
    table = _clone(sources["features"], tmp_path / "clone")
    assert "its checkpoint wasn't written" in caplog.text
    assert table.rows("id") == sources["features"].rows("id")


@pytest.mark.slow
def test_what_is_refused(sources: dict[str, Table], in_pieces: list[str], tmp_path: Path, spark: SparkSession) -> None:
    """Files outside of the table, a file without partition values, and one without its number of rows."""
    source = copy_of(sources["plain"], "refused")
    key = EXTERNAL_PATHS.key
    spark.conf.set(key, "refuse")
    try:
        with pytest.raises(UntrustedTableError):
            _clone(source, tmp_path / "a")
    finally:
        spark.conf.unset(key)
    log = source.root / "_delta_log"
    add = next(a["add"] for a in source.actions(0) if "add" in a)
    for number, change in enumerate(({"partitionValues": {}}, {"stats": None})):
        bad = copy_of(source, f"refused {number}")
        log = bad.root / "_delta_log"
        content = {"add": {**add, "path": "p=x/other.parquet", **change}}
        (log / f"{bad.version + 1:020}.json").write_text(json.dumps(content) + "\n")
        conf.forget()
        properties = {"delta.enableRowTracking": "true"} if number else {}
        with pytest.raises(InvalidArgumentError, match=("partition columns", "row ids")[number]):
            _clone(bad, tmp_path / f"clone {number}", **properties)
        assert not [path for path in (tmp_path / f"clone {number}").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_damaged_checkpoint_is_replaced_by_the_commits(
    sources: dict[str, Table], in_pieces: list[str], tmp_path: Path
) -> None:
    source = copy_of(sources["features"], "damaged")
    (path,) = Path(source.path, "_delta_log").glob("*.checkpoint.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    conf.forget()
    assert _clone(source, tmp_path / "clone").rows("id") == sources["features"].rows("id")


_VECTORS = (
    None,
    DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6, None),
    DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 2, 4),
    DeletionVectorDescriptor("u", "x yab^-aqEH.-t@S}K{vb[*k^", 34, 2, None),
    DeletionVectorDescriptor("p", "file:///else/a%20b.bin", 34, 2, 1),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "root", ["/tmp/x y", "file:///tmp/x%20y", "s3://bucket/k%25", "hdfs://h:8020/", "abfss://c@a/t"]
)
def test_columns_are_adopted_as_actions_are(root: str) -> None:
    names = [
        "a.parquet", "p=1/a.parquet", "-x", "_x", ".x", "p=a%20b/x", "p=%2525/x", "a//b", "a/./b", "../b", "a/../b",
        "/abs/x", "file:/abs/x", "file:///abs/x%20y", "s3://other/k", "é", "a+b", "a(b)", "a b", "a/.b", "x/", "a:b/c",
        "a&b", "a'b", "a=b=c", "#x", "a?b", "%C3%A9", "%zz", "p=1/a\n", "abfss://c@a/t/x",
    ]  # fmt: skip
    adds = [
        AddFile(name, {"p": None, "q": "x"}, 5, 6, False, f'{{"numRecords":{n}}}', {"t": "v"}, vector, 7, 8, "me")
        for n, name in enumerate(names)
        for vector in _VECTORS
    ]
    kept, expected = [], []
    for add in adds:
        try:
            expected.append(adopted(add, root))
        except Exception as error:
            with pytest.raises(type(error)):
                adopted_files.adopted(_columns([add]), root)
        else:
            kept.append(add)
    assert len(kept) > len(adds) // 2
    assert adds_of(adopted_files.adopted(_columns(kept), root)) == expected
    plain = [add for add in kept if add.deletion_vector is None]
    assert adds_of(adopted_files.adopted(_columns(plain), root)) == [adopted(add, root) for add in plain]
    assert adds_of(adopted_files.adopted(_columns([]), root)) == []


def _columns(adds: list[AddFile]) -> pa.Table:
    return table_of(adds, pa.schema(list(ADD_TYPES.items())))
