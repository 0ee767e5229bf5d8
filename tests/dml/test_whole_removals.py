"""Commands that remove all files of a large table: the same commit and state as on a small one, written in pieces."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.commands import copy_of
from support.large_logs import noted_selections
from support.large_tables import (
    WITH_CHANGE_FEED,
    between,
    committed,
    rows,
    state,
    with_history,
)
from support.spark_tables import Table
from tablelog.core import AddFile, DeltaLog, Operation
from tablelog.core.log.columns import removes_of
from tablelog.core.protocol.actions import RemoveFile
from tablelog.core.txn import bulk_actions, bulk_removal, commit_loop
from tablelog.core.txn.bulk_removal import BulkRemoval
from tablelog.dml.alter.create import Definition, create
from tablelog.dml.change import update
from tablelog.dml.command import whole_files
from tablelog.errors import (
    AppendOnlyTableError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    CorruptLogError,
    DeltaConcurrentModificationException,
    StorageError,
)
from tablelog.logstore.local.store import LocalLogStore
from tablelog.spark import DeltaTable, conf

COMMANDS: dict[str, Callable[[Table], Any]] = {
    "delete": lambda t: t.delta.delete(),
    "delete where true": lambda t: t.delta.delete("1 = 1"),
    "update": lambda t: t.delta.update(set={"id": "id + 1000"}),
    "update where true": lambda t: t.delta.update(F.lit(True), {"id": F.col("id") + 1000}),
    "truncate": lambda t: t.spark.sql(f"TRUNCATE TABLE delta.`{t.path}`"),
    "overwrite": lambda t: t.write(rows(t.spark, 900, 3), "overwrite"),
    "overwrite with nothing": lambda t: t.write(rows(t.spark, 900, 0), "overwrite"),
    "overwrite of the schema": lambda t: t.write(
        t.spark.range(2).select(F.col("id").alias("other")), "overwrite", overwriteSchema="true"
    ),
    "insert overwrite": lambda t: t.spark.sql(f"INSERT OVERWRITE delta.`{t.path}` VALUES (1, 'x')"),
    "replace": lambda t: DeltaTable.replace(t.spark).location(t.path).addColumn("n", "int").execute(),
    "replace as select": lambda t: create(
        t.spark, DeltaLog.for_path(t.path), Definition(), "createOrReplace", frame=t.spark.range(2)
    ),
}


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return with_history(
        Table(spark, tmp_path_factory.mktemp("whole") / "table"), partial(rows, spark), **WITH_CHANGE_FEED
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_as_on_a_small_log(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    known = {a["add"]["path"] for v in range(base.version + 1) for a in base.actions(v) if "add" in a}
    small, large = copy_of(base, f"{name}, small"), copy_of(base, f"{name}, large")
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        COMMANDS[name](small)
    assert not in_pieces
    COMMANDS[name](large)
    assert in_pieces == ["lines"]
    assert committed(large, known) == committed(small, known)
    version = large.version
    assert list((large.root / "_delta_log").glob(f"{version:020}.checkpoint*"))
    conf.forget()
    assert state(large, known) == state(small, known)
    commit = large.root / "_delta_log" / f"{version:020}.json"
    kept = commit.read_bytes()
    commit.write_bytes(kept.partition(b"\n")[0])  # the checkpoint has the state, the commit only its time
    conf.forget()
    assert state(large, known) == state(small, known)
    commit.write_bytes(kept)
    feeds = [_changes(table, version) for table in (small, large)]
    assert feeds[0] == feeds[1]


def _changes(table: Table, version: int) -> list[str]:
    """The change feed of a version, in a table that has one."""
    configuration = DeltaLog.for_path(table.path).snapshot().metadata.configuration
    if "delta.enableChangeDataFeed" not in configuration or len(table.read().columns) == 1:
        return []  # a replaced table, whose earlier columns differ
    options = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
    return sorted(map(str, table.read(**options).drop("_commit_timestamp").collect()))


@pytest.mark.slow
def test_an_update_of_all_rows_goes_through_the_files_in_slices(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = copy_of(base, "update whole"), copy_of(base, "update in slices")
    before = DeltaLog.for_path(base.path).snapshot().files.num_rows
    updates = {"id": "id + 1000", "p": "concat('x', id % 2)"}
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        small.delta.update(set=updates)
    monkeypatch.setattr(whole_files, "_SLICE", 4)
    selections = noted_selections(monkeypatch)
    conf.forget()
    large.delta.update(set=updates)
    (selected,) = selections.values()
    assert selected == [4] * (before // 4) + ([before % 4] if before % 4 else [])
    assert len(selected) >= 2
    assert in_pieces == ["lines"]
    conf.forget()
    ids = [table.read(readRowIds="true") for table in (small, large)]
    assert sorted(map(str, ids[1].collect())) == sorted(map(str, ids[0].collect()))
    assert _changes(large, large.version) == _changes(small, small.version)
    kept = ("numRemovedFiles", "numRemovedBytes", "numUpdatedRows", "numCopiedRows")
    metrics = [table.delta.history(1).collect()[0].operationMetrics for table in (small, large)]
    assert [metrics[1][name] for name in kept] == [metrics[0][name] for name in kept]


@pytest.mark.slow
def test_an_update_that_fails_in_a_later_slice_leaves_nothing(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copy_of(base, "failed slice")
    monkeypatch.setattr(whole_files, "_SLICE", 4)
    write, slices_written = update.rows.write_new, []

    def noted(*args: Any, **kwargs: Any) -> Any:
        written = write(*args, **kwargs)
        slices_written.append(len(written.adds))
        if len(slices_written) == 2:
            raise StorageError("the disk is full")
        return written

    monkeypatch.setattr(update.rows, "write_new", noted)
    before, files = state(table, set()), _files(table)
    conf.forget()
    with pytest.raises(StorageError, match="the disk is full"):
        table.delta.update(set={"id": "id + 1000"})
    assert all(slices_written)
    assert not in_pieces
    assert _files(table) == files
    assert state(table, set()) == before


def _files(table: Table) -> list[Path]:
    """The data files, the change data files, and the files of the log."""
    return sorted(path for path in table.root.rglob("*") if path.is_file())


@pytest.mark.slow
def test_what_follows(base: Table, in_pieces: list[str]) -> None:
    """Appends, the next checkpoint, VACUUM, RESTORE and time travel after the removal of all files."""
    table = copy_of(base, "followed")
    before = table.rows()
    gone = DeltaLog.for_path(table.path).snapshot().files.num_rows
    conf.forget()
    table.delta.delete()
    assert table.rows() == []
    version = table.version
    table.write(rows(table.spark, 70, 3))
    log = DeltaLog.for_path(table.path)
    older = log.snapshot().tombstones.num_rows
    assert older > gone
    log.checkpoint()
    assert DeltaLog.for_path(table.path).snapshot().tombstones.num_rows == older
    files = table.data_files()
    table.delta.vacuum()
    assert table.data_files() == files
    assert [row[0] for row in table.rows()] == [70, 71, 72]
    assert table.rows(versionAsOf=version - 1) == before
    table.delta.restoreToVersion(version - 1)
    assert table.rows() == before


@pytest.mark.slow
def test_an_idempotent_write_is_done_once(base: Table, in_pieces: list[str]) -> None:
    table = copy_of(base, "once")
    for _ in range(2):
        table.write(rows(table.spark, 900, 1), "overwrite", txnAppId="app", txnVersion=3)
    assert in_pieces == ["lines"]
    assert [row[0] for row in table.rows()] == [900]


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_a_blind_append_between_stays(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """The removal leaves the files of blind appends in the table and in the checkpoint, also those of large commits."""
    table = copy_of(base, f"stays {large}")
    table.delta.setProperties({"delta.isolationLevel": "WriteSerializable"})

    def appends() -> None:
        for first in (800, 801):
            Table(table.spark, table.root).write(rows(table.spark, first, 1))
        if large:
            monkeypatch.setattr(commit_loop, "is_large", lambda status: True)

    between(monkeypatch, appends)
    table.delta.delete()
    conf.forget()
    assert [row[0] for row in table.rows()] == [800, 801]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("append", ConcurrentAppendException),
        ("delete", ConcurrentDeleteReadException),
        ("txn", None),
    ],
)
def test_a_concurrent_commit(
    base: Table,
    in_pieces: list[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: type[DeltaConcurrentModificationException] | None,
) -> None:
    table = copy_of(base, f"between {kind}")
    log = DeltaLog.for_path(table.path)
    first = log.snapshot().add_files()[0]
    actions: dict[str, list[Any]] = {
        "append": [AddFile("p=x/a.parquet", first.partition_values, 1, 1, True, stats='{"numRecords":1}')],
        "delete": [first.remove(5)],
        "txn": [],
    }

    def other() -> None:
        txn = DeltaLog.for_path(table.path).transaction()
        if kind != "append":
            txn.read_keys([first.key])
        txn.commit(actions[kind], Operation("OTHER", {}))

    between(monkeypatch, other)
    before, written = table.version, table.data_files()
    if error is not None:
        with pytest.raises(error):
            table.write(rows(table.spark, 900, 3), "overwrite")
        assert table.version == before + 1
        assert table.data_files() == written
        return
    table.write(rows(table.spark, 900, 3), "overwrite")
    assert table.version == before + 2
    assert in_pieces == ["lines", "lines"]  # the second attempt writes the same lines again
    conf.forget()
    assert [row[0] for row in table.rows()] == [900, 901, 902]


@pytest.mark.slow
def test_nothing_is_left_of_a_failed_write(base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = copy_of(base, "failed")
    before, names = state(table, set()), sorted(path.name for path in table.root.rglob("*"))
    conf.forget()
    pieces = BulkRemoval.pieces

    def broken(self: BulkRemoval) -> Any:
        yield next(iter(pieces(self)))
        raise StorageError("the disk is gone")

    monkeypatch.setattr(BulkRemoval, "pieces", broken)
    with pytest.raises(StorageError, match="the disk is gone"):
        table.write(rows(table.spark, 900, 3), "overwrite")
    assert sorted(path.name for path in table.root.rglob("*")) == names
    assert state(table, set()) == before


@pytest.mark.slow
def test_a_failed_checkpoint_doesnt_undo_the_commit(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = copy_of(base, "unfinished")
    write = LocalLogStore.write_pieces

    def refused(self: LocalLogStore, path: str, *args: Any, **kwargs: Any) -> None:
        if ".checkpoint." in path:
            raise StorageError("the disk is full")
        write(self, path, *args, **kwargs)

    monkeypatch.setattr(LocalLogStore, "write_pieces", refused)
    table.delta.delete()
    assert "its checkpoint wasn't written" in caplog.text
    assert table.rows() == []


@pytest.mark.slow
def test_append_only(base: Table, in_pieces: list[str]) -> None:
    table = copy_of(base, "append-only")
    table.delta.setProperties({"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError):
        table.delta.delete()
    txn = DeltaLog.for_path(table.path).transaction()
    assert txn.snapshot is not None
    removal = bulk_removal.bulk_removal(txn.snapshot, txn.metadata, 5)
    with pytest.raises(AppendOnlyTableError):
        txn.commit([], Operation("DELETE", {}), bulk=removal)
    assert not in_pieces


@pytest.mark.slow
def test_a_sidecar_has_a_limited_number_of_files(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is in parts where the table allows it, so that no reader needs a file of gigabytes."""
    from tablelog.core.txn import post_commit

    monkeypatch.setattr(post_commit, "_PART_SIZE", 4)
    table = copy_of(base, "parts")
    removed = DeltaLog.for_path(table.path).snapshot()
    expected = removed.files.num_rows + removed.tombstones.num_rows
    table.delta.delete()
    parts = sorted((table.root / "_delta_log").glob(f"{table.version:020}.checkpoint.*"))
    assert len(parts) == -(-expected // 4)
    fresh = DeltaLog.for_path(table.path).snapshot()
    assert fresh.tombstones.num_rows == expected
    assert all(isinstance(remove, RemoveFile) for remove in removes_of(fresh.tombstones))


@pytest.mark.slow
def test_a_damaged_checkpoint_is_replaced_by_the_commits(base: Table, in_pieces: list[str]) -> None:
    table = copy_of(base, "damaged")
    (path,) = Path(table.path, "_delta_log").glob("*.checkpoint.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    conf.forget()
    table.delta.delete()
    assert table.rows() == []


@pytest.mark.slow
def test_the_log_of_a_large_commit_is_read_in_batches(
    base: Table, in_pieces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM, the history and the search for a commit don't read the whole commit."""
    from tablelog.core.log import large_commits
    from tablelog.core.table_maintenance import unneeded_files

    table = copy_of(base, "batches")
    small = copy_of(base, "batches, small")
    for one in (table, small):
        one.delta.delete()
    version = table.version
    path = f"{version:020}.json"
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 1)
    with monkeypatch.context() as patched:
        read = LocalLogStore.read

        def refused(self: LocalLogStore, where: str) -> bytes:
            assert not where.endswith(path)
            return read(self, where)

        patched.setattr(LocalLogStore, "read", refused)
        log = DeltaLog.for_path(table.path)
        assert [e.commit_info and e.commit_info.operation for e in log.history(1)] == ["DELETE"]
        before = log.version_at(log.history(2)[1].timestamp_ms)
        assert before == version - 1
        token = log.history(1)[0].commit_info.txn_id  # type: ignore[union-attr]
        assert token
        assert log.find_commit(token) == version
        assert log.find_commit("another") is None
        gone = {action.path for action in unneeded_files.gone_since(log, version, version)}
        needed = unneeded_files.Needed(log.table)
        small_, large_ = unneeded_files._commits(log, version, version)
        assert not small_
        needed.add_pieces(lambda: unneeded_files._gone_pieces(log, large_))
    removes = [a["remove"]["path"] for a in table.actions(version) if "remove" in a]
    assert removes
    assert gone == set(removes)
    assert all(path in needed for path in removes)
    assert set(needed) >= set(removes)
    files = table.data_files()
    table.delta.vacuum()
    assert table.data_files() == files
    (table.root / "_delta_log" / path).write_bytes(b'{"remove":\n')
    with pytest.raises(CorruptLogError, match=f"version {version} .* line 1"):
        list(unneeded_files.gone_since(log, version, version))
