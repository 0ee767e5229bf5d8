"""The methods of PySpark's Connect client that `enable` replaces; `engine.connect.client.PATCHES` lists them."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ...engine.connect import client, server_errors
from ...engine.jvm.builders import WriterState
from ...settings.spark_own import SOURCE_DEFAULT
from ..not_on_connect import refused
from ..reader import load_by
from ..writer import save_by
from . import other_formats, refusals, streams, tables

Method: TypeAlias = Callable[..., Any]
Patch: TypeAlias = Callable[[Method], Method]
IsEnabled: TypeAlias = Callable[[SparkSession], bool]
Check: TypeAlias = Callable[[Any, Mapping[str, Any]], None]
"""Checks a call for another format, by the builder (or the catalog) and the arguments by their names."""


class _Methods:
    """Makes the replacements; each calls the original for other formats and for sessions that aren't enabled."""

    def __init__(self, is_enabled: IsEnabled) -> None:
        self._is_enabled = is_enabled

    def _is_delta(self, builder: Any, format: Any) -> bool:  # noqa: A002
        spark = client.session_of(builder)
        if not self._is_enabled(spark):
            return False
        name = format if isinstance(format, str) else client.format_of(builder)
        if name is None:
            name = spark.conf.get(SOURCE_DEFAULT.key, None) or ""
        return name.lower() == "delta"

    def load(self, original: Method) -> Method:
        def load(self_: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
            if not self._is_delta(self_, format):
                return original(self_, path, format, schema, **options)
            if schema is not None:
                self_.schema(schema)
            state = client.reader_state(self_.format("delta").options(**_given(options)))
            return load_by(client.session_of(self_), state.options, path, has_schema=state.has_schema)

        return load

    def save(self, original: Method) -> Method:
        def save(
            self_: Any,
            path: Any = None,
            format: Any = None,  # noqa: A002
            mode: Any = None,
            partitionBy: Any = None,
            **options: Any,
        ) -> None:
            spark = client.session_of(self_)
            if not self._is_delta(self_, format):
                if self._is_enabled(spark):
                    overwrites = str(mode or client.writer_state(self_).mode).lower() == "overwrite"
                    other_formats.check(spark, path, client.options_of(self_) | options, overwrites=overwrites)
                original(self_, path, format, mode, partitionBy, **options)
                return
            _set_batch(self_, mode, partitionBy, options)
            save_by(spark, client.frame_of(self_), _state_of(self_), path)

        return save

    def save_as_table(self, original: Method) -> Method:
        signature = inspect.signature(original)

        def save_as_table(self_: Any, *args: Any, **kwargs: Any) -> None:
            arguments = signature.bind(self_, *args, **kwargs).arguments
            spark = client.session_of(self_)
            if self._is_delta(self_, arguments.get("format")):
                _set_batch(self_, arguments.get("mode"), arguments.get("partitionBy"), arguments.get("options", {}))
                tables.save(spark, client.frame_of(self_), _state_of(self_), arguments["name"])
                return
            if self._is_enabled(spark):
                _check_location(self_, arguments)
                other_formats.check_table(spark, arguments["name"], replaces=True)
            original(self_, *args, **kwargs)

        return save_as_table

    def load_stream(self, original: Method) -> Method:
        def load(self_: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
            if not self._is_delta(self_, format):
                return original(self_, path, format, schema, **options)
            if schema is not None:
                self_.schema(schema)
            return streams.load(self_.format("delta").options(**_given(options)), path)

        return load

    def stream_table(self, original: Method) -> Method:
        def table(self_: Any, tableName: str) -> Any:
            if self._is_enabled(client.session_of(self_)):
                rows = streams.table(self_, tableName)
                if rows is not None:
                    return rows
            return original(self_, tableName)

        return table

    def start_stream(self, original: Method) -> Method:
        signature = inspect.signature(original)

        def start(self_: Any, *args: Any, **kwargs: Any) -> Any:
            arguments = signature.bind_partial(self_, *args, **kwargs).arguments
            if not self._is_delta(self_, arguments.get("format")) or client.calls_function(self_):
                if self._is_enabled(client.session_of(self_)):
                    _check_location(self_, arguments)
                return original(self_, *args, **kwargs)
            _set_stream(self_, arguments)
            return streams.start(self_, original, arguments.get("path"))

        return start

    def stream_to_table(self, original: Method) -> Method:
        signature = inspect.signature(original)

        def to_table(self_: Any, *args: Any, **kwargs: Any) -> Any:
            arguments = signature.bind(self_, *args, **kwargs).arguments
            name = arguments["tableName"]
            if self._is_delta(self_, arguments.get("format")):
                _set_stream(self_, arguments)
                return streams.to_table(self_, type(self_).start.__wrapped__, name)  # PySpark's own method
            if self._is_enabled(client.session_of(self_)):
                _check_location(self_, arguments)
                other_formats.check_stream_table(client.session_of(self_), name)
            return original(self_, *args, **kwargs)

        return to_table

    def only_other_formats(self, operation: str, instead: str, check: Check | None = None) -> Patch:
        """Refuse a method for Delta tables. `check` looks at what it writes to in another format."""

        def patch(original: Method) -> Method:
            signature = inspect.signature(original)

            def method(self_: Any, *args: Any, **kwargs: Any) -> Any:
                arguments = signature.bind_partial(self_, *args, **kwargs).arguments
                if self._is_delta(self_, arguments.get("format", arguments.get("source"))):
                    raise refused(operation, instead)
                if check is not None and self._is_enabled(client.session_of(self_)):
                    check(self_, arguments)
                with self._names_refused(client.session_of(self_), original.__name__):
                    return original(self_, *args, **kwargs)

            return method

        return patch

    def without_names(self, owner: str) -> Patch:
        """Refuse a method of `owner` for Delta tables; the server says which names are those of one."""

        def patch(original: Method) -> Method:
            def method(self_: Any, *args: Any, **kwargs: Any) -> Any:
                with self._names_refused(client.session_of(self_), f"{owner}.{original.__name__}"):
                    return original(self_, *args, **kwargs)

            return method

        return patch

    def merge_into(self, original: Method) -> Method:
        def merge_into(self_: Any, table: str, condition: Any) -> Any:
            writer = original(self_, table, condition)
            merge = writer.merge

            def refused_by_name() -> None:
                with self._names_refused(self_.sparkSession, "mergeInto(...).merge"):
                    merge()

            writer.merge = refused_by_name
            return writer

        return merge_into

    def table_exists(self, original: Method) -> Method:
        def table_exists(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self_, *args, **kwargs)
            except PySparkException as error:
                if self._is_enabled(client.session_of(self_)) and server_errors.lacks_delta_source(error):
                    return True
                raise

        return table_exists

    @contextmanager
    def _names_refused(self, spark: SparkSession, operation: str) -> Iterator[None]:
        """Raise UnsupportedFeatureError in place of the server's error for the name of a Delta table."""
        try:
            yield
        except PySparkException as error:
            refusal = refusals.of_name(error, operation) if self._is_enabled(spark) else None
            if refusal is None:
                raise
            raise refusal from error

    def sql(self, original: Method) -> Method:
        def sql(self_: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
            if self._is_enabled(self_):
                refusal = refusals.of_statement(sqlQuery)
                if refusal is not None:
                    raise refusal
                other_formats.check_statement(self_, sqlQuery, args, formatted=bool(kwargs))
            try:
                return original(self_, sqlQuery, args, **kwargs)
            except PySparkException as error:
                if not self._is_enabled(self_):
                    raise
                if tables.is_drop(sqlQuery) and server_errors.lacks_delta_source(error):
                    return tables.drop(self_, sqlQuery, args, kwargs)
                refusal = refusals.of_failed_statement(sqlQuery, error)
                if refusal is None:
                    raise
                raise refusal from error

        return sql

    def drop_database(self, original: Method) -> Method:
        def drop_database(self_: Any, dbName: str, ifExists: bool = False, cascade: bool = False) -> None:
            spark = client.session_of(self_)
            if self._is_enabled(spark) and not cascade:
                other_formats.check_schema(spark, dbName)
            original(self_, dbName, ifExists, cascade)

        return drop_database

    def table(self, original: Method) -> Method:
        def table(self_: Any, tableName: str) -> Any:
            spark = client.session_of(self_)
            if self._is_enabled(spark):
                state = client.reader_state(self_)
                rows = tables.read(spark, tableName, state.options, has_schema=state.has_schema)
                if rows is not None:
                    return rows
            return original(self_, tableName)

        return table

    # --- declarative pipelines ------------------------------------------------------------------------------------

    def register_output(self, original: Method) -> Method:
        def register_output(self_: Any, output: Any) -> None:
            name = getattr(output, "format", None)  # a temporary view has none
            if (
                self._is_enabled(client.session_of_pipeline(self_))
                and isinstance(name, str)
                and name.lower() == "delta"
            ):
                raise refusals.pipeline_target(output.name)
            original(self_, output)

        return register_output

    def register_sql(self, original: Method) -> Method:
        def register_sql(self_: Any, sql_text: str, file_path: Any) -> None:
            if self._is_enabled(client.session_of_pipeline(self_)):
                refusal = refusals.of_pipeline_sql(sql_text)
                if refusal is not None:
                    raise refusal
            original(self_, sql_text, file_path)

        return register_sql


def _state_of(writer: Any) -> WriterState:
    """The settings of a `DataFrameWriter`, as a writer of a classic session has them."""
    state = client.writer_state(writer)
    return WriterState(
        mode=state.mode or "error",
        options=state.options,
        partition_columns=state.partition_columns,
        clustering_columns=state.clustering_columns,
        bucketed=state.bucketed,
        sorted=state.sorted,
    )


def _set_batch(writer: Any, mode: Any, partition_by: Any, options: dict[str, Any]) -> None:
    """Set what PySpark's `save` and `saveAsTable` take as arguments."""
    writer.format("delta").mode(mode).options(**_given(options))
    if partition_by is not None:
        writer.partitionBy(partition_by)


def _set_stream(writer: Any, arguments: Mapping[str, Any]) -> None:
    """Set what PySpark's `start` and `toTable` take as arguments."""
    writer.format("delta").options(**_given(arguments.get("options", {})))
    for name, set_value in (
        ("outputMode", writer.outputMode),
        ("partitionBy", writer.partitionBy),
        ("queryName", writer.queryName),
    ):
        if arguments.get(name) is not None:
            set_value(arguments[name])


def _check_location(self_: Any, arguments: Mapping[str, Any]) -> None:
    options = client.options_of(self_) | arguments.get("options", {})
    other_formats.check(client.session_of(self_), arguments.get("path"), options)


def _check_table(self_: Any, arguments: Mapping[str, Any]) -> None:
    _check_location(self_, arguments)
    other_formats.check_table(client.session_of(self_), arguments["tableName"])


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def replacements(is_enabled: IsEnabled) -> dict[str, Patch]:
    """The replacement of each method, by its name."""
    methods = _Methods(is_enabled)
    only_other_formats = methods.only_other_formats
    by_catalog = only_other_formats("createTable of a Delta table", refusals.SAVE, _check_location)
    of_pipelines = {
        "SparkConnectGraphElementRegistry.register_output": methods.register_output,
        "SparkConnectGraphElementRegistry.register_sql": methods.register_sql,
    }
    return {
        **(of_pipelines if client.has_pipelines() else {}),
        **({"Catalog.dropDatabase": methods.drop_database} if client.has_drop_database() else {}),
        "Catalog.createTable": by_catalog,
        "Catalog.tableExists": methods.table_exists,
        **{f"Catalog.{name}": methods.without_names("spark.catalog") for name in client.OF_TABLES},
        "DataFrame.mergeInto": methods.merge_into,
        "DataFrameReader.load": methods.load,
        "DataFrameReader.table": methods.table,
        "DataFrameWriter.save": methods.save,
        "DataFrameWriter.saveAsTable": methods.save_as_table,
        "DataFrameWriter.insertInto": only_other_formats(
            "insertInto of a Delta table", refusals.SAVE_AS_TABLE, _check_table
        ),
        **{
            f"DataFrameWriterV2.{name}": only_other_formats(f"{name} of a Delta table", refusals.SAVE, _check_location)
            for name in ("create", "replace", "createOrReplace")
        },
        **{
            f"DataFrameWriterV2.{name}": methods.without_names("writeTo(...)")
            for name in ("append", "overwrite", "overwritePartitions")
        },
        "DataStreamReader.load": methods.load_stream,
        "DataStreamReader.table": methods.stream_table,
        "DataStreamWriter.start": methods.start_stream,
        "DataStreamWriter.toTable": methods.stream_to_table,
        "SparkSession.sql": methods.sql,
    }
