"""New tables by methods of PySpark: `df.writeTo(name).create()` and its like, and `spark.catalog.createTable`."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ...dml.alter.create import CreateMode, Definition
from ...engine.jvm import builders
from ...engine.jvm.statements import definitions
from ...engine.jvm.statements.inserts import parsed_name
from ...engine.jvm.types import declared
from ...errors import InvalidArgumentError
from ..options import Options
from .statements.create import NewTable, is_delta, own_name, run, with_layout

_OVERWRITE_SCHEMA = "overwriteSchema"
_LOCATION, _COMMENT = "location", "comment"
_RESERVED = frozenset({"provider", "owner", "external", "is_managed_location"})
"""The other properties that mean something to Spark's catalogs."""


def by_writer(writer: Any, mode: CreateMode) -> bool:
    """Create or replace a table by a `DataFrameWriterV2`. Returns False if it isn't a Delta table."""
    spark: SparkSession = builders.session_of(writer)
    state = builders.new_table_state(writer)
    if not is_delta(spark, state.provider):
        return False
    name = own_name(spark, state.name_parts)
    if name is None:
        return False
    options = Options(state.options)
    if mode != "create" and (options.get(_OVERWRITE_SCHEMA) or "").lower() == "false":
        raise InvalidArgumentError(
            f"{_OVERWRITE_SCHEMA}=false is not allowed where {'.'.join(name)} is replaced: leave the option out, or "
            'use df.write.format("delta").mode("overwrite").saveAsTable(name).',
            condition="DELTA_ILLEGAL_USAGE",
            parameters={"option": _OVERWRITE_SCHEMA, "operation": "replacing"},
        )
    own = {key: value for key, value in state.options.items() if key.startswith("delta.")}
    properties, location, comment = _reserved(".".join(name), state.properties, options.get("path"))
    definition = Definition(properties={**own, **properties}, comment=comment)
    definition = with_layout(name, definition, definitions.partitioning(state.transforms))
    kept = {key: value for key, value in state.options.items() if key.lower() not in ("path", "overwriteschema")}
    run(spark, NewTable(name, mode, definition, location, builders.frame_of(writer), kept))
    return True


def _reserved(
    name: str, properties: Mapping[str, str], path: str | None
) -> tuple[dict[str, str], str | None, str | None]:
    """The properties of a new table, its location and its comment, of which Spark passes the last two as properties.

    Raises InvalidArgumentError for a second location, and for the other properties that Spark reserves.
    """
    kept = dict(properties)
    location, comment = kept.pop(_LOCATION, path), kept.pop(_COMMENT, None)
    refused, why = sorted(_RESERVED & kept.keys()), "which Spark reserves"
    if path not in (None, location):
        refused, why = [_LOCATION], "because the option path gives another location"
    if refused:
        raise InvalidArgumentError(
            f"{name} can't be created with the table property {', '.join(refused)}, {why}: leave it out.",
            condition="UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
            parameters={"property": refused[0], "msg": "please leave it out"},
        )
    return kept, location, comment


def by_catalog(
    spark: SparkSession,
    name: str,
    path: str | None,
    source: str | None,
    schema: StructType | None,
    description: str | None,
    options: dict[str, str],
) -> bool:
    """Create a table by `spark.catalog.createTable`. Returns False if it isn't a Delta table."""
    if not is_delta(spark, source):
        return False
    parts = own_name(spark, parsed_name(spark, name))
    if parts is None:
        return False
    texts = {key: str(value) for key, value in options.items() if key.lower() != "path"}
    definition = Definition(
        declared(schema or StructType()),
        properties={f"option.{key}": value for key, value in texts.items()} | texts,
        comment=description or None,
    )
    location = path or next((str(value) for key, value in options.items() if key.lower() == "path"), None)
    run(spark, NewTable(parts, "create", definition, location))
    return True
