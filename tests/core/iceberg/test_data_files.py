"""The statistics of the log as Iceberg's bounds, which must never exclude a row."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.conversions import from_bytes

from core.iceberg.test_schema import table
from tablelog.core.iceberg.data_files import data_files, location_of
from tablelog.core.iceberg.schema import primitive
from tablelog.core.protocol.actions import AddFile
from tablelog.core.protocol.schema import PrimitiveType, StructField, StructType
from tablelog.errors import CorruptLogError


def micros(text: str) -> int:
    return int((datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


@pytest.mark.parametrize(
    ("name", "low", "high", "lower", "upper"),
    [
        ("byte", -1, 1, -1, 1),
        ("long", -(2**63), 2**63 - 1, -(2**63), 2**63 - 1),
        ("integer", 2**40, True, None, None),
        ("string", "a", "é\U0010ffff", "a", "é\U0010ffff"),
        ("string", "\ud800", 3, None, None),
        ("date", "2024-01-01", "+10000-01-01", 19723, 2932897),
        ("date", "x", None, None, None),
        ("timestamp", "2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00.123Z",
         micros("2024-01-01T00:00:00.122001+00:00"), micros("2024-01-01T00:00:00.123999+00:00")),
        ("timestamp_ntz", "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000", -1999, 999),
        ("decimal(9,2)", 1.5, -7, Decimal("1.50"), Decimal("-7.00")),
        ("decimal(9,2)", 1.555, "1", None, None),
        ("decimal(38,10)", 12345678901234567890, 1, Decimal("12345678901234567890"), Decimal(1)),
        ("double", 1.25, 2.5, 1.25, None),
        ("float", "NaN", "NaN", None, None),
        ("double", "-Infinity", 1, None, None),
        ("boolean", True, True, None, None),
        ("binary", "x", "y", None, None),
    ],
)  # fmt: skip
def test_bounds(name: str, low: Any, high: Any, lower: Any, upper: Any) -> None:
    data_type = PrimitiveType(name)
    mapping = table({"v": data_type}).snapshot().mapping
    physical = mapping.physical.names[0]
    stats = {"numRecords": 3, "minValues": {physical: low}, "maxValues": {physical: high}, "nullCount": {physical: 1}}
    (file,) = data_files("/t", mapping, [AddFile("f", {}, 9, 1, True, json.dumps(stats))], 0)

    def value(bounds: dict[int, bytes]) -> Any:
        return None if 1 not in bounds else from_bytes(primitive(data_type), bounds[1])

    assert value(file.lower_bounds) == lower
    assert value(file.upper_bounds) == upper
    assert (file.record_count, file.file_size_in_bytes) == (3, 9)
    assert (file.value_counts, file.null_value_counts) == ({1: 3}, {1: 1})


def test_fields_of_structs_have_bounds() -> None:
    mapping = table({"s": StructType((StructField("x", PrimitiveType("long")),))}).snapshot().mapping
    outer = mapping.physical.names[0]
    inner = mapping.physical.fields[0].data_type.names[0]  # type: ignore[union-attr]
    stats = {"numRecords": 2, "minValues": {outer: {inner: 5}}, "maxValues": {outer: 3}, "nullCount": {}}
    (file,) = data_files("/t", mapping, [AddFile("f", {}, 9, 1, True, json.dumps(stats))], 0)
    assert (list(file.lower_bounds), file.upper_bounds, file.null_value_counts) == ([2], {}, {})


def test_a_file_without_its_number_of_rows() -> None:
    with pytest.raises(CorruptLogError, match="number of rows"):
        data_files("/t", table({"v": PrimitiveType("long")}).snapshot().mapping, [AddFile("f", {}, 9, 1, True)], 0)


@pytest.mark.parametrize(
    ("root", "path", "location"),
    [
        ("/a b", "p%2520q/f%20g", "file:///a b/p%20q/f g"),
        ("file:///a%20b", "f", "file:///a b/f"),
        ("s3://bucket/t", "x/f", "s3://bucket/t/x/f"),
        ("s3://bucket/t", "s3://other/f", "s3://other/f"),
    ],
)
def test_locations(root: str, path: str, location: str) -> None:
    assert location_of(root, path) == location
