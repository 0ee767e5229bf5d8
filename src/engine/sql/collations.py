"""The collations of a table's columns, given to values that have the column's type without them.

Schemas that are compared by their types don't see collations. But Spark combines strings (in CASE, in a union) only if
they have the same collation.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...core.protocol.schema import VOID, StructField, collations, quoted
from ..jvm.types import column_type
from .replaced_columns import replaced

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def collated(df: "DataFrame", fields: Iterable[StructField]) -> "DataFrame":
    """`df` with the collations of these columns, at every depth."""
    values = {f.name: collated_value(df[quoted(f.name)], f) for f in fields if f.data_type != VOID and collations(f)}
    return replaced(df, values) if values else df


def collated_value(value: "Column", field: StructField) -> "Column":
    """A value of the type of the column `field`, with the column's collations, at every depth."""
    return value.cast(column_type(field)) if collations(field) else value
