"""A command with several commits that read one version, as OPTIMIZE in groups: they don't read each other."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory_table import WRITE, add, create, lines, new_log, other
from tablelog.core.deltalog import DeltaLog
from tablelog.core.log.memory_limits import DEFAULT_LIMITS
from tablelog.core.protocol.actions import Action
from tablelog.core.txn import post_commit
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
)
from tablelog.logstore.memory import MemoryLogStore
from tablelog.logstore.wrappers.counting import CountingLogStore

OPTIMIZE = Operation("OPTIMIZE", {}, changes_data=False)
COUNT = 6


def _table(**configuration: str) -> DeltaLog:
    """A table with the files 0 to 5, each rewritten by one commit of the command."""
    log = new_log(CountingLogStore(MemoryLogStore()), conf={})
    create(log, configuration={f"delta.{key}": value for key, value in configuration.items()})
    log.transaction().commit([add(str(number)) for number in range(COUNT)], WRITE)
    return log


def _rewrite(transaction: Transaction, number: int) -> None:
    snapshot = transaction.snapshot
    assert snapshot is not None
    row = snapshot.files.column("path").to_pylist().index(str(number))
    transaction.read_table(snapshot.files.take([row]))
    old = snapshot.add_files([row])[0]
    new = add(f"new {number}", data_change=False)
    transaction.commit([new, old.remove(1, data_change=False)], OPTIMIZE)


def test_a_commit_reads_none_of_the_earlier_ones() -> None:
    log = _table()
    store = log.store
    assert isinstance(store, CountingLogStore)
    transaction = log.transaction()
    for number in range(COUNT):
        store.reset()
        _rewrite(transaction, number)
        assert not [path for method, path in store.log if method == "read" and path.endswith(".json")]
        assert lines(log, number + 2)[0]["commitInfo"]["readVersion"] == 1
        transaction = transaction.next()
    expected = sorted(f"new {number}" for number in range(COUNT))
    for handle in (log, other(log)):
        assert sorted(handle.snapshot().files.column("path").to_pylist()) == expected
        totals = handle.snapshot().totals()
        assert totals is not None
        assert totals.num_files == COUNT
    assert other(log).health().ok


def test_the_files_of_all_commits_do_not_stay_in_memory() -> None:
    """The command goes on from the newest checkpoint."""
    log = _table(checkpointInterval="2")
    each = DEFAULT_LIMITS.tail_actions + 1
    log.transaction().commit([add(f"{place}") for place in range(COUNT, COUNT * each)], WRITE)
    other(log).checkpoint()
    log.forget()
    transaction = log.transaction()
    held = []
    for number in range(COUNT):
        snapshot = transaction.snapshot
        assert snapshot is not None
        rows = range(number * each, (number + 1) * each)
        transaction.read_table(snapshot.files.take(list(rows)))
        removed = [file.remove(1, data_change=False) for file in snapshot.add_files(list(rows))]
        transaction.commit([add(f"new {number}", data_change=False), *removed], OPTIMIZE)
        transaction = transaction.next()
        assert transaction._newest_known is not None
        held.append(transaction._newest_known.tail_actions)
    assert max(held) <= 2 * (each + 1)
    assert min(held) == 0
    assert sorted(other(log).snapshot().files.column("path").to_pylist()) == [f"new {n}" for n in range(COUNT)]
    assert other(log).health().ok


def test_very_many_changed_files_are_followed_by_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the interval is: until then, each handle has an object for each of them."""
    log = _table(checkpointInterval="1000")
    each = DEFAULT_LIMITS.tail_actions
    log.transaction().commit([add(f"{place}") for place in range(COUNT, COUNT * each)], WRITE)
    other(log).checkpoint()
    before = len(log.reader.list(0).checkpoints)
    log.forget()
    monkeypatch.setattr(post_commit, "_MOST_ACTIONS", 2 * each)
    transaction = log.transaction()
    snapshot = transaction.snapshot
    assert snapshot is not None
    held, checkpoints = [], []
    for number in range(COUNT):
        rows = range(number * each, (number + 1) * each)
        removed = [file.remove(1, data_change=False) for file in snapshot.add_files(list(rows))]
        transaction.commit([add(f"new {number}", data_change=False), *removed], OPTIMIZE)
        checkpoints.append(len(log.reader.list(0).checkpoints) - before)
        transaction = transaction.next()
        assert transaction._newest_known is not None
        held.append(transaction._newest_known.tail_actions)
    assert checkpoints == [0, 1, 1, 2, 2, 3]
    assert held == [each + 1, 0] * (COUNT // 2)
    # A single commit of other writers counts too, and the next small one writes none.
    log = other(log)
    log.transaction().commit([add(f"more {place}") for place in range(2 * each + 1)], WRITE)
    log.transaction().commit([add("one more")], WRITE)
    assert len(log.reader.list(0).checkpoints) - before == 4
    assert other(log).health().ok


def test_row_ids_and_times_go_on() -> None:
    log = _table(enableRowTracking="true", enableInCommitTimestamps="true")
    transaction = log.transaction()
    for number in range(COUNT):
        _rewrite(transaction, number)
        other(log).transaction().commit([add(f"other {number}")], WRITE)
        transaction = transaction.next()
    ids = [add.base_row_id for add in log.snapshot().add_files()]
    assert None not in ids
    assert len(set(ids)) == 2 * COUNT
    newest = log.snapshot().version
    times = [lines(log, version)[0]["commitInfo"]["inCommitTimestamp"] for version in range(1, newest + 1)]
    assert times == sorted(set(times))
    assert other(log).health().ok


@pytest.mark.parametrize("place", range(COUNT))
@pytest.mark.parametrize("number", range(COUNT))
def test_a_file_that_another_writer_removes(number: int, place: int) -> None:
    """Wherever the other commit comes between those of the command, the one that rewrites the file is refused."""
    log = _table()
    transaction = log.transaction()
    for rewritten in range(COUNT):
        gone = rewritten == number and place <= number
        if place == rewritten:
            theirs = other(log).transaction()
            paths = theirs.read_files(None, time_zone="UTC").column("path").to_pylist()
            name = str(number) if str(number) in paths else f"new {number}"
            (old,) = (file for file in log.snapshot().add_files() if file.path == name)
            theirs.commit([old.remove(1)], Operation("DELETE", {}))
        if gone:
            with pytest.raises((ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)):
                _rewrite(transaction, rewritten)
        else:
            _rewrite(transaction, rewritten)
        transaction = transaction.next()
    left = sorted(other(log).snapshot().files.column("path").to_pylist())
    assert left == sorted(f"new {rewritten}" for rewritten in range(COUNT) if rewritten != number)


def test_metadata_that_another_writer_changes() -> None:
    log = _table()
    transaction = log.transaction()
    _rewrite(transaction, 0)
    theirs = other(log).transaction()
    theirs.set_metadata(replace(theirs.metadata, description="new"))
    theirs.commit([], Operation("SET TBLPROPERTIES", {}))
    for number in (1, 2):
        transaction = transaction.next()
        with pytest.raises(MetadataChangedException):
            _rewrite(transaction, number)


EVENT = st.one_of(
    st.just(("append", 0)),
    st.tuples(st.just("remove"), st.integers(0, COUNT - 1)),
    st.just(("metadata", 0)),
    st.just(("checkpoint", 0)),
    st.just(("forget", 0)),
)


@given(st.lists(st.lists(EVENT, max_size=2), min_size=COUNT, max_size=COUNT))
@settings(max_examples=60, deadline=None)
def test_the_same_as_if_the_earlier_commits_were_read(events: Sequence[Sequence[tuple[str, int]]]) -> None:
    """Each commit succeeds or fails as one that reads all commits since the version, those of the command too."""
    assert _outcome(events, reads_again=False) == _outcome(events, reads_again=True)


def _outcome(events: Sequence[Sequence[tuple[str, int]]], *, reads_again: bool) -> list[object]:
    log = _table()
    found: list[object] = []
    transaction = log.transaction()
    snapshot = transaction.snapshot
    for number, happened in enumerate(events):
        for place, (kind, which) in enumerate(happened):
            _happen(log, kind, which, f"{number} {place}")
        try:
            _rewrite(transaction, number)
            found.append(None)
        except DeltaConcurrentModificationException as error:
            found.append(type(error))
        transaction = Transaction(log, snapshot) if reads_again else transaction.next()
    newest = other(log).snapshot()
    assert other(log).health().ok
    assert sorted(log.snapshot().files.column("path").to_pylist()) == sorted(newest.files.column("path").to_pylist())
    return [*found, newest.version, sorted(newest.files.column("path").to_pylist())]


def _happen(log: DeltaLog, kind: str, which: int, name: str) -> None:
    theirs = other(log)
    if kind == "forget":
        log.forget()
        return
    if kind == "checkpoint":
        theirs.checkpoint()
        return
    transaction = theirs.transaction()
    actions: list[Action] = [add(f"other {name}")] if kind == "append" else []
    if kind == "remove":
        assert transaction.snapshot is not None
        files = [file for file in transaction.snapshot.add_files() if file.path in (str(which), f"new {which}")]
        actions = [file.remove(1) for file in files]
    if kind == "metadata":
        transaction.set_metadata(replace(transaction.metadata, description=name))
    transaction.commit(actions, WRITE if kind == "append" else Operation("OTHER", {}))
