"""A version from the store: the hint where its checkpoint is, and the errors."""

import pytest

from support.counted_table import table
from support.log_builder import LogBuilder, add
from tablelog.core import Operation
from tablelog.core.log.last_checkpoint import LastCheckpoint
from tablelog.core.protocol.actions import Protocol
from tablelog.core.protocol.paths import checkpoint_name, commit_name
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    MissingCommitError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tablelog.logstore import CountingLogStore


@pytest.mark.parametrize(
    "hint",
    [b"", b"{", b'{"version":12,"size":1}', b'{"version":99,"size":1}', b'{"version":3,"size":1}', b'{"version":0}'],
)
def test_a_hint_that_misleads_does_no_harm(hint: bytes) -> None:
    builder = table(14, checkpoint=10)
    expected = builder.paths()
    builder.write("_last_checkpoint", hint)
    snapshot = builder.log().snapshot()
    assert (snapshot.version, snapshot.base_version) == (13, 10)
    assert builder.paths() == expected
    builder.delete("_last_checkpoint")
    assert builder.log().snapshot().base_version == 10


def test_a_checkpoint_newer_than_the_hint_is_used() -> None:
    builder = table(14, checkpoint=10)
    hint = builder.read("_last_checkpoint")
    builder.log().checkpoint(builder.log().snapshot(12))
    builder.write("_last_checkpoint", hint)
    counting = CountingLogStore(builder.store)
    assert builder.log(counting).snapshot().base_version == 12
    assert counting.calls == {"read": 3, "list_from": 1}


def test_a_commit_that_comes_late_to_its_checkpoint_leaves_the_newer_hint() -> None:
    """Another writer's commits and checkpoint came between this commit and its checkpoint."""
    builder = table(9)
    late, meanwhile = builder.log(), builder.log()
    write = late.write_checkpoint

    def after_others(snapshot: Snapshot, sidecar_writer: None = None) -> LastCheckpoint:
        for number in range(12):
            meanwhile.transaction().commit([add(f"meanwhile {number}")], Operation("WRITE", {"mode": "Append"}))
        assert b'"version":20' in builder.read("_last_checkpoint")
        return write(snapshot, sidecar_writer)

    late.transaction().commit([add("9")], Operation("WRITE", {"mode": "Append"}))
    late.write_checkpoint = after_others  # type: ignore[method-assign]
    late.transaction().commit([add("10")], Operation("WRITE", {"mode": "Append"}))
    assert checkpoint_name(10) in builder.names()
    assert b'"version":20' in builder.read("_last_checkpoint")


def test_a_hint_whose_checkpoint_is_gone() -> None:
    builder = table(14, checkpoint=10)
    builder.delete(checkpoint_name(10))
    assert builder.log().snapshot().base_version == -1
    assert len(builder.paths()) == 14


def test_no_table() -> None:
    builder = LogBuilder()
    assert not builder.log().exists()
    with pytest.raises(TableNotFoundError, match="no _delta_log directory"):
        builder.log().snapshot()
    builder.write("readme.txt", b"")
    builder.write("_last_checkpoint", b'{"version":0,"size":1}')
    assert not builder.log().exists()
    for call in (lambda log: log.snapshot(), lambda log: log.snapshot(0), lambda log: log.history()):
        with pytest.raises(TableNotFoundError, match="has no commit and no checkpoint"):
            call(builder.log())
    with pytest.raises(TableNotFoundError):
        builder.log().version_at(0)
    assert builder.log().transaction().snapshot is None
    builder.create()
    assert builder.log().exists()


def test_a_version_that_is_not_there_names_the_range() -> None:
    builder = table(5)
    for version in (5, 99, -1):
        with pytest.raises(VersionNotFoundError, match=f"version {version} of .* the versions that can: 0 to 4"):
            builder.log().snapshot(version)
    builder.log().checkpoint(builder.log().snapshot(3))
    builder.delete(commit_name(0), commit_name(1))
    for version in (0, 1, 2, 5):
        with pytest.raises(VersionNotFoundError, match="3 to 4"):
            builder.log().snapshot(version)
    assert builder.log().snapshot(3).num_files == 4
    with pytest.raises(InvalidArgumentError):
        builder.log().snapshot(1, 2)


def test_a_hole_is_an_error_and_not_an_older_version() -> None:
    builder = table(5)
    log = builder.log()
    log.snapshot()
    builder.version = 6
    builder.commit(add("7"))
    for handle in (log, builder.log()):
        with pytest.raises(MissingCommitError, match=r"00000000000000000005\.json to 00000000000000000006\.json"):
            handle.snapshot()
    assert builder.log().snapshot(4).num_files == 5
    builder.delete(commit_name(0))
    with pytest.raises(MissingCommitError, match=r"00000000000000000000\.json is missing"):
        builder.log().snapshot()


def test_a_commit_that_is_no_json_names_version_and_line() -> None:
    builder = table(2)
    builder.write(commit_name(2), b'{"add":{}}\n')
    with pytest.raises(CorruptLogError, match="version 2 of memory:///table: line 1"):
        builder.log().snapshot()


def test_a_feature_that_is_not_built_is_refused_by_name() -> None:
    builder = table(2)
    builder.commit(Protocol(3, 7, frozenset({"fromTheFuture"}), frozenset({"fromTheFuture"})))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture") as raised:
        builder.log().snapshot()
    assert raised.value.features == ("fromTheFuture",)
    assert builder.log().snapshot(1).num_files == 2
    assert len(builder.log().history()) == 3
