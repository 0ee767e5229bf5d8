"""Data files as Iceberg describes them: from the actions of the log, without reading a footer."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from ...errors import CorruptLogError
from ..protocol import paths
from ..protocol.actions import AddFile
from ..protocol.column_mapping import ColumnMapping, field_id
from ..protocol.partition_values import parse_date, parse_timestamp
from ..protocol.record_count import num_records
from ..protocol.schema import PrimitiveType, StructType
from .schema import partitions_of, primitive

_MILLISECOND_US: Final = 999
"""The log's bounds of timestamps are cut to milliseconds, so the value is this close to them in microseconds."""


def location_of(table: str, path: str) -> str:
    """The location of an action's file as Iceberg's readers expect it: not percent-encoded, with a scheme."""
    location = paths.absolute(table, path)
    return f"file://{location}" if location.startswith("/") else location


def data_files(table: str, mapping: ColumnMapping, adds: Sequence[AddFile], spec_id: int) -> list[DataFile]:
    """The files of the actions, with the partition values and statistics of the log.

    CorruptLogError for a file without its number of rows.
    """
    result = []
    leaves = list(_leaves(mapping.physical))
    for add, partition in zip(adds, partitions_of(mapping, adds), strict=True):
        rows = num_records(add.stats)
        if rows is None:
            raise CorruptLogError(f"the statistics of {add.path} don't have its number of rows", path=add.path)
        values, nulls, lower, upper = _metrics(add.stats, rows, leaves)
        file = DataFile.from_args(
            _table_format_version=2,
            content=DataFileContent.DATA,
            file_path=location_of(table, add.path),
            file_format=FileFormat.PARQUET,
            partition=partition,
            record_count=rows,
            file_size_in_bytes=add.size,
            value_counts=values,
            null_value_counts=nulls,
            lower_bounds=lower,
            upper_bounds=upper,
        )
        file.spec_id = spec_id
        result.append(file)
    return result


_Leaf = tuple[tuple[str, ...], int, PrimitiveType]
_Counts = dict[int, int]
_Bounds = dict[int, bytes]


def _leaves(schema: StructType, at: tuple[str, ...] = ()) -> Iterator[_Leaf]:
    """The primitive columns outside of arrays and maps, with their ids."""
    for field in schema:
        path, number = (*at, field.name), field_id(field)
        if isinstance(field.data_type, StructType):
            yield from _leaves(field.data_type, path)
        elif isinstance(field.data_type, PrimitiveType) and number is not None:
            yield path, number, field.data_type


def _metrics(text: str | None, rows: int, leaves: Sequence[_Leaf]) -> tuple[_Counts, _Counts, _Bounds, _Bounds]:
    stats = json.loads(text, parse_float=Decimal) if text else {}
    values: _Counts = {}
    nulls: _Counts = {}
    lower: _Bounds = {}
    upper: _Bounds = {}
    for path, number, data_type in leaves:
        count = _at(stats.get("nullCount"), path)
        if type(count) is int:
            values[number], nulls[number] = rows, count
        for bounds, key, is_lower in ((lower, "minValues", True), (upper, "maxValues", False)):
            stored = _at(stats.get(key), path)
            encoded = None if stored is None else _bound(stored, data_type, is_lower=is_lower)
            if encoded is not None:
                bounds[number] = encoded
    return values, nulls, lower, upper


def _at(node: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(name)
    return node


def _bound(stored: Any, data_type: PrimitiveType, *, is_lower: bool) -> bytes | None:
    """A bound in Iceberg's form; `None` if there is none, or if it can't be used."""
    try:
        value = _value(stored, data_type, is_lower=is_lower)
        return None if value is None else to_bytes(primitive(data_type), value)
    except (ValueError, TypeError, ArithmeticError, struct.error):
        return None  # a file without a bound is always read


def _value(stored: Any, data_type: PrimitiveType, *, is_lower: bool) -> Any:
    if data_type.is_integral:
        return stored if type(stored) is int else None
    if data_type.decimal is not None:
        if isinstance(stored, bool) or not isinstance(stored, int | Decimal):
            return None
        exact = Decimal(stored)
        _, digits, exponent = exact.as_tuple()
        shift = int(exponent) + data_type.decimal[1]
        if shift < 0:
            return None
        return Decimal((int(exact < 0), (*digits, *(0,) * shift), -data_type.decimal[1]))
    if data_type.is_floating:
        # NaN is the largest value in Spark, but an upper bound of the log may ignore it.
        number = float(stored) if is_lower and isinstance(stored, int | Decimal) else math.nan
        return number if math.isfinite(number) else None
    if not isinstance(stored, str):
        return None
    parse = _OF_TEXT.get(data_type.name)
    return None if parse is None else parse(stored, is_lower)


def _micros(text: str, is_lower: bool) -> int:
    return parse_timestamp(text, None) + (-_MILLISECOND_US if is_lower else _MILLISECOND_US)


_OF_TEXT: Final[Mapping[str, Callable[[str, bool], Any]]] = {
    "string": lambda text, _: text,
    "date": lambda text, _: parse_date(text),
    "timestamp": _micros,
    "timestamp_ntz": _micros,
}
