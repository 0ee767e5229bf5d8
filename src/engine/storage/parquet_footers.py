"""Statistics of data files, read from the footers that Parquet writers leave.

Only what a footer says with certainty is taken: a bound that a row group lacks, one that is NaN and the null count of a
list (a footer counts its elements) are left out as unknown. Bounds of strings may be truncated: a Parquet writer does
it so that they stay bounds.
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
    """An indexed column and the first of the columns of a Parquet file that hold it."""

    column: Column
    field: StructField
    position: int


def string_bytes(prefix_length: int) -> int:
    """To how many bytes a writer may truncate bounds of strings, where `prefix_length` characters are to be kept.

    Delta looks at one character more than it keeps; a character (a UTF-16 code unit) has three bytes at most.
    """
    return 4 * max(prefix_length, 0) + 8


def parquet_width(data_type: DataType) -> int:
    """How many columns of a Parquet file hold a column of this type."""
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
    """Where the indexed columns lie in files of the schema `written`, which is the table's without partition columns.

    By position, for a name in a footer with a dot in it has more than one meaning. Void columns are in no file.
    """
    wanted = set(indexed)

    def walk(level: StructType, prefix: Column, position: int) -> Iterator[Leaf]:
        for f in level.fields:
            name = (*prefix, f.name)
            if isinstance(f.data_type, StructType):
                yield from walk(f.data_type, name, position)
            elif name in wanted and f.data_type != VOID:
                yield Leaf(name, f, position)
            position += parquet_width(f.data_type)

    return list(walk(written, (), 0))


def of_metadata(metadata: "pq.FileMetaData", leaves: Sequence[Leaf]) -> tuple[int, list[ColumnStats]]:
    """(rows, what is known of each leaf) by a footer, its row groups merged."""
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
                continue  # nothing but nulls: it has no bound, and needs none
            return unbounded
        least, most = each.min_raw, each.max_raw
        if isinstance(least, bytes) and data_type != STRING:  # a decimal, big-endian: compared as numbers
            least, most = int.from_bytes(least, "big", signed=True), int.from_bytes(most, "big", signed=True)
        # A NaN is the largest of all numbers for Spark and stays the maximum once seen; as a minimum it stands alone.
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
    except UnicodeDecodeError:  # Spark lets bytes that are no UTF-8 be a string
        return None


_EXACT = decimal.Context(prec=38)


def _decoder(data_type: PrimitiveType) -> Callable[[Any], Any]:
    """From a footer's number or bytes to what `ColumnStats` takes."""
    if data_type == STRING:
        return lambda raw: str(raw, "utf-8")
    bounds = data_type.decimal
    if bounds is not None:
        scale = bounds[1]
        return lambda raw: decimal.Decimal(raw).scaleb(-scale, _EXACT)
    return lambda raw: raw
