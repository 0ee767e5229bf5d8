"""Deletion vectors: the deleted rows of a data file (PROTOCOL.md, "Deletion Vectors", "Deletion Vector Format").

The sets are roaring bitmaps of CRoaring (`pyroaring`), which validates them. This module implements Delta's framing,
checksums and locations. Damaged or implausible data raises `CorruptLogError` and doesn't need more memory than the
bytes that were read.
"""

import base64
import binascii
import struct
import uuid
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from ...errors import CorruptLogError
from . import paths
from .actions import DeletionVectorDescriptor

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap64

_MAGIC = struct.pack("<I", 1681511377)
_NATIVE = {struct.pack(order + "I", 1681511376): order for order in "<>"}  # another layout, which Delta also reads
_FILE_VERSION = 1
_LARGEST = 1 << 63
_MOST_INDEXES = 1 << 28
_WHOLE_FILE = 8 << 20  # up to this size one read of the whole file is faster than one for each vector

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85_SET = frozenset(_Z85)
_FROM_Z85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_ENCODED_UUID = 20  # characters


class DeletedRows:
    """An immutable set of row indexes of one file, counted from 0 in file order."""

    __slots__ = ("_bitmap",)

    def __init__(self, bitmap: "BitMap64") -> None:
        self._bitmap = bitmap

    @classmethod
    def of(cls, indexes: Iterable[int]) -> "DeletedRows":
        """The set of these indexes, in any order; fastest for an Arrow integer array without nulls."""
        from pyroaring import BitMap64

        values = array("Q")
        if hasattr(indexes, "buffers"):
            import pyarrow as pa

            plain = cast("pa.Array", indexes).cast(pa.uint64())
            if len(plain):
                values.frombytes(memoryview(plain.buffers()[1])[plain.offset * 8 : (plain.offset + len(plain)) * 8])
        else:
            values.extend(indexes)
        bitmap = BitMap64(values)
        bitmap.run_optimize()
        return cls(bitmap)

    @classmethod
    def parse(cls, data: bytes) -> "DeletedRows":
        """Parse the serialised form, a `RoaringBitmapArray`; `CorruptLogError` for anything else."""
        from pyroaring import BitMap64

        magic, portable = data[:4], data[4:]
        if magic in _NATIVE:
            portable = _portable(data, _NATIVE[magic])
        elif magic != _MAGIC:
            raise CorruptLogError(f"a deletion vector starts with {magic.hex()}, which isn't its magic number")
        if len(portable) < 8:
            raise CorruptLogError("a deletion vector ends before its bitmaps")
        try:
            bitmap = BitMap64.deserialize(portable)
        except (ValueError, IndexError) as error:
            raise CorruptLogError(f"a deletion vector isn't a roaring bitmap: {error}") from None
        if len(bitmap) and bitmap.max() >= _LARGEST:
            raise CorruptLogError("a deletion vector has a row index that no file can have")
        return cls(bitmap)

    def serialise(self) -> bytes:
        """The portable form, without size and checksum."""
        return _MAGIC + self._bitmap.serialize()

    def indexes(self) -> "pa.Int64Array":
        """The indexes in ascending order; `CorruptLogError` if there are more than a data file can have rows."""
        import pyarrow as pa

        if len(self) > _MOST_INDEXES:
            raise CorruptLogError(f"a deletion vector has {len(self)} rows, but one file has at most {_MOST_INDEXES}")
        return pa.Array.from_buffers(pa.int64(), len(self), [None, pa.py_buffer(self._bitmap.to_array())])

    @property
    def last(self) -> int:
        """The largest index; -1 if the set is empty."""
        return int(self._bitmap.max()) if len(self._bitmap) else -1

    def __len__(self) -> int:
        return len(self._bitmap)

    def __contains__(self, index: int) -> bool:
        return index in self._bitmap

    def __or__(self, other: "DeletedRows") -> "DeletedRows":
        return DeletedRows(self._bitmap | other._bitmap)

    def __sub__(self, other: "DeletedRows") -> "DeletedRows":
        return DeletedRows(self._bitmap - other._bitmap)

    def others(self, count: int) -> "DeletedRows":
        """The rows of a file of `count` rows that are not in the set."""
        flipped = self._bitmap.flip(0, count)
        flipped.run_optimize()
        return DeletedRows(flipped)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletedRows) and bool(self._bitmap == other._bitmap)

    def __hash__(self) -> int:
        return hash((len(self), self.last))

    def __repr__(self) -> str:
        return f"DeletedRows({len(self)} rows, the last {self.last})"


def _portable(data: bytes, order: str) -> bytes:
    """Convert the bitmaps of the so-called native layout, each with its size before it, to the portable layout."""
    if len(data) < 8:
        raise CorruptLogError("a deletion vector ends before its bitmaps")
    (count,) = struct.unpack_from(order + "I", data, 4)
    parts = [struct.pack("<Q", count)]
    at = 8
    for key in range(count):
        if len(data) < at + 4:
            raise CorruptLogError(f"a deletion vector ends before the last of its {count} bitmaps")
        (size,) = struct.unpack_from(order + "I", data, at)
        parts.append(struct.pack("<I", key) + data[at + 4 : at + 4 + size])
        at += 4 + size
    return b"".join(parts)


# --- the location of a vector -------------------------------------------------------------------------------------


def path_of(descriptor: DeletionVectorDescriptor) -> str:
    """The path of the file with a vector, in the form of an action's `path`: relative to the table, or absolute.

    `CorruptLogError` for an inline vector, and for a descriptor without a file.
    """
    kind, text = descriptor.storage_type, descriptor.path_or_inline_dv
    if kind == "p" and text:
        return text
    if kind == "u" and len(text) >= _ENCODED_UUID:
        prefix, encoded = text[:-_ENCODED_UUID], text[-_ENCODED_UUID:]
        name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
        return paths.encode(f"{prefix}/{name}" if prefix else name)
    raise CorruptLogError(f"the deletion vector {_shown(descriptor)} has no file")


def may_lie_outside(descriptor: DeletionVectorDescriptor) -> bool:
    """Whether the file of a vector may be outside the table's directory: its path is absolute, or has a prefix."""
    kind, text = descriptor.storage_type, descriptor.path_or_inline_dv
    return kind == "p" or (kind == "u" and len(text) > _ENCODED_UUID)


def relative(file_id: uuid.UUID, prefix: str = "") -> str:
    """`pathOrInlineDv` of a vector in the file `deletion_vector_<file_id>.bin` of the directory `prefix`."""
    return prefix + z85_encode(file_id.bytes)


def inline(rows: DeletedRows) -> DeletionVectorDescriptor:
    """A descriptor that contains the vector itself."""
    data = rows.serialise()
    return DeletionVectorDescriptor("i", z85_encode(data + b"\0" * (-len(data) % 4)), len(data), len(rows))


def of_inline(descriptor: DeletionVectorDescriptor) -> DeletedRows:
    """The vector in its descriptor; `CorruptLogError` if they don't match."""
    size = descriptor.size_in_bytes
    try:
        data = z85_decode(descriptor.path_or_inline_dv)
        if not 0 <= len(data) - size < 4:
            raise CorruptLogError(f"it has {len(data)} bytes instead of {size}")
        return _checked(DeletedRows.parse(data[:size]), descriptor)
    except CorruptLogError as error:
        raise CorruptLogError(f"the inline deletion vector {_shown(descriptor)}: {error}") from None


def of_file(
    read: Callable[[int, int], bytes], descriptors: Sequence[DeletionVectorDescriptor]
) -> dict[DeletionVectorDescriptor, DeletedRows]:
    """The vectors in one file. `read(start, end)` returns bytes of it, fewer if it ends before `end`.

    `CorruptLogError` for a wrong version, size, checksum or count.
    """
    sorted_descriptors = sorted(set(descriptors), key=_start)
    for descriptor in sorted_descriptors:
        if _start(descriptor) < 0 or descriptor.size_in_bytes < 0:
            raise CorruptLogError(f"the deletion vector {_shown(descriptor)} has an invalid position in its file")
    end = max(_end(descriptor) for descriptor in sorted_descriptors)
    if end <= _WHOLE_FILE:
        head = read(0, end)
        slices = {descriptor: head[_start(descriptor) : _end(descriptor)] for descriptor in sorted_descriptors}
    else:
        head = read(0, 1)
        slices = {descriptor: read(_start(descriptor), _end(descriptor)) for descriptor in sorted_descriptors}
    vectors = {}
    for descriptor in sorted_descriptors:
        try:
            if head[:1] != bytes([_FILE_VERSION]):
                raise CorruptLogError(
                    f"its file starts with the version {head[0]}, not {_FILE_VERSION}" if head else "its file is empty"
                )
            vectors[descriptor] = _checked(_framed(slices[descriptor], descriptor.size_in_bytes), descriptor)
        except CorruptLogError as error:
            raise CorruptLogError(f"the deletion vector {_shown(descriptor)}: {error}") from None
    return vectors


def file_of(vectors: Sequence[DeletedRows]) -> tuple[bytes, list[tuple[int, int]]]:
    """(the content of a file with these vectors, (offset, size in bytes) of each)."""
    parts = [bytes([_FILE_VERSION])]
    places = []
    at = 1
    for rows in vectors:
        data = rows.serialise()
        places.append((at, len(data)))
        parts.append(struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
        at += len(parts[-1])
    return b"".join(parts), places


def _start(descriptor: DeletionVectorDescriptor) -> int:
    return descriptor.offset or 0


def _end(descriptor: DeletionVectorDescriptor) -> int:
    return _start(descriptor) + 4 + descriptor.size_in_bytes + 4


def _framed(part: bytes, size: int) -> DeletedRows:
    if len(part) < size + 8:
        raise CorruptLogError("its file ends before the vector does")
    (stored_size,) = struct.unpack_from(">I", part)
    if stored_size != size:
        raise CorruptLogError(f"it has {stored_size} bytes in its file, but {size} in the log")
    data = part[4 : 4 + size]
    (checksum,) = struct.unpack_from(">I", part, 4 + size)
    if zlib.crc32(data) != checksum:
        raise CorruptLogError("its checksum doesn't match its bytes")
    return DeletedRows.parse(data)


def _checked(rows: DeletedRows, descriptor: DeletionVectorDescriptor) -> DeletedRows:
    if len(rows) != descriptor.cardinality:
        raise CorruptLogError(f"it has {len(rows)} rows, but {descriptor.cardinality} in the log")
    return rows


def _shown(descriptor: DeletionVectorDescriptor) -> str:
    name = descriptor.unique_id
    return name if len(name) <= 80 else f"{name[:80]}..."


# --- Z85 ----------------------------------------------------------------------------------------------------------


def z85_decode(text: str) -> bytes:
    """Decode a text in Z85 (https://rfc.zeromq.org/spec/32); `CorruptLogError` for any other text."""
    if len(text) % 5 or not set(text) <= _Z85_SET:
        raise CorruptLogError(f"{text[:80]!r} isn't a text in Z85")
    try:
        return base64.b85decode(text.translate(_FROM_Z85))
    except (ValueError, binascii.Error):
        raise CorruptLogError(f"{text[:80]!r} isn't a text in Z85") from None


def z85_encode(data: bytes) -> str:
    """Encode bytes, whose number must be a multiple of 4, in Z85."""
    return base64.b85encode(data).decode().translate(_TO_Z85)
