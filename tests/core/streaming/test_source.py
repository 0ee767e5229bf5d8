"""Streams over logs that were written by hand: what the batches contain, and which error a log gives. No Spark."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core.log import large_commits
from tablelog.core.protocol.actions import AddCDCFile, AddFile, Protocol, RemoveFile
from tablelog.core.streaming import offset
from tablelog.core.streaming.commits import CommitRules
from tablelog.core.streaming.limits import ReadLimits
from tablelog.core.streaming.offset import BEFORE_FILES, SourceOffset
from tablelog.core.streaming.source import Batch, StreamOptions, TableStream
from tablelog.core.table.changes import Bound
from tablelog.errors import (
    ChangeDataMissingError,
    CorruptLogError,
    MissingCommitError,
    SchemaChangedError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from tablelog.logstore.memory import MemoryLogStore
from tablelog.logstore.wrappers.counting import CountingLogStore

TWO = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"b","type":"long","nullable":true,"metadata":{}}]}'
)


def stream(builder: LogBuilder, **options: Any) -> TableStream:
    log = builder.log()
    return TableStream(log, log.snapshot(), StreamOptions(**options))


def paths(batch: Batch) -> list[str]:
    return [action.path for commit in batch.commits for action in commit.actions]


def batches(
    source: TableStream, start: SourceOffset | None = None, *, unlimited: bool = False
) -> Iterator[tuple[SourceOffset, Batch]]:
    """All batches from `start` on, as Spark's engine asks for them."""
    while True:
        end = source.latest(start, unlimited=unlimited)
        if end is None or end == start:
            return
        yield end, source.batch(start, end)
        start = end


def every_path(source: TableStream, start: SourceOffset | None = None) -> list[str]:
    return [path for _, batch in batches(source, start) for path in paths(batch)]


def table_id(builder: LogBuilder) -> str:
    return builder.log().snapshot().metadata.id


# --- offsets ------------------------------------------------------------------------------------------------------


def test_offsets_have_the_form_of_delta() -> None:
    text = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":4,"index":-1,"isStartingVersion":false}'
    assert offset.parse(text) == SourceOffset("t", 4, BEFORE_FILES, False)
    assert SourceOffset("t", 4, BEFORE_FILES, False).to_json() == text
    at_file = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":0,"index":7,"isStartingVersion":true}'
    assert offset.parse(at_file).to_json() == at_file
    newer = text.replace('"sourceVersion":1', '"sourceVersion":3').replace("-1", "-100")
    assert offset.parse(newer) == SourceOffset("t", 4, BEFORE_FILES, False)
    assert offset.parse(newer.replace("-100", "-1")) == SourceOffset("t", 4, BEFORE_FILES, False)
    assert offset.parse(text.replace(":4,", ':"4",')) == SourceOffset("t", 4, BEFORE_FILES, False)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sourceVersion", "1e999"), ("reservoirVersion", "4.5"), ("reservoirVersion", "-1"), ("index", "1e999"),
        ("reservoirVersion", "9223372036854775808"), ("index", "9223372036854775808"), ("index", "true"),
        ("index", str(offset.AFTER_FILES)), ("isStartingVersion", '"false"'), ("isStartingVersion", "null"),
        ("reservoirId", "null"), ("reservoirId", "5"), ("reservoirId", "[" * 100_000),
    ],
)  # fmt: skip
def test_a_damaged_offset_is_a_typed_error(field: str, value: str) -> None:
    fields = {
        "sourceVersion": "1",
        "reservoirId": '"t"',
        "reservoirVersion": "4",
        "index": "0",
        "isStartingVersion": "true",
    }
    offset.parse(_object(fields))
    with pytest.raises(CorruptLogError, match="isn't one of a Delta table") as raised:
        offset.parse(_object({**fields, field: value}))
    assert raised.value.condition == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


def _object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"


@pytest.mark.parametrize(
    ("text", "error", "condition"),
    [
        ("7", CorruptLogError, "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        ('{"logOffset":3}', CorruptLogError, "DELTA_INVALID_SOURCE_OFFSET_FORMAT"),
        (
            SourceOffset("t", 1, 0, False).to_json().replace(":1,", ":2,", 1),
            CorruptLogError,
            "DELTA_INVALID_SOURCE_VERSION",
        ),
        (
            SourceOffset("t", 1, 0, False).to_json().replace(":1,", ":4,", 1),
            UnsupportedFeatureError,
            "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
        ),
    ],
)
def test_an_offset_that_is_not_known_is_refused(text: str, error: type[CorruptLogError], condition: str) -> None:
    with pytest.raises(error) as raised:
        offset.parse(text)
    assert raised.value.condition == condition


# --- batches ------------------------------------------------------------------------------------------------------


def random_log(rng: random.Random) -> tuple[LogBuilder, list[str], int]:
    """A log of appends, compactions and commits without files; what each commit appended, and where a stream starts."""
    builder = LogBuilder().create()
    live: list[str] = []
    appended: list[str] = []
    for version in range(1, rng.randint(2, 12)):
        kind = rng.choice(["append", "append", "append", "compact", "nothing"])
        if kind == "append":
            names = [f"f{version:02}-{i}" for i in range(rng.randint(1, 5))]
            builder.commit(*(add(name, size=rng.randint(1, 400)) for name in names))
            live += names
            appended += names
        elif kind == "compact" and live:
            out = f"c{version:02}"
            gone = [RemoveFile(name, 1, False, True, {}, 100) for name in live]
            builder.commit(*gone, add(out, data_change=False))
            live = [out]
        else:
            builder.commit()
    return builder, appended, rng.randint(0, builder.version)


@pytest.mark.parametrize("seed", range(60))
def test_the_batches_together_are_the_table(seed: int) -> None:
    rng = random.Random(seed)
    builder, appended, _ = random_log(rng)
    limits = ReadLimits(rng.choice([None, 1, 2, 3, 7]), rng.choice([None, None, 1, 300, 1000]))
    assert every_path(stream(builder, limits=limits, start=Bound(version=0))) == appended
    # From the newest version, then what is appended later, with a restart after each batch.
    source = stream(builder, limits=limits)
    live = sorted(builder.paths())
    later = [f"later{i}" for i in range(4)]
    first = list(batches(source))
    for name in later:
        builder.commit(add(name))
    got = [path for _, batch in first for path in paths(batch)]
    assert sorted(got) == live
    end = first[-1][0] if first else None
    while True:
        restarted = stream(builder, limits=limits)
        following = restarted.latest(None if end is None else offset.parse(end.to_json()))
        if following is None or following == end:
            break
        repeated = stream(builder, limits=limits).batch(end, offset.parse(following.to_json()))
        assert paths(repeated) == paths(restarted.batch(end, following))
        got += paths(repeated)
        end = following
    assert sorted(got) == sorted([*live, *later])


@pytest.mark.parametrize("changes", [False, True])
def test_restarts_in_the_midst_of_a_large_commit(monkeypatch: pytest.MonkeyPatch, changes: bool) -> None:
    builder = LogBuilder().create(configuration=CDF)
    builder.commit(*(add(f"f{number}") for number in range(20)))
    builder.commit(*(remove(f"f{number}", size=100) for number in range(20)))
    rules = CommitRules(changes=changes, ignore_deletes=not changes)

    def restarted() -> list[tuple[SourceOffset, Batch]]:
        found: list[tuple[SourceOffset, Batch]] = []
        end: SourceOffset | None = None
        while True:
            source = stream(builder, limits=ReadLimits(3), rules=rules, start=Bound(version=1))
            following = source.latest(end)
            if following is None or following == end:
                return found
            end, begin = offset.parse(following.to_json()), end
            again = stream(builder, limits=ReadLimits(3), rules=rules, start=Bound(version=1))
            found.append((end, again.batch(begin, end)))

    small = restarted()
    assert len(small) >= 7
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    monkeypatch.setattr(large_commits, "_BATCH_BYTES", 500)
    assert restarted() == small


@pytest.mark.parametrize("seed", range(30))
def test_limits_hold(seed: int) -> None:
    rng = random.Random(1000 + seed)
    builder, _, start = random_log(rng)
    sizes = {
        a.path: a.size
        for v in range(builder.version + 1)
        for a in builder.log().reader.commit(v)
        if isinstance(a, AddFile)
    }
    files, size = rng.randint(1, 4), rng.choice([None, rng.randint(1, 600)])
    for _, batch in batches(stream(builder, limits=ReadLimits(files, size), start=Bound(version=start))):
        names = paths(batch)
        assert len(names) <= files
        if size is not None:
            assert sum(sizes[name] for name in names[:-1]) < size


def test_the_files_of_the_first_version_are_in_order_of_time_and_path() -> None:
    builder = LogBuilder().create(*(add(name, modification_time=at) for name, at in [("b", 2), ("a", 2), ("z", 1)]))
    found = list(batches(stream(builder, limits=ReadLimits(1))))
    assert [paths(batch) for _, batch in found] == [["z"], ["a"], ["b"]]
    assert [(end.version, end.index, end.initial) for end, _ in found] == [
        (0, 0, True), (0, 1, True), (1, BEFORE_FILES, False),
    ]  # fmt: skip


def test_a_batch_ends_where_deltas_does() -> None:
    builder = LogBuilder().create().commit(add("a"), add("b")).commit().commit(add("c"))
    ends = [
        (end.version, end.index) for end, _ in batches(stream(builder, limits=ReadLimits(1), start=Bound(version=0)))
    ]
    # A version without files, and the begin of the next one, never fill a batch.
    assert ends == [(1, 0), (3, BEFORE_FILES), (4, BEFORE_FILES)]


def test_latest_begins_with_the_next_version() -> None:
    builder = LogBuilder().create(add("a"))
    source = stream(builder, start="latest")
    assert source.latest(None) is None
    builder.commit(add("b"))
    assert every_path(source) == ["b"]


@pytest.mark.parametrize("unlimited", [False, True])
@pytest.mark.parametrize("limit", [1, 100])
def test_a_first_batch_from_latest_that_was_not_committed_is_read_again(unlimited: bool, limit: int) -> None:
    """Only the end of the batch is in the checkpoint, and the table has newer versions by then."""
    builder = LogBuilder().create(add("a"))
    limits = ReadLimits(limit)
    source = stream(builder, start="latest", limits=limits)
    assert source.latest(None) is None
    builder.commit(add("b"), add("b2")).commit().commit(add("c"))
    end = source.latest(None, unlimited=unlimited)
    assert end is not None
    read = paths(source.batch(None, end))
    assert read == (["b"] if limit == 1 and not unlimited else ["b", "b2"]), "one version at most"
    builder.commit(add("d")).commit(add("e"))
    again = stream(builder, start="latest", limits=limits)
    stored = again.check(offset.parse(end.to_json()))
    assert paths(again.batch(None, stored)) == read
    assert read + every_path(again, stored) == ["b", "b2", "c", "d", "e"]


def test_available_now_from_latest_reads_every_version_up_to_its_start() -> None:
    builder = LogBuilder().create(add("a"))
    source = stream(builder, start="latest")
    assert source.latest(None) is None
    builder.commit(add("b")).commit(add("c"))
    source.stop_at_newest()
    first = source.latest(None)
    builder.commit(add("d"))
    assert first is not None
    assert paths(source.batch(None, first)) + every_path(source, first) == ["b", "c"]


def test_available_now_ends_at_the_newest_version_of_its_start() -> None:
    builder = LogBuilder().create(add("a")).commit(add("b"))
    source = stream(builder, limits=ReadLimits(1))
    source.stop_at_newest()
    first = source.latest(None)
    builder.commit(add("c"))
    assert first is not None
    assert every_path(source, first) == ["b"]


def test_files_that_match_the_pattern_are_left_out() -> None:
    builder = LogBuilder().create(add("a"), add("skip-me")).commit(add("skip-too"), add("c"))
    assert every_path(
        stream(builder, rules=CommitRules(exclude=lambda path: "skip" in path), start=Bound(version=0))
    ) == [
        "a",
        "c",
    ]


# --- requests -----------------------------------------------------------------------------------------------------


def test_a_poll_that_finds_nothing_costs_one_listing() -> None:
    builder = LogBuilder().create(add("a")).commit(add("b"))
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    source = TableStream(log, log.snapshot(), StreamOptions())
    end = source.latest(None)
    counting.reset()
    assert source.latest(end) == end
    assert counting.calls == {"list_from": 1}
    builder.commit(add("c"))
    counting.reset()
    following = source.latest(end)
    assert following is not None
    assert paths(source.batch(end, following)) == ["c"]
    assert counting.calls == {"list_from": 1, "read": 1}


def test_a_backlog_is_listed_once() -> None:
    builder = LogBuilder().create()
    for i in range(40):
        builder.commit(add(f"f{i}"))
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    source = TableStream(log, log.snapshot(), StreamOptions(start=Bound(version=0), limits=ReadLimits(1)))
    counting.reset()
    assert len(every_path(source)) == 40
    used = counting.calls
    assert used["read"] == 41 + 1  # each commit, and version 0 for the schema at the start
    assert used["list_from"] <= 8


def test_what_is_outstanding_is_counted() -> None:
    builder = LogBuilder().create().commit(add("a", size=5)).commit(add("b", size=6), add("c", size=7))
    source = stream(builder, start=Bound(version=0), limits=ReadLimits(1))
    end = source.latest(None)
    found = source.outstanding(end)
    assert (found.files, found.bytes, found.versions) == (2, 13, 1)


def test_a_commit_that_can_not_be_read_is_no_error_before_its_batch() -> None:
    """What is outstanding is counted up to it, so that the query goes on with the versions before."""
    builder = LogBuilder().create()
    for name in "abc":
        builder.commit(add(name, size=5))
    builder.commit(remove("a")).commit(add("d", size=5))
    source = stream(builder, start=Bound(version=0), limits=ReadLimits(1))
    read: list[str] = []

    def until_the_error() -> None:
        for end, batch in batches(source):
            read.extend(paths(batch))
            found = source.outstanding(end)
            assert (found.files, found.versions) == (3 - len(read), 5 - len(read))

    with pytest.raises(UnsupportedFeatureError) as raised:
        until_the_error()
    # The end of a batch is known by the next file, so that the last version before is read with the error.
    assert raised.value.condition == "DELTA_SOURCE_IGNORE_DELETE"
    assert read == ["a", "b"]


# --- changes and deletions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "rules", "outcome"),
    [
        ((remove("a"),), CommitRules(), "DELTA_SOURCE_IGNORE_DELETE"),
        ((remove("a"),), CommitRules(ignore_deletes=True), []),
        ((remove("a"), add("n")), CommitRules(ignore_deletes=True), "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ((remove("a"), add("n")), CommitRules(ignore_changes=True), ["n"]),
        ((remove("a"), add("n")), CommitRules(skip_change_commits=True), []),
        ((remove("a"),), CommitRules(skip_change_commits=True), []),
    ],
)
def test_a_commit_that_removes_files(actions: Any, rules: CommitRules, outcome: Any) -> None:
    builder = LogBuilder().create(add("a")).commit(*actions)
    source = stream(builder, rules=rules, start=Bound(version=1))
    if isinstance(outcome, list):
        assert every_path(source) == outcome
        return
    with pytest.raises(UnsupportedFeatureError) as raised:
        source.latest(None)
    assert (raised.value.condition, raised.value.version) == (outcome, 1)


CDF = {"delta.enableChangeDataFeed": "true"}


def test_a_stream_of_changes_has_change_data_or_the_files_of_a_commit() -> None:
    builder = LogBuilder().create(add("a"), configuration=CDF)
    builder.commit(remove("a"), add("n"), AddCDCFile("_change_data/1", {}, 10))
    builder.commit(remove("n"))
    source = stream(builder, rules=CommitRules(changes=True), start=Bound(version=0))
    found = list(batches(source))
    assert [[(c.version, a.path) for c in batch.commits for a in c.actions] for _, batch in found] == [
        [(0, "a"), (1, "_change_data/1"), (2, "n")]
    ]
    times = [commit.timestamp_ms for commit in found[0][1].commits]
    assert times == [status.modification_time_ms for _, status in sorted(builder.log().reader.list(0).commits.items())]


def test_the_change_data_of_a_commit_is_not_divided() -> None:
    builder = LogBuilder().create(configuration=CDF)
    builder.commit(*(AddCDCFile(f"_change_data/{i}", {}, 10) for i in range(5)))
    builder.commit(add("x"), add("y"))
    source = stream(builder, rules=CommitRules(changes=True), start=Bound(version=0), limits=ReadLimits(2))
    assert [len(paths(batch)) for _, batch in batches(source)] == [0, 5, 2]


def test_a_stream_of_changes_needs_change_data() -> None:
    builder = LogBuilder().create(add("a"))
    with pytest.raises(ChangeDataMissingError):
        stream(builder, rules=CommitRules(changes=True), start=Bound(version=0)).latest(None)


# --- logs that changed --------------------------------------------------------------------------------------------


def test_removed_commits_are_an_error_or_are_skipped() -> None:
    builder = LogBuilder().create(add("a"))
    end = stream(builder).latest(None)
    for name in "bcd":
        builder.commit(add(name))
    builder.log().checkpoint()
    builder.delete("00000000000000000000.json", "00000000000000000001.json", "00000000000000000002.json")
    with pytest.raises(MissingCommitError) as raised:
        stream(builder).latest(end)
    assert (raised.value.condition, raised.value.version) == ("DELTA_MISSING_FILES_UNEXPECTED_VERSION", 1)
    assert every_path(stream(builder, fail_on_data_loss=False), end) == ["d"]


def test_another_table_at_the_same_place_is_an_error() -> None:
    builder = LogBuilder().create(add("a")).commit(add("b"))
    source = stream(builder)
    end = source.latest(None)
    other = LogBuilder(builder.store, builder.root)
    for name in builder.names():
        builder.delete(name)
    other.create(add("x"))
    with pytest.raises(CorruptLogError) as raised:
        source.latest(end)
    assert raised.value.condition == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert end is not None
    with pytest.raises(CorruptLogError, match="another table"):
        stream(other).check(end)


def test_a_log_that_lost_its_end_is_an_error() -> None:
    builder = LogBuilder().create(add("a")).commit(add("b")).commit(add("c"))
    source = stream(builder)
    end = source.latest(None)
    assert source.latest(end) == end
    builder.delete("00000000000000000002.json", "00000000000000000001.json")
    with pytest.raises(MissingCommitError) as raised:
        source.latest(end)
    assert raised.value.condition == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    with pytest.raises(MissingCommitError, match="end of its log is lost"):
        stream(builder).latest(end)


def test_a_new_column_ends_the_query_and_a_restart_goes_on() -> None:
    builder = LogBuilder().create(add("a"))
    source = stream(builder)
    end = source.latest(None)
    builder.commit(metadata(schema=TWO, table_id=table_id(builder)), add("b"))
    with pytest.raises(SchemaChangedError, match="restart the query with the same checkpoint") as raised:
        source.latest(end)
    assert raised.value.condition == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert every_path(stream(builder), end) == ["b"]


def test_a_column_with_another_type_needs_a_new_checkpoint() -> None:
    builder = LogBuilder().create(add("a"))
    end = stream(builder).latest(None)
    text = metadata().schema_string.replace('"long"', '"string"')
    builder.commit(metadata(schema=text, table_id=table_id(builder)), add("b"))
    assert every_path(stream(builder, start=Bound(version=1))) == ["b"]
    with pytest.raises(SchemaChangedError, match="new checkpoint location") as raised:
        stream(builder, start=Bound(version=0)).latest(None)
    assert raised.value.condition == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
    assert end is not None


@pytest.mark.parametrize("boundary", [True, False])
def test_a_renamed_column_is_an_error_that_names_the_option_to_set(boundary: bool) -> None:
    """Also to a restarted query that has read everything before the commit that renames."""

    def columns(name: str) -> str:
        mapped = '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"p1"}'
        field = f'{{"name":"{name}","type":"long","nullable":true,"metadata":{mapped}}}'
        return f'{{"type":"struct","fields":[{field}]}}'

    on = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    builder = LogBuilder().commit(Protocol(2, 5), metadata(on, schema=columns("x")), add("a"))
    source = stream(builder)
    end = source.latest(None)
    if boundary:
        builder.commit(add("b"))
        end = source.latest(end)
        assert end is not None
        assert (end.version, end.index) == (2, BEFORE_FILES)
    builder.commit(metadata(on, schema=columns("y"), table_id=table_id(builder)))
    with pytest.raises(UnsupportedFeatureError, match="x was renamed to y") as raised:
        source.latest(end)
    builder.commit(add("c"))
    with pytest.raises(UnsupportedFeatureError, match="x was renamed to y"):
        stream(builder).latest(end)
    assert every_path(stream(builder, start=Bound(version=builder.version))) == ["c"]
    assert raised.value.condition == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


@pytest.mark.parametrize("renamed", [True, False])
def test_a_stream_past_the_end_of_column_mapping(renamed: bool) -> None:
    """Files before and after it have different names of columns, unless the table was upgraded and nothing renamed."""

    def columns(physical: str | None) -> str:
        mapped = f'"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"{physical}"' if physical else ""
        field = f'{{"name":"x","type":"long","nullable":true,"metadata":{{{mapped}}}}}'
        return f'{{"type":"struct","fields":[{field}]}}'

    on = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    mapped = columns("p1" if renamed else "x")
    builder = LogBuilder().commit(Protocol(2, 5), metadata(on, schema=mapped), add("a"))
    running = stream(builder)
    end = running.latest(None)
    # The rows of a are written anew, as DROP FEATURE does, which isn't a change of data.
    rewritten = [replace(remove("a"), data_change=False), add("a2", data_change=False)]
    builder.commit(metadata(schema=columns(None), table_id=table_id(builder)), *rewritten).commit(add("b"))
    sources = {
        "running": (running, end),
        "restarted": (stream(builder), end),
        "from a version": (stream(builder, start=Bound(version=0)), None),
    }
    for which, (source, start) in sources.items():
        if not renamed:
            assert every_path(source, start) == (["a", "b"] if start is None else ["b"]), which
            continue
        with pytest.raises(UnsupportedFeatureError, match="column mapping was disabled, and files had") as raised:
            every_path(source, start)
        assert raised.value.condition == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG", which
    assert every_path(stream(builder)) == ["a2", "b"]


def test_times_of_changes_when_in_commit_timestamps_are_enabled_while_the_stream_runs() -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    builder = LogBuilder().create(add("a"), configuration=feed)
    source = stream(builder, rules=CommitRules(changes=True), start=Bound(version=0))
    end = source.latest(None)
    start = 1_700_000_500_000
    enabled = {
        **feed,
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "1",
        "delta.inCommitTimestampEnablementTimestamp": str(start),
    }
    protocol = Protocol(1, 7, None, frozenset({"inCommitTimestamp", "changeDataFeed"}))
    builder.commit(protocol, metadata(enabled, table_id=table_id(builder)), add("b"), in_commit_timestamp=start)
    builder.commit(add("c"), in_commit_timestamp=start + 7)
    found = [commit for _, batch in batches(source, end) for commit in batch.commits]
    assert [commit.timestamp_ms for commit in found] == [start, start + 7]
    assert [entry.timestamp_ms for entry in builder.log().history(2)] == [start + 7, start]


@pytest.mark.parametrize(
    ("start", "error"),
    [(Bound(version=9), VersionNotFoundError), (Bound(timestamp_ms=1 << 45), TimestampOutOfRangeError)],
)
def test_a_start_after_the_newest_version(start: Bound, error: type[VersionNotFoundError]) -> None:
    builder = LogBuilder(MemoryLogStore()).create(add("a"))
    with pytest.raises(error):
        stream(builder, start=start).latest(None)
    assert stream(builder, start=start, lenient=True).latest(None) is None
