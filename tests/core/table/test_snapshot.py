"""A snapshot's columns: lazy, in one order, shared; and which rows pruning keeps."""

import threading

import pyarrow as pa
import pytest

from support.log_builder import PARTITIONED, SCHEMA, LogBuilder, add, metadata, remove
from tablelog.core import Snapshot
from tablelog.core.log.columns import FILE_SCHEMA, without
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.protocol.actions import DeletionVectorDescriptor, SetTransaction
from tablelog.core.skipping.predicates import And, Compare, Constant, IsNull
from tablelog.logstore import CountingLogStore

DAYS = ["2024-01-01", "2024-01-02", None]


def stats(low: int, high: int) -> str:
    return f'{{"numRecords":10,"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}}}'


def table(*, checkpoint: bool = False, lacking: str = "") -> LogBuilder:
    """Files 0 to 5 in a checkpoint or in commits, 6 to 8 after it; 1 and 7 are removed again."""
    properties = {f"delta.checkpoint.writeStatsAs{lacking}": "false"} if lacking else {}
    builder = LogBuilder().create(configuration=properties, schema=PARTITIONED, partition_columns=("day",))

    def file(number: int):
        values = {"day": DAYS[number % 3]}
        return add(f"{number}", size=number, partition_values=values, stats=stats(number * 10, number * 10 + 9))

    builder.commit(*(file(number) for number in range(6)))
    if checkpoint:
        builder.log().checkpoint()
    builder.commit(file(6), file(7), file(8))
    return builder.commit(remove("1", size=1), remove("7", size=7))


WAYS = pytest.mark.parametrize(
    "builder",
    [
        pytest.param(table, id="commits"),
        pytest.param(lambda: table(checkpoint=True), id="checkpoint"),
        pytest.param(lambda: table(checkpoint=True, lacking="Json"), id="checkpoint with structs only"),
        pytest.param(lambda: table(checkpoint=True, lacking="Struct"), id="checkpoint with texts only"),
    ],
)


@WAYS
def test_files_have_the_protocols_columns(builder) -> None:
    snapshot = builder().log().snapshot()
    assert snapshot.files.schema == FILE_SCHEMA
    assert snapshot.files.column("path").to_pylist() == ["0", "2", "3", "4", "5", "6", "8"]
    assert snapshot.files is snapshot.files
    assert snapshot.num_files == 7
    assert snapshot.size_in_bytes == 28


@WAYS
def test_more_columns_in_the_same_order(builder) -> None:
    snapshot = builder().log().snapshot()
    files = snapshot.files_with_stats_text()
    assert files.column_names == [*FILE_SCHEMA.names, "stats"]
    numbers = [int(path) for path in files.column("path").to_pylist()]
    assert files.column("stats").to_pylist() == [stats(n * 10, n * 10 + 9) for n in numbers]
    assert snapshot.files_with("path") is snapshot.files
    assert snapshot.files_with("stats_parsed").num_rows == 7


@WAYS
def test_actions_by_mask_and_by_indices(builder) -> None:
    snapshot = builder().log().snapshot()
    everything = snapshot.add_files()
    assert [file.path for file in everything] == snapshot.files.column("path").to_pylist()
    assert everything[3].stats == stats(40, 49)
    assert everything[3].partition_values == {"day": "2024-01-02"}
    assert snapshot.add_files([5, 0, 5]) == [everything[5], everything[0], everything[5]]
    assert snapshot.add_files(pa.array([5, 1])) == [everything[5], everything[1]]
    mask = pa.array([False, True, False, False, False, False, True])
    assert snapshot.add_files(mask) == [everything[1], everything[6]]
    assert snapshot.add_files(pa.chunked_array([mask])) == [everything[1], everything[6]]
    assert snapshot.add_files([]) == []
    assert [snapshot.file_key(row) for row in (0, 6)] == [("0", None), ("8", None)]


def test_an_action_of_a_commit_is_given_back_as_it_was_read() -> None:
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)
    odd = add(
        "x%20y", partition_values={"a": None, "b": ""}, tags={"t": "u"}, deletion_vector=vector, base_row_id=7,
        default_row_commit_version=3, clustering_provider="liquid", stats="{}",
    )  # fmt: skip
    builder = LogBuilder().create(odd)
    assert builder.log().snapshot().add_files() == [odd]
    builder.log().checkpoint()
    again = builder.log().snapshot()
    assert again.base_version == 0
    (found,) = again.add_files()
    assert found.path == "x%20y"
    assert found.partition_values == {"a": None, "b": ""}
    assert (found.tags, found.deletion_vector, found.base_row_id) == ({"t": "u"}, vector, 7)
    assert (found.default_row_commit_version, found.clustering_provider, found.stats) == (3, "liquid", "{}")


@pytest.mark.parametrize("many", [1, 3, 300])
def test_rows_are_left_out_by_slices_and_by_a_mask(many: int) -> None:
    column = pa.chunked_array([list(range(400)), list(range(400, 1000))])
    rows = sorted({0, 399, 400, 999, *range(5, 5 + many)})
    assert without(column, rows).to_pylist() == [number for number in range(1000) if number not in rows]
    assert without(column, []) is column
    assert without(column.slice(0, 1), [0]).to_pylist() == []


def test_what_the_header_says() -> None:
    builder = LogBuilder().create(SetTransaction("a", 1), configuration={"delta.appendOnly": "true"})
    builder.commit(metadata({"delta.checkpointInterval": "3"}, schema=PARTITIONED, partition_columns=("day",)))
    first, second = builder.log().snapshot(0), builder.log().snapshot(1)
    assert first.properties.append_only
    assert not second.properties.append_only
    assert second.properties.checkpoint_interval == 3
    assert (first.partition_columns, second.partition_columns) == ((), ("day",))
    assert [field.name for field in first.schema.fields] == ["id"]
    assert [field.name for field in second.schema.fields] == ["id", "day"]
    assert second.transactions["a"].version == 1
    assert first.metadata.schema_string == SCHEMA
    assert "version=1" in repr(second)


def test_versions_share_and_do_not_disturb_each_other() -> None:
    builder = table(checkpoint=True)
    log = builder.log()
    before = log.snapshot()
    files = before.files
    builder.commit(remove("0"), add("9"))
    after = log.snapshot()
    assert after.version == before.version + 1
    assert after.files.column("path").to_pylist() == ["2", "3", "4", "5", "6", "8", "9"]
    assert before.files is files
    assert before.files.column("path").to_pylist() == ["0", "2", "3", "4", "5", "6", "8"]


def test_the_columns_of_a_checkpoint_are_decoded_once_for_all_threads() -> None:
    builder = table(checkpoint=True)
    snapshot = builder.log().snapshot()
    start, found, problems = threading.Barrier(8), [], []

    def look() -> None:
        try:
            start.wait(10)
            found.append((snapshot.files, snapshot.num_files, snapshot.tombstones.num_rows))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len({id(files) for files, _, _ in found}) == 1
    assert {(count, removed) for _, count, removed in found} == {(7, 2)}


# --- pruning ----------------------------------------------------------------------------------------------------------


def day(text: str) -> Compare:
    return Compare("=", ("day",), pa.scalar(text).cast(pa.date32()))


def pruned(snapshot: Snapshot, predicate) -> list[str]:
    found: list[str] = snapshot.prune(predicate, time_zone="UTC").column("path").to_pylist()
    return found


@WAYS
def test_pruning_by_partition_then_by_stats(builder) -> None:
    snapshot = builder().log().snapshot()
    assert pruned(snapshot, Constant(True)) == ["0", "2", "3", "4", "5", "6", "8"]
    assert pruned(snapshot, Constant(False)) == []
    assert pruned(snapshot, day("2024-01-01")) == ["0", "3", "6"]
    assert pruned(snapshot, IsNull(("day",))) == ["2", "5", "8"]
    assert pruned(snapshot, Compare("<", ("id",), pa.scalar(25))) == ["0", "2"]
    assert pruned(snapshot, Compare(">=", ("id",), pa.scalar(59))) == ["5", "6", "8"]
    assert pruned(snapshot, And((day("2024-01-01"), Compare(">", ("id",), pa.scalar(35))))) == ["3", "6"]
    assert pruned(snapshot, And((day("2024-01-05"), Compare(">", ("id",), pa.scalar(35))))) == []
    mask = snapshot.prune_mask(Compare("=", ("id",), pa.scalar(44)), time_zone="UTC")
    assert mask.to_pylist() == [False, False, False, True, False, False, False]


@pytest.mark.parametrize("form", ["Json", "Struct"])
def test_stats_are_not_read_where_they_do_not_matter(form: str) -> None:
    builder = table(checkpoint=True, lacking=form)
    builder.limits = MemoryLimits(kept_file_bytes=0)  # so that later columns cost a request
    counting = CountingLogStore(builder.store)
    snapshot = builder.log(counting).snapshot()
    _ = snapshot.files
    counting.reset()
    assert len(pruned(snapshot, day("2024-01-01"))) == 3
    assert pruned(snapshot, And((day("2023-01-01"), Compare(">", ("id",), pa.scalar(35))))) == []
    assert not counting.log
    for _ in range(2):
        assert pruned(snapshot, Compare("<", ("id",), pa.scalar(25))) == ["0", "2"]
    assert counting.calls == {"read": 1}


def test_a_file_without_stats_is_never_pruned_by_them() -> None:
    builder = LogBuilder().create(add("none"), add("bad", stats="{"), add("some", stats=stats(0, 9)))
    for _ in range(2):
        found = pruned(builder.log().snapshot(), Compare(">", ("id",), pa.scalar(50)))
        assert found == ["none", "bad"]
        builder.log().checkpoint()
    assert builder.log().snapshot().base_version == 0
