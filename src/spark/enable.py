"""The one visible place where PySpark is changed: `enable` puts Delta in front of the methods in `_PATCHES`.

They are replaced once in the process and put back when the last session is disabled. A session counts as enabled by
a key in its own configuration, so that sessions cloned from it (foreachBatch) are enabled too and new ones are not.
Formats other than delta, and other sessions, go straight to PySpark's own method.
"""

import functools
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ..engine import builders, explain, read_errors
from ..engine.catalog import SessionCatalog
from ..engine.gateway import check_version, is_classic
from ..errors import UnsupportedEnvironmentError, UnsupportedFeatureError
from .boundary import pyspark_errors, replacing
from .exceptions import as_spark

_ENABLED = "spark.tablelog.enabled"
_DELTA_SPARK = ("io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog")

Method: TypeAlias = Callable[..., Any]
Patch: TypeAlias = Callable[[Method], Method]

_lock = Lock()
_enabled_sessions: set[str] = set()
_installed: list[tuple[type, str, Method, Method]] = []


@pyspark_errors
def enable(spark: SparkSession) -> SparkSession:
    """Make `format("delta")` of this session mean tablelog; returns the session. Enabling twice changes nothing.

    Raises UnsupportedEnvironmentError where delta-spark is active in the session, on a Spark that tablelog doesn't
    know, and on Spark Connect.
    """
    if not is_classic(spark):
        raise UnsupportedEnvironmentError(
            "enable() needs a classic Spark session: one of Spark Connect has no JVM gateway. "
            "Support for Spark Connect comes with a later version of tablelog."
        )
    check_version(spark.version)
    conf = builders.session_conf(spark)
    active = [name for name in _DELTA_SPARK if any(name in conf.get(key, "") for key in _extension_keys(conf))]
    if active:
        raise UnsupportedEnvironmentError(
            f"delta-spark is active in this session ({', '.join(active)}): tablelog would compete with it for "
            'format("delta"). Use one of them: start the session without its extension and catalog to enable tablelog.'
        )
    with _lock:
        _install()
        _enabled_sessions.add(_id(spark))
        spark.conf.set(_ENABLED, "true")
    return spark


@pyspark_errors
def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session, and give PySpark its own methods back when no session is left."""
    with _lock:
        spark.conf.unset(_ENABLED)
        _enabled_sessions.discard(_id(spark))
        if not _enabled_sessions:
            _uninstall()


@pyspark_errors
def is_enabled(spark: SparkSession) -> bool:
    """Whether `enable` is in force for the session, or for the one that it was cloned from."""
    return is_classic(spark) and spark.conf.get(_ENABLED, "false") == "true"


def _extension_keys(conf: dict[str, str]) -> list[str]:
    return [key for key in conf if key in ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")]


def _id(spark: SparkSession) -> str:
    return str(spark._jsparkSession.sessionUUID())


def _install() -> None:
    if _installed:
        return
    for owner, name, patch in _patches():
        original = getattr(owner, name, None)
        if original is None:
            continue  # a method that this PySpark doesn't have yet
        replacement = replacing(functools.wraps(original)(patch(original)))
        setattr(owner, name, replacement)
        _installed.append((owner, name, original, replacement))
    read_errors.install(as_spark)


def _uninstall() -> None:
    if not _installed:
        return
    for owner, name, original, replacement in _installed:
        if owner.__dict__.get(name) is replacement:  # else another library has wrapped ours since: leave it whole
            setattr(owner, name, original)
    _installed.clear()
    read_errors.uninstall()


# --- what the patched methods do ---------------------------------------------------------------------------------


def _is_delta(builder: Any, format: str | None) -> bool:  # noqa: A002
    name = format if isinstance(format, str) else builders.source(builder)
    return name.lower() == "delta" and is_enabled(builder._spark)


def _load(original: Method) -> Method:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        if not _is_delta(self, format):
            return original(self, path, format, schema, **options)
        from .reader import load as load_delta

        self.format("delta")
        self._set_opts(schema=schema, **options)
        return load_delta(self, path)

    return load


def _configured(writer: Any, mode: Any, partition_by: Any, options: dict[str, Any]) -> Any:
    """A writer of Delta with what was given to the method that ends it."""
    writer.format("delta").mode(mode)._set_opts(**options)
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
            return original(self, path, format, mode, partitionBy, **options)
        from .writer import save as save_delta

        return save_delta(_configured(self, mode, partitionBy, options), path)

    return save


def _refused(what: str, instead: str) -> Patch:
    """Refuse a method of a builder whose format is delta."""

    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            format = kwargs.get("format")  # noqa: A001
            if format is None and original.__name__ != "insertInto":  # the others take it after the path or name
                format = args[1] if len(args) > 1 else None  # noqa: A001
            if _is_delta(self, format):
                raise _later(what, instead)
            return original(self, *args, **kwargs)

        return method

    return patch


def _explained(session_of: Callable[[Any], SparkSession]) -> Patch:
    """Let Spark try, and turn its failure to find Delta into an error that says what to do."""

    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except Exception as error:
                refusal = explanation(error)
                if refusal is None or not is_enabled(session_of(self)):
                    raise
                raise refusal from error

        return method

    return patch


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
    def sql(self: Any, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, sqlQuery, *args, **kwargs)
        except Exception as error:
            refusal = explanation(error)
            if refusal is None or not is_enabled(self):
                raise
            if _MISSING in str(error) and not (args or kwargs) and SessionCatalog(self).drop_by(sqlQuery):
                return self.createDataFrame([], StructType())
            raise refusal from error

    return sql


def _table(original: Method) -> Method:
    """Let Spark try; where it knows a table of Delta and finds no Delta, the table is read by its location."""

    def table(self: Any, tableName: str) -> Any:
        try:
            return original(self, tableName)
        except Exception as error:
            spark = self if isinstance(self, SparkSession) else self._spark
            if explanation(error) is None or not is_enabled(spark):
                raise
        from .reader import table as delta_table

        return delta_table(spark, tableName, {} if self is spark else builders.reader_state(self).options)

    return table


def _table_exists(original: Method) -> Method:
    def table_exists(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, tableName, *args, **kwargs)
        except Exception as error:
            if _MISSING not in str(error) or not is_enabled(self._sparkSession):
                raise
            return True  # Spark has found it, and no Delta

    return table_exists


def _explain(original: Method) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        original(self, *args, **kwargs)
        scans = explain.describe(self) if is_enabled(self.sparkSession) else ""
        if scans:
            print(scans)

    return method


_BY_PATH = (
    'Use the path: spark.read.format("delta").load(path), df.write.format("delta").save(path), DeltaTable.forPath.'
)
_BY_NAME = (
    'Read it by spark.table(name), write to it by df.write.format("delta").saveAsTable(name), change it by '
    "DeltaTable.forName(spark, name), drop it by DROP TABLE."
)
_MISSING = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta."
_OWN_SQL = ("VACUUM", "OPTIMIZE", "RESTORE", "GENERATE", "CONVERT", "REORG")


def explanation(error: Exception) -> UnsupportedFeatureError | None:
    """What Spark's error means where it comes from Delta's SQL, which is not built yet; None: another."""
    if _MISSING in str(error):
        return _later("What Spark itself does with a Delta table of its catalog, as SQL,", _BY_NAME)
    if not isinstance(error, PySparkException):
        return None
    condition, parameters = error.getCondition(), error.getMessageParameters() or {}
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = parameters.get("relationName", "")
        if name.lower().startswith("`delta`."):
            return _later("SQL on delta.`path`", _BY_PATH)
        if name.upper() in ("`HISTORY`", "`DETAIL`"):
            return _later(
                f"DESCRIBE {name.strip('`').upper()} in SQL", "Use DeltaTable.forPath(...).history() or .detail()."
            )
    if condition == "PARSE_SYNTAX_ERROR" and parameters.get("error", "").strip("'").upper() in _OWN_SQL:
        return _later(f"{parameters['error'].strip(chr(39)).upper()} in SQL", _BY_PATH)
    return None


def _later(what: str, instead: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} comes with a later version of tablelog. {instead}")


def _patches() -> list[tuple[type, str, Patch]]:
    from pyspark.sql.catalog import Catalog
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    stream = 'Use spark.read.format("delta") and df.write.format("delta") in batches meanwhile.'
    of_builder = _explained(lambda builder: builder._spark)
    insert_into = _refused("insertInto with the format delta", _BY_NAME)
    patches: list[tuple[type, str, Patch]] = [
        (DataFrame, "explain", _explain),
        (DataFrameReader, "load", _load),
        (DataFrameReader, "table", _table),
        (DataFrameWriter, "save", _save),
        (DataFrameWriter, "saveAsTable", lambda original: _save_as_table(of_builder(original))),
        (DataFrameWriter, "insertInto", lambda original: insert_into(of_builder(original))),
        (DataStreamReader, "load", _refused("Streaming from a Delta table", stream)),
        (DataStreamReader, "table", of_builder),
        (DataStreamWriter, "start", _refused("Streaming into a Delta table", stream)),
        (DataStreamWriter, "toTable", _refused("Streaming into a Delta table", stream)),
        (SparkSession, "sql", _sql),
        (SparkSession, "table", _table),
        (Catalog, "tableExists", _table_exists),
    ]
    for name in ("createTable", "getTable", "refreshTable", "cacheTable"):
        patches.append((Catalog, name, _explained(lambda catalog: catalog._sparkSession)))
    for name in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):
        patches.append((DataFrameWriterV2, name, of_builder))
    try:
        from pyspark.sql.merge import MergeIntoWriter
    except ImportError:
        return patches
    return [*patches, (MergeIntoWriter, "merge", of_builder)]
