"""Replacements of the methods that read: `DataFrameReader`, `DataStreamReader` and `SparkSession.table`."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ....engine.jvm import builders
from ..enabled_sessions import is_enabled
from .common import Method, Patch, is_delta

_TIME_TRAVEL = frozenset({"versionasof", "timestampasof"})
"""The options of a reader that Spark itself turns into time travel."""


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
    """Run Spark's method, unless it would lose options of the reader or fails for a Delta table of the catalog.

    Spark obeys the options of time travel alone. With others, a Delta table is read by its location.
    """

    def table(self: Any, tableName: str) -> Any:
        spark = self if isinstance(self, SparkSession) else builders.session_of(self)
        if not is_enabled(spark):
            return original(self, tableName)
        options = {} if self is spark else builders.reader_state(self).options
        if not _needs_options(spark, tableName, options):
            try:
                return original(self, tableName)
            except Exception as error:
                from ...sql.refusals import is_missing_provider

                if not is_missing_provider(error):
                    raise
        from ...reader import table as delta_table

        return delta_table(spark, tableName, options)

    return table


def _needs_options(spark: SparkSession, name: Any, options: Mapping[str, str]) -> bool:
    """Whether there are options beside those of time travel, and the name is that of a Delta table and of no view."""
    if not isinstance(name, str) or all(key.lower() in _TIME_TRAVEL for key in options):
        return False
    from ...sql.tables import find_by_text

    try:
        found = find_by_text(spark, name)
    except AnalysisException:
        return False  # Spark raises the error
    return found is not None and not found.by_view
