"""Replacements of the methods that read: `DataFrameReader`, `DataStreamReader` and `SparkSession.table`."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from ....engine.jvm import builders
from ..enabled_sessions import is_enabled
from .common import Method, Patch, is_delta


def load_method(delta: Callable[[], Method]) -> Patch:
    """Replace `load` of a reader. `delta` imports the function that loads a Delta table, only when it is needed."""

    def patch(original: Method) -> Method:
        def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
            if not is_delta(self, format):
                return original(self, path, format, schema, **options)
            self.format("delta")
            builders.set_options(self, schema, options)
            return delta()(self, path)

        return load

    return patch


def batch_load() -> Method:
    from ...reader import load

    return load


def stream_load() -> Method:
    from ...streaming.builders import load

    return load


def stream_table_method(original: Method) -> Method:
    def table(self: Any, tableName: str) -> Any:
        if is_enabled(builders.session_of(self)):
            from ...names import is_delta_table

            if is_delta_table(builders.session_of(self), tableName):
                from ...streaming.builders import table as delta_table

                return delta_table(self, tableName)
        return original(self, tableName)

    return table


def table_method(original: Method) -> Method:
    """Run Spark's method; if it fails for a Delta table of the catalog, read the table by its location."""

    def table(self: Any, tableName: str) -> Any:
        spark = self if isinstance(self, SparkSession) else builders.session_of(self)
        if not is_enabled(spark):
            return original(self, tableName)
        try:
            return original(self, tableName)
        except Exception as error:
            from ...sql.refusals import is_missing_provider

            if not is_missing_provider(error):
                raise
        from ...reader import table as delta_table

        return delta_table(spark, tableName, {} if self is spark else builders.reader_state(self).options)

    return table
