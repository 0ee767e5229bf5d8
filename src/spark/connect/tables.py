"""Delta tables by their names in the server's catalog: read them, and write to them by `saveAsTable`."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ...core.deltalog import DeltaLog
from ...engine.connect import client, delta_entries
from ...engine.jvm.builders import WriterState
from .. import names, statement_words
from ..conf import session_conf
from ..options import Options
from ..reader import load_by
from ..writer import request_of, save_by
from . import catalog


def read(spark: SparkSession, name: str, options: Mapping[str, str], *, has_schema: bool) -> DataFrame | None:
    """A Delta table by `` delta.`path` `` or its name in the catalog; None for another name.

    A name in the catalog costs one request.
    """
    named = names.by_path(name)
    if named is not None:
        return load_by(spark, options, named[1], has_schema=has_schema) if named[0] == "delta" else None
    if client.in_pipeline():
        return None  # it may be a dataset of the pipeline
    entry = catalog.delta_table(spark, name)
    if entry is None:
        return None
    return load_by(spark, options, entry.location, has_schema=has_schema).alias(entry.short_name)


def log_of(spark: SparkSession, name: str) -> DeltaLog:
    """The log of a Delta table by its name in the catalog.

    Raises:
        TableNotFoundError: There is no such table, it is another kind of table, or its location has no Delta table.
        InvalidArgumentError: The name isn't valid, or it is that of a temporary view.
        UnsupportedFeatureError: The name is in another catalog.
    """
    return names.log_of(spark, names.checked_delta(catalog.find(spark, name), name))


def save(spark: SparkSession, rows: DataFrame, state: WriterState, name: str) -> None:
    """Write to a table by its name in the catalog, or by `` delta.`path` ``; a new name is added to the catalog.

    The entry is added before the table is written, for only the server knows the directory of a managed table. After
    an error it stays, and the next write to this name goes on with it.
    """
    options = dict(state.options)
    given = Options(options).get("path")
    if names.by_path(name) is not None:
        location = names.place(spark, name, given).path
    else:
        request_of(state, session_conf(spark))  # raises before an entry is added
        entry = catalog.find(spark, name) or catalog.add(spark, name, given)
        location = catalog.location_of(spark, entry, given)
    others = {key: value for key, value in options.items() if key.lower() != "path"}
    save_by(spark, rows, replace(state, options=others), location)


def is_drop(statement: str) -> bool:
    """Whether a statement is DROP TABLE."""
    return statement_words.leading_words(statement, 2) == ["DROP", "TABLE"]


def drop(spark: SparkSession, statement: str, arguments: object, formatted: Mapping[str, object]) -> DataFrame:
    """Run DROP TABLE of a Delta table; `arguments` and `formatted` are `args` and the keywords of `spark.sql`."""
    delta_entries.drop(spark, statement, arguments, formatted)
    return spark.createDataFrame([], StructType())
