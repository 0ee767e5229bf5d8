"""The decompressed size of the pages of a Parquet column, read from the page headers, before decompression.

The footer has sums, but they may be wrong. Three numbers of a header are read, the rest is skipped (parquet-format,
"parquet.thrift", PageHeader).
"""

from typing import NamedTuple

from . import thrift

_DICTIONARY_PAGE = 2
_HEADER = thrift.struct(dict.fromkeys((1, 2, 3), (thrift.I32, thrift.integer)))
"""The type of the page, its size before it was compressed, and its size in the file."""


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
        header, at = _HEADER(data, at)
        kind, decompressed, compressed = header.get(1, -1), header.get(2, -1), header.get(3, -1)
        if kind < 0 or decompressed < 0 or compressed < 0:
            raise ValueError("the header of a page lacks a number")
        total += decompressed
        if kind == _DICTIONARY_PAGE:
            dictionary += decompressed
        at += compressed
    return Pages(total, dictionary)
