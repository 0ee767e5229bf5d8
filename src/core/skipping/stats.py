"""Statistics of data files (PROTOCOL.md, "Per-file Statistics"): read as Arrow columns.

Reading is tolerant: statistics are only an optimisation, so an invalid text or value becomes null, which means unknown.
Only the requested columns are read, for a million files at a time.

`FileStats` defines the meaning of a bound: a timestamp's is truncated to milliseconds, a string's may be truncated, and
no bound includes NaN.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol.schema import Column, DataType, StructType, arrow_type, find, has_min_max
from .stats_parser import Tree, parse_json, struct_type, tree
from .stats_writer import ColumnStats, collect, stats_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ColumnStats",
    "FileStats",
    "LeafStats",
    "Tree",
    "collect",
    "leaf_types",
    "parse_json",
    "read",
    "stats_json",
    "struct_type",
    "tree",
]


@dataclass(frozen=True, slots=True)
class LeafStats:
    """One column's statistics in each file; null is unknown. `min` and `max` are `None` for types without bounds."""

    min: "pa.Array | None"
    max: "pa.Array | None"
    null_count: "pa.Array | None"


@dataclass(frozen=True, slots=True)
class FileStats:
    """The statistics of some columns of a files table, row by row; null is unknown.

    `max` and `min` are as written: the largest timestamp may be up to 999 microseconds after its `max`; the largest
    string may start with its `max`; NaN isn't included in either. Where `wide` is true (a file with a deletion
    vector), the bounds are still valid, but a null count is exact only if it is 0 or `num_records`.
    """

    num_records: "pa.Array"
    wide: "pa.Array"
    leaves: Mapping[Column, LeafStats]


def read(files: "pa.Table", columns: Iterable[Column], schema: StructType) -> FileStats:
    """The statistics of `columns` (exact names of leaves of `schema`) from a files table.

    Uses `stats_parsed` if the table has it and it isn't null, else the JSON text `stats`; without both, everything is
    unknown.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    types: dict[Column, DataType] = {}
    for column in columns:
        match = find(schema, column, case_sensitive=True)
        if match is not None and not isinstance(match[1].data_type, StructType):
            types[column] = match[1].data_type
    target = tree(types.items())
    rows = files.num_rows
    parsed = _combined(files["stats_parsed"]) if "stats_parsed" in files.column_names else None
    if parsed is not None and not pa.types.is_struct(parsed.type):
        parsed = None
    texts = files["stats"] if "stats" in files.column_names else None
    as_struct: pa.Array | None = None
    if texts is not None and texts.null_count < rows:
        gaps = parsed is None or parsed.null_count > 0 or any(
            _path(parsed, "nullCount", column) is None for column in types
        )  # fmt: skip
        if gaps:
            as_struct = _combined(parse_json(texts, target))

    def column_of(name: str, path: Column, data_type: "pa.DataType") -> "pa.Array":
        both = [
            _as(source, data_type)
            for source in (_path(parsed, name, path), _path(as_struct, name, path))
            if source is not None
        ]
        if not both:
            return pa.nulls(rows, data_type)
        return both[0] if len(both) == 1 else pc.coalesce(*both)

    leaves: dict[Column, LeafStats] = {}
    for column, data_type in types.items():
        counts = column_of("nullCount", column, pa.int64())
        if has_min_max(data_type):
            kind = arrow_type(data_type)
            leaves[column] = LeafStats(
                column_of("minValues", column, kind), column_of("maxValues", column, kind), counts
            )
        else:
            leaves[column] = LeafStats(None, None, counts)
    tight = column_of("tightBounds", (), pa.bool_())
    return FileStats(column_of("numRecords", (), pa.int64()), pc.invert(pc.fill_null(tight, True)), leaves)


def _combined(column: "pa.ChunkedArray") -> "pa.Array":
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _path(source: "pa.Array | None", name: str, path: Column) -> "pa.Array | None":
    """The child of a struct column, with the nulls of its parents; `None` if there is no such child."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if source is None:
        return None
    for part in (name, *path):
        if not pa.types.is_struct(source.type) or source.type.get_field_index(part) < 0:
            return None
        source = pc.struct_field(source, [source.type.get_field_index(part)])
    return source


def _as(array: "pa.Array", target: "pa.DataType") -> "pa.Array":
    """A column of `stats_parsed` in the column's type; unknown if it can't be converted."""
    import pyarrow as pa

    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        if array.type.unit == "ns":
            return pa.nulls(len(array), target)  # an INT96 may have overflowed
        array = array.cast(pa.timestamp(array.type.unit, target.tz))
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(array), target)


def leaf_types(schema: StructType, columns: Sequence[Column]) -> list[tuple[Column, DataType]]:
    """The columns with their types; columns that aren't in the schema are left out."""
    matches = ((column, find(schema, column, case_sensitive=True)) for column in columns)
    return [(column, item[1].data_type) for column, item in matches if item is not None]
