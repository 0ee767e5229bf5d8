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


def row_groups(footer: bytes) -> list[RowGroup]:
    """The row groups of a footer (parquet-format, "parquet.thrift", FileMetaData). ValueError if it is damaged."""
    groups: list[RowGroup] = []
    structure = thrift.fields(footer, 0)
    field, kind, at = next(structure)
    while field:
        if field == 4 and kind == thrift.LIST:
            of, count, at = thrift.list_of(footer, at)
            if count and of != thrift.STRUCT:
                raise ValueError("the row groups are no structs")
            for _ in range(count):
                group, at = _row_group(footer, at)
                groups.append(group)
        else:
            at = thrift.skip(footer, at, kind)
        field, kind, at = structure.send(at)
    return groups


def _row_group(footer: bytes, at: int) -> tuple[RowGroup, int]:
    num_rows = -1
    columns: list[ColumnChunk] = []
    structure = thrift.fields(footer, at)
    field, kind, at = next(structure)
    while field:
        if field == 1 and kind == thrift.LIST:
            of, count, at = thrift.list_of(footer, at)
            if count and of != thrift.STRUCT:
                raise ValueError("the columns of a row group are no structs")
            for _ in range(count):
                column, at = _column_chunk(footer, at)
                columns.append(column)
        elif field == 3 and kind == thrift.I64:
            num_rows, at = thrift.integer(footer, at)
        else:
            at = thrift.skip(footer, at, kind)
        field, kind, at = structure.send(at)
    if num_rows < 0:
        raise ValueError("a row group lacks its number of rows")
    return RowGroup(num_rows, tuple(columns)), at


def _column_chunk(footer: bytes, at: int) -> tuple[ColumnChunk, int]:
    found: ColumnChunk | None = None
    structure = thrift.fields(footer, at)
    field, kind, at = next(structure)
    while field:
        if field == 3 and kind == thrift.STRUCT:
            found, at = _column_metadata(footer, at)
        else:
            at = thrift.skip(footer, at, kind)
        field, kind, at = structure.send(at)
    if found is None:
        raise ValueError("a column lacks its metadata")
    return found, at


def _column_metadata(footer: bytes, at: int) -> tuple[ColumnChunk, int]:
    size = start = -1
    dictionary, nulls = 0, None
    structure = thrift.fields(footer, at)
    field, kind, at = next(structure)
    while field:
        if field in (7, 9, 11) and kind == thrift.I64:
            number, at = thrift.integer(footer, at)
            if field == 7:
                size = number
            elif field == 9:
                start = number
            else:
                dictionary = number
        elif field == 12 and kind == thrift.STRUCT:
            nulls, at = _null_count(footer, at)
        else:
            at = thrift.skip(footer, at, kind)
        field, kind, at = structure.send(at)
    if size < 0 or start < 0:
        raise ValueError("the metadata of a column lacks a number")
    return ColumnChunk(dictionary if 0 < dictionary < start else start, size, nulls), at


def _null_count(footer: bytes, at: int) -> tuple[int | None, int]:
    nulls = None
    structure = thrift.fields(footer, at)
    field, kind, at = next(structure)
    while field:
        if field == 3 and kind == thrift.I64:
            nulls, at = thrift.integer(footer, at)
        else:
            at = thrift.skip(footer, at, kind)
        field, kind, at = structure.send(at)
    return nulls, at
