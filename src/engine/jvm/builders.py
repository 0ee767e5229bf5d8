"""Options and modes of PySpark's readers and writers, read from their JVM objects. PySpark keeps no copy of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from .connection import frames
from .connection.gateway import Gateway
from .connection.sessions import jvm_session
from .statements import definitions


@dataclass(frozen=True)
class ReaderState:
    """A reader's options (keys as the user spelled them) and whether a schema was set."""

    options: dict[str, str]
    has_schema: bool


@dataclass(frozen=True)
class WriterState:
    """A writer's options, mode and layout. `mode` is Spark's name: Append, Overwrite, ErrorIfExists or Ignore."""

    mode: str
    options: dict[str, str]
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    bucketed: bool
    sorted: bool


@dataclass(frozen=True)
class NewTableState:
    """What is set on a `DataFrameWriterV2`. `name_parts` and `transforms` are Scala `Seq`s."""

    name_parts: Any
    provider: str | None
    options: dict[str, str]
    properties: dict[str, str]
    transforms: Any


def session_of(builder: Any) -> Any:
    """The session of a PySpark reader, writer (batch or stream), merge or catalog."""
    return builder._sparkSession if hasattr(builder, "_sparkSession") else builder._spark


def frame_of(writer: Any) -> Any:
    """The DataFrame that a writer writes."""
    return writer._df


def set_options(builder: Any, schema: Any, options: Mapping[str, Any]) -> None:
    """Set options, and a reader's schema, as PySpark's methods do with their arguments. `None` sets nothing."""
    if schema is not None:
        builder.schema(schema)
    for name, value in options.items():
        if value is not None:
            builder.option(name, value)


def source(builder: Any) -> str:
    """The format set on a reader or writer (batch or stream), or the session's default."""
    jvm_object = builder._jreader if hasattr(builder, "_jreader") else builder._jwrite
    return str(jvm_object.source())


@contextmanager
def other_source(writer: Any, unknown: str) -> Iterator[None]:
    """Within the context, a writer with the format `unknown`, which Spark doesn't know, has the format parquet."""
    original = source(writer)
    if original.lower() != unknown:
        yield
        return
    writer._jwrite.format("parquet")
    try:
        yield
    finally:
        writer._jwrite.format(original)


def reader_state(reader: Any) -> ReaderState:
    """The settings of a `DataFrameReader`."""
    jvm_reader = reader._jreader
    return ReaderState(
        string_map(jvm_reader.extraOptions().originalMap()), jvm_reader.userSpecifiedSchema().isDefined()
    )


def writer_state(writer: Any) -> WriterState:
    """The settings of a `DataFrameWriter`."""
    jvm_writer = writer._jwrite
    return WriterState(
        mode=str(jvm_writer.curmode().toString()),
        options=string_map(jvm_writer.extraOptions().originalMap()),
        partition_columns=_strings(jvm_writer.partitioningColumns()),
        clustering_columns=_strings(jvm_writer.clusteringColumns()),
        bucketed=bool(jvm_writer.numBuckets().isDefined()),
        sorted=bool(jvm_writer.sortColumnNames().isDefined()),
    )


def stream_reader_state(reader: Any) -> ReaderState:
    """The settings of a `DataStreamReader`."""
    jvm_reader = reader._jreader
    return ReaderState(
        string_map(_private(jvm_reader, "extraOptions").originalMap()),
        _private(jvm_reader, "userSpecifiedSchema").isDefined(),
    )


def stream_writer_state(writer: Any) -> WriterState:
    """The settings of a `DataStreamWriter`; `mode` is the output mode."""
    jvm_writer = writer._jwrite
    return WriterState(
        mode=str(_private(jvm_writer, "outputMode").toString()),
        options=string_map(_private(jvm_writer, "extraOptions").originalMap()),
        partition_columns=_strings(_private(jvm_writer, "partitioningColumns")),
        clustering_columns=_strings(_private(jvm_writer, "clusteringColumns")),
        bucketed=False,
        sorted=False,
    )


def streaming_frame(writer: Any) -> Any:
    """The DataFrame that a `DataStreamWriter` writes."""
    return frames.of_dataset(_private(writer._jwrite, "ds"), session_of(writer))


@contextmanager
def stream_format(writer: Any, name: str) -> Iterator[None]:
    """Within the context, a `DataStreamWriter` has the format `name`."""
    original = source(writer)
    writer._jwrite.format(name)
    try:
        yield
    finally:
        writer._jwrite.format(original)


def v2_table_name(writer: Any) -> Any:
    """The parts of the name in `df.writeTo(name)`, as a Scala `Seq`."""
    return _private(writer._jwriter, "tableName")


def v2_options(writer: Any) -> dict[str, str]:
    """The options of a `DataFrameWriterV2`."""
    return string_map(_private(writer._jwriter, "options"))


def merge_statement(writer: Any) -> Any:
    """The plan of the MERGE of `df.mergeInto(name, condition)`, like that of a parsed statement."""
    return writer._jwriter.mergeCommand()


def _private(jvm_object: Any, name: str) -> Any:
    field = jvm_object.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(jvm_object)


def session_conf(spark: Any) -> dict[str, str]:
    """All keys and values of the session's configuration, in one call."""
    return string_map(jvm_session(spark).conf().getAll())


def string_map(scala_map: Any) -> dict[str, str]:
    """A Scala map of strings as a dict, in one call: the JVM joins `k -> v` with a separator that no value contains."""
    separator = uuid4().hex
    text = str(scala_map.mkString(separator))
    return dict(entry.split(" -> ", 1) for entry in text.split(separator)) if text else {}


def _strings(option: Any) -> tuple[str, ...]:
    if not option.isDefined():
        return ()
    names = option.get()
    return tuple(str(names.apply(i)) for i in range(names.size()))


def new_table_state(writer: Any) -> NewTableState:
    """The table that a `DataFrameWriterV2` is to create. Spark has no methods for it, so its fields are read."""
    jvm_writer = writer._jwriter
    provider, partitioning, clustering = (
        _private(jvm_writer, name) for name in ("provider", "partitioning", "clustering")
    )
    gateway = Gateway.of(session_of(writer))
    transforms = partitioning.get() if partitioning.isDefined() else gateway.seq([])
    if clustering.isDefined():
        transforms = transforms.appended(clustering.get())
    options, properties = (definitions.texts(_private(jvm_writer, name)) for name in ("options", "properties"))
    provider_name = str(provider.get()) if provider.isDefined() else None
    return NewTableState(v2_table_name(writer), provider_name, options, properties, transforms)
