"""The footer of a checkpoint's Parquet file: our own checksum of it, and a check against the file's size.

Parquet has checksums of pages but none of the footer, where a flipped bit may rename a column. A Parquet file may have
bytes between its last page and its footer, which readers ignore: our files have a marker and the CRC-32 of the footer
there.
"""

import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

from ...errors import CorruptLogError
from .row_groups import RowGroup, row_groups

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MAGIC = b"PAR1"
_END = 8
"""The footer's length (four bytes) and the magic."""
_MARK = b"\0tablelog footer crc32\0\0"
_SEAL = len(_MARK) + 4
_TAIL = 1 << 16
_ROWS, _ROWS_PER_BYTE = 1 << 20, 16
"""The limit of rows of a file: a constant, plus this number per byte. A row needs more: a file name has ten bytes."""
_LEAST_BYTES, _TIMES = 256 << 20, 100
"""The limit of decoded bytes of a file: this constant, or this multiple of the file's size if that is more."""


def sealed(end: bytes) -> bytes:
    """The end of a Parquet file, including its whole footer, with the checksum of the footer inserted before it."""
    start = len(end) - _END - _length(end)
    if start < 0 or end[-4:] != _MAGIC:
        raise ValueError("not the end of a Parquet file")
    footer = end[start:-_END]
    return end[:start] + _MARK + zlib.crc32(footer).to_bytes(4, "little") + end[start:]


def _length(end: bytes) -> int:
    return int.from_bytes(end[-_END:-4], "little")


class Footer(NamedTuple):
    """The metadata of a Parquet file as pyarrow takes it, its row groups, and the size of the file in bytes."""

    metadata: "pq.FileMetaData"
    row_groups: list[RowGroup]
    size: int


def footer_of(source: bytes | IO[bytes]) -> Footer:
    """The footer of a Parquet file.

    Raises CorruptLogError if the footer doesn't match its checksum, or says more rows than a file of this size can
    have; ValueError or Arrow's errors for an invalid footer.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, bytes):
        size, end = len(source), memoryview(source)[-_TAIL:]
    else:
        source.seek(0, 2)
        size = source.tell()  # the `seek` of hdfs-native returns None
        end = memoryview(_last(source, size, _TAIL))
    if size < _END + len(_MAGIC) or bytes(end[-4:]) != _MAGIC:
        raise CorruptLogError("it doesn't end like a Parquet file")
    length = int.from_bytes(end[-_END:-4], "little")
    if length > size - _END - len(_MAGIC):
        raise CorruptLogError(f"its footer would have {length} bytes, but the file has {size}")
    needed = min(size, length + _END + _SEAL)
    if len(end) < needed:
        end = memoryview(source)[-needed:] if isinstance(source, bytes) else memoryview(_last(source, size, needed))
    footer = bytes(end[len(end) - _END - length : -_END])
    seal = bytes(end[max(len(end) - _END - length - _SEAL, 0) : len(end) - _END - length])
    if seal[:-4] == _MARK and int.from_bytes(seal[-4:], "little") != zlib.crc32(footer):
        raise CorruptLogError("its footer was changed after it was written: the checksum differs")
    alone = _MAGIC + footer + length.to_bytes(4, "little") + _MAGIC
    metadata = pq.read_metadata(pa.BufferReader(alone))
    if metadata.num_rows > _ROWS + _ROWS_PER_BYTE * size:
        raise CorruptLogError(f"it would have {metadata.num_rows} rows, but the file has {size} bytes")
    groups = row_groups(footer)
    leaves = metadata.num_columns
    if len(groups) != metadata.num_row_groups or any(len(group.columns) != leaves for group in groups):
        raise CorruptLogError("its footer has other columns or row groups than its schema")
    return Footer(metadata, groups, size)


def _last(source: IO[bytes], size: int, count: int) -> bytes:
    source.seek(max(size - count, 0))
    return source.read(count)


def most_decoded(size: int) -> int:
    """The most bytes that may be decoded from a file of `size` bytes."""
    return max(_LEAST_BYTES, _TIMES * size)
