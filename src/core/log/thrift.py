"""Thrift's compact protocol, in which Parquet has its footer and the headers of its pages: reading a few fields of it.

A reader takes the bytes and a position, and returns a value and the position behind it. `struct` and `list_of` make
readers from the readers of the parts. A footer has five structs for each column of each row group, so the loops that
skip the other fields are written out. The readers of `struct` raise ValueError if the bytes end early, or aren't in
this protocol; the others are used inside of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
Reader = Callable[[bytes, int], tuple[T, int]]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_BOOLEANS = (TRUE, FALSE)
"""As fields they have no bytes: the kind is the value."""
_DEEPEST = 8
_MOST_BITS = 70
_TOO_SHORT = "the metadata ends too early"


def integer(data: bytes, at: int) -> tuple[int, int]:
    """A signed integer of any width but one byte."""
    raw, at = _varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at


def struct(readers: Mapping[int, tuple[int, Reader[Any]]]) -> Reader[dict[int, Any]]:
    """A reader of structs.

    Args:
        readers: For the number of a field: its kind, and how it is read. Other fields, and fields of another kind, are
            skipped.

    Returns:
        A reader of the values by the number of their fields.
    """

    def read(data: bytes, at: int) -> tuple[dict[int, Any], int]:
        found: dict[int, Any] = {}
        field = 0
        try:
            while True:
                head = data[at]
                at += 1
                if head == 0:
                    return found, at
                if head > 15:
                    field += head >> 4
                else:
                    field, at = integer(data, at)
                kind = head & 15
                wanted = readers.get(field)
                if wanted is not None and wanted[0] == kind:
                    found[field], at = wanted[1](data, at)
                elif kind not in _BOOLEANS:
                    at = _after(data, at, kind, 0)
        except IndexError:
            raise ValueError(_TOO_SHORT) from None

    return read


def list_of(kind: int, reader: Reader[T]) -> Reader[list[T]]:
    """A reader of lists whose elements have this kind."""

    def read(data: bytes, at: int) -> tuple[list[T], int]:
        of, count, at = _list_head(data, at)
        if count and of != kind:
            raise ValueError("a list in the metadata has elements of another type")
        elements = []
        for _ in range(count):
            element, at = reader(data, at)
            elements.append(element)
        return elements, at

    return read


def _after(data: bytes, at: int, kind: int, depth: int) -> int:
    """The position behind a value, which is an element of a list, or a field but no boolean."""
    if I16 <= kind <= I64:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == STRUCT:
        return _after_struct(data, at, depth)
    if kind in (LIST, SET):
        if depth > _DEEPEST:
            raise ValueError("the metadata is nested too deep")
        of, count, at = _list_head(data, at)
        for _ in range(count):
            at = _after(data, at, of, depth + 1)
        return at
    if kind == DOUBLE:
        return at + 8
    if kind in (TRUE, FALSE, BYTE):
        return at + 1
    raise ValueError("the metadata has a field of an unknown type")


def _after_struct(data: bytes, at: int, depth: int) -> int:
    if depth > _DEEPEST:
        raise ValueError("the metadata is nested too deep")
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return at
        if head < 16:  # the number of the field follows
            while data[at] > 127:
                at += 1
            at += 1
        kind = head & 15
        if I16 <= kind <= I64:
            while data[at] > 127:
                at += 1
            at += 1
        elif kind == BINARY and data[at] < 128:
            at += 1 + data[at]
        elif kind not in _BOOLEANS:
            at = _after(data, at, kind, depth + 1)


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind and the number of the elements of a list, and the position of the first one."""
    head = data[at]
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = _varint(data, at)
    if count > len(data) - at:
        raise ValueError("a list has more elements than there are bytes")
    return head & 15, count, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < _MOST_BITS:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("the metadata has a number with too many bytes")
