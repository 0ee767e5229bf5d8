"""One bit of a checkpoint is another: the table reads as before, or the error says that the checkpoint is damaged."""

import io
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.log_builder import PARTITIONED, LogBuilder, add, metadata
from tablelog.core.log import checksum
from tablelog.core.log.parquet_footer import footer_of, sealed
from tablelog.core.protocol.actions import DeletionVectorDescriptor, Protocol, SetTransaction
from tablelog.core.protocol.paths import checkpoint_name, commit_name, crc_name
from tablelog.errors import CorruptLogError

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)
FLIPS = 120


@cache
def table() -> LogBuilder:
    """A table of which only the newest version is left, in a checkpoint."""
    features = frozenset({"deletionVectors"})
    builder = LogBuilder().commit(
        Protocol(3, 7, features, features), metadata(schema=PARTITIONED, partition_columns=("day",))
    )
    for number in range(40):
        day = f"2024-01-0{number % 9 + 1}"
        builder.commit(
            add(
                f"day={day}/{number}.parquet",
                size=number + 1,
                partition_values={"day": day},
                stats=f'{{"numRecords":{number}}}',
                deletion_vector=VECTOR if number == 7 else None,
                tags={"k": str(number)},
            ),
            SetTransaction("app", number),
        )
    builder.log().checkpoint()
    builder.delete(*(commit_name(version) for version in range(builder.version)))
    return builder


def state(builder: LogBuilder) -> Any:
    snapshot = builder.log().snapshot()
    return snapshot.add_files(), snapshot.metadata, snapshot.protocol, snapshot.transactions, snapshot.tombstones


def listed(builder: LogBuilder) -> Any:
    return {(file.path, file.size, file.deletion_vector) for file in builder.log().snapshot().add_files()}


def flipped(data: bytes, at: int, bit: int) -> bytes:
    found = bytearray(data)
    found[at] ^= 1 << bit
    return bytes(found)


def places(data: bytes, seed: int) -> list[tuple[int, int]]:
    """Half of them in the footer, which is a small part of most files and the one that decides what the rest means."""
    random_ = random.Random(seed)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    ranges = [(0, footer), (footer - 40, len(data))] * (FLIPS // 2)
    return [(random_.randrange(*found), random_.randrange(8)) for found in ranges]


def test_a_flipped_bit_of_our_checkpoint() -> None:
    builder, name = table(), checkpoint_name(table().version)
    data, right = builder.read(name), state(builder)
    damaged = 0
    for at, bit in places(data, 1):
        builder.write(name, flipped(data, at, bit))
        try:
            assert state(builder) == right, (at, bit)
        except CorruptLogError:
            damaged += 1
    builder.write(name, data)
    assert damaged > FLIPS // 2


def test_a_flipped_bit_of_anothers_checkpoint_beside_a_checksum() -> None:
    """Other writers have no checksums in their files: what the version's says is what there is to compare."""
    builder, name = table(), checkpoint_name(table().version)
    data, right = builder.read(name), listed(builder)
    snapshot = builder.log().snapshot()
    _ = snapshot.files
    totals = snapshot.totals()
    assert totals is not None
    theirs = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), theirs)
    builder.write(crc_name(builder.version), checksum.serialise(checksum.of(snapshot, totals, most_files=50)))
    for at, bit in places(theirs.getvalue(), 2):
        builder.write(name, flipped(theirs.getvalue(), at, bit))
        try:
            assert listed(builder) == right, (at, bit)
        except CorruptLogError:
            continue
    builder.write(name, data)
    builder.delete(crc_name(builder.version))


def test_pages_and_footer_have_checksums() -> None:
    data = table().read(checkpoint_name(table().version))
    assert b"tablelog footer crc32" in data
    metadata_, _, size = footer_of(data)
    assert size == len(data)
    assert (
        footer_of(io.BytesIO(data)).metadata.num_rows
        == metadata_.num_rows
        == pq.read_metadata(io.BytesIO(data)).num_rows
    )
    assert pq.read_table(io.BytesIO(data), page_checksum_verification=True).num_rows == metadata_.num_rows
    column = metadata_.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    broken = flipped(data, start + column.total_compressed_size - 1, 0)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(io.BytesIO(broken), page_checksum_verification=True)


@pytest.mark.parametrize("length", [0, 100_000, 2**32 - 1])
def test_a_footer_that_is_none(length: int) -> None:
    data = b"PAR1" + b"x" * 1000 + length.to_bytes(4, "little") + b"PAR1"
    for source in (data, io.BytesIO(data)):
        with pytest.raises((CorruptLogError, pa.ArrowException, OSError)):
            footer_of(source)
    for end in (b"", b"PAR1", data[:-1]):
        with pytest.raises(CorruptLogError, match="doesn't end like a Parquet file"):
            footer_of(end)
        with pytest.raises(ValueError, match="not the end"):
            sealed(end)


def test_a_footer_larger_than_what_is_read_at_first() -> None:
    rows = pa.table({f"column {number}" * 20: pa.array([number]) for number in range(400)})
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    data = sealed(sink.getvalue())
    for source in (data, io.BytesIO(data)):
        assert footer_of(source).metadata.num_columns == 400
    with pytest.raises(CorruptLogError, match="the checksum differs"):
        footer_of(flipped(data, len(data) - 20_000, 3))


def test_no_change_of_a_footer_ends_the_process(tmp_path: Path) -> None:
    """pyarrow makes no object of a column from some footers: it ends the process. Another process tries all changes."""
    rows = pa.table({"add": [{"path": f"{n}", "size": n} for n in range(5)], "txn": [{"appId": "a", "version": 1}] * 5})
    pq.write_table(rows, tmp_path / "x.parquet", compression="none", write_page_checksum=False)
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("footer_changes.py")), str(tmp_path / "x.parquet")],
        capture_output=True, text=True, timeout=250, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    tried, read, refused = map(int, run.stdout.split())
    assert tried == read + refused
    assert min(read, refused) > 100
