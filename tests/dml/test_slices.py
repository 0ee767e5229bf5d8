"""Commands that change very many files of a large log change one slice of them after the other, in one commit."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.commands import copy_of, named_files, rows_of, values
from support.grouped_commands import BY_VECTORS, SLICED, mirrored
from support.large_logs import LARGE, large, noted_selections, twelve_files
from support.large_tables import between
from support.slices import noted_slices, slices_of
from support.spark_tables import Table
from support.table_work import settings
from tablelog.core import DeltaLog, Operation
from tablelog.core.log.columns import adds_of, removes_of
from tablelog.core.protocol import features
from tablelog.core.txn import bulk_actions
from tablelog.core.txn.sliced_removal import SlicedRemoval
from tablelog.errors import (
    CommandInterrupted,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    CorruptLogError,
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    ProtocolChangedException,
    StorageError,
)
from tablelog.settings.declarations import AUTO_COMPACT, AUTO_COMPACT_MIN_NUM_FILES, DELETE_BY_VECTORS
from tablelog.spark import conf

OFTEN = {("delete", True), ("update", False), ("mirror of other rows", True)}


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return twelve_files(spark, tmp_path_factory.mktemp("slices"))


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Slices have five files. Gives, for each table, the sizes of the groups and of the slices in their order."""
    slices_of(monkeypatch, 5)
    return noted_selections(monkeypatch)


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    return noted_slices(monkeypatch)


@pytest.mark.parametrize(
    ("name", "by_vectors"),
    [
        pytest.param(name, by_vectors, marks=() if (name, by_vectors) in OFTEN else pytest.mark.slow)
        for name in SLICED
        for by_vectors in (True, False)
    ],
)
@pytest.mark.one_case
def test_the_same_as_on_a_small_log(
    base: Table, puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, name: str, by_vectors: bool
) -> None:
    small, other = (copy_of(base, f"{name}, {kind} {by_vectors}") for kind in ("small", "sliced"))
    _compare(small, other, name, by_vectors, monkeypatch)
    marked = sum(kind == "add" for kind, *_ in _files(small))
    assert sum(added for _, added in puts) == marked
    assert len(puts) > 1
    assert max(removed for removed, _ in puts) <= 5


def _compare(small: Table, other: Table, name: str, by_vectors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command on two copies of a table, in slices on the second one; both must end in the same way."""
    with settings(small.spark, {setting.key: str(by_vectors).lower() for setting in BY_VECTORS}):
        SLICED[name](small)
        with monkeypatch.context() as patched, large(other, patched):
            slices_of(patched, 5)
            SLICED[name](other)
    assert rows_of(other) == rows_of(small)
    assert _told(other) == _told(small)
    assert _feed(other) == _feed(small)
    conf.forget()
    rows = [table.rows("id") for table in (small, other)]
    assert rows[1] == rows[0]
    _check_checkpoint(other)


def test_auto_compaction_has_the_partitions_of_files_that_slices_mark(
    base: Table, slices: dict[str, list[int]], puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, other = (copy_of(base, f"auto compaction, {kind}") for kind in ("small", "sliced"))
    enabled = {DELETE_BY_VECTORS.key: "true", AUTO_COMPACT.key: "true", AUTO_COMPACT_MIN_NUM_FILES.key: "4"}
    with settings(base.spark, enabled):
        small.delta.delete("p > 0 and id % 2 = 0")
        with monkeypatch.context() as patched, large(other, patched):
            other.delta.delete("p > 0 and id % 2 = 0")
    assert len(puts) > 1
    compacted = [
        sorted(
            (action["remove"]["path"], action["remove"]["partitionValues"]["p"])
            for version in range(base.version + 2, table.version + 1)
            for action in table.actions(version)
            if "remove" in action
        )
        for table in (small, other)
    ]
    assert compacted[1] == compacted[0]
    assert {partition for _, partition in compacted[1]} == {"1", "2"}
    assert rows_of(other) == rows_of(small)


@pytest.mark.slow
@pytest.mark.parametrize("by_vectors", [True, False])
@pytest.mark.parametrize("name", ["update", "delete"])
def test_row_ids_stay(
    base: Table, puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, name: str, by_vectors: bool
) -> None:
    small = copy_of(base, f"{name}, tracked, small {by_vectors}")
    small.delta.setProperties({"delta.enableRowTracking": "true"})
    DeltaLog.for_path(small.path).checkpoint()
    other = copy_of(small, f"{name}, tracked, sliced {by_vectors}")
    _compare(small, other, name, by_vectors, monkeypatch)
    assert len(puts) > 1
    ids = [sorted(map(str, table.read(readRowIds="true").collect())) for table in (small, other)]
    assert ids[1] == ids[0]


@pytest.mark.slow
@pytest.mark.parametrize("supported", [True, False])
def test_files_without_row_ids_get_some(
    base: Table, puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    """Where the table only supports row tracking, old files may have no ids: what adds them again assigns some."""
    small = copy_of(base, f"supported small {supported}")
    if supported:
        small.delta.setProperties({"delta.feature.rowTracking": "supported"})
        DeltaLog.for_path(small.path).checkpoint()
    other = copy_of(small, f"supported sliced {supported}")
    _compare(small, other, "delete", True, monkeypatch)
    kept = sum(removed for removed, _ in puts)
    assert kept == sum(kind == "remove" for kind, *_ in _files(small)) - (_numbered(other) if supported else 0)
    assert (_numbered(other) > 0) == supported


@pytest.mark.slow
def test_files_have_no_row_ids_while_tracking_is_suspended(base: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    small = copy_of(base, "suspended small")
    small.delta.setProperties({"delta.enableRowTracking": "true"})
    small.delta.setProperties({"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"})
    DeltaLog.for_path(small.path).checkpoint()
    other = copy_of(small, "suspended sliced")
    _compare(small, other, "delete", True, monkeypatch)
    assert _numbered(other) == 0


def _numbered(table: Table) -> int:
    """The number of files that the last commit adds again, with row ids."""
    return sum(kind == "add" and ids[0] is not None for kind, _, _, _, ids, _ in _files(table))


def _files(table: Table) -> list[tuple[Any, ...]]:
    """What the last commit says about older files."""
    old = {action["add"]["path"] for v in range(table.version) for action in table.actions(v) if "add" in action}
    files = []
    for action in table.actions(table.version):
        ((kind, content),) = action.items()
        if kind in ("add", "remove") and content["path"] in old:
            vector = (content.get("deletionVector") or {}).get("cardinality")
            stats = content.get("stats") if kind == "add" else None
            ids = content.get("baseRowId"), content.get("defaultRowCommitVersion")
            files.append((kind, content["path"], vector, stats, ids, content["dataChange"]))
    return files


def _told(table: Table) -> Any:
    """What the last commit says about older files, and its metrics but those of times and of new files."""
    (info,) = (action["commitInfo"] for action in table.actions(table.version) if "commitInfo" in action)
    files = _files(table)
    removed = [path for kind, path, *_ in files if kind == "remove"]
    assert len(set(removed)) == len(removed) > 2
    of_new = "Time", "Bytes", "Size", "AddedFiles", "FilesAdded", "numFiles", "AddedChangeFiles"
    metrics = {k: v for k, v in info["operationMetrics"].items() if not any(part in k for part in of_new)}
    return info["operation"], info["isBlindAppend"], metrics, sorted(map(str, files))


def _feed(table: Table) -> list[str]:
    """The change feed of the last commit."""
    if "delta.enableChangeDataFeed" not in table.log.snapshot().metadata.configuration:
        return []
    options = {"readChangeFeed": "true", "startingVersion": table.version, "endingVersion": table.version}
    return sorted(map(str, table.read(**options).drop("_commit_timestamp").collect()))


def _check_checkpoint(table: Table) -> None:
    """The checkpoint that followed the commit has the same files and tombstones as the replay of the commits."""
    found = _state(table)
    log = table.root / "_delta_log"
    (written,) = log.glob(f"{table.version:020}.checkpoint*.parquet")
    written.unlink()
    (log / "_last_checkpoint").unlink()
    assert _state(table) == found


def _state(table: Table) -> Any:
    snapshot = DeltaLog.for_path(table.path).snapshot()
    adds = sorted((a.path, str(a.deletion_vector), a.size, a.base_row_id) for a in adds_of(snapshot.files))
    removes = removes_of(snapshot.tombstones)
    return adds, sorted((r.path, str(r.deletion_vector), r.size) for r in removes), snapshot.totals()


@pytest.mark.slow
def test_a_row_that_matches_twice_is_found_in_a_later_slice(base: Table, slices: dict[str, list[int]]) -> None:
    """The files of the first slices are written by then; nothing is left of them."""
    table = copy_of(base, "matches twice")
    twice = mirrored(lambda source: source.selectExpr("id", "p + 1 AS p").union(source.where("id = 64")))
    with pytest.MonkeyPatch.context() as patched, large(table, patched), pytest.raises(InvalidArgumentError) as caught:
        twice(table)
    assert caught.value.condition == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    assert table.version == base.version
    assert table.data_files() <= named_files(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "by_vectors", "failure"),
    [
        ("update", False, KeyboardInterrupt()),
        ("mirror of other rows", True, StorageError("the disk is full")),
        ("delete", True, KeyboardInterrupt()),
        ("mirror of other rows", False, KeyboardInterrupt()),
    ],
)
def test_nothing_is_left_of_a_command_that_fails_in_a_later_slice(
    base: Table,
    slices: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    by_vectors: bool,
    failure: BaseException,
) -> None:
    table = copy_of(base, f"failed {command} {by_vectors}")
    put, calls = SlicedRemoval.put, []

    def failing(self: SlicedRemoval, *args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise failure
        put(self, *args)

    expected, files = rows_of(table), table.data_files()
    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr(SlicedRemoval, "put", failing)
        kind = CommandInterrupted if isinstance(failure, KeyboardInterrupt) else StorageError
        with (
            settings(base.spark, {setting.key: str(by_vectors).lower() for setting in BY_VECTORS}),
            pytest.raises(kind),
        ):
            SLICED[command](table)
    assert table.version == base.version
    assert rows_of(table) == expected
    assert table.data_files() == files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error"),
    [("append", ConcurrentAppendException), ("delete", ConcurrentDeleteReadException), ("txn", None)],
)
def test_a_concurrent_commit(
    base: Table,
    slices: dict[str, list[int]],
    puts: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    error: type[DeltaConcurrentModificationException] | None,
) -> None:
    table, alone = copy_of(base, f"between {kind}"), copy_of(base, f"alone {kind}")
    first = table.log.snapshot().add_files()[0]
    SLICED["delete"](alone)

    def other() -> None:
        log = DeltaLog.for_path(table.path)
        txn = log.transaction()
        if kind == "delete":
            txn.read_keys([first.key])
        new = first.path.replace("part-", "new-")
        actions: dict[str, list[Any]] = {"append": [_renamed(first, new)], "delete": [first.remove(5)], "txn": []}
        txn.commit(actions[kind], Operation("OTHER", {}))

    files = table.data_files()
    with monkeypatch.context() as patched, large(table, patched):
        between(patched, other)
        if error is None:
            SLICED["delete"](table)
        else:
            with pytest.raises(error):
                SLICED["delete"](table)
    assert len(puts) > 1
    assert table.version == base.version + (2 if error is None else 1)
    if error is None:
        assert rows_of(table) == rows_of(alone)
        _check_checkpoint(table)
    else:
        assert table.data_files() == files


def _renamed(add: Any, path: str) -> Any:
    return type(add)(path, add.partition_values, add.size, 1, True, stats=add.stats)


@pytest.mark.slow
def test_row_tracking_that_comes_between_is_a_conflict(
    base: Table, slices: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that are added again would have no row ids."""
    table = copy_of(base, "upgraded")

    def upgrade() -> None:
        txn = DeltaLog.for_path(table.path).transaction()
        txn.set_protocol(features.protocol_of(features.supported(txn.protocol) | {"rowTracking"}))
        txn.commit([], Operation("UPGRADE PROTOCOL", {}))

    files = table.data_files()
    with monkeypatch.context() as patched, large(table, patched):
        between(patched, upgrade)
        with pytest.raises(ProtocolChangedException, match="have no row ids"):
            SLICED["delete"](table)
    assert table.data_files() == files


@pytest.mark.slow
def test_a_blind_append_between_stays(
    base: Table, slices: dict[str, list[int]], puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copy_of(base, "stays")
    table.delta.setProperties({"delta.isolationLevel": "WriteSerializable"})
    with monkeypatch.context() as patched, large(table, patched):
        between(patched, lambda: Table(table.spark, table.root).write(values(table.spark, (800, 1))))
        SLICED["update"](table)
    assert len(puts) > 1
    assert (800, 1) in rows_of(table)
    _check_checkpoint(table)


@pytest.mark.slow
def test_commands_in_threads_have_their_own_slices(
    base: Table, slices: dict[str, list[int]], puts: list[tuple[int, int]]
) -> None:
    small, *others = (copy_of(base, f"thread {number}") for number in range(3))
    SLICED["update"](small)
    assert not puts
    conf.forget()
    with settings(base.spark, LARGE), ThreadPoolExecutor(2) as pool:
        list(pool.map(SLICED["update"], others))
    assert len(puts) > 3
    assert [rows_of(table) for table in others] == [rows_of(small)] * 2
    assert [_told(table) for table in others] == [_told(small)] * 2


@pytest.mark.slow
def test_what_follows(base: Table, slices: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second command on the vectors of the first, OPTIMIZE, VACUUM, time travel and RESTORE."""
    table, small = copy_of(base, "followed"), copy_of(base, "followed, small")
    before = rows_of(table)
    with monkeypatch.context() as patched, large(table, patched):
        SLICED["delete"](table)
        SLICED["update"](table)
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "_BYTES", 1 << 40)
        SLICED["delete"](small)
        SLICED["update"](small)
    assert rows_of(table) == rows_of(small) != before
    conf.forget()
    table.delta.optimize().executeCompaction()
    assert rows_of(table) == rows_of(small)
    files = table.data_files()
    table.delta.vacuum()
    assert table.data_files() == files
    table.delta.restoreToVersion(base.version)
    assert rows_of(table) == before


@pytest.mark.slow
def test_a_checkpoint_that_names_a_file_twice(
    base: Table, slices: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of files to remove must be the one that was found."""
    table = copy_of(base, "twice")
    put = SlicedRemoval.put
    files = table.data_files()
    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr(SlicedRemoval, "put", lambda self, removed, added: put(self, [*removed, removed[0]], added))
        with pytest.raises(CorruptLogError, match="has a file twice"):
            SLICED["delete"](table)
    assert table.version == base.version
    assert table.data_files() == files


@pytest.mark.slow
def test_no_space_for_the_temporary_files(
    base: Table, slices: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = copy_of(base, "no space")
    files = table.data_files()
    with monkeypatch.context() as patched, large(table, patched):
        patched.setattr("tempfile.tempdir", str(tmp_path / "none"))
        with pytest.raises(StorageError, match=r"files that a command changes are kept .* no temporary file"):
            SLICED["delete"](table)
    assert table.version == base.version
    assert table.data_files() == files


@pytest.mark.slow
def test_a_table_with_manifests_is_changed_as_a_whole(
    base: Table, slices: dict[str, list[int]], puts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps after its commits need each file."""
    table = copy_of(base, "manifests")
    table.delta.setProperties({"delta.enableDeletionVectors": "false"})
    table.delta.reorg()
    table.delta.setProperties({"delta.compatibility.symlinkFormatManifest.enabled": "true"})
    slices.clear()
    conf.forget()
    with settings(base.spark, LARGE):
        SLICED["delete"](table)
    assert not puts
    ((*_, needed),) = slices.values()
    assert needed > 5
