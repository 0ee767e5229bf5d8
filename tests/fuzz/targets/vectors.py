"""Deletion vectors: bitmaps against sets of Python, their files, and their text in the log."""

import struct
import zlib
from uuid import UUID

from fuzz.target import Target, allowed
from tablelog.core.protocol import deletion_vectors as vectors
from tablelog.core.protocol import paths
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.protocol.deletion_vectors import DeletedRows

MOST_COMPARED = 200_000
SETS = (range(0, 70_000, 3), range(500, 90_000), [1, 7, 1 << 35], [], [0], [2**40 + n for n in range(0, 5000, 2)])


def bitmap(data: bytes) -> None:
    """A bitmap is a set of numbers: in order, each once, and with the operations of sets."""
    check(DeletedRows.parse(data))


def check(rows: DeletedRows) -> None:
    assert DeletedRows.parse(rows.serialise()) == rows
    if len(rows) > MOST_COMPARED:
        return
    indexes = rows.indexes().to_pylist()
    model = set(indexes)
    assert indexes == sorted(model)
    assert len(rows) == len(model)
    assert rows.last == max(model, default=-1)
    assert all(index in rows for index in indexes[:20])
    assert DeletedRows.of(indexes) == rows
    other = DeletedRows.of([0, 5, 70_000])
    assert (rows | other).indexes().to_pylist() == sorted(model | {0, 5, 70_000})
    assert (rows - other).indexes().to_pylist() == sorted(model - {0, 5, 70_000})
    if rows.last < MOST_COMPARED:
        count = rows.last + 3
        assert rows.others(count).indexes().to_pylist() == sorted(set(range(count)) - model)


def file(data: bytes) -> None:
    """A file with vectors. The checksums are made right again, so that what they protect is reached too."""
    size = int.from_bytes(data[1:5], "big")
    first = data[5 : 5 + size]
    if len(first) == size and len(data) >= size + 9 and data[-1] & 1:
        data = data[: 5 + size] + struct.pack(">I", zlib.crc32(first)) + data[9 + size :]
    count = len(allowed(lambda: DeletedRows.parse(first)) or ())
    descriptors = [DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", size, count, 1)]
    if data[-1:] > b"\x80":
        descriptors.append(
            DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", len(data) - 9 - size - 8, 3, 9 + size)
        )
    parsed = vectors.of_file(lambda start, end: data[start:end], descriptors)
    assert set(parsed) == set(descriptors)
    for descriptor, rows in parsed.items():
        assert len(rows) == descriptor.cardinality
        check(rows)


def text(data: bytes) -> None:
    """An inline vector, or the name of a file, in Z85."""
    kind, size, inline = _kind(data), data[1] if len(data) > 1 else 0, data[2:].decode("utf-8", "replace")
    if kind in "up":
        descriptor = DeletionVectorDescriptor(kind, inline, size, 0)
        path = vectors.path_of(descriptor)
        assert path
        # java.net.URI accepts other letters in a host, so only what follows the host is encoded.
        location = allowed(lambda: paths.absolute_uri("memory:/table", path))
        assert location is None or location.partition("://")[2].partition("/")[2].isascii()
        return
    raw = vectors.z85_decode(inline)
    if len(raw) % 4 == 0:
        assert vectors.z85_encode(raw) == inline
    length = len(raw) - size % 5
    count = len(allowed(lambda: DeletedRows.parse(raw[:length])) or ())
    rows = vectors.of_inline(DeletionVectorDescriptor("i", inline, length, count))
    assert len(rows) == count
    check(rows)
    assert vectors.of_inline(vectors.inline(rows)) == rows


def _kind(data: bytes) -> str:
    return "iiup"[data[0] % 4] if data else "i"


def _bitmap_seeds() -> list[bytes]:
    portable = [DeletedRows.of(values).serialise() for values in SETS]
    native = []
    for order in "<>":
        of_key = [data[16:] for data in portable if len(data) > 16 and data[4:12] == struct.pack("<Q", 1)]
        for bits in of_key:
            native.append(struct.pack(order + "III", 1681511376, 1, len(bits)) + bits)
    return [*portable, *native]


def _file_seeds() -> list[bytes]:
    first, second = DeletedRows.of([1, 5, 100_000]), DeletedRows.of([2, 3, 4])
    data, _ = vectors.file_of([first, second])
    return [data, vectors.file_of([first])[0], vectors.file_of([DeletedRows.of(SETS[0]), second])[0], data + b"\xff"]


def _text_seeds() -> list[bytes]:
    inline = vectors.inline(DeletedRows.of([3, 4, 7, 11, 18, 29])).path_or_inline_dv.encode()
    name = vectors.relative(UUID(int=5), "ab").encode()
    return [b"\0\0" + inline, b"\1\4" + vectors.inline(DeletedRows.of([1])).path_or_inline_dv.encode(), b"\2\0" + name,
            b"\3\0s3://b/my%20table/dv.bin"]  # fmt: skip


TARGETS = (
    Target("vector", bitmap, _bitmap_seeds, "binary"),
    Target("vector-file", file, _file_seeds, "binary"),
    Target("vector-text", text, _text_seeds, "text", ["00000", "#####", "@@@@@", "%20", "~", "é"], keep=2),
)
