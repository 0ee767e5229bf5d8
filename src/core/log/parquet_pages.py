"""The decompressed size of the pages of a Parquet column, read from the page headers, before decompression.

The footer has sums, but they may be wrong. A header is a struct in Thrift's compact protocol; three numbers are read,
the rest is skipped (parquet-format, "parquet.thrift", PageHeader).
"""

from typing import NamedTuple

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DICTIONARY_PAGE = 2
_DEEPEST = 8


class Pages(NamedTuple):
    """Sizes of one column chunk in bytes: all its pages after decompression, and its dictionary page alone."""

    decompressed: int
    dictionary: int


def pages_of(data: bytes, start: int, size: int) -> Pages:
    """The sizes of the pages in `size` bytes from `start` on. Raises ValueError if there are no pages."""
    at, end = start, start + size
    if start < 0 or size < 0 or end > len(data):
        raise ValueError("a column is beyond the end of the file")
    total = dictionary = 0
    while at < end:
        (kind, decompressed, compressed), at = _header(data, at)
        if kind < 0 or decompressed < 0 or compressed < 0:
            raise ValueError("the header of a page lacks a number")
        total += decompressed
        if kind == _DICTIONARY_PAGE:
            dictionary += decompressed
        at += compressed
    return Pages(total, dictionary)


def _header(data: bytes, at: int) -> tuple[tuple[int, int, int], int]:
    numbers = [-1, -1, -1]
    field = 0
    while True:
        head, at = _byte(data, at)
        if head == 0:
            return (numbers[0], numbers[1], numbers[2]), at
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            raw, at = _varint(data, at)
            field = _signed(raw)
        if 1 <= field <= 3 and kind == _I32:
            raw, at = _varint(data, at)
            numbers[field - 1] = _signed(raw)
        else:
            at = _skip(data, at, kind, 0)


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    if depth > _DEEPEST:
        raise ValueError("the header of a page is nested too deep")
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind in (_I16, _I32, _I64):
        return _varint(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == _STRUCT:
        while True:
            head, at = _byte(data, at)
            if head == 0:
                return at
            if not head >> 4:
                at = _varint(data, at)[1]
            at = _skip(data, at, head & 15, depth + 1)
    raise ValueError("the header of a page has a field of an unknown type")


def _byte(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise ValueError("the header of a page ends beyond the file")
    return data[at], at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte, at = _byte(data, at)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("the header of a page has a number with too many bytes")


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
