"""The order of event time: which rows each batch has, by the files' statistics. No Spark."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from support.log_builder import LogBuilder, add
from tablelog.core.protocol.actions import AddFile
from tablelog.core.streaming import offset
from tablelog.core.streaming.commits import CommitRules
from tablelog.core.streaming.event_times import Bounds, EventTimeOrder, TimeRange
from tablelog.core.streaming.limits import ReadLimits
from tablelog.core.streaming.offset import BEFORE_FILES, ReadTimes, SourceOffset
from tablelog.core.streaming.source import StreamOptions, TableStream
from tablelog.errors import InvalidArgumentError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Rows = dict[str, list[int | None]]
"""The event times in the rows of each file."""


def schema(data_type: str) -> str:
    field = {"name": "t", "type": data_type, "nullable": True, "metadata": {}}
    other = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [other, field]})


def text(value: int, data_type: str, digits: str = "milliseconds") -> str:
    """A time in statistics, truncated to milliseconds, or in a partition value."""
    if data_type == "date":
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    time = (EPOCH + timedelta(microseconds=value)).isoformat(timespec=digits)
    return time.replace("+00:00", "Z")


def stats(values: Sequence[int | None], data_type: str, *, wide: bool = False) -> str:
    known = [value for value in values if value is not None]
    fields: dict[str, Any] = {"numRecords": len(values), "nullCount": {"t": len(values) - len(known)}}
    if wide:
        fields["tightBounds"] = False
    if known:
        fields["minValues"] = {"t": text(min(known), data_type)}
        fields["maxValues"] = {"t": text(max(known), data_type)}
    return json.dumps(fields)


class Table:
    """A table whose files have these event times. `measured` are the files that were read for their bounds."""

    def __init__(
        self, files: Rows, data_type: str = "timestamp", *, partitioned: bool = False, known: Any = ()
    ) -> None:
        self.files = files
        self.measured: list[str] = []
        self.builder = LogBuilder().create(schema=schema(data_type), partition_columns=("t",) if partitioned else ())
        adds = []
        for number, (path, values) in enumerate(files.items()):
            fields: dict[str, Any] = {"modification_time": 1000 - number}
            if partitioned:
                (value,) = set(values)
                fields["partition_values"] = {"t": None if value is None else text(value, data_type, "microseconds")}
            elif path not in known:
                fields["stats"] = stats(values, data_type)
            adds.append(add(path, size=100, **fields))
        self.builder.commit(*adds)

    def measure(self, column: str, files: Sequence[AddFile]) -> list[Bounds]:
        assert column == "t"
        self.measured += [file.path for file in files]
        bounds: list[Bounds] = []
        for file in files:
            known = [value for value in self.files[file.path] if value is not None]
            bounds.append((min(known), max(known)) if known else None)
        return bounds

    def stream(self, column: str | None = "t", *, statistics: bool = True, **options: Any) -> TableStream:
        log = self.builder.log()
        order = None if column is None else EventTimeOrder(column, "UTC", self.measure, statistics)
        return TableStream(log, log.snapshot(), StreamOptions(**options), order=order)

    def rows(self, stream: TableStream, start: SourceOffset | None, end: SourceOffset) -> list[tuple[str, int]]:
        """The rows of a batch: the file and the index in it."""
        batch = stream.batch(start, end)
        return [
            (action.path, i)
            for commit in batch.commits
            for action in commit.actions
            for i, value in enumerate(self.files.get(action.path, [None]))
            if commit.version != batch.initial_version or batch.times is None or within(batch.times, value)
        ]

    def batches(self, **options: Any) -> list[list[tuple[str, int]]]:
        """The rows of all batches, where the query starts again for each and repeats it."""
        start, found = None, []
        while True:
            end = self.stream(**options).latest(start)
            if end is None or end == start:
                return found
            end = offset.parse(end.to_json())
            rows = self.rows(self.stream(**options), start, end)
            assert self.rows(self.stream(**options), start, end) == rows
            found.append(rows)
            start = end


def within(times: TimeRange, value: int | None) -> bool:
    """As SQL decides it in `stream_batch`."""
    if value is None:
        return times.first is None
    return (times.first is None or value >= times.first) and (times.end is None or value < times.end)


def check(table: Table, batches: list[list[tuple[str, int]]]) -> None:
    """Each row is in one batch, and none is older than the rows of an earlier batch."""
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == sorted((path, i) for path, values in table.files.items() for i in range(len(values)))
    watermark = None
    for batch in batches:
        times = [time for path, i in batch if (time := table.files[path][i]) is not None]
        if times:
            assert watermark is None or min(times) > watermark
            watermark = max(times)


@pytest.mark.parametrize("seed", range(50))
def test_each_row_comes_once_and_none_is_late(seed: int) -> None:
    rng = random.Random(seed)
    data_type = rng.choice(["date", "timestamp"])
    span = rng.choice([3, 50, 20_000])
    unit = 1 if data_type == "date" else rng.choice([1, 999, 3_600_000_000])
    partitioned = rng.random() < 0.3
    files: Rows = {}
    for number in range(rng.randint(0, 12)):
        begin, length = rng.randint(-span, span), 1 if partitioned else rng.randint(1, 6)
        values = [rng.choice([None, (begin + rng.randint(0, span // 2)) * unit]) for _ in range(length)]
        if rng.random() < 0.7:
            values = [begin * unit if value is None else value for value in values]
        files[f"f{number:02}"] = values
    known = {path for path in files if rng.random() < 0.2}
    table = Table(files, data_type, partitioned=partitioned, known=known)
    limits = ReadLimits(rng.choice([None, 1, 2, 5]), rng.choice([None, None, 40, 150, 1000]))
    check(table, table.batches(limits=limits))
    check(table, table.batches(limits=limits, statistics=False))


def test_files_in_reverse_order_of_their_time() -> None:
    table = Table({f"f{day}": [day * 100 + hour for hour in range(24)] for day in range(5)}, "date")
    found = [sorted({path for path, _ in batch}) for batch in table.batches(limits=ReadLimits(2))]
    assert found == [["f0", "f1"], ["f2", "f3"], ["f4"]]
    by_file = table.batches(column=None, limits=ReadLimits(2))
    assert [sorted({path for path, _ in batch}) for batch in by_file] == [["f3", "f4"], ["f1", "f2"], ["f0"]]


def test_limits_hold_about_also_for_files_that_overlap() -> None:
    table = Table({f"f{i}": list(range(1000)) for i in range(10)}, "date")
    sizes = [len(batch) for batch in table.batches(limits=ReadLimits(2))]
    assert sizes == [2000] * 5
    assert [len(batch) for batch in table.batches(limits=ReadLimits(None, 250))] == [2500] * 4
    assert [len(batch) for batch in table.batches()] == [10_000]


def test_a_large_file_is_divided() -> None:
    table = Table({"f": list(range(1000))}, "date")
    assert [len(batch) for batch in table.batches(limits=ReadLimits(None, 25))] == [250] * 4


def test_rows_without_a_time_come_first() -> None:
    table = Table({"f0": [5, None], "f1": [1], "nulls": [None, None], "f2": [None, 9]}, "date")
    (first, *_, last) = table.batches(limits=ReadLimits(1))
    assert {("f0", 1), ("nulls", 0), ("nulls", 1), ("f2", 0)} <= set(first)
    assert last == [("f2", 1)]


def test_only_files_without_statistics_are_read() -> None:
    table = Table({f"f{i}": [i * 10, i * 10 + 5] for i in range(6)}, "date", known=("f1", "f4"))
    stream = table.stream(limits=ReadLimits(1))
    end = stream.latest(None)
    assert end is not None
    assert table.rows(stream, None, end) == [("f0", 0), ("f0", 1)]
    assert stream.outstanding(end).files == 5
    assert sorted(table.measured) == ["f1", "f4"]


def test_an_excluded_file_is_neither_read_nor_counted() -> None:
    table = Table({f"f{i}": [i] for i in range(4)}, "date", known=("f1",))
    rules = CommitRules(exclude=lambda path: path == "f1")
    assert [[path for path, _ in rows] for rows in table.batches(limits=ReadLimits(1), rules=rules)] == [
        ["f0"], ["f2"], ["f3"]
    ]  # fmt: skip
    assert not table.measured


def test_later_commits_follow_in_batches_of_their_own() -> None:
    table = Table({"f0": [1, 2], "f1": [3, 4]}, "date")
    stream = table.stream()
    first = stream.latest(None)
    assert first == SourceOffset(stream.read.metadata.id, 2, BEFORE_FILES, False)
    table.builder.commit(add("later"))
    second = stream.latest(first)
    assert second is not None
    assert [row[0] for row in table.rows(stream, first, second)] == ["later"]


def test_a_batch_without_limits_has_all_rows_and_the_later_commits() -> None:
    table = Table({"f0": [1, 2], "f1": [3, 4]}, "date")
    stream = table.stream(limits=ReadLimits(1))
    first = stream.latest(None)
    table.builder.commit(add("later"))
    assert first is not None
    end = stream.latest(first, unlimited=True)
    assert end is not None
    assert [row[0] for row in table.rows(stream, first, end)] == ["f1", "f1", "later"]


def test_available_now_ends_at_the_newest_version() -> None:
    table = Table({"f0": [1], "f1": [3]}, "date")
    table.builder.commit(add("before"))
    table.files["before"] = [None]
    stream = table.stream(limits=ReadLimits(1))
    stream.stop_at_newest()
    start, seen = None, []
    while (end := stream.latest(start)) not in (None, start):
        assert end is not None
        seen += table.rows(stream, start, end)
        start = end
        table.builder.commit(add(f"later{len(seen)}"))
    assert {path for path, _ in seen} == {"f0", "f1", "before"}


def test_an_offset_contains_the_column_and_the_time() -> None:
    offset_ = SourceOffset("i", 4, BEFORE_FILES, True, ReadTimes("t", -7))
    fields = json.loads(offset_.to_json())
    assert fields["sourceVersion"] > 3  # delta-spark refuses it, and doesn't read the files again by index
    assert (fields["eventTimeColumn"], fields["eventTimeEnd"]) == ("t", -7)
    assert offset.parse(offset_.to_json()) == offset_


def test_the_order_can_not_change_within_the_first_version() -> None:
    table = Table({"f0": [1], "f1": [3]}, "date")
    limits = ReadLimits(1)
    ordered, by_file = table.stream(limits=limits).latest(None), table.stream(None, limits=limits).latest(None)
    assert ordered is not None
    assert by_file is not None
    for stream, other in [
        (table.stream(None), ordered),
        (table.stream("id"), ordered),
        (table.stream(), by_file),
    ]:
        with pytest.raises(InvalidArgumentError, match="withEventTimeOrder"):
            stream.check(other)
    end = table.stream(limits=limits).latest(ordered)
    assert end is not None
    assert not end.initial
    assert table.stream(None).check(end) == end
