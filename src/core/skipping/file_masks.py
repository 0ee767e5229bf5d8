"""The values that pruning computes with: files, their statistics, and the masks over files that a condition gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..protocol.schema import Column, DataType, PrimitiveType, StructType, find
from . import stats
from .bounds import Bounds, Mask
from .predicates import (
    Compare,
    In,
    IsNotNull,
    IsNull,
    StartsWith,
)

if TYPE_CHECKING:
    import pyarrow as pa

NanMode: TypeAlias = Literal["number", "nan", "either"]
"""Which values of a floating-point column a condition is evaluated for."""
Leaf: TypeAlias = Compare | In | IsNull | IsNotNull | StartsWith
"""A condition on one column."""


@dataclass(frozen=True, slots=True)
class MayMatch:
    """For each file: whether the predicate may be TRUE, and whether it may be FALSE."""

    true: Mask
    false: Mask

    def negated(self) -> "MayMatch":
        return MayMatch(self.false, self.true)


@dataclass(slots=True)
class FilesToPrune:
    """The files to evaluate, with their partition values and statistics."""

    rows: int
    schema: StructType
    partitions: Mapping[str, "pa.Array"]
    stats: stats.FileStats | None
    cache: dict[tuple[int, NanMode | None], MayMatch] = field(default_factory=dict)
    columns: dict[Column, "KnownColumn"] = field(default_factory=dict)

    def all(self, value: bool) -> Mask:
        import pyarrow as pa

        return pa.repeat(pa.scalar(value), self.rows)

    def unknown(self) -> MayMatch:
        return MayMatch(self.all(True), self.all(True))

    def never(self) -> MayMatch:
        return MayMatch(self.all(False), self.all(False))


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A data column with statistics; `bounds` is `None` for a type without bounds."""

    rows: int
    data_type: PrimitiveType
    bounds: Bounds | None
    has_null: Mask
    has_value: Mask

    def both(self, true: bool, false: bool) -> MayMatch:
        import pyarrow as pa

        return MayMatch(pa.repeat(pa.scalar(true), self.rows), pa.repeat(pa.scalar(false), self.rows))


def column_type(schema: StructType, column: Column) -> DataType | None:
    """The type of a column by its exact name; `None`: there is no such column."""
    match = find(schema, column, case_sensitive=True)
    return None if match is None else match[1].data_type
