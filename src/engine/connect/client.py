"""What tablelog reads from the builders and frames of PySpark's Connect client, which has no public methods for it.

`INTERNALS` lists these attributes and `PATCHES` the methods that `enable` replaces; tests/connect checks both.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.errors import PySparkException

from ...errors import UnsupportedEnvironmentError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

INTERNALS: Mapping[str, tuple[str, ...]] = {
    "pyspark.sql.connect.readwriter.DataFrameReader": ("_client", "_options", "_schema", "_format"),
    "pyspark.sql.connect.catalog.Catalog": ("_sparkSession",),
    "pyspark.sql.connect.readwriter.DataFrameWriter": ("_df", "_spark", "_write"),
    "pyspark.sql.connect.readwriter.DataFrameWriterV2": ("_spark", "_write"),
    "pyspark.sql.connect.streaming.readwriter.DataStreamReader": ("_client", "_format"),
    "pyspark.sql.connect.streaming.readwriter.DataStreamWriter": ("_session", "_write_proto", "_write_stream"),
    "pyspark.sql.connect.plan.WriteStreamOperation": ("_child",),
    "pyspark.sql.connect.dataframe.DataFrame": ("_explain_string", "_plan"),
    "pyspark.pipelines.spark_connect_graph_element_registry.SparkConnectGraphElementRegistry": ("_spark",),
}

_READWRITER = "pyspark.sql.connect.readwriter"
_STREAMING = "pyspark.sql.connect.streaming.readwriter"
_PIPELINES = "pyspark.pipelines.spark_connect_graph_element_registry"

OF_TABLES = ("getTable", "listColumns", "refreshTable", "cacheTable", "uncacheTable", "isCached")
"""Methods of the catalog for which the server loads a table."""

PATCHES: Mapping[str, str] = {
    **{
        f"Catalog.{name}": "pyspark.sql.connect.catalog"
        for name in ("createTable", "dropDatabase", "tableExists", *OF_TABLES)
    },
    "DataFrame.mergeInto": "pyspark.sql.connect.dataframe",
    **{f"DataFrameReader.{name}": _READWRITER for name in ("load", "table")},
    **{f"DataFrameWriter.{name}": _READWRITER for name in ("save", "saveAsTable", "insertInto")},
    **{
        f"DataFrameWriterV2.{name}": _READWRITER
        for name in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
    },
    **{f"DataStreamReader.{name}": _STREAMING for name in ("load", "table")},
    **{f"DataStreamWriter.{name}": _STREAMING for name in ("start", "toTable")},
    "SparkSession.sql": "pyspark.sql.connect.session",
    **{f"SparkConnectGraphElementRegistry.{name}": _PIPELINES for name in ("register_output", "register_sql")},
}
"""The replaced methods, with their modules."""

_LOCATION = re.compile(r"^Location: \w+ \[(.+?)(?:, \.\.\. \d+ entries)?\]$", re.MULTILINE)

Make: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


# --- replaced methods ---------------------------------------------------------------------------------------------


class Applied:
    """Replaced methods, for `restore`.

    Raises UnsupportedEnvironmentError, before it replaces any, if this version of PySpark lacks one.
    """

    def __init__(self, makes: Mapping[str, Make]) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        owners = {}
        for name in makes:
            owner, _, attribute = name.partition(".")
            try:
                owners[name] = getattr(import_module(PATCHES[name]), owner), attribute
                _ = vars(owners[name][0])[attribute]
            except (ImportError, AttributeError, KeyError) as error:
                raise UnsupportedEnvironmentError(
                    f"this version of PySpark has no {name} in {PATCHES[name]}, which tablelog replaces on Spark "
                    "Connect. Use one that tablelog supports"
                ) from error
        for name, make in makes.items():
            owner, attribute = owners[name]
            original = vars(owner)[attribute]
            replacement = make(original)
            setattr(owner, attribute, replacement)
            self._replaced.append((owner, attribute, original, replacement))

    def restore(self) -> None:
        """Restore the originals, except of methods that another library has replaced in the meantime."""
        for owner, attribute, original, replacement in self._replaced:
            if vars(owner).get(attribute) is replacement:
                setattr(owner, attribute, original)


# --- sessions -----------------------------------------------------------------------------------------------------


def check_session(spark: object) -> None:
    """Raise UnsupportedEnvironmentError for what is no session of Spark Connect."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        raise UnsupportedEnvironmentError(
            f"this needs a session of Spark, a classic one or one of Spark Connect, not {type(spark).__name__}"
        )


# --- builders -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReaderState:
    """A reader's options (keys as the user spelled them) and whether a schema was set."""

    options: dict[str, str]
    has_schema: bool


@dataclass(frozen=True)
class WriterState:
    """A writer's options, mode (as the user wrote it; `None`: not set) and layout."""

    mode: str | None
    options: dict[str, str]
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    bucketed: bool
    sorted: bool


def session_of(builder: Any) -> "SparkSession":
    """The session of a reader or writer, batch or stream, or of a catalog."""
    for name in ("_client", "_spark", "_session", "_sparkSession"):
        session = vars(builder).get(name)
        if session is not None:
            spark: SparkSession = session
            return spark
    raise AssertionError(f"{type(builder).__name__} has no session")


def session_of_pipeline(registry: Any) -> "SparkSession":
    """The session in which the tables of a declarative pipeline are registered."""
    spark: SparkSession = registry._spark
    return spark


def has_pipelines() -> bool:
    """Whether this PySpark has the client of declarative pipelines."""
    return find_spec("pyspark.pipelines") is not None


def has_drop_database() -> bool:
    """Whether this PySpark has `Catalog.dropDatabase`: Spark 4.1 doesn't."""
    from pyspark.sql.connect.catalog import Catalog

    return hasattr(Catalog, "dropDatabase")


def in_pipeline() -> bool:
    """Whether the definitions of a declarative pipeline are being loaded in this thread."""
    registry = sys.modules.get("pyspark.pipelines.graph_element_registry")
    if registry is None:
        return False
    try:
        registry.get_active_graph_element_registry()
    except PySparkException:
        return False
    return True


def format_of(builder: Any) -> str | None:
    """The format that was set on a reader or writer, batch or stream; `None`: the session's default applies."""
    if hasattr(builder, "_write"):
        written = builder._write
        source: str | None = written.provider if hasattr(written, "provider") else written.source
        return source
    if hasattr(builder, "_write_proto"):
        return str(builder._write_proto.format) or None
    name: str | None = getattr(builder, "_format", None)
    return name


def options_of(builder: Any) -> dict[str, str]:
    """The options that were set on a writer, batch or stream, and a table's properties; a catalog has none."""
    if hasattr(builder, "_write_proto"):
        return dict(builder._write_proto.options)
    written = getattr(builder, "_write", None)
    if written is None:
        return {}
    options = {**getattr(written, "table_properties", {}), **written.options}
    return {key: value for key, value in options.items() if value is not None}


def reader_state(reader: Any) -> ReaderState:
    """The settings of a `DataFrameReader` or a `DataStreamReader`."""
    options = {key: value for key, value in reader._options.items() if value is not None}
    return ReaderState(options, bool(reader._schema))


def writer_state(writer: Any) -> WriterState:
    """The settings of a `DataFrameWriter`."""
    write = writer._write
    return WriterState(
        mode=write.mode,
        options={key: value for key, value in write.options.items() if value is not None},
        partition_columns=tuple(write.partitioning_cols),
        clustering_columns=tuple(write.clustering_cols),
        bucketed=write.num_buckets > 0,
        sorted=bool(write.sort_cols),
    )


@dataclass(frozen=True)
class StreamWriterState:
    """A stream writer's options, output mode as Spark shows it, name of the query and layout."""

    options: dict[str, str]
    output_mode: str
    query_name: str | None
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]


def stream_writer_state(writer: Any) -> StreamWriterState:
    """The settings of a `DataStreamWriter`."""
    write = writer._write_proto
    return StreamWriterState(
        options=dict(write.options),
        output_mode=str(write.output_mode).capitalize() or "Append",
        query_name=str(write.query_name) or None,
        partition_columns=tuple(write.partitioning_column_names),
        clustering_columns=tuple(getattr(write, "clustering_column_names", ())),
    )


def calls_function(writer: Any) -> bool:
    """Whether `foreachBatch` or `foreach` was called on a stream writer."""
    return bool(writer._write_proto.HasField("foreach_batch") or writer._write_proto.HasField("foreach_writer"))


@contextmanager
def by_batch_function(writer: Any, function: "Callable[[DataFrame, int], None]", checkpoint: str) -> Iterator[None]:
    """While it lasts, the stream writer calls a function for each batch, and writes nothing itself."""
    write = writer._write_proto
    before = type(write)()
    before.CopyFrom(write)
    try:
        write.ClearField("format")
        write.ClearField("partitioning_column_names")
        write.ClearField("options")
        write.options["checkpointLocation"] = checkpoint
        writer.foreachBatch(function)
        yield
    finally:
        write.CopyFrom(before)


def frame_of(writer: Any) -> "DataFrame":
    """The DataFrame that a writer writes."""
    from pyspark.sql.connect.dataframe import DataFrame

    frame: Any = DataFrame(writer._df, writer._spark)
    result: DataFrame = frame
    return result


def streaming_frame(writer: Any) -> "DataFrame":
    """The streaming DataFrame that a stream writer writes."""
    from pyspark.sql.connect.dataframe import DataFrame

    frame: Any = DataFrame(writer._write_stream._child, writer._session)
    result: DataFrame = frame
    return result


# --- plans --------------------------------------------------------------------------------------------------------


def messages(message: Any) -> Iterator[Any]:
    """A protobuf message and all messages inside it."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        yield current
        for field, value in current.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    waiting.extend(value.values())
            elif hasattr(value, "ListFields"):
                waiting.append(value)
            else:
                waiting.extend(value)


def relations(frame: "DataFrame") -> list[Any]:
    """The relations (`spark.connect.Relation`) of a frame's plan, also those in subqueries."""
    plan: Any = frame
    proto = plan._plan.to_proto(plan.sparkSession.client)
    return [one for one in messages(proto) if one.DESCRIPTOR.name == "Relation"]


def first_files(frame: "DataFrame") -> list[str]:
    """The first file of each scan in the plan of a frame, as Spark explains it, URL-encoded as by `inputFiles`.

    `inputFiles` has all files, but leaves out the scans of subqueries.
    """
    plan: Any = frame
    return [path.replace("%", "%25") for path in _LOCATION.findall(plan._explain_string(mode="formatted"))]


def analyzed_text(frame: "DataFrame") -> str:
    """The plan of a frame as Spark explains it before it optimizes it, with the plans of views."""
    plan: Any = frame
    text: str = plan._explain_string(mode="extended").partition("\n== Optimized Logical Plan ==")[0]
    return text


def sql(
    spark: "SparkSession", statement: str, arguments: Any = None, formatted: Mapping[str, Any] | None = None
) -> "DataFrame":
    """PySpark's own `spark.sql`, without the checks of the method that `enable` puts in its place."""
    rows: DataFrame = unwrap(type(spark).sql)(spark, statement, args=arguments, **(formatted or {}))
    return rows


def alias_of(frame: "DataFrame") -> str | None:
    """The alias of a frame, if `alias` was the last method that made it."""
    plan: Any = frame
    root = plan._plan.to_proto(plan.sparkSession.client).root
    return str(root.subquery_alias.alias) if root.WhichOneof("rel_type") == "subquery_alias" else None


def aliases_in(frame: "DataFrame") -> set[str]:
    """All aliases in the plan of a frame."""
    found = (one.subquery_alias for one in relations(frame) if one.WhichOneof("rel_type") == "subquery_alias")
    return {str(one.alias) for one in found}


def expression_of(spark: "SparkSession", column: "Column") -> Any:
    """The expression (`spark.connect.Expression`) of a Column."""
    session: Any = spark
    of_column: Any = column
    return of_column.to_plan(session.client)
