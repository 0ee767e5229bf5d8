"""The decompressed size of the pages of a Parquet column, read from the page headers, before decompression.

The footer has sums, but they may be wrong. Three numbers of a header are read, the rest is skipped (parquet-format,
"parquet.thrift", PageHeader).
"""

from typing import NamedTuple

from . import thrift

_DICTIONARY_PAGE = 2


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
    structure = thrift.fields(data, at)
    field, kind, at = next(structure)
    while field:
        if 1 <= field <= 3 and kind == thrift.I32:
            numbers[field - 1], at = thrift.integer(data, at)
        else:
            at = thrift.skip(data, at, kind)
        field, kind, at = structure.send(at)
    return (numbers[0], numbers[1], numbers[2]), at
