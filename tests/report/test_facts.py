"""What a report reads from a log: growth, layout, skipping, vectors, tombstones."""

import dataclasses
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.messy_table import MIB, messy, schema, stats
from support.log_builder import LogBuilder, add, remove
from tablelog.core.log import large_commits
from tablelog.core.log.columns import DELETION_VECTOR, FILE_SCHEMA
from tablelog.core.protocol.actions import CommitInfo, Protocol
from tablelog.report import report
from tablelog.report.facts import Point
from tablelog.report.growth import changes, named_columns, points
from tablelog.report.layout import file_facts, partitions, tombstone_facts, vector_facts
from tablelog.report.skipping import mean_depth


def facts(log: LogBuilder, **arguments: Any) -> Any:
    return report(log.log(), **arguments).facts


# ---- growth ----


def test_growth_agrees_with_each_snapshot() -> None:
    log = messy()
    handle, grown = log.log(), facts(log).growth
    assert [point.version for point in grown] == list(range(43))
    for point in grown:
        snapshot = handle.snapshot(point.version)
        assert (point.files, point.size) == (snapshot.num_files, snapshot.size_in_bytes)
    assert grown[40].rows == 4000
    assert grown[41].rows == 4000 - 60  # by the deletion vector
    assert grown[42].rows == 4000 - 60 - 100  # the rows of a remove without statistics are those of its add


def test_growth_before_a_remove_of_unknown_size_is_unknown_and_not_wrong() -> None:
    newest = Point(2, 30, 10, 100, 1)
    history = [
        change
        for change, _ in changes([(1, 10, [add("a", stats=stats(5, {}, {}))]), (2, 20, [remove("old", size=None)])])
    ]
    before, after = points(newest, history)
    assert after == Point(2, 20, 10, 100, 1)
    assert before == Point(1, 10, None, None, 2)


def test_an_add_that_is_written_again_is_not_counted_twice() -> None:
    again = add("a", stats=stats(5, {}, {}), data_change=False)
    (_, _), (change, _) = changes([(0, 0, [add("a", stats=stats(5, {}, {}))]), (1, 1, [again])])
    assert (change.files, change.rows, change.size) == (0, 0, 0)
    ((change, _),) = changes([(7, 1, [again])])  # the first add is older than the commits that are read
    assert change.files == 0
    ((change, _),) = changes([(7, 1, [remove("b"), again])])  # OPTIMIZE
    assert change.files == 0
    assert change.size == 0


def test_a_commit_knows_how_many_others_came_first() -> None:
    overtaken = [
        commit.overtaken_by
        for _, commit in changes(
            [(v, v, [CommitInfo(read_version=read)]) for v, read in ((5, 4), (6, 3), (7, None), (8, 99))]
        )
    ]
    assert overtaken == [0, 2, None, None]


def test_only_the_newest_commits_are_read() -> None:
    short = facts(messy(), commits=5)
    assert [commit.version for commit in short.commits] == [38, 39, 40, 41, 42]
    whole = facts(messy()).growth[-5:]
    assert [(point.files, point.size) for point in short.growth] == [(point.files, point.size) for point in whole]
    assert [point.rows for point in short.growth] == [None, None, None, None, 3840]  # a remove has no statistics


def test_columns_are_found_in_conditions() -> None:
    predicates = ["(day = '2024') AND user > 1", "`odd ``name`.x = 1", "USER = 3", "username = 1"]
    columns = [("user",), ("day",), ("odd `name", "X"), ("odd `name", "y"), ("id",)]
    assert named_columns(predicates, columns) == [("user", 2), ("day", 1), ("odd `name.X", 1)]


@pytest.mark.parametrize("damage", [b"no JSON", None])
def test_the_history_begins_after_a_damaged_commit(damage: bytes | None) -> None:
    log = messy()
    log.log().checkpoint(log.log().snapshot(20))
    name = "00000000000000000015.json"
    if damage is None:
        log.delete(name)
    else:
        log.write(name, damage)
    of = report(log.log())
    assert [point.version for point in of.facts.growth] == list(range(16, 43))
    assert of.facts.growth[0].files == 16
    assert of.advice[0].title == "Repair the log"
    assert "Repair the log" in of.to_html()


def test_the_history_begins_after_a_large_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    log = messy()
    sizes = {status.path[-25:]: status.size for status in log.log().reader.list(0).commits.values()}
    largest = max(sizes, key=sizes.__getitem__)
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", sizes[largest] - 1)
    assert [point.version for point in facts(log).growth] == list(range(int(largest[:20]) + 1, 43))
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    of = report(log.log())
    assert not of.facts.commits
    assert of.to_html()


# ---- layout ----


def _files(*rows: tuple[str | None, int]) -> pa.Table:
    values = [{"path": str(i), "partitionValues": [("p", value)], "size": size} for i, (value, size) in enumerate(rows)]
    return pa.Table.from_pylist(values, schema=FILE_SCHEMA)


def test_partitions_are_sorted_by_size_and_by_what_optimize_removes() -> None:
    files = _files(("a", 5), ("a", 6), ("b", 90), ("b", 300), (None, 1), (None, 1), (None, 1))
    of, after = partitions(files, ("p",), ("p",), 100)
    assert [(p.values, p.files, p.size, p.after) for p in of.largest] == [
        ((("p", "b"),), 2, 390, 2),  # one file is above the target, the other one is alone
        ((("p", "a"),), 2, 11, 1),
        ((("p", None),), 3, 3, 1),
    ]
    assert [p.values[0][1] for p in of.fragmented] == [None, "a"]
    assert (of.count, of.median, after) == (3, 11, 4)
    assert [p.small_files for p in of.largest] == [0, 1, 3]  # smaller than a sixteenth of the target


def test_a_table_without_partitions_is_one() -> None:
    of, after = partitions(_files((None, 60), (None, 60)), (), (), 100)
    assert (of.count, of.largest, after) == (0, (), 2)
    assert partitions(_files((None, 10), (None, 10)), (), (), 100)[1] == 1
    assert partitions(_files(), (), (), 100)[1] == 0


def test_the_load_of_deletion_vectors() -> None:
    counts = [None, 4, 30, 100, 7]
    vectors = [None if n is None else {"storageType": "u", "pathOrInlineDv": "x", "cardinality": n} for n in counts]
    files = pa.table({"size": [100] * 5, "deletionVector": pa.array(vectors, DELETION_VECTOR)})
    of = vector_facts(files, pa.array([100, 100, 100, 100, None], pa.int64()))
    assert (of.files, of.rows, of.shares) == (4, 141, (1, 0, 0, 1, 2))
    assert (of.heavy_files, of.heavy_size, of.freed) == (3, 300, 230)


def test_sizes_of_a_damaged_log_are_added_without_overflow() -> None:
    huge = (1 << 63) - 1
    vectors = [{"storageType": "u", "pathOrInlineDv": "x", "cardinality": huge}] * 3
    files = _files(("a", huge), ("a", huge), ("b", -huge)).set_column(
        FILE_SCHEMA.get_field_index("deletionVector"), "deletionVector", pa.array(vectors, DELETION_VECTOR)
    )
    rows = pa.array([huge] * 3, pa.int64())
    of_files = file_facts(files, rows, 100, 3)
    assert (of_files.size, of_files.rows, of_files.deleted_rows) == (huge, 0, 3 * huge)
    assert of_files.classes[-1].size == 2 * huge
    of, after = partitions(files, ("p",), ("p",), 100)
    assert [p.values[0][1] for p in of.largest] == ["a", "b"]
    assert of.largest[0].size > 1 << 60
    assert after == 2  # a negative size counts as none
    assert partitions(files, (), (), huge)[1] == 1
    assert vector_facts(files, rows).rows == 3 * huge
    removed = pa.table({"path": ["a", "b"], "time": [0, 0], "size": [huge, huge]})
    assert tombstone_facts(removed, 10, 1, None).expired_size == 2 * huge


def test_tombstones_count_until_the_last_vacuum() -> None:
    log = messy()
    of = facts(log).tombstones
    # Only the deletion vector of the other removed file was replaced.
    assert (of.files, of.expired_files, of.expired_size, of.vacuum_ms) == (1, 1, 4 * MIB, None)
    log.log().checkpoint()
    assert log.log().snapshot().tombstones.num_rows == 0  # a checkpoint drops expired ones
    assert facts(log).tombstones == of
    log.version += 1
    log.write_commit(log.version, [CommitInfo(operation="VACUUM START")])
    of = facts(log).tombstones
    assert (of.files, of.expired_files) == (0, 0)
    assert of.vacuum_ms == log.clock.now


# ---- skipping ----


@pytest.mark.parametrize(
    ("ranges", "depth"),
    [
        ([(0, 9), (10, 19), (20, 29)], 1),
        ([(0, 9)] * 7, 7),
        ([(5, 5)] * 4, 4),
        ([(0, 10), (5, 5)], (1 + 2) / 2),
        ([(0, 10), (0, 5)], ((5 * 2 + 5 * 1) / 10 + 2) / 2),
        ([], 0),
    ],
)
def test_the_depth_is_the_mean_number_of_ranges_with_a_value(ranges: list[tuple[float, float]], depth: float) -> None:
    assert mean_depth(ranges) == pytest.approx(depth)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9)).map(lambda r: (r[0], r[0] + r[1])), min_size=1))
def test_the_depth_agrees_with_counting(ranges: list[tuple[int, int]]) -> None:
    between = [[at + 0.5 for at in range(low, high)] for low, high in ranges]  # the bounds are whole numbers
    counted = [sum(sum(a < at < b for a, b in ranges) for at in points) / len(points) for points in between]
    assert mean_depth(ranges) == pytest.approx(sum(counted) / len(counted))


def test_columns_by_the_files_that_a_search_reads() -> None:
    of = facts(messy()).skipping
    columns = {column.name: column for column in of.columns}
    assert [*columns] == ["day", "id", "user", "text"]
    assert columns["id"].lookup == pytest.approx(1, abs=0.1)
    assert columns["user"].lookup == pytest.approx(39)
    assert columns["text"].lookup == pytest.approx(39)
    assert columns["day"].lookup == pytest.approx((19**2 + 20**2) / 39)
    assert columns["day"].is_partition
    assert of.used == (("user", 1),)


def test_a_file_without_bounds_is_read_by_each_search() -> None:
    log = LogBuilder()
    log.create(schema=schema("id", "text"))
    texts = [("prefix-a", "prefix-b"), ("prefix-c", "prefix-d"), None]
    for i, text in enumerate(texts):
        low, high = ({}, {}) if text is None else ({"text": text[0]}, {"text": text[1]})
        log.commit(add(str(i), stats=stats(1, low, high)))
    ident, text_ = facts(log).skipping.columns
    assert (ident.known, ident.lookup) == (0, 3)
    assert text_.known == pytest.approx(2 / 3)
    assert text_.lookup == pytest.approx(2)


# ---- the log ----


def test_a_large_log_is_not_checked_unless_asked() -> None:
    log = messy()
    assert facts(log).log.problems == ()
    assert facts(log, check_log=False).log.problems is None
    log.write("00000000000000000041.crc", b"{}")
    log.write("_last_checkpoint", json.dumps({"version": 3, "size": 1}).encode())
    assert facts(log).log.problems


def test_a_table_without_files_has_a_report() -> None:
    log = LogBuilder()
    log.create()
    empty = report(log.log())
    assert empty.facts.files.count == 0
    assert empty.facts.growth[0].rows == 0
    assert empty.advice == ()
    assert "The table has no files." in empty.to_html()


def test_mapped_columns_have_their_logical_names() -> None:
    fields = [
        {"name": name, "type": "long", "nullable": True,
         "metadata": {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{i}"}}
        for i, name in enumerate(("shown", "part"), 1)
    ]  # fmt: skip
    log = LogBuilder()
    properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    text = json.dumps({"type": "struct", "fields": fields})
    log.create(schema=text, partition_columns=("part",), configuration=properties)
    log.commit(Protocol(2, 5))
    for i in range(2):
        bounds = stats(1, {"col-1": i}, {"col-1": i})
        log.commit(add(str(i), partition_values={"col-2": str(i)}, stats=bounds))
    of = facts(log)
    assert [(c.name, c.lookup) for c in of.skipping.columns] == [("part", 1), ("shown", 1)]
    assert of.partitions.largest[0].values[0][0] == "part"


def test_facts_are_values() -> None:
    first, second = facts(messy()), facts(messy())
    assert dataclasses.replace(first, version=0) == dataclasses.replace(second, version=0)
