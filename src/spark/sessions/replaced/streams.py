"""Replacements of the methods that start a stream: `DataStreamWriter`."""

from typing import Any

from ....engine.jvm import builders
from ..enabled_sessions import is_enabled
from .common import Method, is_delta


def _set_stream(writer: Any, output_mode: Any, partition_by: Any, query_name: Any, options: dict[str, Any]) -> None:
    """Set what PySpark's `start` and `toTable` take as arguments."""
    builders.set_options(writer.format("delta"), None, options)
    if output_mode is not None:
        writer.outputMode(output_mode)
    if partition_by is not None:
        writer.partitionBy(partition_by)
    if query_name is not None:
        writer.queryName(query_name)


def start_method(original: Method) -> Method:
    def start(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        if not is_delta(self, format):
            if is_enabled(builders.session_of(self)):
                from ...sql.other_formats import check_options

                check_options(builders.session_of(self), path, builders.stream_writer_state(self).options | options)
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        from ...streaming.builders import start as start_delta

        _set_stream(self, outputMode, partitionBy, queryName, options)
        return start_delta(self, original, path)

    return start


def to_table_method(original: Method) -> Method:
    def to_table(
        self: Any,
        tableName: str,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        if is_delta(self, format):
            from ...streaming.builders import to_table as to_delta_table

            _set_stream(self, outputMode, partitionBy, queryName, options)
            started = type(self).start.__wrapped__  # PySpark's own method
            return to_delta_table(self, started, tableName)
        if is_enabled(builders.session_of(self)):
            from ...format_check import stream_refusal
            from ...names import is_delta_table
            from ...sql.other_formats import check_options, check_table_named

            if is_delta_table(builders.session_of(self), tableName):
                raise stream_refusal(tableName)
            check_options(builders.session_of(self), None, builders.stream_writer_state(self).options | options)
            check_table_named(builders.session_of(self), tableName)
        return original(self, tableName, format, outputMode, partitionBy, queryName, **options)

    return to_table
