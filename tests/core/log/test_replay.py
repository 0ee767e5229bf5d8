"""Replay against a model: a dictionary of logical files, whatever checkpoints and compactions lie between."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, remove
from tablelog.core import Snapshot
from tablelog.core.log.replay import NO_FILES, SIZE_BINS, CommitOverlay, Header, covered, path_set
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)
from tablelog.core.protocol.paths import checkpoint_name, compacted_name

VECTORS = [None, DeletionVectorDescriptor("u", "abc", 10, 3, 1), DeletionVectorDescriptor("i", "xyz", 5, 2)]
NAMES = ["a.parquet", "b.parquet", "p=1/c.parquet", "d%20d.parquet", "file:/tmp/e.parquet"]


def keyed(actions):
    return {(a.path, a.deletion_vector): a for a in actions}


def state(snapshot: Snapshot) -> tuple:
    """What of a snapshot must not depend on how it was put together."""
    adds = {(a.path, a.deletion_vector): (a.size, a.stats) for a in snapshot.add_files()}
    return (
        snapshot.version,
        adds,
        snapshot.num_files,
        snapshot.size_in_bytes,
        dict(snapshot.transactions),
        dict(snapshot.domain_metadata),
        snapshot.metadata,
        snapshot.protocol,
    )


def tombstones(snapshot: Snapshot) -> set:
    table = snapshot.tombstones
    vectors = [v and (v["storageType"], v["pathOrInlineDv"], v["offset"]) for v in table["deletionVector"].to_pylist()]
    return set(zip(table["path"].to_pylist(), vectors, strict=True))


@st.composite
def commit(draw) -> list[Action]:
    """One commit: at most one file action of a kind for each key, as the protocol demands."""
    actions: list[Action] = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True)):
        vector = draw(st.sampled_from(VECTORS))
        if draw(st.booleans()):
            stats = draw(st.sampled_from([None, '{"numRecords":1}']))
            actions.append(add(name, size=draw(st.integers(0, 10**12)), deletion_vector=vector, stats=stats))
        else:
            actions.append(remove(name, deletion_vector=vector))
    if draw(st.booleans()):
        actions.append(SetTransaction(draw(st.sampled_from("xy")), draw(st.integers(0, 9))))
    if draw(st.booleans()):
        actions.append(DomainMetadata(draw(st.sampled_from("de")), "{}", draw(st.booleans())))
    return actions


def model(commits) -> tuple[dict, dict, dict, set]:
    files: dict = {}
    txns: dict = {}
    domains: dict = {}
    removed: set = set()
    for actions in commits:
        for action in actions:
            if isinstance(action, AddFile | RemoveFile):
                vector = action.deletion_vector
                key = action.path, vector
                entry = action.path, vector and (vector.storage_type, vector.path_or_inline_dv, vector.offset)
                files.pop(key, None)
                removed.discard(entry)
                if isinstance(action, AddFile):
                    files[key] = (action.size, action.stats)
                else:
                    removed.add(entry)
            elif isinstance(action, SetTransaction):
                txns[action.app_id] = action
            elif isinstance(action, DomainMetadata):
                domains.pop(action.domain, None)
                if not action.removed:
                    domains[action.domain] = action
    return files, txns, domains, removed


@settings(max_examples=40)
@given(st.lists(commit(), min_size=1, max_size=8), st.data())
@pytest.mark.thorough
def test_every_way_to_a_version_gives_the_same_state(commits, data) -> None:
    builder = LogBuilder().create(configuration={"delta.deletedFileRetentionDuration": "interval 1000 weeks"})
    warm = builder.log()
    warm.snapshot()
    for actions in commits:
        builder.commit(*actions)
        if data.draw(st.booleans(), label="refresh between"):
            warm.snapshot()
    last = len(commits)
    files, txns, domains, removed = model(commits)
    expected = builder.log().snapshot()
    assert state(expected)[1] == files
    assert state(expected)[4:6] == (txns, domains)
    assert expected.num_files == len(files)
    assert expected.size_in_bytes == sum(size for size, _ in files.values())
    assert tombstones(expected) == removed
    assert state(warm.snapshot()) == state(expected)

    at = data.draw(st.integers(0, last), label="checkpoint at")
    builder.log().checkpoint(builder.log().snapshot(at))
    from_checkpoint = builder.log().snapshot()
    assert from_checkpoint.base_version == at
    assert state(from_checkpoint) == state(expected)
    assert tombstones(from_checkpoint) == removed
    builder.log().checkpoint()
    again = builder.log().snapshot()
    assert (again.base_version, state(again), tombstones(again)) == (last, state(expected), removed)

    first = data.draw(st.integers(0, last), label="compacted from")
    if first < last:
        builder.delete("_last_checkpoint", *(checkpoint_name(v) for v in {at, last}))
        reconciled = CommitOverlay(builder.root)
        header = Header()
        for actions in ([], *commits)[first : last + 1]:
            reconciled, header = reconciled.extend(actions), header.after(actions)
        if first == 0:
            return  # the header of version 0 would have to be in it, too
        kept = [a for actions in commits[first - 1 : last] for a in actions if isinstance(a, DomainMetadata)]
        lines = [*reconciled.merged().values(), *header.transactions.values(), *{d.domain: d for d in kept}.values()]
        builder.write(compacted_name(first, last), codec.serialise(lines))
        assert state(builder.log().snapshot()) == state(expected)


@given(st.lists(commit(), max_size=10))
@settings(deadline=None)
def test_totals_go_on_from_version_to_version(commits) -> None:
    tail, totals = CommitOverlay("memory:///t"), NO_FILES
    for actions in commits:
        totals = tail.changes(totals, actions, complete=True)
        assert totals is not None
        tail = tail.extend(actions)
        live = [file for file in tail.merged().values() if isinstance(file, AddFile)]
        assert totals == NO_FILES.changed((1, file.size, file.deletion_vector) for file in live)


def test_an_overlay_finds_a_file_through_a_long_chain() -> None:
    tail = CommitOverlay("memory:///t")
    tails = []
    for number in range(300):
        tail = tail.extend([add(f"{number}.parquet")])
        tails.append(tail)
    assert isinstance(tail.get(("0.parquet", None)), AddFile)
    assert tail.get(("x.parquet", None)) is None
    assert len(tail.merged()) == 300
    assert [len(earlier.merged()) for earlier in tails] == list(range(1, 301))


def test_totals_are_unknown_where_the_actions_do_not_tell() -> None:
    tail = CommitOverlay("memory:///t")
    assert tail.changes(NO_FILES, [remove("of-the-base", size=None)], complete=False) is None
    assert tail.changes(NO_FILES, [add("of-the-base", data_change=False)], complete=False) is None
    known = tail.changes(NO_FILES, [remove("of-the-base", size=7), add("new", size=9)], complete=False)
    assert known is not None
    assert (known.num_files, known.size_in_bytes) == (0, 2)


def test_the_histogram_counts_a_size_where_its_class_begins() -> None:
    totals = NO_FILES.changed([(1, 0, None), (1, 8191, None), (1, 8192, None), (1, 1 << 40, None)])
    assert totals.file_counts[:2] == (2, 1)
    assert totals.file_counts[-1] == 1
    assert len(SIZE_BINS) == len(set(SIZE_BINS)) == 95
    assert list(SIZE_BINS) == sorted(SIZE_BINS)


def test_a_header_that_nothing_changed_is_shared() -> None:
    header = Header().after([SetTransaction("a", 1)])
    assert header.after([add("x")]) is header
    assert header.after([SetTransaction("b", 1)]).transactions.keys() == {"a", "b"}
    assert header.transactions.keys() == {"a"}


def test_spellings_of_one_path_are_one_file() -> None:
    builder = LogBuilder(root="file:///tmp/none").create(add("file:/tmp/x%20y"), add("a%41"))
    builder.commit(remove("/tmp/x%20y"), remove("aA"))
    assert builder.log().snapshot().num_files == 0
    builder.log().checkpoint(builder.log().snapshot(0))
    assert builder.log().snapshot().base_version == 0
    assert builder.paths() == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([None, "v", "w"])), unique=True),
    st.sets(st.tuples(st.sampled_from("abcdefghxyz"), st.sampled_from([None, "uv", "uw"]))),
    st.integers(1, 9),
)
@settings(max_examples=100, deadline=None)
def test_pieces_are_covered_as_the_whole(
    rows: list[tuple[str, str | None]], keys: set[tuple[str, str | None]], size: int
) -> None:
    """Whether a piece has fewer rows than there are superseded paths, or more."""
    vectors = [None if v is None else {"storageType": "u", "pathOrInlineDv": v, "offset": None} for _, v in rows]
    kind = pa.struct([("storageType", pa.string()), ("pathOrInlineDv", pa.string()), ("offset", pa.int32())])
    expected = [n for n, (path, v) in enumerate(rows) if (path, None if v is None else f"u{v}") in keys]
    found = []
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        paths = pa.chunked_array([pa.array([path for path, _ in rows[part]], pa.string())])
        found += [
            first + row
            for row in covered(paths, pa.chunked_array([pa.array(vectors[part], kind)]), keys, path_set(keys))
        ]
    assert found == expected
