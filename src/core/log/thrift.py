"""Thrift's compact protocol, in which Parquet has its footer and the headers of its pages: reading a few fields of it.

Each function takes the bytes and a position, and returns the position behind what it read. ValueError if the bytes end
before, or aren't in this protocol.
"""

from collections.abc import Generator

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_DEEPEST = 8


def fields(data: bytes, at: int) -> Generator[tuple[int, int, int], int, None]:
    """The fields of a struct: (number, kind, position of the value). The caller sends the position behind the value.

    The last one has the number 0, and the position behind the struct.
    """
    field = 0
    while True:
        head, at = _byte(data, at)
        if head == 0:
            yield 0, 0, at
            return
        if head >> 4:
            field += head >> 4
        else:
            field, at = integer(data, at)
        at = yield field, head & 15, at


def integer(data: bytes, at: int) -> tuple[int, int]:
    """A signed integer of any width but one byte."""
    raw, at = _varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at


def list_of(data: bytes, at: int) -> tuple[int, int, int]:
    """The kind and the number of the elements of a list, and the position of the first one."""
    head, at = _byte(data, at)
    count = head >> 4
    if count == 15:
        count, at = _varint(data, at)
    if count > len(data) - at:
        raise ValueError("a list has more elements than there are bytes")
    return head & 15, count, at


def skip(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """Skip the value of a field."""
    if kind in (TRUE, FALSE):
        return at
    return _skip_element(data, at, kind, depth)


def _skip_element(data: bytes, at: int, kind: int, depth: int) -> int:
    if depth > _DEEPEST:
        raise ValueError("the metadata is nested too deep")
    if kind in (TRUE, FALSE, BYTE):
        return at + 1
    if kind in _INTEGERS:
        return _varint(data, at)[1]
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in (LIST, SET):
        kind, count, at = list_of(data, at)
        for _ in range(count):
            at = _skip_element(data, at, kind, depth + 1)
        return at
    if kind == STRUCT:
        while True:
            head, at = _byte(data, at)
            if head == 0:
                return at
            if not head >> 4:
                at = _varint(data, at)[1]
            at = skip(data, at, head & 15, depth + 1)
    raise ValueError("the metadata has a field of an unknown type")


def _byte(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise ValueError("the metadata ends too early")
    return data[at], at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("the metadata ends too early")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("the metadata has a number with too many bytes")
