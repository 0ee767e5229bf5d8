"""What one commit means to a stream, also if only the actions that it needs are kept."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core.log import large_commits
from tablelog.core.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, FileAction, Protocol, RemoveFile
from tablelog.core.streaming.commit_tail import CommitTail
from tablelog.core.streaming.commits import CommitRules, of_commit
from tablelog.errors import CorruptLogError, MissingCommitError, UnsupportedFeatureError

ACTIONS: list[Action] = [
    CommitInfo(operation="UPDATE", in_commit_timestamp=5),
    Protocol(1, 2),
    metadata(),
    AddCDCFile("_change_data/c", {}, 5),
    *(add(name, data_change=change) for name in "ab" for change in (True, False)),
    *(replace(remove(name), data_change=change) for name in "ab" for change in (True, False)),
]
RULES = st.builds(CommitRules, st.booleans(), st.booleans(), st.booleans(), st.none(), st.booleans())


def outcome(actions: list[Action], rules: CommitRules) -> Any:
    try:
        return of_commit(7, actions, rules, "t")
    except UnsupportedFeatureError as error:
        return str(error)


@given(st.lists(st.sampled_from(ACTIONS), max_size=12), RULES)
def test_the_needed_actions_have_the_same_meaning(actions: list[Action], rules: CommitRules) -> None:
    needed = rules.needed(actions)
    assert outcome(needed, rules) == outcome(actions, rules)
    if not rules.changes:
        assert sum(isinstance(action, RemoveFile) for action in needed) <= 1
        assert all(not isinstance(action, FileAction) or isinstance(action, AddFile | RemoveFile) for action in needed)


@pytest.mark.parametrize("largest", [0, 1 << 60])
def test_a_tail_reads_large_commits_in_batches(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", largest)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 500)
    builder = LogBuilder()
    builder.create(add("first"))
    builder.commit(*(remove(f"f{number}") for number in range(50)), add("x"))
    log = builder.log()
    tail = CommitTail(log, log.snapshot().metadata.id, fail_on_data_loss=True)
    assert list(tail.versions(1)) == [1]
    paths = [action.path for action in tail.read(1, CommitRules().needed) or () if isinstance(action, FileAction)]
    assert paths == ["f0", "x"]
    assert len(tail.read(1, CommitRules(changes=True).needed) or ()) == len(log.reader.commit(1))
    builder.delete(f"{1:020}.json")
    with pytest.raises(MissingCommitError):
        tail.read(1, CommitRules().needed)


def test_a_damaged_line_of_a_large_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream raises an error that names the version and the line; a search that ends before it reads no further."""
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 500)
    builder = LogBuilder()
    builder.create(add("first"))
    builder.commit(*(remove(f"f{number}") for number in range(50)))
    log = builder.log()
    tail = CommitTail(log, log.snapshot().metadata.id, fail_on_data_loss=True)
    assert list(tail.versions(1)) == [1]
    name = f"{1:020}.json"
    lines = builder.read(name).splitlines(keepends=True)
    damaged = next(number for number, line in enumerate(lines, 1) if b'"f40"' in line)
    lines[damaged - 1] = b'{"remove":{"path":\n'
    builder.write(name, b"".join(lines))

    assert any(isinstance(action, RemoveFile) for action in log.reader.each_action(1))
    for changes in (False, True):
        with pytest.raises(CorruptLogError, match=f"line {damaged}:") as raised:
            tail.read(1, CommitRules(changes=changes).needed)
        assert (raised.value.table, raised.value.version) == (log.table, 1)
