"""A checkpoint too large to be held: its files are read some at a time, and what comes out is the same."""

from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

import pytest

from support.log_builder import PARTITIONED, LogBuilder, add, metadata, remove
from tablelog.core import Operation, Protocol
from tablelog.core.log import checkpoint as checkpoints
from tablelog.core.log import checksum
from tablelog.core.log.checkpoint_shares import RowGroupSplit, parted
from tablelog.core.log_maintenance import checkpoint_rows
from tablelog.core.protocol.paths import crc_name, part_name
from tablelog.core.table_maintenance import unneeded_files
from tablelog.errors import ChecksumMismatchError
from tablelog.logstore import MemoryLogStore
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_AT_ONCE", 0)
    monkeypatch.setattr(checkpoints, "_THREADS", 2)
    monkeypatch.setattr(checkpoint_rows, "PIECE_ROWS", 4)


def table(kind: str, store: MemoryLogStore | None = None) -> LogBuilder:
    """A table of 30 files with a checkpoint at version 1, and a commit after it."""
    features = frozenset({"v2Checkpoint"}) if kind == "sidecars" else None
    configuration = {"delta.checkpointPolicy": "v2"} if kind == "sidecars" else {}
    builder = LogBuilder(store)
    protocol = Protocol(3, 7, features, features) if features else Protocol(1, 2)
    builder.commit(protocol, metadata(configuration, schema=PARTITIONED, partition_columns=("day",), table_id="t"))
    days = [{"day": f"2024-01-0{number % 3 + 1}"} for number in range(30)]
    builder.commit(
        *(add(f"{n}.parquet", size=n, partition_values=days[n], stats='{"numRecords":3}') for n in range(30)),
        remove("gone.parquet", at=builder.clock.now),
    )
    builder.log(conf={} if kind == "classic" else {CHECKPOINT_PART_SIZE.key: "8"}).checkpoint()
    builder.commit(remove("7.parquet", at=builder.clock.now), add("new.parquet", partition_values=days[0]))
    return builder


def content(builder: LogBuilder) -> list[str]:
    snapshot = builder.log().snapshot()
    removed = snapshot.tombstones.column("path").to_pylist()
    # A checkpoint says of no file that its data is new.
    return sorted(str(replace(file, data_change=False)) for file in snapshot.add_files()) + sorted(removed)


class NotingStore(MemoryLogStore):
    """Notes which files are read as a whole, and which are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: list[str] = []
        self.opened: list[str] = []

    def read(self, path: str) -> bytes:
        self.whole.append(path)
        return super().read(path)

    def open_file(self, path: str) -> BinaryIO:
        self.opened.append(path)
        return BytesIO(super().read(path))


@pytest.mark.parametrize("kind", ["classic", "parts", "sidecars"])
def test_a_large_file_is_opened_and_not_read_as_a_whole(kind: str) -> None:
    """A file of 2 GB in memory is too much for a driver of 4 GiB."""
    store = NotingStore()
    builder = table(kind, store)
    store.whole.clear()
    assert len(content(builder)) == 32  # 30 files, and two tombstones
    assert [path for path in store.opened if path.endswith(".parquet")]
    assert not [path for path in store.whole if path.endswith(".parquet")]


@pytest.mark.parametrize("kind", ["classic", "parts", "sidecars"])
def test_a_checkpoint_over_it_holds_none_of_its_columns(kind: str) -> None:
    builder = table(kind)
    before = content(builder)
    log = builder.log()
    snapshot = log.snapshot()
    assert log.checkpoint(snapshot).num_of_add_files == 30
    assert snapshot.base is not None
    assert snapshot.base_version == 1
    assert not snapshot.base.loaded
    assert not snapshot.at_hand
    assert builder.log().snapshot().base_version == 2
    assert content(builder) == before
    assert snapshot.files.num_rows == 30
    assert snapshot.base.loaded
    assert sum(piece.num_rows for piece in snapshot.pieces(with_stats=True)) == 30


def test_damage_in_the_midst_of_it(caplog: pytest.LogCaptureFixture) -> None:
    """What was written so far is thrown away: another order of rows could lose some and double others."""
    builder = table("parts")
    before = content(builder)
    name = part_name(1, 3, 4)
    data = builder.read(name)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    log = builder.log()
    snapshot = log.snapshot()
    builder.write(name, data[:4] + bytes(footer - 4) + data[footer:])
    assert log.checkpoint(snapshot).num_of_add_files == 30
    assert "writing the checkpoint again without this file" in caplog.text
    assert content(builder) == before


def test_a_checksum_tells_the_totals_where_there_is_one() -> None:
    builder = table("classic")
    log = builder.log()
    log.transaction().commit([add("more.parquet", partition_values={"day": "2024-01-01"})], Operation("WRITE", {}))
    first = log.snapshot()
    assert first.num_files == 31  # with no checksum below it, the files are counted
    log.transaction().commit([add("last.parquet", partition_values={"day": "2024-01-01"})], Operation("WRITE", {}))
    fresh = builder.log().snapshot()
    assert fresh.num_files == 32
    assert fresh.base is not None
    assert not fresh.base.loaded


def test_parts_are_of_much_the_same_size() -> None:
    assert parted([("a", 100), ("b", 300), ("c", 1)], 8) == [
        *(RowGroupSplit("a", share, 2) for share in range(2)),
        *(RowGroupSplit("b", share, 6) for share in range(6)),
        RowGroupSplit("c"),
    ]
    assert parted([], 4) == []


# --- VACUUM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classic", "parts", "sidecars"])
def test_vacuum_keeps_the_same_files_without_its_columns(kind: str) -> None:
    builder = table(kind)
    log = builder.log()
    snapshot = log.snapshot()
    needed, _ = unneeded_files.needed_by(log, snapshot, builder.clock.now + 1, lambda path: None)
    names = {f"{number}.parquet" for number in range(30)} - {"7.parquet"} | {"new.parquet"}
    assert {name for name in (*names, "7.parquet", "8.parque", "gone.parquet") if name in needed} == names
    assert set(needed) == names
    assert snapshot.base is not None
    assert not snapshot.base.loaded
    # What a concurrent commit adds is needed too.
    builder.commit(add("newest.parquet", partition_values={"day": "2024-01-01"}))
    needed.add_newer(log.snapshot(), snapshot)
    assert "newest.parquet" in needed
    assert not snapshot.base.loaded
    log.checkpoint()
    later = builder.log().snapshot()
    assert later.base is not snapshot.base
    needed.add_newer(later, snapshot)
    assert set(needed) == {*names, "newest.parquet"}


def test_vacuum_compares_with_the_checksum() -> None:
    builder = table("parts")
    right = builder.log().snapshot()
    assert right.num_files == right.files.num_rows == 30
    told = checksum.of(right, right.totals())
    for wrong in (replace(told.totals, num_files=29), replace(told.totals, size_in_bytes=1)):
        data = checksum.serialise(replace(told, totals=wrong))
        builder.store.write(f"{builder.log_path}/{crc_name(right.version)}", data, overwrite=True)
        log = builder.log()
        with pytest.raises(ChecksumMismatchError):
            unneeded_files.needed_by(log, log.snapshot(), 0, lambda path: None)


def test_vacuum_reads_other_files_of_the_log_for_a_damaged_part() -> None:
    builder = table("parts")
    name = f"{builder.log_path}/{part_name(1, 2, 4)}"
    data = builder.store.read(name)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    builder.store.write(name, data[:4] + bytes(footer - 4) + data[footer:], overwrite=True)
    log = builder.log()
    needed, _ = unneeded_files.needed_by(log, log.snapshot(), builder.clock.now + 1, lambda path: None)
    assert {f"{number}.parquet" for number in range(30) if number != 7} <= set(needed)
    assert "29.parquet" in needed
