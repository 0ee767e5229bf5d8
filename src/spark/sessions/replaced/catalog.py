"""Replacements of the methods of `Catalog`."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from ....core.protocol.schema import quoted
from ....engine.jvm import builders
from ... import names
from ..enabled_sessions import is_enabled
from .common import Method, explained_by_catalog


def create_table_method(original: Method) -> Method:
    explained = explained_by_catalog("createTable")(original)

    def create_table(
        self: Any,
        tableName: str,
        path: Any = None,
        source: Any = None,
        schema: Any = None,
        description: Any = None,
        **options: Any,
    ) -> Any:
        spark = builders.session_of(self)
        if is_enabled(spark) and (schema is None or isinstance(schema, StructType)):
            from ...sql.new_tables import by_catalog

            if by_catalog(spark, tableName, path, source, schema, description, options):
                return spark.table(tableName)
        if is_enabled(spark):
            from ...sql.other_formats import check_options
            from ...sql.statements.create import is_delta

            if not is_delta(spark, source):
                check_options(spark, path, options)
        return explained(self, tableName, path, source, schema, description, **options)

    return create_table


def create_database_method(original: Method) -> Method:
    """Keep a schema, whose directory is deleted with it, out of the directory of a Delta table."""
    explained = explained_by_catalog("createDatabase")(original)

    def create_database(self: Any, dbName: str, ifNotExists: bool = False, properties: Any = None) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ...sql.other_formats import check_options

            check_options(spark, None, properties or {})
        explained(self, dbName, ifNotExists, properties)

    return create_database


def drop_database_method(original: Method) -> Method:
    """Prevent deleting the directory of a schema if it has a Delta table that the catalog doesn't have."""
    explained = explained_by_catalog("dropDatabase")(original)

    def drop_database(self: Any, dbName: str, ifExists: bool = False, cascade: bool = False) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark) and not cascade:
            from ...sql.other_formats import check_schema_named

            check_schema_named(spark, dbName)
        explained(self, dbName, ifExists, cascade)

    return drop_database


def truncate_table_method(original: Method) -> Method:
    """Prevent deleting the directory of a Delta table that the catalog has as a table of another format."""
    explained = explained_by_catalog("truncateTable")(original)

    def truncate_table(self: Any, tableName: str) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ...sql.other_formats import check_table_named

            check_table_named(spark, tableName)
        explained(self, tableName)

    return truncate_table


def refresh_table_method(original: Method) -> Method:
    """Spark's method takes the catalog entry from the plan of the table; the plan of a Delta table has none."""
    explained = explained_by_catalog("refreshTable")(original)

    def refresh_table(self: Any, tableName: str) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ...sql.tables import find_by_text

            if find_by_text(spark, tableName) is not None:
                spark.sql(f"REFRESH TABLE {tableName}")
                return
        explained(self, tableName)

    return refresh_table


def table_exists_method(original: Method) -> Method:
    def table_exists(self: Any, tableName: str, dbName: str | None = None) -> Any:
        try:
            return original(self, tableName, dbName)
        except Exception as error:
            from ...sql.refusals import is_missing_provider

            if not is_enabled(builders.session_of(self)):
                raise
            if isinstance(error, PySparkException) and error.getCondition() == "DELTA_MISSING_DELTA_TABLE":
                name = tableName if dbName is None else f"{dbName}.{quoted(tableName)}"
                return names.by_path(name) is None  # of another name, the catalog has an entry
            if not is_missing_provider(error):
                raise
            return True  # Spark found the table, but has no Delta source

    return table_exists
