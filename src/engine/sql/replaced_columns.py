"""Replaces columns of a frame without the loss of their metadata."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.protocol.schema import quoted
from ..jvm.connection.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def replaced(frame: "DataFrame", values: "Mapping[str, Column]") -> "DataFrame":
    """`frame` with other values in some of its columns, which keep their metadata: field IDs, lengths of char."""
    schema = frame.schema
    named = {name: value.alias(name, metadata=schema[name].metadata) for name, value in values.items()}
    if is_classic(frame.sparkSession):
        return frame.withColumns(named)
    # The server drops the metadata of `withColumns`.
    return frame.select(*(named[name] if name in named else frame[quoted(name)] for name in schema.names))
