"""What changed in a range of versions, by the log alone."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core.deltalog import DeltaLog
from tablelog.core.log import large_commits
from tablelog.core.protocol.actions import (
    Action,
    AddCDCFile,
    CommitInfo,
    DeletionVectorDescriptor,
    FileAction,
    Metadata,
)
from tablelog.core.protocol.column_mapping import ColumnMapping
from tablelog.core.protocol.schema import parse_schema
from tablelog.core.table import changed_files
from tablelog.core.table.changed_files import Commit, collected, of_commit
from tablelog.core.table.changes import (
    Bound,
    check_recorded,
    check_schemas,
    mapping_before,
    read_commits,
    version_range,
)
from tablelog.errors import (
    ChangeDataMissingError,
    ChangeFeedSchemaError,
    CorruptLogError,
    InvalidArgumentError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)

T = 1_700_000_000_000
ON = {"delta.enableChangeDataFeed": "true"}
VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 1)


def told(*actions: Action) -> tuple[list[tuple[str, str | None]], list[str]]:
    files, vectors, _ = of_commit(Commit(3, T, actions), "t")
    return [(one.file.path, one.change_type) for one in files], [one.added.path for one in vectors]


def test_change_files_tell_alone() -> None:
    cdc = AddCDCFile("_change_data/c", {}, 5)
    assert told(add("a"), remove("b"), cdc) == ([("_change_data/c", None)], [])


def test_files_that_come_and_go_are_inserts_and_deletes() -> None:
    assert told(CommitInfo(), add("a"), remove("b")) == ([("a", "insert"), ("b", "delete")], [])
    assert told(add("a", data_change=False)) == ([], [])


def test_a_file_with_another_vector_is_told_by_both() -> None:
    before, after = remove("d%20e", deletion_vector=None), add("d e", deletion_vector=VECTOR)
    assert told(before, after) == ([], ["d e"])


def test_a_merge_that_changed_no_row_changed_nothing() -> None:
    metrics = {f"numTargetRows{what}": "0" for what in ("Inserted", "Updated", "Deleted")}
    info = CommitInfo(operation="MERGE", operation_metrics=metrics)
    assert told(info, add("a"), remove("b")) == ([], [])
    assert told(CommitInfo(operation="MERGE"), add("a")) == ([("a", "insert")], [])


def test_a_removed_file_of_which_nothing_is_told_cannot_be_read() -> None:
    with pytest.raises(CorruptLogError, match="removes b without its size"):
        told(remove("b", partition_values=None, size=None))


# --- the range ----------------------------------------------------------------------------------------------------


def table() -> LogBuilder:
    """Versions 0 to 3, a second apart."""
    builder = LogBuilder()
    builder.clock.now = T - 1000
    builder.create(add("0"))
    for number in range(1, 4):
        builder.commit(add(str(number)), at=T + 1000 * number)
    return builder


def ranged(start: Bound, end: Bound | None = None, **flags: bool) -> tuple[int, int] | None:
    log = table().log()
    return version_range(log, log.snapshot().version, start, end, **flags)


def at(milliseconds: int) -> Bound:
    return Bound(timestamp_ms=T + milliseconds)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (Bound(1), None, (1, 3)),
        (Bound(1), Bound(2), (1, 2)),
        (Bound(0), Bound(99), (0, 3)),  # an end beyond the newest is the newest
        (at(1000), at(2000), (1, 2)),
        (at(1001), at(2999), (2, 2)),
        (at(-50_000), None, (0, 3)),
        (at(1001), at(1500), None),  # between two versions
        (at(1001), Bound(2), (2, 2)),
    ],
)
def test_both_ends_are_included(start: Bound, end: Bound | None, found: tuple[int, int] | None) -> None:
    assert ranged(start, end) == found


def test_what_lies_outside_is_refused() -> None:
    with pytest.raises(VersionNotFoundError, match="newest version is 3"):
        ranged(Bound(4))
    with pytest.raises(TimestampOutOfRangeError, match="after the last version"):
        ranged(at(3001))
    with pytest.raises(TimestampOutOfRangeError):
        ranged(Bound(0), at(3001))
    with pytest.raises(InvalidArgumentError, match="the end is before"):
        ranged(Bound(2), Bound(1))
    with pytest.raises(InvalidArgumentError, match="the end is before"):
        ranged(at(3000), at(1000))


def test_what_lies_outside_is_nothing_where_that_is_allowed() -> None:
    assert ranged(Bound(4), lenient=True) is None
    assert ranged(at(3001), lenient=True) is None
    assert ranged(Bound(2), at(99_999), lenient=True) == (2, 3)


def commits_of(log: DeltaLog, first: int, last: int, *, in_columns: bool = False) -> list[Commit]:
    return read_commits(log, log.snapshot(), first, last, in_columns=in_columns)


def test_the_commits_of_a_range_bear_times_that_rise() -> None:
    builder = table()
    builder.commit(add("late"), at=T + 2500)
    found = commits_of(builder.log(), 2, 4)
    assert [(one.version, one.timestamp_ms - T) for one in found] == [(2, 2000), (3, 3000), (4, 3001)]
    assert [[a.path for a in one.actions if hasattr(a, "path")] for one in found] == [["2"], ["3"], ["late"]]
    with pytest.raises(VersionNotFoundError, match="commit of version 5"):
        commits_of(builder.log(), 4, 5)


# --- what can be read ---------------------------------------------------------------------------------------------


def test_every_version_has_to_have_recorded_its_changes() -> None:
    commits = [Commit(1, T, [add("a")]), Commit(2, T, [metadata()]), Commit(3, T, [metadata(ON)])]
    with pytest.raises(ChangeDataMissingError, match="version 2 has no change data"):
        check_recorded(commits, metadata(ON), "t")
    with pytest.raises(ChangeDataMissingError, match="version 1 has no change data"):
        check_recorded(commits[:1], metadata(), "t")
    check_recorded(commits[2:], metadata(ON), "t")


def of(*fields: dict[str, Any], mode: str = "none") -> Metadata:
    whole = [{"type": "long", "nullable": True, "metadata": {}, **field} for field in fields]
    text = json.dumps({"type": "struct", "fields": whole})
    return metadata({"delta.columnMapping.mode": mode}, schema=text)


def physical(name: str) -> dict[str, Any]:
    return {"metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": name}}


def mapping(found: Metadata) -> ColumnMapping:
    mode: Any = found.configuration["delta.columnMapping.mode"]
    return ColumnMapping(mode, parse_schema(found.schema_string), ())


def checked(start: Metadata, changed: Metadata, read: Metadata, at: int) -> None:
    commits = [Commit(1, T, []), Commit(2, T, [changed])]
    check_schemas(commits, mapping(start), mapping(read), at, "t")


A, B = {"name": "a"}, {"name": "b"}
NESTED = {"name": "s", "type": {"type": "struct", "fields": [{**A, "type": "long", "nullable": True, "metadata": {}}]}}
WIDER = {
    "name": "s",
    "type": {
        "type": "struct",
        "fields": [{**one, "type": "long", "nullable": True, "metadata": {}} for one in (A, B)],
    },
}


@pytest.mark.parametrize(
    ("start", "changed", "read"),
    [
        ([A], [A, B], [A, B]),
        ([A], [B, A], [{"name": "A"}, B]),
        ([NESTED], [WIDER], [WIDER]),
        ([{**A, "nullable": False}], [A], [A]),
    ],
)
def test_columns_may_be_added(start: list[Any], changed: list[Any], read: list[Any]) -> None:
    checked(of(*start), of(*changed), of(*read), 2)


def test_the_partition_columns_may_not_change() -> None:
    def by(*columns: str) -> Metadata:
        return replace(of(A, B), partition_columns=columns)

    def check(commits: list[Commit], start: Metadata, read: Metadata) -> None:
        mappings = [
            ColumnMapping("none", parse_schema(one.schema_string), tuple(one.partition_columns))
            for one in (start, read)
        ]
        check_schemas(commits, *mappings, 2, "t")

    old, new = remove("x", partition_values={"a": "1"}), remove("y", partition_values={"b": "1"})
    with pytest.raises(ChangeFeedSchemaError, match="between it and version 1 the partition columns changed"):
        check([Commit(1, T, []), Commit(2, T, [by("b"), old])], by("a"), by("b"))
    with pytest.raises(ChangeFeedSchemaError, match="version 2 changes the partition columns"):
        check([Commit(2, T, [by("b"), old])], by("b"), by("b"))
    check([Commit(1, T, []), Commit(2, T, [by("b"), new])], by("b"), by("b"))
    check([Commit(2, T, [by("b"), remove("z", partition_values=None)])], by("b"), by("b"))


@pytest.mark.parametrize(
    ("start", "read", "says"),
    [
        ([A, B], [A], "the column b was dropped"),
        ([A], [{**A, "type": "string"}], "the column a changed from bigint to string"),
        ([A], [{**A, "nullable": False}], "the nullability of the column a changed"),
        ([WIDER], [NESTED], "the column s.b was dropped"),
        ([{**A, "type": "integer"}], [A], "the column a changed from int to bigint"),
    ],
)
def test_any_other_change_is_refused(start: list[Any], read: list[Any], says: str) -> None:
    with pytest.raises(ChangeFeedSchemaError, match=f"version 2, but between it and version 1 {says}"):
        checked(of(*start), of(*read), of(*read), 2)


def test_a_range_is_read_with_the_columns_of_an_older_version_too() -> None:
    checked(of(A), of(A, B), of(A), 1)
    with pytest.raises(ChangeFeedSchemaError, match="the column b was dropped"):
        checked(of(A, B), of(A), of(A, B), 1)


def test_names_tell_columns_apart_where_they_are_mapped() -> None:
    one, other = of({**A, **physical("x")}, mode="name"), of({**A, **physical("y")}, mode="name")
    checked(one, one, one, 2)
    with pytest.raises(ChangeFeedSchemaError, match="was replaced by another column with the same name"):
        checked(one, other, other, 2)
    with pytest.raises(ChangeFeedSchemaError, match="the column a was dropped"):
        checked(one, one, of({**B, **physical("y")}, mode="name"), 2)
    with pytest.raises(ChangeFeedSchemaError, match="the column a was renamed to b"):
        checked(one, one, of({**B, **physical("x")}, mode="name"), 2)
    upgraded = of({**A, **physical("a")}, mode="name")
    checked(of(A), upgraded, upgraded, 2)


def test_rows_that_the_first_commit_removes_fit_the_columns() -> None:
    commits = [Commit(2, T, [of(A), remove("x")])]

    def check(before: dict[str, Any], read: dict[str, Any]) -> None:
        check_schemas(commits, mapping(of(read)), mapping(of(read)), 2, "t", mapping(of(before)))

    with pytest.raises(ChangeFeedSchemaError, match="removes rows of other types: the column a changed from bigint to"):
        check(A, {**A, "type": "integer"})
    with pytest.raises(ChangeFeedSchemaError, match="from bigint to string"):
        check(A, {**A, "type": "string"})
    check({**A, "type": "integer"}, A)
    check({**A, "type": "void"}, {**A, "type": "string"})  # a void column is in no file
    check(A, B)


def test_only_removed_files_are_compared_with_the_version_before() -> None:
    cdc = AddCDCFile("c", {}, 1, False)
    for actions in ([of(A)], [of(A), remove("x"), cdc], [add("y"), remove("x")]):
        assert mapping_before(None, Commit(2, T, actions)) is None  # type: ignore[arg-type]  # it isn't asked
    assert mapping_before(None, Commit(0, T, [of(A), remove("x")])) is None  # type: ignore[arg-type]


# --- large commits ------------------------------------------------------------------------------------------------


PATHS = ("a", "b", "./a", "%61", "c d", "c%20d", "file:///x/e")


@st.composite
def large_commits_of(draw: st.DrawFn) -> list[Action]:
    """Actions of one commit: files that come, go, or change their vectors, in several spellings and more than once."""
    made: list[Action] = []
    for _ in range(draw(st.integers(0, 12))):
        path, vector = draw(st.sampled_from(PATHS)), draw(st.sampled_from([None, VECTOR]))
        change = draw(st.booleans()) or draw(st.booleans())
        size = draw(st.integers(0, 9))
        if draw(st.booleans()):
            made.append(add(path, size=size, data_change=change, deletion_vector=vector, partition_values={"p": None}))
        else:
            values = draw(st.sampled_from([{"p": "1"}, {"p": "1"}, {"p": "1"}, None]))
            removed = remove(path, size=size, deletion_vector=vector, partition_values=values)
            made.append(replace(removed, data_change=change))
    if draw(st.integers(0, 5)) == 0:
        made.append(AddCDCFile("_change_data/c", {"p": "2"}, 5))
    if draw(st.booleans()):
        metrics = {f"numTargetRows{what}": draw(st.sampled_from("01")) for what in ("Inserted", "Updated", "Deleted")}
        made.insert(0, CommitInfo(operation="MERGE", operation_metrics=metrics))
    return made


def outline(commit: Commit) -> Any:
    """The changes of a commit as plain values, or the error; the same for actions and for columns."""
    try:
        found = of_commit(commit, "t")
    except CorruptLogError as error:
        return error.version
    files = [
        (one.change_type, one.file.path, one.file.size, dict(one.file.partition_values or {}), _vector(one.file))
        for one in found.files
    ]
    for column in found.columns:
        assert column.commit is commit
        for row in column.files.to_pylist():
            vector = row.get("deletionVector")
            files.append(
                (
                    column.change_type,
                    row["path"],
                    row["size"],
                    dict(row["partitionValues"]),
                    vector and vector["pathOrInlineDv"],
                )
            )
    return sorted(files, key=repr), sorted(((one.removed, one.added) for one in found.vectors), key=repr)


def _vector(file: Any) -> str | None:
    vector = getattr(file, "deletion_vector", None)
    return vector and vector.path_or_inline_dv


@given(large_commits_of(), st.integers(1, 4))
def test_columns_and_actions_have_the_same_changes(actions: list[Action], batch: int) -> None:
    batches = [actions[start : start + batch] for start in range(0, len(actions), batch)] or [[]]
    read = collected(batches)
    assert read is not None
    others, files = read
    assert not any(isinstance(action, FileAction) for action in others)
    assert outline(Commit(3, T, others, files)) == outline(Commit(3, T, actions))


def test_hashes_that_collide_are_no_repeated_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_files, "hash", len, raising=False)
    read = collected([[add("a"), add("b"), add("cd"), add("a", size=7)]])
    assert read is not None
    found = of_commit(Commit(3, T, [], read[1]), "t").columns[0].files
    assert found.select(["path", "size"]).to_pylist() == [
        {"path": "b", "size": add("b").size},
        {"path": "cd", "size": add("cd").size},
        {"path": "a", "size": 7},
    ]


def test_only_a_part_of_a_large_commit_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table()
    builder.commit(*(add(f"f{number}") for number in range(200)), remove("1"), at=T + 9000)
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 2_000)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 1_000)
    alive: list[int] = []
    counted = changed_files.table_of

    def noted(files: Any, schema: Any) -> Any:
        alive.append(len(files))
        return counted(files, schema)

    monkeypatch.setattr(changed_files, "table_of", noted)
    small, large = commits_of(builder.log(), 3, 4, in_columns=True)
    assert small.files is None
    assert large.files is not None
    assert (large.files.adds.num_rows, large.files.removes.num_rows) == (200, 1)
    assert not any(isinstance(action, FileAction) for action in large.actions)
    assert 0 < max(alive) < 20
    assert large.timestamp_ms == T + 9000
    (whole,) = commits_of(builder.log(), 4, 4)
    assert whole.files is None
    assert outline(whole) == outline(large)


def test_a_large_commit_that_disappears_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table()
    log = builder.log()
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    monkeypatch.setattr(type(log.reader), "batches", lambda *_: iter(()))
    with pytest.raises(VersionNotFoundError, match=r"commit of version 2 .* was removed while"):
        commits_of(log, 2, 3, in_columns=True)


def test_a_damaged_line_of_a_large_commit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table()
    log = builder.log()
    log.snapshot()
    builder.write(
        f"{2:020}.json",
        b'{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n{"add":',
    )
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    with pytest.raises(CorruptLogError, match="line 2") as caught:
        commits_of(log, 2, 3, in_columns=True)
    assert caught.value.version == 2
