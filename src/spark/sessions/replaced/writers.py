"""Replacements of the methods that write: `DataFrameWriter`, `DataFrameWriterV2` and `MergeIntoWriter`."""

import inspect
from typing import Any, cast

from ....dml.alter.create import CreateMode
from ....engine.jvm import builders
from ..enabled_sessions import is_enabled
from .common import Method, Patch, explained_by_writer, is_delta


def _configured(writer: Any, mode: Any, partition_by: Any, options: dict[str, Any]) -> Any:
    """A writer for Delta with the arguments of the final method."""
    builders.set_options(writer.format("delta").mode(mode), None, options)
    return writer if partition_by is None else writer.partitionBy(partition_by)


def save_method(original: Method) -> Method:
    def save(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        if not is_delta(self, format):
            if is_enabled(builders.session_of(self)):
                from ...sql.other_formats import check_options

                state = builders.writer_state(self)
                overwrites = str(mode or state.mode).lower() == "overwrite"
                check_options(builders.session_of(self), path, state.options | options, overwrites=overwrites)
            return original(self, path, format, mode, partitionBy, **options)
        from ...writer import save as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), path)

    return save


def directory_method(original: Method) -> Method:
    """Prevent writing files of another format into the directory of a Delta table."""
    names = list(inspect.signature(original).parameters)[2:]  # after self and path
    place = names.index("mode") if "mode" in names else None

    def method(self: Any, path: Any = None, *args: Any, **kwargs: Any) -> Any:
        if is_enabled(builders.session_of(self)):
            from ...sql.other_formats import check

            mode = args[place] if place is not None and place < len(args) else kwargs.get("mode")
            overwrites = str(mode or builders.writer_state(self).mode).lower() == "overwrite"
            check(builders.session_of(self), path, overwrites=overwrites)
        return original(self, path, *args, **kwargs)

    return method


def insert_into_method(original: Method) -> Method:
    def insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self, tableName, overwrite)
            return
        from ...sql.other_formats import check_table_named
        from ...sql.statements.inserts import by_writer

        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        state = builders.writer_state(self)
        if state.partition_columns or state.clustering_columns or state.bucketed:
            original(self, tableName)  # Spark raises the error
            return
        if by_writer(builders.frame_of(self), tableName, state.options, overwrite=state.mode == "Overwrite"):
            return
        check_table_named(builders.session_of(self), tableName)
        with builders.other_source(self, "delta"):  # Spark has no source "delta"; the table's own format applies
            original(self, tableName)

    return insert_into


def save_as_table_method(original: Method) -> Method:
    def save_as_table(
        self: Any,
        name: str,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        if not is_delta(self, format):
            spark = builders.session_of(self)
            if is_enabled(spark):
                from ...sql.other_formats import check_options, check_table_named

                check_options(spark, None, builders.writer_state(self).options | options)
                check_table_named(spark, name)
            return original(self, name, format, mode, partitionBy, **options)
        from ...writer import save_as_table as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), name)

    return save_as_table


def write_to_method(name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ...sql.statements.writers import write_to

            return None if write_to(self, name, *args, **kwargs) else original(self, *args, **kwargs)

        return method

    return patch


def create_method(name: str) -> Patch:
    """Create or replace a Delta table by a `DataFrameWriterV2`; `name` is the method, and the mode."""

    def patch(original: Method) -> Method:
        explained = explained_by_writer("df.writeTo(name)", name)(original)

        def method(self: Any) -> None:
            if is_enabled(builders.session_of(self)):
                from ...sql.new_tables import by_writer
                from ...sql.other_formats import check_options

                if by_writer(self, cast(CreateMode, name)):
                    return
                state = builders.new_table_state(self)
                check_options(builders.session_of(self), None, {**state.options, **state.properties})
            explained(self)

        return method

    return patch


def merge_method(original: Method) -> Method:
    def merge(self: Any) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self)
            return
        from ...sql.statements.writers import merge_into

        if not merge_into(self):
            original(self)

    return merge
