"""Evaluates a table's rules on its columns of type char.

Spark ignores trailing spaces in a comparison with such a column: it pads the other side to the length in the column's
metadata. The columns of a frame that was converted for a write have no such metadata.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...core.protocol.schema import CHAR_VARCHAR_KEY, StructType, char_varchar, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_lengths(df: "DataFrame", schema: StructType, change: "Callable[[DataFrame], DataFrame]") -> "DataFrame":
    """`change(df)`, for which the columns of type char have their length of `schema`. Fields of structs have none."""
    lengths = {
        field.name: {CHAR_VARCHAR_KEY: field.metadata[CHAR_VARCHAR_KEY]}
        for field in schema
        if (char_varchar(field) or ("",))[0] == "char" and field.name in df.columns
    }
    if not lengths:
        return change(df)
    own = {name: df.schema[name].metadata for name in lengths}
    changed = change(_with_metadata(df, {name: {**own[name], **length} for name, length in lengths.items()}))
    return _with_metadata(changed, own)


def _with_metadata(df: "DataFrame", metadata: Mapping[str, Mapping[str, Any]]) -> "DataFrame":
    return df.select(
        *(
            df[quoted(name)].alias(name, metadata=dict(metadata[name])) if name in metadata else df[quoted(name)]
            for name in df.columns
        )
    )
