"""Partition values and statistics."""

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fuzz.target import Target, allowed
from tablelog.core.protocol.partition_values import serialise_value, typed, typed_value
from tablelog.core.protocol.schema import PrimitiveType, arrow_type, leaves, parse_schema
from tablelog.core.skipping import stats
from tablelog.errors import CorruptLogError

from . import examples

# Each type with a value of it and, where there is one, with a value in a form that isn't parsed as a whole column.
TYPES: dict[str, tuple[str, str | None]] = {
    "string": ("a", None), "binary": ("a", None), "long": ("1", None), "integer": ("-5", None), "short": ("7", None),
    "byte": ("1", None), "boolean": ("true", "t"), "double": ("1.5", None), "float": ("1.0E10", None),
    "decimal(10,2)": ("1.25", None), "decimal(38,18)": ("-0.5", None), "date": ("2024-01-31", "2024-1-1"),
    "timestamp": ("2024-01-31T10:00:00.000000Z", "2024-1-1"), "timestamp_ntz": ("2024-01-31 10:00:00.5", "2024-1-1"),
}  # fmt: skip
ZONES = ("UTC", "America/Los_Angeles", "+05:30")
_WORDS = [
    "NaN", "Infinity", "-Infinity", "1e5", "1E999", "1e999999999", "-", "+", ".", "0", "00", "9" * 39, "true", "T", "Z",
    "UTC", "+10000-01-01", "-0001-01-01", "0000-01-01", "24:00:00", "23:59:59.999999999", "+18:00", "-08", "1970-01-01",
    "9999-12-31", "294247-01-10", "2024-02-30", "1900-01-01 00:00:00", "_", "٣", " ", "\t", "\0", "é", "",
]  # fmt: skip


def partition_value(data: bytes) -> None:
    """A value is the same alone and among others, and is written as a text with the same value."""
    name = list(TYPES)[(data[0] if data else 0) % len(TYPES)]
    zone = ZONES[(data[1] if len(data) > 1 else 0) % len(ZONES)]
    data_type = PrimitiveType(name)
    text = _text(data[2:])
    value = typed_value(text, data_type, time_zone=zone)
    assert value.type == arrow_type(data_type)
    odd = TYPES[name][1]
    if odd is not None:
        assert _same(typed(pa.array([odd, text]), data_type, time_zone=zone)[1], value)
    if value.is_valid:
        stored = serialise_value(value, data_type)
        assert stored is not None
        assert _same(typed_value(stored, data_type, time_zone="Asia/Tokyo"), value)


def time_zone(data: bytes) -> None:
    """The name of a time zone, which a session gives."""
    zone = _text(data)
    value = typed_value("2024-06-30 12:00:00", PrimitiveType("timestamp"), time_zone=zone)
    assert value.is_valid
    assert abs(value.value - 1_719_748_800_000_000) <= 18 * 3_600_000_000


def _same(one: Any, other: Any) -> bool:
    return bool(one.equals(other)) or (str(one) == str(other) == "nan")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptLogError("not UTF-8") from None


SCHEMA = parse_schema(examples.SCHEMA)
_LEAVES = {column: field.data_type for column, field in leaves(SCHEMA)}
_ALWAYS = [("id",), ("s",)]
_OTHERS = [column for column in _LEAVES if column not in _ALWAYS]
_GROUPS = [[*_ALWAYS, *_OTHERS[at : at + 2]] for at in range(0, len(_OTHERS), 2)]
"""The columns of a case: few of all types, since parsing takes time for each column. The case's length says which."""
_TREES = [stats.tree([(column, _LEAVES[column]) for column in group]) for group in _GROUPS]
_INF = re.compile(r"(:\s*-?)Inf(?=\s*[,}])")
_NON_FINITE = re.compile(r':\s*"(?:NaN|[+-]?Infinity|[+-]?INF)"(?=\s*[,}])')
_COMPARED = [
    ("numRecords",),
    *((kind, name) for kind in ("minValues", "maxValues", "nullCount") for name in ("id", "s")),
]


def statistics(data: bytes) -> None:
    """Each line is the statistics of a file: unknown, or what the JSON says, whatever the other lines are."""
    texts = [_text(line) for line in data.split(b"\n")][:20]
    group, tree = _GROUPS[len(data) % len(_GROUPS)], _TREES[len(data) % len(_GROUPS)]
    parsed = _compared(texts, tree)
    one = len(data) % len(texts)
    alone = _compared([texts[one]], tree)[0]
    for number, (text, value) in enumerate(zip(texts, parsed, strict=True)):
        plain = _plain(text)
        for at in _COMPARED:
            known = value[at]
            if number == one:
                assert known is None or alone[at] is None or known == alone[at], (at, known, alone)
            if known is not None:
                assert plain is not None, (at, known)
                assert _says(_at(plain, at), known), (at, known)
    files = pa.table({"stats": pa.array(texts)})
    assert len(stats.read(files, group, SCHEMA).num_records) == len(texts)
    allowed(lambda: stats.read(files, group[-1:], SCHEMA))


def _compared(texts: list[str], tree: stats.Tree) -> list[dict[tuple[str, ...], Any]]:
    """The values that are compared, for each text. Python has none for a date after the year 9999."""
    parsed = stats.parse_json(pa.array(texts), tree).combine_chunks()
    columns = [pc.struct_field(parsed, list(at)).to_pylist() for at in _COMPARED]
    return [dict(zip(_COMPARED, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain(text: str) -> Any:
    """The statistics by Python's parser, which takes NaN and Infinity too; Arrow's also takes Inf.

    A text may become JSON when its NaNs become null, because its quotes aren't in pairs: its numbers are what it says.
    """
    for written in (text, _INF.sub(r"\1Infinity", text), _NON_FINITE.sub(":null", text)):
        try:
            return json.loads(written.strip(), parse_float=str, parse_int=str)
        except (ValueError, RecursionError):
            continue
    return None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _says(theirs: Any, known: Any) -> bool:
    """Whether a value in the JSON is this one."""
    if isinstance(known, str) or theirs is None:
        return bool(theirs == known)
    try:
        return isinstance(theirs, str) and (theirs == str(known) or float(theirs) == float(known))
    except ValueError:
        return False


def _statistics_seeds() -> list[bytes]:
    one = examples.STATS.encode()
    infinite = one.replace(b"-0.5", b'"NaN"').replace(b"2.5", b"-Infinity")
    return [one, one + b"\n" + infinite, b'{"numRecords":1}\n' + one.replace(b'"z"', b'"x:NaN,y"'), infinite + b"\n{}"]


TARGETS = (
    Target(
        "partition-value",
        partition_value,
        lambda: [bytes([at, at]) + text.encode() for at, pair in enumerate(TYPES.values()) for text in pair if text],
        "text",
        _WORDS,
        keep=2,
    ),
    Target("time-zone", time_zone, lambda: [z.encode() for z in (*ZONES, "GMT-8", "EST")], "text", [*_WORDS, "../"]),
    Target("statistics", statistics, _statistics_seeds, "lines", examples.KEYS),
)  # fmt: skip
