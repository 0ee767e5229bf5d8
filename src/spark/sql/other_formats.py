"""Prevents Spark from writing other formats into the directory of a Delta table: an overwrite would delete the log.

Databricks has the same check, with the same configuration key.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from ...engine.jvm.catalog import SessionCatalog
from ...engine.jvm.connection import settings
from ...engine.jvm.statements import statements
from ...engine.jvm.statements.inserts import parsed_name
from ...engine.write import view_inserts
from ...settings.declarations import FORMAT_CHECK
from ..format_check import MOST_DIRECTORIES, locations, overwrite_refusal, refusal, schema_refusal


def check(spark: SparkSession, location: object, *, overwrites: bool = False) -> None:
    """Raise InvalidArgumentError if a Delta table is at the location, unless the session disables this check.

    `overwrites`: everything in the directory will be deleted, also a table in one of its directories.
    """
    if not isinstance(location, str) or not location or not settings.of(spark, FORMAT_CHECK):
        return
    if statements.has_log(spark, location):
        raise refusal(location)
    if overwrites and (table := statements.table_in(spark, location, MOST_DIRECTORIES)) is not None:
        raise overwrite_refusal(location, table)


def check_options(
    spark: SparkSession, path: object, options: Mapping[str, object], *, overwrites: bool = False
) -> None:
    """The same check for the path of a writer, or its option `path` or `location` (in any case)."""
    for location in locations(path, options):
        check(spark, location, overwrites=overwrites)


def check_table(spark: SparkSession, name_parts: Any) -> None:
    """The same check for the directories of a table or a temporary view (a Scala `Seq`, the parts of its name).

    A directory that was converted to Delta by its path may still be the location of a table of Parquet.
    """
    if statements.is_temporary_view(spark, name_parts):
        for location in view_inserts.directories_shown(spark, name_parts):
            check(spark, location)
        return
    entry = SessionCatalog(spark).find_parts(name_parts)
    if entry is not None and not entry.is_delta:
        check(spark, entry.location)


def check_table_named(spark: SparkSession, name: str) -> None:
    """`check_table` for a name as SQL. Raises Spark's ParseException."""
    check_table(spark, parsed_name(spark, name))


def check_statement(spark: SparkSession, parts: Sequence[statements.Part]) -> None:
    """The same check for the directories and the table that a parsed statement changes."""
    for part in parts:
        for location in statements.destinations(spark, part):
            check(spark, location, overwrites=part.kind == "InsertIntoDir")
        name = statements.written(part)
        if name is not None:
            check_table(spark, name)
        schema = statements.dropped_schema(part)
        if schema is not None:
            check_schema(spark, schema)


def check_schema(spark: SparkSession, name_parts: Any) -> None:
    """Raise InvalidArgumentError if a Delta table is in the directory of a schema that is dropped without CASCADE.

    Spark deletes that directory, as the catalog has no table in the schema.
    """
    if not settings.of(spark, FORMAT_CHECK):
        return
    location = SessionCatalog(spark).schema_location(name_parts)
    if location is not None and (table := statements.table_in(spark, location, MOST_DIRECTORIES)) is not None:
        raise schema_refusal(name_parts.mkString("."), location, table)


def check_schema_named(spark: SparkSession, name: str) -> None:
    """`check_schema` for a name as SQL. Raises Spark's ParseException."""
    check_schema(spark, parsed_name(spark, name))
