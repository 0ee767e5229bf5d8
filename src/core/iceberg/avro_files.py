"""Reads manifests and manifest lists, which may be damaged: pyiceberg's reader checks no lengths, and may crash.

Its fast decoder reads past the end of the bytes, which ends the process. This one checks each length, and bounds what
a compressed block may become.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeAlias, TypeVar

from pyiceberg.avro.codecs import AVRO_CODEC_KEY
from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import META_SCHEMA, SYNC_SIZE, AvroFileHeader
from pyiceberg.avro.resolver import construct_reader, resolve_reader
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.schema import Schema
from pyiceberg.typedef import StructProtocol
from pyiceberg.types import FixedType, IcebergType, ListType, MapType, StructType

_MOST_BYTES = 1 << 28
"""A file's most bytes, decompressed: a manifest of tablelog has at most 5,000 entries of some kilobytes."""

_MORE = 0x80
"""The bit of a byte of an integer that says that another byte follows; each has seven bits of the value."""
_MOST_BITS = 63

_Record = TypeVar("_Record", bound=StructProtocol)
_Types: TypeAlias = dict[int, Callable[..., StructProtocol]]
_Enums: TypeAlias = dict[int, Callable[..., Enum]]


class DamagedAvroError(ValueError):
    """The file isn't one that a writer of Iceberg makes, or it is damaged."""


def manifest_list(data: bytes) -> list[ManifestFile]:
    """The manifests in a manifest list. Raises DamagedAvroError."""
    types: _Types = {-1: ManifestFile, 508: PartitionFieldSummary}
    return list(_records(data, MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION], types, {517: ManifestContent}))


def live_entries(data: bytes, manifest: ManifestFile) -> list[ManifestEntry]:
    """The entries of a manifest that aren't deleted, with what they inherit from it. Raises DamagedAvroError."""
    types: _Types = {-1: ManifestEntry, 2: DataFile}
    enums: _Enums = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
    entries: Iterator[ManifestEntry] = _records(data, MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION], types, enums)
    return [_inherited(entry, manifest) for entry in entries if entry.status != ManifestEntryStatus.DELETED]


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    """The entry with the ids and numbers that its writer left to the manifest list (Iceberg's specification)."""
    added = entry.status == ManifestEntryStatus.ADDED
    if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
        entry.snapshot_id = manifest.added_snapshot_id
    if added or manifest.sequence_number == 0:
        if entry.sequence_number is None:
            entry.sequence_number = manifest.sequence_number
        if entry.file_sequence_number is None:
            entry.file_sequence_number = manifest.sequence_number
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry


def _records(data: bytes, schema: Schema, types: _Types, enums: _Enums) -> Iterator[_Record]:
    try:
        decoder = _Decoder(data)
        header: AvroFileHeader = construct_reader(META_SCHEMA, {-1: AvroFileHeader}).read(decoder)
        written = header.get_schema()
        _check(ListType(1, written.as_struct(), element_required=True))
        reader = resolve_reader(written, schema, types, enums)
        left = _MOST_BYTES
        while decoder.left:
            count = decoder.read_int()
            block = _decompressed(decoder.read_bytes(), header.meta.get(AVRO_CODEC_KEY, "null"), left)
            left -= len(block)
            values = _Decoder(block)
            for _ in range(count):
                yield reader.read(values)
            if decoder.read(SYNC_SIZE) != header.sync:
                raise DamagedAvroError("a block doesn't end where it should")
    except DamagedAvroError:
        raise
    except (MemoryError, RecursionError) as error:
        raise DamagedAvroError(f"{type(error).__name__} at reading it") from None
    except Exception as error:  # pyiceberg raises errors of many classes
        raise DamagedAvroError(f"{type(error).__name__}: {error}") from error


class _Decoder(BinaryDecoder):
    """Reads and skips only what is there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def tell(self) -> int:
        return self._at

    def read(self, n: int) -> bytes:
        start = self._at
        self.skip(n)
        return self._data[start : self._at]

    def skip(self, n: int) -> None:
        if not 0 <= n <= len(self._data) - self._at:
            raise DamagedAvroError(f"{n} bytes are expected at the byte {self._at} of {len(self._data)}")
        self._at += n

    def read_int(self) -> int:
        data, at = self._data, self._at
        value = shift = 0
        try:
            while (byte := data[at]) >= _MORE and shift < _MOST_BITS:
                value |= (byte & ~_MORE) << shift
                shift += 7
                at += 1
        except IndexError:
            raise DamagedAvroError(f"an integer is expected at the byte {self._at}, and the file ends") from None
        if byte >= _MORE:
            raise DamagedAvroError(f"the integer at the byte {self._at} is too long")
        self._at = at + 1
        value |= byte << shift
        return (value >> 1) ^ -(value & 1)

    def skip_int(self) -> None:
        self.read_int()


def _decompressed(block: bytes, codec: str, most: int) -> bytes:
    if codec == "null":
        result = block
    elif codec == "deflate":
        result = zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, most + 1)
    else:
        raise DamagedAvroError(f"its codec {codec!r} isn't one that manifests have")
    if len(result) > most:
        raise DamagedAvroError(f"it has more than {_MOST_BYTES} bytes")
    return result


def _check(kind: IcebergType) -> None:
    """Raise DamagedAvroError for repeated values that take no bytes: a few bytes could stand for endless ones."""
    inner: list[IcebergType]
    repeated: list[IcebergType]
    if isinstance(kind, StructType):
        inner, repeated = [field.field_type for field in kind.fields], []
    elif isinstance(kind, ListType):
        inner, repeated = [kind.element_type], [kind.element_type]
    elif isinstance(kind, MapType):
        inner, repeated = [kind.key_type, kind.value_type], [kind.key_type]
    else:
        return
    if not all(map(_takes_bytes, repeated)):
        raise DamagedAvroError("its schema has a list of an empty type")
    for each in inner:
        _check(each)


def _takes_bytes(kind: IcebergType) -> bool:
    if isinstance(kind, StructType):
        return any(not field.required or _takes_bytes(field.field_type) for field in kind.fields)
    return not (isinstance(kind, FixedType) and len(kind) == 0)
