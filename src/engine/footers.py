"""Statistics of data files, read from the footers that Parquet writers leave.

Only what a footer says with certainty is taken: a bound that a row group lacks, one that is NaN, one out of the range
of Python's dates, the null count of a list (a footer counts its elements) are left out as unknown. Bounds of strings
may be truncated: a Parquet writer does it so that they stay bounds.
"""

import datetime
import decimal
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..core.protocol.schema import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    Column,
    DataType,
    MapType,
    StructType,
    UserDefinedType,
    has_min_max,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def string_bytes(prefix_length: int) -> int:
    """To how many bytes a writer may truncate bounds of strings, where `prefix_length` characters are to be kept.

    Delta looks at one character more than it keeps; a character (a UTF-16 code unit) has three bytes at most.
    """
    return 4 * max(prefix_length, 0) + 8


Value: TypeAlias = int | float | decimal.Decimal | str | datetime.date | datetime.datetime
"""A bound; a timestamp is in UTC and aware, one without time zone naive."""


class LeafStats(NamedTuple):
    """What is known of one column in one file; `None` is unknown."""

    nulls: int | None
    minimum: Value | None
    maximum: Value | None


@dataclass(frozen=True, slots=True)
class FileStats:
    """What is known of one file."""

    rows: int
    leaves: dict[Column, LeafStats]


class Leaf(NamedTuple):
    """An indexed column: its name, its type, the first of its columns in the Parquet file."""

    column: Column
    data_type: DataType
    position: int


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

    def walk(level: StructType, prefix: Column, index: int) -> Iterator[Leaf]:
        for f in level.fields:
            name = (*prefix, f.name)
            if isinstance(f.data_type, StructType):
                yield from walk(f.data_type, name, index)
            elif name in wanted and f.data_type != VOID:
                yield Leaf(name, f.data_type, index)
            index += parquet_width(f.data_type)

    return list(walk(written, (), 0))


def read(path: str, leaves: Sequence[Leaf]) -> FileStats:
    """The statistics of the file at a local path."""
    import pyarrow.parquet as pq

    return of_metadata(pq.read_metadata(path), leaves)


def of_metadata(metadata: "pq.FileMetaData", leaves: Sequence[Leaf]) -> FileStats:
    """The statistics that a footer holds, its row groups merged."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    found = {leaf.column: _merged([group.column(leaf.position) for group in groups], leaf.data_type) for leaf in leaves}
    return FileStats(metadata.num_rows, found)


def _merged(chunks: Sequence[Any], data_type: DataType) -> LeafStats:
    statistics = [chunk.statistics for chunk in chunks]
    nulls: int | None = 0
    for each in statistics:
        nulls = nulls + each.null_count if nulls is not None and each is not None and each.has_null_count else None
    if isinstance(data_type, ArrayType | MapType):
        return LeafStats(0 if nulls == 0 else None, None, None)
    if not has_min_max(data_type):
        return LeafStats(nulls, None, None)
    decode = _decoder(data_type)
    low: Any = None
    high: Any = None
    for chunk, each in zip(chunks, statistics, strict=True):
        if each is None:
            return LeafStats(nulls, None, None)
        if not each.has_min_max:
            if each.has_null_count and each.null_count == chunk.num_values:
                continue  # nothing but nulls: it has no bound, and needs none
            return LeafStats(nulls, None, None)
        least, most = each.min_raw, each.max_raw
        if isinstance(least, bytes) and data_type != STRING:  # a decimal, big-endian: compared as numbers
            least, most = int.from_bytes(least, "big", signed=True), int.from_bytes(most, "big", signed=True)
        # A NaN is the largest of all numbers for Spark, and stays the maximum once seen; as a minimum it stands alone.
        if low is None or least < low or _is_nan(low):
            low = least
        if high is None or most > high or _is_nan(most):
            high = most
    return LeafStats(nulls, _known(low, decode), _known(high, decode))


def _is_nan(raw: Any) -> bool:
    return isinstance(raw, float) and math.isnan(raw)


def _known(raw: Any, decode: Callable[[Any], Value]) -> Value | None:
    if raw is None or _is_nan(raw):
        return None
    try:
        return decode(raw)
    except (OverflowError, ValueError):  # a year that Python has not, bytes that are no UTF-8
        return None


_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EXACT = decimal.Context(prec=38)


def _decoder(data_type: DataType) -> Callable[[Any], Value]:
    if data_type == STRING:
        return lambda raw: str(raw, "utf-8")
    if data_type == DATE:
        return lambda raw: _EPOCH.date() + datetime.timedelta(days=raw)
    if data_type == TIMESTAMP:
        return lambda raw: _EPOCH_UTC + datetime.timedelta(microseconds=raw)
    if data_type == TIMESTAMP_NTZ:
        return lambda raw: _EPOCH + datetime.timedelta(microseconds=raw)
    bounds = getattr(data_type, "decimal", None)
    if bounds is not None:
        scale = bounds[1]
        return lambda raw: decimal.Decimal(raw).scaleb(-scale, _EXACT)
    return lambda raw: raw
