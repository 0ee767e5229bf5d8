"""Statistics of data files, read from Parquet footers.

Only reliable statistics are used: a bound that a row group lacks, a NaN bound, and the null count of a list (a footer
counts its elements) count as unknown. Bounds of strings may be truncated: Parquet writers truncate them so that they
stay valid bounds.
"""

import decimal
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.protocol.schema import (
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    Column,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
    has_min_max,
)
from ...core.skipping.stats_writer import ColumnStats

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class Leaf(NamedTuple):
    """An indexed column, and the position of its first leaf column in the Parquet file."""

    column: Column
    field: StructField
    position: int


def string_bytes(prefix_length: int) -> int:
    """The length to which a writer may truncate bounds of strings, if `prefix_length` characters are kept, in bytes.

    Delta reads one character more than it keeps; a character (a UTF-16 code unit) has at most three bytes.
    """
    return 4 * max(prefix_length, 0) + 8


def parquet_width(data_type: DataType) -> int:
    """The number of Parquet leaf columns for a column of this type."""
    if isinstance(data_type, StructType):
        return sum(parquet_width(f.data_type) for f in data_type.fields)
    if isinstance(data_type, ArrayType):
        return parquet_width(data_type.element_type)
    if isinstance(data_type, MapType):
        return parquet_width(data_type.key_type) + parquet_width(data_type.value_type)
    if isinstance(data_type, UserDefinedType):
        return parquet_width(data_type.sql_type)
    return {VOID: 0, VARIANT: 2}.get(data_type, 1)


def locate(written: StructType, indexed: Sequence[Column]) -> list[Leaf]:
    """The positions of the indexed columns in files with the schema `written`, which has no partition columns.

    Positions are used because names with dots are ambiguous in a footer. Void columns are not in files.
    """
    wanted = set(indexed)

    def walk(level: StructType, prefix: Column, position: int) -> Iterator[Leaf]:
        for field in level.fields:
            name = (*prefix, field.name)
            if isinstance(field.data_type, StructType):
                yield from walk(field.data_type, name, position)
            elif name in wanted and field.data_type != VOID:
                yield Leaf(name, field, position)
            position += parquet_width(field.data_type)

    return list(walk(written, (), 0))


def of_metadata(metadata: "pq.FileMetaData", leaves: Sequence[Leaf]) -> tuple[int, list[ColumnStats]]:
    """(row count, statistics of each leaf) from a footer; row groups are merged."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    return metadata.num_rows, [_merged(leaf, [group.column(leaf.position) for group in groups]) for leaf in leaves]


def _merged(leaf: Leaf, chunks: Sequence[Any]) -> ColumnStats:
    data_type = leaf.field.data_type
    statistics = [chunk.statistics for chunk in chunks]
    nulls: int | None = 0
    for each in statistics:
        nulls = nulls + each.null_count if nulls is not None and each is not None and each.has_null_count else None
    if isinstance(data_type, ArrayType | MapType):
        nulls = 0 if nulls == 0 else None
    unbounded = ColumnStats(leaf.column, data_type, null_count=nulls)
    if not has_min_max(data_type):
        return unbounded
    assert isinstance(data_type, PrimitiveType)
    low: Any = None
    high: Any = None
    for chunk, each in zip(chunks, statistics, strict=True):
        if each is None:
            return unbounded
        if not each.has_min_max:
            if each.has_null_count and each.null_count == chunk.num_values:
                continue  # only nulls: no bounds are needed
            return unbounded
        least, most = each.min_raw, each.max_raw
        if isinstance(least, bytes) and data_type != STRING:  # a decimal, big-endian: compared as numbers
            least, most = int.from_bytes(least, "big", signed=True), int.from_bytes(most, "big", signed=True)
        # For Spark, NaN is the largest number: it stays the maximum, but is never the minimum.
        if low is None or least < low or _is_nan(low):
            low = least
        if high is None or most > high or _is_nan(most):
            high = most
    decode = _decoder(data_type)
    return ColumnStats(leaf.column, data_type, _known(low, decode), _known(high, decode), nulls)


def _is_nan(raw: Any) -> bool:
    return isinstance(raw, float) and math.isnan(raw)


def _known(raw: Any, decode: Callable[[Any], Any]) -> Any:
    if raw is None or _is_nan(raw):
        return None
    try:
        return decode(raw)
    except UnicodeDecodeError:  # Spark strings may contain invalid UTF-8
        return None


_EXACT = decimal.Context(prec=38)


def _decoder(data_type: PrimitiveType) -> Callable[[Any], Any]:
    """Converts a footer's number or bytes to a value for `ColumnStats`."""
    if data_type == STRING:
        return lambda raw: str(raw, "utf-8")
    bounds = data_type.decimal
    if bounds is not None:
        scale = bounds[1]
        return lambda raw: decimal.Decimal(raw).scaleb(-scale, _EXACT)
    return lambda raw: raw
