"""Checkpoints of every kind: read by column and late, written whole, and no worse than absent when damaged."""

import datetime
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.log_builder import PARTITIONED, LogBuilder, add, remove
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.log.checkpoint_file import DamagedCheckpointError
from tablelog.core.log.memory_limits import MemoryLimits
from tablelog.core.log_maintenance.checkpoint_writer import write
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import (
    CheckpointMetadata,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    SetTransaction,
    Sidecar,
)
from tablelog.core.protocol.paths import checkpoint_name, commit_name, part_name
from tablelog.core.protocol.schema import TIMESTAMP, StructField, StructType, to_json
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import CorruptLogError, VersionNotFoundError
from tablelog.logstore import CountingLogStore, MemoryLogStore

DAY = 86_400_000
LONG = pa.int64()
STATS = '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":9},"nullCount":{"id":0}}'


def encoded(snapshot: Snapshot, now_ms: int) -> bytes:
    """The bytes of the classic checkpoint of a version."""
    store = MemoryLogStore()
    write(store, "memory:///log", snapshot, now_ms)
    return store.read(f"memory:///log/{checkpoint_name(snapshot.version)}")


def table(rows: int = 5, configuration: dict[str, str] | None = None) -> LogBuilder:
    builder = LogBuilder().create(
        configuration=configuration, schema=PARTITIONED, partition_columns=("day",), table_id="the-table"
    )
    for number in range(rows):
        builder.commit(
            add(
                f"day=2024-01-0{number % 9 + 1}/{number}.parquet",
                size=number + 1,
                partition_values={"day": None if number == 2 else f"2024-01-0{number % 9 + 1}"},
                stats=STATS,
                tags={"k": str(number)},
            ),
            SetTransaction("app", number, 5),
        )
    builder.commit(remove("day=2024-01-01/0.parquet", at=builder.clock.now, size=1))
    return builder


def adds(log: DeltaLog, **arguments) -> set:
    return {
        (a.path, a.size, a.modification_time, tuple(a.partition_values.items()), a.stats, tuple((a.tags or {}).items()))
        for a in log.snapshot(**arguments).add_files()
    }


def rows_of(data: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(data))


def parquet(rows: pa.Table, **options) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return sink.getvalue().to_pybytes()


def test_a_checkpoint_holds_the_state_and_nothing_else() -> None:
    builder = table()
    before = adds(builder.log())
    hint = builder.log().checkpoint()
    rows = rows_of(builder.read(checkpoint_name(6)))
    assert rows.column_names == ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]
    assert hint.version == 6
    assert hint.size == rows.num_rows == 1 + 1 + 1 + 1 + 4  # protocol, metaData, txn, tombstone, files
    assert hint.num_of_add_files == 4
    assert hint.size_in_bytes == len(builder.read(checkpoint_name(6)))
    for row in rows.to_pylist():
        assert sum(value is not None for value in row.values()) == 1
    kept = [row["add"] for row in rows.to_pylist() if row["add"]]
    assert {row["dataChange"] for row in kept} == {False}
    again = builder.log().snapshot()
    assert again.base_version == 6
    assert adds(builder.log()) == before
    assert again.transactions == {"app": SetTransaction("app", 4, 5)}
    assert json.loads(builder.read("_last_checkpoint"))["version"] == 6


@pytest.mark.parametrize("at_once", [0, 1 << 30])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("only_empty_parts", [False, True])
def test_row_groups_without_rows(
    monkeypatch: pytest.MonkeyPatch, at_once: int, dictionary: bool, only_empty_parts: bool
) -> None:
    """As pyarrow writes them for an empty table: their pages are said to be at the start of the file."""
    monkeypatch.setattr(checkpoint, "_AT_ONCE", at_once)
    builder = table()
    before = adds(builder.log())
    builder.log().checkpoint()
    rows = rows_of(builder.read(checkpoint_name(6)))
    none = rows.slice(0, 0)
    builder.delete(checkpoint_name(6), "_last_checkpoint")
    for part, tables in enumerate([[none], [rows]] if only_empty_parts else [[none, rows, none], [none]], 1):
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, rows.schema, use_dictionary=dictionary) as writer:
            for one in tables:
                writer.write_table(one)
        builder.write(part_name(6, part, 2), sink.getvalue().to_pybytes())
    builder.delete(*(commit_name(version) for version in range(6)))
    snapshot = builder.log().snapshot()
    assert snapshot.base_version == 6
    assert adds(builder.log()) == before
    assert snapshot.transactions == {"app": SetTransaction("app", 4, 5)}
    assert snapshot.tombstones.num_rows == 1
    assert sum(piece.num_rows for piece in snapshot.pieces(with_stats=True)) == 4


def test_stats_and_partition_values_as_structs_follow_the_properties() -> None:
    both = rows_of(encoded(table().log().snapshot(), 0))["add"].type
    assert both.get_field_index("stats") >= 0
    parsed = both.field("stats_parsed").type
    assert [field.name for field in parsed] == ["numRecords", "minValues", "maxValues", "nullCount"]
    assert both.field("partitionValues_parsed").type == pa.struct([("day", pa.date32())])
    neither = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "false"}
    names = [field.name for field in rows_of(encoded(table(configuration=neither).log().snapshot(), 0))["add"].type]
    assert not {"stats", "stats_parsed", "partitionValues_parsed"} & set(names)


def test_the_structs_hold_what_the_text_says() -> None:
    rows = rows_of(encoded(table().log().snapshot(), 0))["add"].drop_null().to_pylist()
    assert {str(row["partitionValues_parsed"]["day"]) for row in rows} == {
        "2024-01-02", "None", "2024-01-04", "2024-01-05",
    }  # fmt: skip
    assert all(
        row["stats_parsed"] == {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}}
        for row in rows
    )


def test_stats_that_are_structs_only_are_told_as_text_again() -> None:
    builder = table(configuration={"delta.checkpoint.writeStatsAsJson": "false"})
    before = adds(builder.log())
    builder.log().checkpoint()
    assert builder.log().snapshot().files_with("stats").column("stats").null_count == 4
    assert adds(builder.log()) == before
    builder.log().checkpoint(builder.commit().log().snapshot())  # and from there into the next checkpoint
    assert adds(builder.log()) == before


def test_expired_tombstones_and_transactions_are_left_out() -> None:
    builder = table(configuration={"delta.setTransactionRetentionDuration": "interval 1 day"})
    snapshot = builder.log().snapshot()
    now = builder.clock.now
    fresh = rows_of(encoded(snapshot, now + 7 * DAY - 60_000))
    assert fresh["remove"].null_count == fresh.num_rows - 1
    assert fresh["txn"].null_count == fresh.num_rows  # last updated in 1970
    stale = rows_of(encoded(snapshot, now + 7 * DAY + 60_000))
    assert stale["remove"].null_count == stale.num_rows


def test_features_are_null_where_the_versions_imply_them() -> None:
    legacy = rows_of(encoded(table().log().snapshot(), 0))["protocol"].drop_null().to_pylist()
    assert legacy == [{"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None, "writerFeatures": None}]
    builder = table()
    builder.commit(Protocol(3, 7, frozenset({"v2Checkpoint"}), frozenset({"v2Checkpoint", "appendOnly"})))
    named = rows_of(encoded(builder.log().snapshot(), 0))["protocol"].drop_null().to_pylist()
    assert named[0]["readerFeatures"] == ["v2Checkpoint"]
    assert named[0]["writerFeatures"] == ["appendOnly", "v2Checkpoint"]


def test_removed_domains_and_deletion_vectors() -> None:
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)
    builder = LogBuilder().create(add("a", deletion_vector=vector), DomainMetadata("d", "{}", False))
    builder.commit(DomainMetadata("d", "{}", True), DomainMetadata("e", '{"x":1}', False))
    log = builder.log()
    log.checkpoint()
    snapshot = builder.log().snapshot()
    assert snapshot.domain_metadata == {"e": DomainMetadata("e", '{"x":1}', False)}
    assert snapshot.add_files()[0].deletion_vector == vector
    assert snapshot.file_key(0) == ("a", vector.unique_id)


def test_a_checkpoint_that_is_there_stays(caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    builder.log().checkpoint()
    first = builder.read(checkpoint_name(6))
    builder.clock.now += 30 * DAY  # now the tombstone has expired: the bytes would differ
    builder.log().checkpoint()
    assert builder.read(checkpoint_name(6)) == first


# --- other kinds ------------------------------------------------------------------------------------------------------


def multi_part(builder: LogBuilder, version: int, parts: int) -> list[str]:
    rows = rows_of(encoded(builder.log().snapshot(version), 0))
    names = []
    for number in range(parts):
        names.append(f"{version:020d}.checkpoint.{number + 1:010d}.{parts:010d}.parquet")
        chosen = [row for row in range(rows.num_rows) if row % parts == number]
        builder.write(names[-1], parquet(rows.take(chosen)))
    return names


def v2(builder: LogBuilder, version: int, form: str, *, sidecars: int = 2) -> tuple[str, list[str]]:
    snapshot = builder.log().snapshot(version)
    rows = rows_of(encoded(snapshot, 0))
    files = [row for row in range(rows.num_rows) if rows["add"][row].is_valid or rows["remove"][row].is_valid]
    names, actions = [], [CheckpointMetadata(version), snapshot.protocol, snapshot.metadata]
    for number in range(sidecars):
        names.append(f"{uuid.UUID(int=number)}.parquet")
        data = parquet(rows.select(["add", "remove"]).take(files[number::sidecars]))
        builder.write(f"_sidecars/{names[-1]}", data)
        actions.append(Sidecar(names[-1], len(data), 0))
    actions += snapshot.transactions.values()
    if not sidecars:
        actions += snapshot.add_files()
    name = f"{version:020d}.checkpoint.{uuid.UUID(int=99)}.{form}"
    if form == "json":
        builder.write(name, codec.serialise(actions))
    else:
        types = {f.name: f.type for f in rows.schema} | {
            "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", LONG), ("modificationTime", LONG)]),
            "checkpointMetadata": pa.struct([("version", LONG)]),
        }
        lines = [json.loads(codec.to_json(action)) for action in actions]
        for line in lines:
            if "metaData" in line:
                line["metaData"]["format"]["options"] = []
                line["metaData"]["configuration"] = list(line["metaData"]["configuration"].items())
        wanted = {k: types[k] for k in ("txn", "metaData", "protocol", "sidecar", "checkpointMetadata")}
        builder.write(name, parquet(pa.Table.from_pylist(lines, pa.schema(list(wanted.items())))))
    return name, names


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_multi_part(parts: int) -> None:
    builder = table()
    before = adds(builder.log())
    names = multi_part(builder, 5, parts)
    snapshot = builder.log().snapshot()
    assert snapshot.base_version == 5
    assert adds(builder.log()) == before
    builder.delete(names[-1])
    assert builder.log().snapshot().base_version == -1
    assert adds(builder.log()) == before


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("sidecars", [1, 2])
def test_v2_with_sidecars(form: str, sidecars: int) -> None:
    builder = table()
    before = adds(builder.log())
    removed = builder.log().snapshot().tombstones.num_rows
    v2(builder, 5, form, sidecars=sidecars)
    counting = CountingLogStore(builder.store)
    snapshot = builder.log(counting).snapshot()
    assert (snapshot.base_version, snapshot.tombstones.num_rows) == (5, removed)
    assert adds(builder.log()) == before
    assert snapshot.transactions["app"].version == 4


def test_the_sidecars_are_read_when_files_are_asked_for() -> None:
    builder = table()
    v2(builder, 6, "json")
    counting = CountingLogStore(builder.store)
    snapshot = builder.log(counting).snapshot()
    assert not any("_sidecars" in path for _, path in counting.log)
    counting.reset()
    assert snapshot.num_files == 4
    assert len([path for _, path in counting.log if "_sidecars" in path]) == 2
    counting.reset()
    assert snapshot.files.num_rows == 4
    assert not counting.log


def test_v2_with_its_files_inside() -> None:
    builder = table()
    before = adds(builder.log())
    v2(builder, 5, "json", sidecars=0)
    assert builder.log().snapshot().base_version == 5
    assert adds(builder.log()) == before


def test_a_checkpoint_as_other_writers_type_it() -> None:
    """Large strings, wider integers, no optional field, a deletion vector struct of nulls."""
    builder = table()
    before = builder.paths()
    rows = rows_of(encoded(builder.log().snapshot(), 0))

    def widened(type_: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(type_):
            return pa.struct([(f.name, widened(f.type)) for f in type_])
        return {pa.int32(): pa.int64(), pa.string(): pa.large_string()}.get(type_, type_)

    add_type = widened(rows["add"].type)
    add_type = pa.struct([f for f in add_type if f.name not in ("tags", "baseRowId", "clusteringProvider", "stats")])
    lines = rows.to_pylist()
    for line in lines:
        if line["add"]:
            line["add"]["deletionVector"] = dict.fromkeys(["storageType", "pathOrInlineDv", "offset"])
    schema = pa.schema([("add", add_type), *((n, rows.schema.field(n).type) for n in ("protocol", "metaData"))])
    builder.write(checkpoint_name(6), parquet(pa.Table.from_pylist(lines, schema)))
    snapshot = builder.log().snapshot()
    assert snapshot.base_version == 6
    assert sorted(snapshot.files["path"].to_pylist()) == before
    assert all(a.deletion_vector is None and a.tags is None for a in snapshot.add_files())
    assert snapshot.file_key(0)[1] is None


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 4, 100, 2000, -1, -9])
def test_a_torn_checkpoint_is_as_good_as_none(keep: int) -> None:
    builder = table()
    before = adds(builder.log())
    builder.log().checkpoint()
    builder.write(checkpoint_name(6), builder.read(checkpoint_name(6))[:keep])
    snapshot = builder.log().snapshot()
    assert snapshot.base_version == -1
    assert adds(builder.log()) == before


def test_a_torn_checkpoint_falls_back_to_the_one_before() -> None:
    builder = table()
    builder.log().checkpoint(builder.log().snapshot(3))
    builder.delete(*(commit_name(version) for version in range(3)))
    before = adds(builder.log())
    builder.log().checkpoint()
    builder.write(checkpoint_name(6), b"PAR1 and no more")
    assert builder.log().snapshot().base_version == 3
    assert adds(builder.log()) == before


def test_a_torn_checkpoint_that_nothing_stands_in_for_is_told() -> None:
    builder = table()
    builder.log().checkpoint()
    builder.delete(commit_name(0))
    builder.write(checkpoint_name(6), b"PAR1 and no more")
    with pytest.raises(CorruptLogError, match=r"00000000000000000006\.checkpoint\.parquet is damaged"):
        builder.log().snapshot()


@pytest.mark.parametrize("lost", ["all", "one", "torn"])
def test_a_sidecar_that_is_lost_is_found_out_late_and_does_no_harm(lost: str) -> None:
    builder = table()
    before = adds(builder.log())
    removed = builder.log().snapshot().tombstones.num_rows
    _, sidecars = v2(builder, 5, "json")
    if lost == "torn":
        builder.write(f"_sidecars/{sidecars[0]}", builder.read(f"_sidecars/{sidecars[0]}")[:50])
    else:
        builder.delete(*(f"_sidecars/{sidecar}" for sidecar in (sidecars if lost == "all" else sidecars[:1])))
    log = builder.log()
    snapshot = log.snapshot()
    assert snapshot.base_version == 5
    assert adds(log) == before
    assert snapshot.tombstones.num_rows == removed
    assert snapshot.num_files == 4
    assert builder.log().snapshot().tombstones.num_rows == removed  # asked for first
    builder.delete(commit_name(0))
    with pytest.raises(DamagedCheckpointError, match=r"missing|has 50 bytes"):
        _ = builder.log().snapshot().files


def test_no_protocol_or_no_metadata_is_no_table() -> None:
    builder = table()
    rows = rows_of(encoded(builder.log().snapshot(), 0))
    for column in ("metaData", "protocol"):
        kept = [row for row in range(rows.num_rows) if not rows[column][row].is_valid]
        builder.write(checkpoint_name(6), parquet(rows.take(kept)))
        with pytest.raises(CorruptLogError, match=f"has no {column} action"):
            builder.log().snapshot()


def test_a_damaged_compaction_falls_back_to_the_commits() -> None:
    builder = table()
    before = adds(builder.log())
    builder.write(f"{1:020d}.{5:020d}.compacted.json", b'{"add":{"path":')
    assert adds(builder.log()) == before


def test_a_large_checkpoint_that_was_cleaned_up_meanwhile() -> None:
    """Bytes that were let go must not come from another file later."""
    builder = table()
    builder.limits = MemoryLimits(kept_file_bytes=0)
    builder.log().checkpoint()
    snapshot = builder.log().snapshot()
    assert snapshot.files.num_rows == 4
    data = builder.read(checkpoint_name(6))
    builder.write(checkpoint_name(6), data + b"x")
    with pytest.raises(VersionNotFoundError, match="removed or replaced"):
        snapshot.files_with("stats")
    builder.delete(checkpoint_name(6))
    with pytest.raises(VersionNotFoundError, match="Take a new snapshot"):
        snapshot.files_with("stats")
    builder.write(checkpoint_name(6), data)
    assert snapshot.files_with("stats").column("stats").to_pylist() == [STATS] * 4


def test_one_large_row_group_and_many_small_ones(tmp_path: Path) -> None:
    builder = LogBuilder().create()
    builder.commit(*(add(f"{number}.parquet", size=number) for number in range(300)))
    rows = rows_of(encoded(builder.log().snapshot(), 0))
    for size in (1, 64, 10_000):
        builder.write(checkpoint_name(1), parquet(rows, row_group_size=size, write_statistics=size != 64))
        snapshot = builder.log().snapshot()
        assert snapshot.base_version == 1
        assert snapshot.size_in_bytes == sum(range(300))
        assert snapshot.files["path"].to_pylist() == [f"{number}.parquet" for number in range(300)]


def test_the_end_of_time_in_stats_that_spark_wrote_as_int96() -> None:
    """`9999-12-31` as the greatest `valid_to` is common, and beyond what nanoseconds reach."""
    end = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    schema = to_json(StructType((StructField("valid_to", TIMESTAMP),)))
    builder = LogBuilder().create(configuration={"delta.checkpoint.writeStatsAsJson": "false"}, schema=schema)
    bound = "2024-01-01T00:00:00.000Z", "9999-12-31T23:59:59.000Z"
    bounds = {kind: {"valid_to": text} for kind, text in zip(("minValues", "maxValues"), bound, strict=True)}
    text = json.dumps({"numRecords": 2, **bounds, "nullCount": {"valid_to": 0}})
    builder.commit(add("a.parquet", stats=text))
    builder.log().checkpoint()
    rows = rows_of(builder.read(checkpoint_name(1)))
    builder.write(checkpoint_name(1), parquet(rows, use_deprecated_int96_timestamps=True))
    snapshot = builder.log().snapshot()
    assert snapshot.base_version == 1
    predicate = Compare(">", ("valid_to",), pa.scalar(end - datetime.timedelta(days=1), pa.timestamp("us", "UTC")))
    assert snapshot.prune(predicate, time_zone="UTC").num_rows == 1
    early = pa.scalar(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), pa.timestamp("us", "UTC"))
    assert snapshot.prune(Compare("<", ("valid_to",), early), time_zone="UTC").num_rows == 0
