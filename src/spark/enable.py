"""`enable`: replaces methods of PySpark so that they support Delta tables: those of `engine.jvm.internals.PATCHES`.

Methods are replaced once per process, and restored when the last session is disabled. A session is enabled by a key in
its own configuration, so that sessions cloned from it (foreachBatch) are enabled too, and new sessions are not.
Other formats and other sessions use PySpark's original methods.
"""

import functools
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ..dml.alter.create import CreateMode
from ..engine.jvm import builders, patching, settings
from ..engine.jvm.environment import check_environment
from ..engine.jvm.internals import PATCHES
from ..engine.jvm.sessions import is_classic, session_id
from ..engine.read import explain, read_errors
from ..errors import UnsupportedEnvironmentError
from ..settings.declarations import ENABLED
from ..settings.spark_own import CATALOG, EXTENSIONS
from .boundary import pyspark_errors, replacing
from .exceptions import as_spark
from .sql import session_tables

_DELTA_SPARK = ("io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog")

Method: TypeAlias = Callable[..., Any]
Patch: TypeAlias = Callable[[Method], Method]

_lock = Lock()
_enabled_sessions: set[str] = set()
_applied: patching.Applied | None = None


@pyspark_errors
def enable(spark: SparkSession) -> SparkSession:
    """Let tablelog handle `format("delta")` in this session.

    Args:
        spark: a classic Spark session; enabling it twice has no effect.

    Returns:
        The session.

    Raises:
        UnsupportedEnvironmentError: delta-spark is active in the session, the Spark version isn't supported, or the
            session is one of Spark Connect.
    """
    if not is_classic(spark):
        raise UnsupportedEnvironmentError(
            "enable() needs a classic Spark session: Spark Connect has no JVM gateway and is not supported yet."
        )
    check_environment(spark)
    conf = builders.session_conf(spark)
    active = [name for name in _DELTA_SPARK if any(name in conf.get(key, "") for key in _extension_keys(conf))]
    if active:
        raise UnsupportedEnvironmentError(
            f"delta-spark is active in this session ({', '.join(active)}) and also handles "
            'format("delta"). Use only one of them: to enable tablelog, start the session without the extension and '
            "the catalog of delta-spark."
        )
    with _lock:
        _install()
        _enabled_sessions.add(session_id(spark))
        spark.conf.set(ENABLED.key, "true")
    session_tables.install(spark)
    return spark


@pyspark_errors
def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session; PySpark's methods are restored when no enabled session is left."""
    with _lock:
        spark.conf.unset(ENABLED.key)
        _enabled_sessions.discard(session_id(spark))
        if not _enabled_sessions:
            _uninstall()
    session_tables.remove(spark)


@pyspark_errors
def is_enabled(spark: SparkSession) -> bool:
    """Whether the session, or the session that it was cloned from, is enabled."""
    return is_classic(spark) and settings.of(spark, ENABLED)


def _extension_keys(conf: dict[str, str]) -> list[str]:
    return [key for key in conf if key in (EXTENSIONS.key, CATALOG.key)]


def _install() -> None:
    global _applied  # noqa: PLW0603
    if _applied is None:
        _applied = patching.apply({name: _maker(patch) for name, patch in _patches().items()})
        read_errors.TRANSLATION.install(as_spark)


def _uninstall() -> None:
    global _applied  # noqa: PLW0603
    if _applied is not None:
        patching.remove(_applied)
        _applied = None
        read_errors.TRANSLATION.uninstall()


def _maker(patch: Patch) -> Patch:
    def make(original: Method) -> Method:
        return functools.wraps(original)(replacing(patch(original)))

    return make


# --- the replaced methods -----------------------------------------------------------------------------------------


def _is_delta(builder: Any, format: str | None) -> bool:  # noqa: A002
    name = format if isinstance(format, str) else builders.source(builder)
    return name.lower() == "delta" and is_enabled(builders.session_of(builder))


def _load(original: Method) -> Method:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        if not _is_delta(self, format):
            return original(self, path, format, schema, **options)
        from .reader import load as load_delta

        self.format("delta")
        builders.set_options(self, schema, options)
        return load_delta(self, path)

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
                from .sql.other_formats import check

                location = path or options.get("path") or builders.writer_state(self).options.get("path")
                check(builders.session_of(self), location)
            return original(self, path, format, mode, partitionBy, **options)
        from .writer import save as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), path)

    return save


def _streaming(name: str) -> Patch:
    """Raise an error for a streaming method on Delta: by its format, or if Spark recognizes a Delta table."""

    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            format = kwargs.get("format", args[1] if len(args) > 1 else None)  # noqa: A001
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from .sql import refusals

            if name != "readStream.table" and _is_delta(self, format):
                raise refusals.streaming(name)
            if name == "writeStream.toTable":
                from .names import is_delta_table

                if is_delta_table(builders.session_of(self), kwargs.get("tableName", args[0] if args else None)):
                    raise refusals.streaming(name)
            if name == "writeStream.start":
                from .sql.other_formats import check

                check(builders.session_of(self), kwargs.get("path", args[0] if args else None))
            return _explained(original, self, args, kwargs, lambda error: refusals.of_stream(error, name))

        return method

    return patch


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
            from .sql.refusals import of_catalog

            return _explained(original, self, args, kwargs, lambda error: of_catalog(error, name))

        return method

    return patch


def _of_writer(writer_name: str, name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from .sql.refusals import of_writer

            return _explained(original, self, args, kwargs, lambda error: of_writer(error, writer_name, name))

        return method

    return patch


def _creates_table(name: str) -> Patch:
    """Create or replace a Delta table by a `DataFrameWriterV2`; `name` is the method, and the mode."""

    def patch(original: Method) -> Method:
        explained = _of_writer("df.writeTo(name)", name)(original)

        def method(self: Any) -> None:
            if is_enabled(builders.session_of(self)):
                from .sql.new_tables import by_writer

                if by_writer(self, cast(CreateMode, name)):
                    return
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
            from .sql.new_tables import by_catalog

            if by_catalog(spark, tableName, path, source, schema, description, options):
                return spark.table(tableName)
        return explained(self, tableName, path, source, schema, description, **options)

    return create_table


def _refresh_table(original: Method) -> Method:
    """Spark's method looks for the catalog entry in the plan of the table, which a Delta table doesn't have there."""
    explained = _of_catalog("refreshTable")(original)

    def refresh_table(self: Any, tableName: str) -> None:
        spark = builders.session_of(self)
        if is_enabled(spark):
            from .sql.tables import find_by_text

            if find_by_text(spark, tableName) is not None:
                spark.sql(f"REFRESH TABLE {tableName}")
                return
        explained(self, tableName)

    return refresh_table


def _to_directory(original: Method) -> Method:
    """Prevent writing files of another format into the directory of a Delta table."""

    def method(self: Any, path: Any = None, *args: Any, **kwargs: Any) -> Any:
        if is_enabled(builders.session_of(self)):
            from .sql.other_formats import check

            check(builders.session_of(self), path)
        return original(self, path, *args, **kwargs)

    return method


def _insert_into(original: Method) -> Method:
    def insert_into(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self, tableName, overwrite)
            return
        from .sql.inserts import by_writer

        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        state = builders.writer_state(self)
        if by_writer(builders.frame_of(self), tableName, state.options, overwrite=state.mode == "Overwrite"):
            return
        with builders.other_source(self, "delta"):  # Spark has no source "delta", and the table knows its format
            original(self, tableName)

    return insert_into


def _write_to(name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from .sql.writers import write_to

            return None if write_to(self, name, *args, **kwargs) else original(self, *args, **kwargs)

        return method

    return patch


def _merge_into(original: Method) -> Method:
    def merge(self: Any) -> None:
        if not is_enabled(builders.session_of(self)):
            original(self)
            return
        from .sql.writers import merge_into

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
            return original(self, name, format, mode, partitionBy, **options)
        from .writer import save_as_table as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), name)

    return save_as_table


def _sql(original: Method) -> Method:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        if not is_enabled(self):
            return original(self, sqlQuery, args, **kwargs)
        from .sql.run import run

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
            from .sql.refusals import is_missing_provider

            if not is_missing_provider(error):
                raise
        from .reader import table as delta_table

        return delta_table(spark, tableName, {} if self is spark else builders.reader_state(self).options)

    return table


def _table_exists(original: Method) -> Method:
    def table_exists(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, tableName, *args, **kwargs)
        except Exception as error:
            from .sql.refusals import is_missing_provider

            if not is_enabled(builders.session_of(self)) or not is_missing_provider(error):
                raise
            return True  # Spark found the table, but has no Delta source

    return table_exists


def _explain(original: Method) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        original(self, *args, **kwargs)
        scans = explain.describe(self) if is_enabled(self.sparkSession) else ""
        if scans:
            print(scans)

    return method


def _patches() -> dict[str, Patch]:
    save_as_table = _of_writer("df.write", "saveAsTable")
    by_name: dict[str, Patch] = {
        "DataFrame.explain": _explain,
        "DataFrameReader.load": _load,
        "DataFrameReader.table": _table,
        "DataFrameWriter.save": _save,
        "DataFrameWriter.saveAsTable": lambda original: _save_as_table(save_as_table(original)),
        "DataFrameWriter.insertInto": _insert_into,
        "DataStreamReader.load": _streaming("readStream.load"),
        "DataStreamReader.table": _streaming("readStream.table"),
        "DataStreamWriter.start": _streaming("writeStream.start"),
        "DataStreamWriter.toTable": _streaming("writeStream.toTable"),
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
    (rest,) = (one for one in PATCHES if one.attribute == "*")
    return by_name | {name: _of_catalog(name.removeprefix("Catalog.")) for name in patching.targets(rest)}
