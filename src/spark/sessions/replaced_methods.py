"""The methods of PySpark that `enable` replaces to support Delta tables; `python_internals.PATCHES` lists them.

Other formats and other sessions use PySpark's original methods.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ...dml.alter.create import CreateMode
from ...engine.jvm import builders
from ...engine.jvm.registry import patching
from ...engine.jvm.registry.python_internals import PATCHES
from ...engine.read import explain
from ..sql import session_tables
from .enabled_sessions import is_enabled

Method: TypeAlias = Callable[..., Any]
Patch: TypeAlias = Callable[[Method], Method]


def _is_delta(builder: Any, format: str | None) -> bool:  # noqa: A002
    name = format if isinstance(format, str) else builders.source(builder)
    return name.lower() == "delta" and is_enabled(builders.session_of(builder))


def _loads(delta: Callable[[], Method]) -> Patch:
    """Replace `load` of a reader. `delta` imports the function that loads a Delta table, only when it is needed."""

    def patch(original: Method) -> Method:
        def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
            if not _is_delta(self, format):
                return original(self, path, format, schema, **options)
            self.format("delta")
            builders.set_options(self, schema, options)
            return delta()(self, path)

        return load

    return patch


def _batch_load() -> Method:
    from ..reader import load

    return load


def _stream_load() -> Method:
    from ..streaming.builders import load

    return load


def _configured(writer: Any, mode: Any, partition_by: Any, options: dict[str, Any]) -> Any:
    """A writer for Delta with the arguments of the final method."""
    builders.set_options(writer.format("delta").mode(mode), None, options)
    return writer if partition_by is None else writer.partitionBy(partition_by)


def _save(original: Method) -> Method:
    def save(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        if not _is_delta(self, format):
            if is_enabled(builders.session_of(self)):
                from ..sql.other_formats import check_options

                check_options(builders.session_of(self), path, builders.writer_state(self).options | options)
            return original(self, path, format, mode, partitionBy, **options)
        from ..writer import save as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), path)

    return save


def _stream_of_table(original: Method) -> Method:
    def table(self: Any, tableName: str) -> Any:
        if is_enabled(builders.session_of(self)):
            from ..names import is_delta_table

            if is_delta_table(builders.session_of(self), tableName):
                from ..streaming.builders import table as delta_table

                return delta_table(self, tableName)
        return original(self, tableName)

    return table


def _set_stream(writer: Any, output_mode: Any, partition_by: Any, query_name: Any, options: dict[str, Any]) -> None:
    """Set what PySpark's `start` and `toTable` take as arguments."""
    builders.set_options(writer.format("delta"), None, options)
    if output_mode is not None:
        writer.outputMode(output_mode)
    if partition_by is not None:
        writer.partitionBy(partition_by)
    if query_name is not None:
        writer.queryName(query_name)


def _start(original: Method) -> Method:
    def start(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        if not _is_delta(self, format):
            if is_enabled(builders.session_of(self)):
                from ..sql.other_formats import check_options

                check_options(builders.session_of(self), path, builders.stream_writer_state(self).options | options)
            return original(self, path, format, outputMode, partitionBy, queryName, **options)
        from ..streaming.builders import start as start_delta

        _set_stream(self, outputMode, partitionBy, queryName, options)
        return start_delta(self, original, path)

    return start


def _to_table(original: Method) -> Method:
    def to_table(
        self: Any,
        tableName: str,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        if _is_delta(self, format):
            from ..streaming.builders import to_table as to_delta_table

            _set_stream(self, outputMode, partitionBy, queryName, options)
            started = type(self).start.__wrapped__  # PySpark's own method
            return to_delta_table(self, started, tableName)
        if is_enabled(builders.session_of(self)):
            from ..names import is_delta_table
            from ..sql.other_formats import check_options, check_table_named
            from ..streaming.builders import other_format

            if is_delta_table(builders.session_of(self), tableName):
                raise other_format(tableName)
            check_options(builders.session_of(self), None, builders.stream_writer_state(self).options | options)
            check_table_named(builders.session_of(self), tableName)
        return original(self, tableName, format, outputMode, partitionBy, queryName, **options)

    return to_table


def _explained(
    original: Method,
    self: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal_of: Callable[[Exception], Exception | None],
) -> Any:
    """Run Spark's method; if it fails because Spark has no Delta source, raise an error with an alternative."""
    try:
        return original(self, *args, **kwargs)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error


def _of_catalog(name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ..sql.refusals import of_catalog

            return _explained(original, self, args, kwargs, lambda error: of_catalog(error, name))

        return method

    return patch


def _of_writer(writer_name: str, name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ..sql.refusals import of_writer

            return _explained(original, self, args, kwargs, lambda error: of_writer(error, writer_name, name))

        return method

    return patch


def _creates_table(name: str) -> Patch:
    """Create or replace a Delta table by a `DataFrameWriterV2`; `name` is the method, and the mode."""

    def patch(original: Method) -> Method:
        explained = _of_writer("df.writeTo(name)", name)(original)

        def method(self: Any) -> None:
            if is_enabled(builders.session_of(self)):
                from ..sql.new_tables import by_writer
                from ..sql.other_formats import check_options

                if by_writer(self, cast(CreateMode, name)):
                    return
                state = builders.new_table_state(self)
                check_options(builders.session_of(self), None, {**state.options, **state.properties})
            explained(self)

        return method

    return patch


def _create_table(original: Method) -> Method:
    explained = _of_catalog("createTable")(original)

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
            from ..sql.new_tables import by_catalog

            if by_catalog(spark, tableName, path, source, schema, description, options):
                return spark.table(tableName)
        if is_enabled(spark):
            from ..sql.other_formats import check_options
            from ..sql.statements.create import is_delta

            if not is_delta(spark, source):
                check_options(spark, path, options)
        return explained(self, tableName, path, source, schema, description, **options)

    return create_table


def _create_database(original: Method) -> Method:
    """Keep a schema, whose directory is deleted with it, out of the directory of a Delta table."""
    explained = _of_catalog("createDatabase")(original)

    def create_database(self: Any, dbName: str, ifNotExists: bool = False, properties: Any = None) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ..sql.other_formats import check_options

            check_options(spark, None, properties or {})
        explained(self, dbName, ifNotExists, properties)

    return create_database


def _truncate_table(original: Method) -> Method:
    """Prevent deleting the directory of a Delta table that the catalog has as a table of another format."""
    explained = _of_catalog("truncateTable")(original)

    def truncate_table(self: Any, tableName: str) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ..sql.other_formats import check_table_named

            check_table_named(spark, tableName)
        explained(self, tableName)

    return truncate_table


def _refresh_table(original: Method) -> Method:
    """Spark's method takes the catalog entry from the plan of the table; the plan of a Delta table has none."""
    explained = _of_catalog("refreshTable")(original)

    def refresh_table(self: Any, tableName: str) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from ..sql.tables import find_by_text

            if find_by_text(spark, tableName) is not None:
                spark.sql(f"REFRESH TABLE {tableName}")
                return
        explained(self, tableName)

    return refresh_table


def _to_directory(original: Method) -> Method:
    """Prevent writing files of another format into the directory of a Delta table."""

    def method(self: Any, path: Any = None, *args: Any, **kwargs: Any) -> Any:
        if is_enabled(builders.session_of(self)):
            from ..sql.other_formats import check

            check(builders.session_of(self), path)
        return original(self, path, *args, **kwargs)

    return method


def _insert_into(original: Method) -> Method:
    def insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self, tableName, overwrite)
            return
        from ..sql.other_formats import check_table_named
        from ..sql.statements.inserts import by_writer

        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        state = builders.writer_state(self)
        if by_writer(builders.frame_of(self), tableName, state.options, overwrite=state.mode == "Overwrite"):
            return
        check_table_named(builders.session_of(self), tableName)
        with builders.other_source(self, "delta"):  # Spark has no source "delta"; the table's own format applies
            original(self, tableName)

    return insert_into


def _write_to(name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ..sql.statements.writers import write_to

            return None if write_to(self, name, *args, **kwargs) else original(self, *args, **kwargs)

        return method

    return patch


def _merge_into(original: Method) -> Method:
    def merge(self: Any) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self)
            return
        from ..sql.statements.writers import merge_into

        if not merge_into(self):
            original(self)

    return merge


def _save_as_table(original: Method) -> Method:
    def save_as_table(
        self: Any,
        name: str,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> Any:
        if not _is_delta(self, format):
            spark = builders.session_of(self)
            if is_enabled(spark):
                from ..sql.other_formats import check_options, check_table_named

                check_options(spark, None, builders.writer_state(self).options | options)
                check_table_named(spark, name)
            return original(self, name, format, mode, partitionBy, **options)
        from ..writer import save_as_table as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), name)

    return save_as_table


def _sql(original: Method) -> Method:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        if not is_enabled(self):
            return original(self, sqlQuery, args, **kwargs)
        from ..sql.run import run

        session_tables.install(self)  # a session that was cloned from an enabled one has its own catalogs
        return run(self, original, sqlQuery, args, kwargs)

    return sql


def _table(original: Method) -> Method:
    """Run Spark's method; if it fails for a Delta table of the catalog, read the table by its location."""

    def table(self: Any, tableName: str) -> Any:
        spark = self if isinstance(self, SparkSession) else builders.session_of(self)
        if not is_enabled(spark):
            return original(self, tableName)
        try:
            return original(self, tableName)
        except Exception as error:
            from ..sql.refusals import is_missing_provider

            if not is_missing_provider(error):
                raise
        from ..reader import table as delta_table

        return delta_table(spark, tableName, {} if self is spark else builders.reader_state(self).options)

    return table


def _table_exists(original: Method) -> Method:
    def table_exists(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, tableName, *args, **kwargs)
        except Exception as error:
            from ..sql.refusals import is_missing_provider

            if not is_enabled(builders.session_of(self)) or not is_missing_provider(error):
                raise
            return True  # Spark found the table, but has no Delta source

    return table_exists


def _explain(original: Method) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        original(self, *args, **kwargs)
        scans = explain.describe(self) if is_enabled(self.sparkSession) and not self.isStreaming else ""
        if scans:
            print(scans)

    return method


def replacements() -> dict[str, Patch]:
    save_as_table = _of_writer("df.write", "saveAsTable")
    by_name: dict[str, Patch] = {
        "DataFrame.explain": _explain,
        "DataFrameReader.load": _loads(_batch_load),
        "DataFrameReader.table": _table,
        "DataFrameWriter.save": _save,
        "DataFrameWriter.saveAsTable": lambda original: _save_as_table(save_as_table(original)),
        "DataFrameWriter.insertInto": _insert_into,
        "DataStreamReader.load": _loads(_stream_load),
        "DataStreamReader.table": _stream_of_table,
        "DataStreamWriter.start": _start,
        "DataStreamWriter.toTable": _to_table,
        "MergeIntoWriter.merge": _merge_into,
        "SparkSession.sql": _sql,
        "SparkSession.table": _table,
        "Catalog.tableExists": _table_exists,
    }
    by_name |= {f"DataFrameWriter.{name}": _to_directory for name in ("csv", "json", "orc", "parquet", "text", "xml")}
    for name in ("append", "overwrite", "overwritePartitions"):
        by_name[f"DataFrameWriterV2.{name}"] = _write_to(name)
    for name in ("create", "replace", "createOrReplace"):
        by_name[f"DataFrameWriterV2.{name}"] = _creates_table(name)
    by_name |= {"Catalog.createTable": _create_table, "Catalog.refreshTable": _refresh_table}
    (rest,) = (patch for patch in PATCHES if patch.attribute == "*")
    for name in patching.targets(rest):
        method = name.removeprefix("Catalog.")
        by_name[name] = _OF_CATALOG.get(method) or _of_catalog(method)
    return by_name


_OF_CATALOG: dict[str, Patch] = {"createDatabase": _create_database, "truncateTable": _truncate_table}
"""Methods of the catalog that some versions of PySpark don't have."""
