"""Deletion vectors: sets against Python's, bytes that Delta wrote, and everything that may be wrong with them."""

import json
import random
import struct
import zlib
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Corpus
from tablelog.core.protocol import deletion_vectors as vectors
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.protocol.deletion_vectors import DeletedRows
from tablelog.core.protocol.paths import absolute
from tablelog.errors import CorruptLogError

# As delta-spark 4.4.0 writes them: a bucket for each value of the upper half up to the last, empty ones too.
OF_DELTA = {
    "d1d339640100000000000000000000003a3000000100000000000500100000000300040007000b0012001d00": [3, 4, 7, 11, 18, 29],
    "d1d33964" + "0300000000000000" + "00000000" + "3a300000" + "01000000" + "0000" + "0000" + "10000000" + "0500"
    "01000000" + "3a300000" + "01000000" + "0000" + "0000" + "10000000" + "0000"
    "02000000" + "3a300000" + "01000000" + "0000" + "0000" + "10000000" + "0700": [5, 1 << 32, (2 << 32) + 7],
    "d1d33964" + "0200000000000000" + "00000000" + "3a300000" + "00000000"
    "01000000" + "3a300000" + "01000000" + "0000" + "0000" + "10000000" + "0100": [(1 << 32) + 1],
}
# The example of PROTOCOL.md, which is in the older layout, and the same set in the portable one.
EXAMPLE = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
PORTABLE = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)

ranges = st.tuples(st.integers(0, 1 << 34), st.integers(1, 20_000)).map(lambda at: range(at[0], at[0] + at[1]))
sparse = st.sets(st.integers(0, (1 << 40) - 1), max_size=200)
dense = st.tuples(st.integers(0, 1 << 20), st.integers(1, 9)).map(lambda at: range(at[0], at[0] + 70_000, at[1]))
sets = st.lists(st.one_of(ranges, sparse, dense), max_size=3).map(lambda parts: set().union(*parts))


def descriptor(rows: DeletedRows, offset: int, size: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", vectors.relative(UUID(int=7)), size, len(rows), offset)


def read_from(data: bytes):
    return lambda start, end: data[start:end]


@given(sets)
def test_it_is_the_set_that_it_was_made_of(rows: set[int]) -> None:
    made = DeletedRows.of(rows)
    assert len(made) == len(rows)
    assert made.last == max(rows, default=-1)
    assert made.indexes().to_pylist() == sorted(rows)
    again = DeletedRows.parse(made.serialise())
    assert again == made
    assert again.indexes() == made.indexes()


@given(sets, sets)
def test_union_and_difference(a: set[int], b: set[int]) -> None:
    one, other = DeletedRows.of(a), DeletedRows.of(b)
    assert (one | other).indexes().to_pylist() == sorted(a | b)
    assert (one - other).indexes().to_pylist() == sorted(a - b)
    assert len(one) == len(a)


@given(st.lists(sets, min_size=1, max_size=4))
def test_several_in_one_file(parts: list[set[int]]) -> None:
    rows = [DeletedRows.of(part) for part in parts]
    data, places = vectors.file_of(rows)
    wanted = [descriptor(one, *place) for one, place in zip(rows, places, strict=True)]
    assert vectors.of_file(read_from(data), wanted) == dict(zip(wanted, rows, strict=True))
    for one, found in zip(wanted, rows, strict=True):
        assert vectors.of_file(read_from(data), [one]) == {one: found}


def test_a_large_file_is_read_in_the_parts_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_WHOLE_FILE", 100)
    rows = [DeletedRows.of(range(i, 4000, i + 2)) for i in range(5)]
    data, places = vectors.file_of(rows)
    asked: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    wanted = [descriptor(rows[i], *places[i]) for i in (1, 3)]
    assert vectors.of_file(read, wanted) == {wanted[0]: rows[1], wanted[1]: rows[3]}
    assert sum(end - start for start, end in asked) == 1 + sum(places[i][1] + 8 for i in (1, 3))


@pytest.mark.parametrize("text", OF_DELTA)
def test_bytes_that_delta_wrote(text: str) -> None:
    assert DeletedRows.parse(bytes.fromhex(text)).indexes().to_pylist() == OF_DELTA[text]


def test_both_layouts_inline() -> None:
    expected = [3, 4, 7, 11, 18, 29]
    assert vectors.of_inline(EXAMPLE).indexes().to_pylist() == expected
    assert vectors.of_inline(PORTABLE).indexes().to_pylist() == expected
    assert vectors.inline(DeletedRows.of(expected)) == PORTABLE
    native = "d0d33964010000001c0000003a3000000100000000000500100000000300040007000b0012001d00"
    assert DeletedRows.parse(bytes.fromhex(native)).indexes().to_pylist() == expected


@given(sets)
def test_an_inline_vector_holds_its_rows(rows: set[int]) -> None:
    told = vectors.inline(DeletedRows.of(rows))
    assert (told.storage_type, told.offset, told.cardinality) == ("i", None, len(rows))
    assert vectors.of_inline(told).indexes().to_pylist() == sorted(rows)


def test_every_vector_of_the_golden_tables(golden: Corpus) -> None:
    checked = 0
    for log in sorted(golden("").glob("*/delta/_delta_log/*.json")):
        for line in log.read_text().splitlines():
            action = json.loads(line)
            told = (action.get("add") or action.get("remove") or {}).get("deletionVector")
            if told is None:
                continue
            found = DeletionVectorDescriptor(
                told["storageType"], told["pathOrInlineDv"], told["sizeInBytes"], told["cardinality"], told["offset"]
            )
            with open(absolute(str(log.parents[1]), vectors.path_of(found)), "rb") as file:
                data = file.read()
            rows = vectors.of_file(read_from(data), [found])[found]
            assert vectors.file_of([rows])[0] == data  # byte for byte what Delta wrote
            checked += 1
    assert checked >= 40


def test_where_a_vector_lies() -> None:
    told = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
    assert vectors.path_of(told) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert told.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert vectors.relative(UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61"), "ab") == told.path_or_inline_dv
    plain = DeletionVectorDescriptor("u", vectors.relative(UUID(int=1)), 40, 6, 4)
    assert vectors.path_of(plain) == "deletion_vector_00000000-0000-0000-0000-000000000001.bin"
    anywhere = DeletionVectorDescriptor("p", "s3://b/my%20table/dv.bin", 40, 6)
    assert vectors.path_of(anywhere) == "s3://b/my%20table/dv.bin"
    assert anywhere.unique_id == "ps3://b/my%20table/dv.bin"


@pytest.mark.parametrize(("kind", "text"), [("i", "00000"), ("x", "a"), ("u", "short"), ("u", "~" * 20), ("p", "")])
def test_a_descriptor_that_names_no_file(kind: str, text: str) -> None:
    with pytest.raises(CorruptLogError):
        vectors.path_of(DeletionVectorDescriptor(kind, text, 40, 6, 4))


def test_what_is_wrong_with_a_file() -> None:
    rows = DeletedRows.of([1, 5, 100_000])
    data, [(offset, size)] = vectors.file_of([rows])
    good = descriptor(rows, offset, size)
    version = b"\x02" + data[1:]
    flipped = bytearray(data)
    flipped[20] ^= 1
    cases = [
        (version, good, "starts with the version 2"),
        (b"", good, "is empty"),
        (data[:-1], good, "ends before"),
        (bytes(flipped), good, "checksum"),
        (data, descriptor(rows, offset, size - 1), "in the log"),
        (data, descriptor(rows, offset, -5), "an invalid position"),
        (data, descriptor(rows, -1, size), "an invalid position"),
        (data, DeletionVectorDescriptor("u", good.path_or_inline_dv, size, 4, offset), "has 3 rows, but 4 in the log"),
    ]
    for given_data, told, message in cases:
        with pytest.raises(CorruptLogError, match=message):
            vectors.of_file(read_from(given_data), [told])


def test_a_wrong_inline_vector() -> None:
    text = PORTABLE.path_or_inline_dv
    for broken in (
        DeletionVectorDescriptor("i", text, 45, 6),
        DeletionVectorDescriptor("i", text, 40, 6),
        DeletionVectorDescriptor("i", text, 44, 5),
        DeletionVectorDescriptor("i", text[:-1], 44, 6),
        DeletionVectorDescriptor("i", "\x7f" + text[1:], 44, 6),
        DeletionVectorDescriptor("i", "#####", 4, 0),
        DeletionVectorDescriptor("i", "", 0, 0),
    ):
        with pytest.raises(CorruptLogError):
            vectors.of_inline(broken)


def test_a_key_beyond_what_a_signed_reader_takes() -> None:
    data = bytearray(DeletedRows.of([1 << 33]).serialise())
    assert data[12:16] == struct.pack("<I", 2)
    data[12:16] = struct.pack("<I", 1 << 31)
    with pytest.raises(CorruptLogError, match="no file can have"):
        DeletedRows.parse(bytes(data))


def test_a_few_bytes_that_claim_more_rows_than_a_file_has_take_no_memory() -> None:
    # A run over all of a bucket takes some bytes for each 65,536 rows.
    runs = 8192
    bitmap = struct.pack("<HH", 12347, runs - 1) + b"\xff" * (runs // 8)
    bitmap += b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(runs))
    lengths = [4 + runs // 8 + 8 * runs + 6 * key for key in range(runs)]
    bitmap += struct.pack(f"<{runs}I", *lengths) + struct.pack("<HHH", 1, 0, 0xFFFF) * runs
    rows = DeletedRows.parse(bytes.fromhex("d1d33964") + struct.pack("<QI", 1, 0) + bitmap)
    assert len(rows) == 65536 * runs
    with pytest.raises(CorruptLogError, match="at most"):
        rows.indexes()


def test_damaged_bytes_give_a_set_or_a_typed_error() -> None:
    chance = random.Random(5)
    bases = [DeletedRows.of(values) for values in (range(0, 70_000, 3), range(500, 90_000), [1, 7, 1 << 35], [])]
    outcomes = set()
    for _ in range(3000):
        data = bytearray(chance.choice(bases).serialise())
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(min(len(data), 64) if chance.random() < 0.8 else len(data))
            data[at] = chance.choice([0, 1, 255, chance.randrange(256)])
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            rows = DeletedRows.parse(bytes(data))
        except CorruptLogError:
            outcomes.add("refused")
            continue
        outcomes.add("read")
        if len(rows) < 1_000_000:
            indexes = rows.indexes().to_pylist()
            assert indexes == sorted(set(indexes))
            assert len(indexes) == len(rows)
    assert outcomes == {"read", "refused"}


def test_it_takes_arrow_arrays_with_an_offset() -> None:
    indexes = pa.array([9, 3, 4, 8, 1 << 40], pa.int64())
    assert DeletedRows.of(indexes[1:]).indexes().to_pylist() == [3, 4, 8, 1 << 40]
    assert len(DeletedRows.of(indexes[5:])) == 0
    assert 8 in DeletedRows.of(indexes)


def test_the_checksum_is_that_of_the_protocol() -> None:
    data, [(offset, size)] = vectors.file_of([DeletedRows.of([2])])
    assert (data[0], offset) == (1, 1)
    assert struct.unpack(">I", data[1:5]) == (size,)
    assert struct.unpack(">I", data[-4:]) == (zlib.crc32(data[5:-4]),)


def test_the_other_rows_of_a_file() -> None:
    rows = DeletedRows.of([0, 3, 70_000])
    rest = rows.others(70_002)
    assert len(rest) == 70_002 - 3
    assert rest | rows == DeletedRows.of(range(70_002))
    assert (0 in rest, 1 in rest, 70_000 in rest, 70_001 in rest, 70_002 in rest) == (False, True, False, True, False)
    assert DeletedRows.of(()).others(2) == DeletedRows.of([0, 1])
