"""The row groups in the footer of a checkpoint's Parquet file, read without pyarrow's objects for columns.

pyarrow ends the whole process, with no exception, when it makes such an object from some damaged footers. Reading data
is safe in pyarrow: there the same damage is an exception.
"""

from typing import NamedTuple

from . import thrift


class ColumnChunk(NamedTuple):
    """Where the pages of a column are in the file, how many bytes they have, and how many values are null, if known."""

    start: int
    size: int
    nulls: int | None


class RowGroup(NamedTuple):
    """The number of rows, and the columns in the order of the schema's leaves."""

    num_rows: int
    columns: tuple[ColumnChunk, ...]


_COLUMN_METADATA = thrift.struct(
    {
        7: (thrift.I64, thrift.integer),  # total_compressed_size
        9: (thrift.I64, thrift.integer),  # data_page_offset
        11: (thrift.I64, thrift.integer),  # dictionary_page_offset
        12: (thrift.STRUCT, thrift.struct({3: (thrift.I64, thrift.integer)})),  # statistics: null_count
    }
)
_COLUMN_CHUNK = thrift.struct({3: (thrift.STRUCT, _COLUMN_METADATA)})


def _column_chunk(footer: bytes, at: int) -> tuple[ColumnChunk, int]:
    found, at = _COLUMN_CHUNK(footer, at)
    if 3 not in found:
        raise ValueError("a column lacks its metadata")
    metadata = found[3]
    size, start, dictionary = metadata.get(7, -1), metadata.get(9, -1), metadata.get(11, 0)
    if size < 0 or start < 0:
        raise ValueError("the metadata of a column lacks a number")
    nulls = metadata[12].get(3) if 12 in metadata else None
    return ColumnChunk(dictionary if 0 < dictionary < start else start, size, nulls), at


_ROW_GROUP = thrift.struct(
    {1: (thrift.LIST, thrift.list_of(thrift.STRUCT, _column_chunk)), 3: (thrift.I64, thrift.integer)}
)


def _row_group(footer: bytes, at: int) -> tuple[RowGroup, int]:
    found, at = _ROW_GROUP(footer, at)
    if found.get(3, -1) < 0:
        raise ValueError("a row group lacks its number of rows")
    return RowGroup(found[3], tuple(found.get(1, ()))), at


_FILE_METADATA = thrift.struct({4: (thrift.LIST, thrift.list_of(thrift.STRUCT, _row_group))})


def row_groups(footer: bytes) -> list[RowGroup]:
    """The row groups of a footer (parquet-format, "parquet.thrift", FileMetaData). ValueError if it is damaged."""
    found, _ = _FILE_METADATA(footer, 0)
    groups: list[RowGroup] = found.get(4, [])
    return groups
