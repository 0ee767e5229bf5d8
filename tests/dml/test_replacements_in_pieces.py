"""RESTORE and clones in place of a large table: the same commit and state as of a small one, written in pieces."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import copy_of
from support.large_tables import WITH_CHANGE_FEED, check_not_loaded, noted_lines, rows, with_history
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import AddFile, DeltaLog, Operation
from tablelog.core.log.columns import adds_of, removes_of
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn import bulk_actions
from tablelog.core.txn.file_replacement import FileReplacement
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    CorruptLogError,
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    MissingDataFileError,
    StorageError,
    UntrustedTableError,
)
from tablelog.logstore.local.store import LocalLogStore
from tablelog.settings.declarations import EXTERNAL_PATHS
from tablelog.settings.spark_own import IGNORE_MISSING_FILES
from tablelog.spark import conf


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """Tables that were overwritten, with a checkpoint before and after it, and later commits."""
    place = tmp_path_factory.mktemp("restored")
    sources = {
        "features": with_history(Table(spark, place / "features"), partial(rows, spark), **WITH_CHANGE_FEED),
        "plain": with_history(
            Table(spark, place / "plain ü"), partial(rows, spark), **{"delta.checkpointPolicy": "v2"}
        ),
    }
    sources["features"].delta.clone(str(place / "clone"), isShallow=True)
    sources["clone"] = Table(spark, place / "clone")
    sources["clone"].write(rows(spark, 66, 3))
    DeltaLog.for_path(sources["clone"].path).checkpoint()
    return {name: _overwritten(table) for name, table in sources.items()}


def _overwritten(table: Table) -> Table:
    table.write(rows(table.spark, 900, 6), "overwrite")
    DeltaLog.for_path(table.path).checkpoint()
    table.write(rows(table.spark, 910, 3))
    table.delta.delete("id = 901")
    return table


def before_overwrite(table: Table) -> int:
    return table.version - 3


def _check_not_loaded(files: FileReplacement) -> None:
    for snapshot in (files.source, files.now):
        if snapshot is not None and snapshot.base is not None:
            check_not_loaded(snapshot)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every log is large; gives the calls that wrote files in pieces."""
    return noted_lines(monkeypatch, FileReplacement, _check_not_loaded)


_OF_ONE_RUN = "timestamp", "inCommitTimestamp", "txnId", "deletionTimestamp", "createdTime"


def committed(table: Table, version: int | None = None) -> list[str]:
    """The actions of a commit but its times, and the statistics of removes, which are optional."""
    told = []
    for action in table.actions(version):
        ((kind, content),) = action.items()
        content = {key: value for key, value in content.items() if key not in _OF_ONE_RUN}
        if kind == "remove":
            content = {key: value for key, value in content.items() if key not in ("stats", "tags")}
        if content.get("stats"):
            content["stats"] = json.loads(content["stats"])
        told.append(json.dumps({kind: content}, sort_keys=True))
    return sorted(told)


def state(table: Table) -> tuple[Any, ...]:
    """The live files and the tombstones, the rest of the state, and the rows."""
    conf.forget()
    snapshot = DeltaLog.for_path(table.path).snapshot()
    adds = sorted(str((a.path, a.deletion_vector, a.base_row_id, a.default_row_commit_version, a.size,
                       sorted(a.partition_values.items(), key=str))) for a in adds_of(snapshot.files))  # fmt: skip
    gone = sorted((r.path, str(r.deletion_vector), r.base_row_id, r.size) for r in removes_of(snapshot.tombstones))
    stats = sorted(snapshot.files_with_stats_text().column("stats").to_pylist())
    stats = [json.dumps(json.loads(text), sort_keys=True) for text in stats]
    protocol, domains = snapshot.protocol, dict(snapshot.domain_metadata)
    found = sorted(map(str, table.read().collect()))
    return adds, gone, sorted(stats), snapshot.totals(), protocol, domains, snapshot.metadata.configuration, found


def check_same(small: Table, large: Table) -> None:
    """The same commit, and the same state: by the checkpoint alone, and by the commit alone."""
    version = large.version
    assert committed(large) == committed(small)
    log = large.root / "_delta_log"
    assert list(log.glob(f"{version:020}.checkpoint*"))
    expected = state(small)
    assert state(large) == expected
    checksums = [json.loads((one.root / "_delta_log" / f"{version:020}.crc").read_text()) for one in (small, large)]
    for name in ("numFiles", "tableSizeBytes", "fileSizeHistogram", "numDeletedRecordsOpt"):
        assert checksums[0].get(name) == checksums[1].get(name)
    commit = log / f"{version:020}.json"
    content = commit.read_bytes()
    commit.write_bytes(content.partition(b"\n")[0])
    assert state(large) == expected
    commit.write_bytes(content)
    for file in log.glob(f"{version:020}.checkpoint*"):
        file.unlink()
    assert state(large) == expected


def _small(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(bulk_actions, "_BYTES", 1 << 40)


# --- RESTORE ----------------------------------------------------------------------------------------------------------


def _by_sql(table: Table, version: int) -> list[Any]:
    return table.spark.sql(f"RESTORE TABLE delta.`{table.path}` TO VERSION AS OF {version}").collect()


def _by_time(table: Table, version: int) -> list[Any]:
    times = {row.version: row.timestamp for row in table.delta.history().collect()}
    return table.spark.sql(
        f"RESTORE TABLE delta.`{table.path}` TO TIMESTAMP AS OF '{times[version]}'"
    ).collect()  # fmt: skip


_OFTEN = ("features", 0), ("clone", 0), ("plain", -2)


@pytest.mark.parametrize(
    ("name", "back"),
    [
        pytest.param(name, back, marks=() if (name, back) in _OFTEN else pytest.mark.slow)
        for name in ("features", "plain", "clone")
        for back in (0, 1, -2)
    ],
)
@pytest.mark.one_case
def test_restore_is_the_same_as_on_a_small_log(
    tables: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, name: str, back: int
) -> None:
    version = before_overwrite(tables[name]) - back
    small, large = copy_of(tables[name], f"{name} {back}, small"), copy_of(tables[name], f"{name} {back}, large")
    expected = large.rows("id", versionAsOf=version)
    conf.forget()
    with monkeypatch.context() as patched:
        _small(patched)
        metrics = small.delta.restoreToVersion(version).collect()
    assert not in_pieces
    conf.forget()
    assert _by_sql(large, version) == metrics
    assert in_pieces == ["lines"]
    assert large.rows("id") == expected
    check_same(small, large)
    if name == "features" and not back:
        feeds = [_changes(table) for table in (small, large)]
        assert feeds[0] == feeds[1]
        assert {row[-1] for row in feeds[0]} == {"insert", "delete"}


def _changes(table: Table) -> list[Any]:
    feed = table.read(readChangeFeed="true", startingVersion=table.version).select("id", "_change_type")
    return sorted(tuple(row) for row in feed.collect())


@pytest.mark.slow
def test_restore_by_time_and_back_again(tables: dict[str, Table], in_pieces: list[str]) -> None:
    """Each file is added and removed several times; then VACUUM finds nothing that it may delete."""
    table = copy_of(tables["features"], "to and fro")
    then, now = before_overwrite(table), table.version
    before, after = table.rows("id", versionAsOf=then), table.rows("id")
    conf.forget()
    assert _by_time(table, then)[0].num_restored_files > 0
    for version, expected in ((None, before), (now, after), (then, before)):
        if version is not None:
            conf.forget()  # the read before has loaded the columns
            table.delta.restoreToVersion(version)
        assert table.rows("id") == expected
    assert in_pieces == ["lines"] * 3
    files = table.data_files()
    table.delta.vacuum()
    assert table.data_files() == files
    table.write(rows(table.spark, 70, 3))
    conf.forget()
    assert table.rows("id") == sorted([*before, 70, 71, 72])
    ids = DeltaLog.for_path(table.path).snapshot().files.column("baseRowId").to_pylist()
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_restore_of_files_without_row_ids(
    spark: SparkSession, tmp_path: Path, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get new ids, of the version that is committed: also after a lost race."""
    base = with_history(Table(spark, tmp_path / "numbered"), partial(rows, spark))
    base.delta.addFeatureSupport("rowTracking")
    _overwritten(base)
    version = before_overwrite(base)
    small, large = copy_of(base, "numbered, small"), copy_of(base, "numbered, large")
    for table in (small, large):
        with monkeypatch.context() as patched:
            if table is small:
                _small(patched)
            _between(patched, partial(_set_transaction, table))
            conf.forget()
            _by_sql(table, version)
    assert len(in_pieces) == 2
    assert large.rows("id") == base.rows("id", versionAsOf=version)
    check_same(small, large)
    adds = [a["add"] for a in large.actions() if "add" in a]
    assert {a["defaultRowCommitVersion"] for a in adds} == {large.version}
    assert any("domainMetadata" in a for a in large.actions())


def _set_transaction(table: Table) -> None:
    DeltaLog.for_path(table.path).transaction().commit([], Operation("OTHER", {}))


def _between(monkeypatch: pytest.MonkeyPatch, other: Callable[[], Any]) -> None:
    """Do `other` when a commit is first attempted."""
    from tablelog.core.txn.commit_loop import CommitLoop

    run, done = CommitLoop.run, []

    def interleaved(self: CommitLoop, *arguments: Any) -> Any:
        if not done:
            done.append(True)
            other()
        return run(self, *arguments)

    monkeypatch.setattr(CommitLoop, "run", interleaved)


@pytest.mark.slow
def test_restore_that_enables_row_tracking(
    spark: SparkSession, tmp_path: Path, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that stays and has no row ids is an error, as on a small log."""
    table = with_history(Table(spark, tmp_path / "enabled"), partial(rows, spark), **WITH_CHANGE_FEED)
    version = table.version
    table.delta.setProperties({"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"})
    log = DeltaLog.for_path(table.path)
    unnumbered = [a for a in log.snapshot().add_files() if a.deletion_vector is None]
    log.transaction().commit(
        [AddFile(**{**{k: getattr(a, k) for k in a.__slots__}, "base_row_id": None}) for a in unnumbered],
        Operation("OTHER", {}),
    )
    for limit in (0, 1 << 40):
        with monkeypatch.context() as patched:
            patched.setattr(bulk_actions, "_BYTES", limit)
            conf.forget()
            with pytest.raises(InvalidArgumentError, match=f"{len(unnumbered)} files have no row ids"):
                table.delta.restoreToVersion(version)
    assert not in_pieces


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("append", ConcurrentAppendException),
        ("delete", ConcurrentDeleteReadException),
        ("nothing", None),
        ("blind append", None),
    ],
)
@pytest.mark.parametrize("command", ["restore", "clone"])
def test_a_concurrent_commit(
    tables: dict[str, Table],
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: type[DeltaConcurrentModificationException] | None,
    command: str,
) -> None:
    table = copy_of(tables["plain" if command == "restore" else "clone"], f"between, {kind}, {command}")
    if kind == "blind append":
        if command == "clone":
            return  # it writes the metadata, so the append is a conflict
        table.delta.setProperties({"delta.isolationLevel": "WriteSerializable"})
        _overwritten(table)  # the version to restore has the same metadata
    version = before_overwrite(table)
    first = DeltaLog.for_path(table.path).snapshot().add_files()[0]
    conf.forget()

    def other() -> None:
        if kind == "blind append":
            table.write(rows(table.spark, 800, 1))
            return
        txn = DeltaLog.for_path(table.path).transaction()
        if kind == "append":
            actions: list[Any] = [
                AddFile("p=x/a.parquet", first.partition_values, 1, 1, True, stats='{"numRecords":1}')
            ]
        else:
            actions = [first.remove(5)] if kind == "delete" else []
            txn.read_keys([first.key])
        txn.commit(actions, Operation("OTHER", {}))

    _between(monkeypatch, other)
    before = table.version
    expected = table.rows("id", versionAsOf=version) if command == "restore" else tables["features"].rows("id")
    conf.forget()

    def run() -> None:
        if command == "restore":
            table.delta.restoreToVersion(version)
        else:
            tables["features"].delta.clone(table.path, isShallow=True, replace=True)

    if error is not None:
        with pytest.raises(error):
            run()
        assert table.version == before + 1
        assert not list((table.root / "_delta_log").glob(f"{before + 2:020}*"))
        return
    run()
    assert table.version == before + 2
    conf.forget()
    assert table.rows("id") == sorted(expected + ([800] if kind == "blind append" else []))
    assert list((table.root / "_delta_log").glob(f"{table.version:020}.checkpoint*"))


@pytest.mark.slow
def test_missing_files(
    tables: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """Data files, and a file of deletion vectors that several files share."""
    table = copy_of(tables["features"], "missing")
    version = before_overwrite(table)
    vectors = sorted(table.root.glob("**/deletion_vector_*.bin"))
    live = DeltaLog.for_path(table.path).snapshot(version).add_files()
    data = next(a for a in live if a.deletion_vector is None)
    for path in (*vectors, table.root / _decoded(data.path)):
        path.unlink()
    names = sorted(path.name for path in table.root.rglob("*"))
    messages = []
    for limit in (0, 1 << 40):
        with monkeypatch.context() as patched:
            patched.setattr(bulk_actions, "_BYTES", limit)
            conf.forget()
            with pytest.raises(MissingDataFileError) as caught:
                table.delta.restoreToVersion(version)
            messages.append(sorted(re.split(r": |, |\. |; ", str(caught.value))))  # the order may differ
    assert messages[0] == messages[1]
    assert not in_pieces
    assert sorted(path.name for path in table.root.rglob("*")) == names
    conf.forget()
    with settings(spark, {IGNORE_MISSING_FILES.key: "true"}):
        table.delta.restoreToVersion(version)
    assert in_pieces == ["lines"]


@pytest.mark.slow
def test_files_that_come_in_another_order(
    tables: dict[str, Table], in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a checkpoint is found damaged after the comparison: nothing is committed."""
    table = copy_of(tables["plain"], "another order")
    version, before = before_overwrite(table), table.version
    conf.forget()
    pieces = Snapshot.pieces

    def in_reverse(self: Snapshot, *, with_stats: bool) -> Any:
        return reversed(
            [piece.take(list(range(piece.num_rows))[::-1]) for piece in pieces(self, with_stats=with_stats)]
        )

    with monkeypatch.context() as patched:
        _between(patched, lambda: patched.setattr(Snapshot, "pieces", in_reverse))
        with pytest.raises(CorruptLogError, match="came in another order than at first"):
            table.delta.restoreToVersion(version)
    assert table.version == before


def _decoded(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)


@pytest.mark.slow
def test_what_restore_refuses(tables: dict[str, Table], in_pieces: list[str], spark: SparkSession) -> None:
    clone = copy_of(tables["clone"], "refused")
    with settings(spark, {EXTERNAL_PATHS.key: "refuse"}), pytest.raises(UntrustedTableError):
        clone.delta.restoreToVersion(before_overwrite(clone))
    table = copy_of(tables["plain"], "append-only")
    version = before_overwrite(table)
    table.delta.setProperties({"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError):
        table.delta.restoreToVersion(version)
    assert not in_pieces


@pytest.mark.slow
@pytest.mark.parametrize("refused", ["_delta_log/", ".checkpoint."], ids=["commit", "afterwards"])
def test_a_failure(
    tables: dict[str, Table],
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    refused: str,
) -> None:
    """Of the commit: nothing is left of it. Of the checkpoint: the commit stays."""
    table = copy_of(tables["features"], f"failed {len(refused)}")
    version = before_overwrite(table)
    expected = table.rows("id", versionAsOf=version)
    names, before = sorted(path.name for path in table.root.rglob("*")), state(table)
    write = LocalLogStore.write_pieces

    def broken(self: LocalLogStore, path: str, pieces: Any, *args: Any, **kwargs: Any) -> None:
        def some() -> Iterator[bytes]:
            yield next(iter(pieces))
            raise StorageError("the disk is full")

        write(self, path, some() if refused in path else pieces, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(LocalLogStore, "write_pieces", broken)
        conf.forget()
        if refused == ".checkpoint.":
            table.delta.restoreToVersion(version)
        else:
            with pytest.raises(StorageError, match="the disk is full"):
                table.delta.restoreToVersion(version)
    assert in_pieces == ["lines"]
    if refused == ".checkpoint.":
        assert "its checkpoint wasn't written" in caplog.text
        conf.forget()
        assert table.rows("id") == expected
    else:
        assert sorted(path.name for path in table.root.rglob("*")) == names
        assert state(table) == before


# --- clones -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("features", "clone"),
        ("plain", "features"),
        ("features", "plain"),
        ("clone", "features"),
    ],
)
def test_a_clone_in_place_of_a_table(
    tables: dict[str, Table],
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: str,
    target: str,
) -> None:
    """Of another table over it, of an old version of the same source over that, and of the newest one again."""
    if (source, target) in (("features", "plain"), ("plain", "features")):
        # They differ in the column mapping, which a clone can't change.
        made = with_history(Table(tables[source].spark, tmp_path / "other"), partial(rows, tables[source].spark),
                            **{"delta.enableRowTracking": "true"} if target == "features" else {})  # fmt: skip
        new, over = (tables["plain"], made) if target == "features" else (made, tables["plain"])
    else:
        new, over = tables[source], tables[target]
    version = before_overwrite(new) if new.version > 3 else new.version
    both = copy_of(over, f"{source} over {target}, small"), copy_of(over, f"{source} over {target}, large")
    for step in (None, version, None):
        for table in both:
            with monkeypatch.context() as patched:
                if table is both[0]:
                    _small(patched)
                conf.forget()
                if step is None:
                    new.delta.clone(table.path, isShallow=True, replace=True)
                else:
                    new.delta.cloneAtVersion(step, table.path, isShallow=True, replace=True)
        assert both[1].rows("id") == new.rows("id", **{} if step is None else {"versionAsOf": step})
        assert committed(both[1]) == committed(both[0])
    assert in_pieces == ["lines"] * 3
    check_same(*both)
