"""Log compactions: they do what their commits do, are written in windows that a reader can chain, and are read."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import AddCDCFile, CommitInfo, DomainMetadata, Operation, Protocol, SetTransaction, Snapshot
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.log_maintenance.compaction import reconciled, window
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.protocol.paths import commit_name, compacted_name
from tablelog.errors import InvalidArgumentError, VersionNotFoundError
from tablelog.logstore import CountingLogStore
from tablelog.settings.declarations import COMPACTED_LOG_READS, COMPACTED_LOG_WRITES


def state(snapshot: Snapshot) -> tuple[Any, ...]:
    files = {(a.path, a.size) for a in snapshot.add_files()}
    removed = set(snapshot.tombstones["path"].to_pylist())
    domains = dict(snapshot.domain_metadata)
    return files, removed, dict(snapshot.transactions), domains, snapshot.metadata, snapshot.protocol


def names(counting: CountingLogStore) -> list[str]:
    return [path.rpartition("/")[2] for operation, path in counting.log if operation == "read"]


def test_what_it_holds() -> None:
    first = [CommitInfo(operation="A"), Protocol(1, 2), add("a"), add("b"), DomainMetadata("d", "1", False)]
    second = [
        CommitInfo(operation="B"), metadata(table_id="t"), remove("a"), add("b", size=5), SetTransaction("x", 1),
        DomainMetadata("d", "1", True), DomainMetadata("e", "2", False), AddCDCFile("c", {}, 1),
    ]  # fmt: skip
    third = [Protocol(1, 3), SetTransaction("x", 2), add("c")]
    assert reconciled([first, second, third], "memory:///t") == [
        Protocol(1, 3),
        metadata(table_id="t"),
        SetTransaction("x", 2),
        DomainMetadata("d", "1", True),  # or an older one would come back
        DomainMetadata("e", "2", False),
        remove("a"),
        add("b", size=5),
        add("c"),
    ]


@pytest.mark.parametrize(
    ("version", "interval", "checkpoint", "expected"),
    [
        (0, 5, -1, None),
        (4, 5, -1, None),
        (5, 5, -1, (1, 5)),
        (15, 5, 10, (11, 15)),
        (15, 5, 12, (13, 15)),
        (15, 5, 14, None),
        (15, 5, 15, None),
        (3, 1, -1, None),
    ],
)
def test_windows(version: int, interval: int, checkpoint: int, expected: tuple[int, int] | None) -> None:
    assert window(version, interval, checkpoint) == expected


@settings(max_examples=25)
@given(st.data())
def test_a_version_is_the_same_through_any_compaction(data: st.DataObject) -> None:
    builder = LogBuilder().create(add("0"))
    for _ in range(data.draw(st.integers(2, 7))):
        actions: list[Any] = []
        for name in data.draw(st.lists(st.sampled_from("0123"), max_size=3, unique=True)):
            actions.append(add(name, size=data.draw(st.integers(0, 99))) if data.draw(st.booleans()) else remove(name))
        if data.draw(st.booleans()):
            actions.append(DomainMetadata("d", str(len(actions)), data.draw(st.booleans())))
        if data.draw(st.booleans()):
            actions.append(SetTransaction("app", data.draw(st.integers(0, 9))))
        if data.draw(st.integers(0, 4)) == 0:
            actions.append(metadata(table_id="other"))
        builder.commit(*actions)
    last = builder.version
    if data.draw(st.booleans()):
        builder.log().checkpoint(builder.log().snapshot(data.draw(st.integers(0, last))))
    expected = [state(builder.log().snapshot(version)) for version in range(last + 1)]
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, last - 1))
        builder.log().compact(first, data.draw(st.integers(first + 1, last)))
    for version in range(last + 1):
        assert state(builder.log().snapshot(version)) == expected[version]
    assert not builder.log().health().problems or builder.log().health().ok


VECTORS = [None, *(DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, at) for at in (1, 40))]


@settings(max_examples=40)
@given(st.data())
def test_a_compaction_that_is_not_reconciled_is_not_used(data: st.DataObject) -> None:
    """Whatever actions of the commits it holds, in whatever order, a version is what the commits say."""
    builder = LogBuilder().create(add("0"))
    live = {"0": None}
    history: list[list[Any]] = []
    for _ in range(data.draw(st.integers(2, 4))):
        actions: list[Any] = []
        for name in data.draw(st.lists(st.sampled_from("012"), max_size=3, unique=True)):
            vector = data.draw(st.sampled_from(VECTORS))
            if name in live:
                actions.append(remove(name, deletion_vector=live.pop(name)))
                if vector in (actions[-1].deletion_vector, None):
                    continue
            live[name] = vector
            actions.append(add(name, size=data.draw(st.integers(0, 99)), deletion_vector=vector))
        if data.draw(st.booleans()):
            actions.append(SetTransaction("app", data.draw(st.integers(0, 9))))
        if data.draw(st.booleans()):
            actions.append(DomainMetadata("d", str(len(history)), data.draw(st.booleans())))
        if data.draw(st.booleans()):
            actions.append(metadata(table_id=f"id{len(history)}"))
        history.append(actions)
        builder.commit(*actions)
    last = builder.version
    expected = state(builder.log().snapshot())
    told = data.draw(st.permutations([action for actions in history for action in actions]))
    builder.write(compacted_name(1, last), codec.serialise(told) or b"\n")
    assert state(builder.log().snapshot()) == expected
    assert builder.log().snapshot().num_files == len(expected[0])


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([add("a"), remove("a")], "two file actions of a"),
        ([remove("a"), add("a")], "two file actions of a"),
        ([add("a", size=1), add("%61", size=2)], "two file actions of %61"),
        ([add("a"), add("a", deletion_vector=VECTORS[1])], "adds a twice"),
        ([SetTransaction("x", 1), SetTransaction("x", 2)], "two transactions of x"),
        ([DomainMetadata("d", "1", False), DomainMetadata("d", "2", True)], "two domains d"),
        ([metadata(table_id="1"), metadata(table_id="2")], "two metaData"),
        ([Protocol(1, 2), Protocol(1, 3)], "two protocol"),
    ],
)
def test_what_is_not_reconciled_is_said(actions: list[Any], message: str, caplog: pytest.LogCaptureFixture) -> None:
    builder = LogBuilder().create(add("0"))
    builder.commit(add("1")).commit(add("2"))
    builder.write(compacted_name(1, 2), codec.serialise(actions))
    assert builder.paths() == ["0", "1", "2"]
    assert "isn't reconciled" in caplog.text
    assert message in caplog.text
    [problem] = builder.log().health().problems
    assert problem.severity == "warning"
    assert message in problem.message


def test_it_stands_for_its_commits_unless_the_session_says_otherwise() -> None:
    builder = LogBuilder().create(add("0"))
    for number in range(1, 8):
        builder.commit(add(str(number)))
    assert builder.log().compact(2, 5) == compacted_name(2, 5)
    assert builder.log().compact(2, 5) == compacted_name(2, 5)
    counting = CountingLogStore(builder.store)
    assert builder.log(counting).snapshot().num_files == 8
    assert names(counting)[1:] == [commit_name(0), commit_name(1), compacted_name(2, 5), commit_name(6), commit_name(7)]
    counting.reset()
    assert builder.log(counting, conf={COMPACTED_LOG_READS.key: "false"}).snapshot().num_files == 8
    assert names(counting)[1:] == [commit_name(version) for version in range(8)]


def test_what_cannot_be_compacted() -> None:
    builder = LogBuilder().create().commit()
    for first, last in ((0, 0), (1, 0), (-1, 1)):
        with pytest.raises(InvalidArgumentError, match="can't be compacted"):
            builder.log().compact(first, last)
    with pytest.raises(VersionNotFoundError, match="version 2"):
        builder.log().compact(0, 2)


@pytest.mark.parametrize("asked", [True, False])
def test_commits_compact_where_the_session_says_so(asked: bool) -> None:
    builder = LogBuilder().create(configuration={"delta.logCompactionInterval": "4", "delta.checkpointInterval": "8"})
    log = builder.log(conf={COMPACTED_LOG_WRITES.key: "true"} if asked else {})
    for number in range(1, 23):
        log.transaction().commit([add(str(number))], Operation("WRITE"))
    found = [name for name in builder.names() if name.endswith("compacted.json")]
    assert found == ([compacted_name(1, 4), compacted_name(9, 12), compacted_name(17, 20)] if asked else [])
    assert builder.log().snapshot().num_files == 22
    lines = codec.parse_commit(builder.read(found[0])) if asked else []
    assert not any(isinstance(action, CommitInfo) for action in lines)


def test_large_commits_are_left_alone() -> None:
    builder = LogBuilder().create()
    builder.limits = MemoryLimits(compacted_bytes=1000)
    log = builder.log(conf={COMPACTED_LOG_WRITES.key: "true"})
    for number in range(5):
        log.transaction().commit([add(str(number))], Operation("WRITE"))
    assert not [name for name in builder.names() if name.endswith("compacted.json")]
