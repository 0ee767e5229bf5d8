"""Spark's streaming engine asks tablelog for tables: a source and a sink in Java, which call Python for each batch.

Spark looks a source up by the name of its class, in the thread that starts a query or explains a plan. So the class is
compiled by Spark's Janino and added to the class loader that all threads of the JVM share.
"""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ...errors import TablelogError, UnsupportedEnvironmentError
from ...settings.spark_own import STREAMING_QUERY_ID
from . import plans
from .builders import string_map
from .connection import frames
from .connection.callbacks import Connections, kept
from .connection.compiled import compiled_source
from .connection.gateway import Gateway, JavaObject
from .connection.java_errors import java_exception
from .connection.jvm_values import JvmValues
from .connection.sessions import jvm_session
from .registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

CLASS = "tablelog.DeltaStreams"
"""The format by which Spark finds the source and the sink."""

_IS_STREAMING = 3  # index of the flag in a LogicalRelation


class StreamSource(Protocol):
    """A table that one query reads. Offsets are texts; None is the offset before the first batch.

    `notes_commits`: whether `committed` is to be called.
    """

    name: str
    max_files: int
    notes_commits: bool

    def stop_at_newest(self) -> None:
        """End the stream at the version that is the newest now."""

    def latest(self, start: str | None, *, unlimited: bool) -> str | None:
        """The end of the batch after `start`."""

    def batch(self, start: str | None, end: str) -> "DataFrame":
        """The rows between two offsets."""

    def committed(self, end: str) -> None:
        """Note that the batch that ended at `end` is written."""

    def metrics(self, end: str | None) -> Mapping[str, str]:
        """Metrics for the progress of the query, after the batch that ended at `end`."""


class StreamSink(Protocol):
    """A table that one query writes."""

    name: str

    def add(self, batch: int, rows: "DataFrame", query_id: str) -> None:
        """Write a batch, which may be a repetition."""


class StreamProvider(Protocol):
    """Creates sources and sinks; `spark` is the session of the query. It is called when a query starts."""

    def source(
        self, spark: "SparkSession", schema_json: str, options: Mapping[str, str], metadata_path: str
    ) -> StreamSource:
        """A table to read; the query was analyzed with the schema. `metadata_path`: the source's in the checkpoint."""

    def sink(
        self, spark: "SparkSession", options: Mapping[str, str], partition_by: Sequence[str], mode: str
    ) -> StreamSink:
        """A table to write; `mode` is the output mode."""


class _Calls:
    """Implements `java.util.function.BiFunction`, by which the Java classes call Python."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def _answer(self, call: str, argument: Any) -> Any:
        raise NotImplementedError

    def apply(self, call: str, argument: Any) -> Any:
        """The answer, or a Java exception, which the Java classes throw."""
        with Connections.of(self._gateway).entered():
            try:
                return self._answer(call, argument)
            except Exception as error:
                logger.debug("a callback from Spark failed", exc_info=True)
                return _thrown(self._gateway, error)

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


class _Provider(_Calls):
    def __init__(self, gateway: Gateway, provider: StreamProvider) -> None:
        super().__init__(gateway)
        self._provider = provider

    def _answer(self, call: str, argument: Any) -> Any:
        gateway = self._gateway
        if call == "source":
            session, schema, options, path = argument
            with _active(gateway, session):
                source = self._provider.source(_session(session), str(schema.json()), string_map(options), str(path))
            limit = gateway.jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxFiles(source.max_files)
            calls = _Source(gateway, source, session)
            return _new(gateway, "TableSource", [calls, schema, limit, source.name, source.notes_commits])
        session, options, columns, mode = argument
        sink = self._provider.sink(_session(session), string_map(options), gateway.elements(columns), str(mode))
        return _new(gateway, "TableSink", [_Sink(gateway, sink), sink.name])


class _Source(_Calls):
    def __init__(self, gateway: Gateway, source: StreamSource, session: JavaObject) -> None:
        super().__init__(gateway)
        self._source = source
        self._session = session

    def _answer(self, call: str, argument: Any) -> Any:
        if call == "batch":
            start, end = argument.split("\0")
            with _active(self._gateway, self._session):
                return _streaming(self._gateway, self._source.batch(start or None, end), self._session)
        if call == "available now":
            self._source.stop_at_newest()
            return None
        if call == "committed":
            self._source.committed(argument)
            return None
        if call == "metrics":
            values = self._gateway.jvm.java.util.HashMap()
            for name, value in self._source.metrics(argument).items():
                values.put(name, value)
            return values
        return self._source.latest(argument, unlimited=call == "latest of all")


class _Sink(_Calls):
    def __init__(self, gateway: Gateway, sink: StreamSink) -> None:
        super().__init__(gateway)
        self._sink = sink

    def _answer(self, call: str, argument: Any) -> Any:
        # The plan of a batch with state can only be executed as it is: projections go on top of its rows.
        session = argument.sparkSession()
        rows = session.internalCreateDataFrame(argument.queryExecution().toRdd(), argument.schema(), False)
        spark = _session(session)
        query_id = spark.sparkContext.getLocalProperty(STREAMING_QUERY_ID.key)
        assert query_id is not None
        self._sink.add(int(call), frames.of_dataset(rows, spark), query_id)


@contextmanager
def _active(gateway: Gateway, session: JavaObject) -> Iterator[None]:
    """Make a session the active one of this thread, where Spark looks up the data source of the Arrow route.

    The thread of a query has another one, a copy of it.
    """
    sessions = gateway.jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _thrown(gateway: Gateway, error: Exception) -> JavaObject:
    """The Java exception that ends a query: Spark's own if one caused the error, else one that keeps the error.

    Spark shows its message and its condition to listeners; a text from Py4J would have a traceback and no condition.
    """
    java = java_exception(error)
    if java is not None:
        return java
    jvm = gateway.jvm.java.lang
    reference = jvm.RuntimeException(kept(error))
    if not isinstance(error, TablelogError):
        return jvm.RuntimeException(f"{type(error).__name__}: {error}", reference)
    message = f"[{error.condition}] {Exception.__str__(error)}"
    return _new(gateway, "TableError", [message, error.condition, error.sql_state, reference])


def _streaming(gateway: Gateway, rows: "DataFrame", session: JavaObject) -> JavaObject:
    """The `Dataset` of a batch: Spark requires that its scans are marked as streaming.

    Of other scans, as that of Python workers, only the rows can be marked. Then the columns that a query doesn't need
    are read too.
    """
    plan = frames.analyzed(rows)
    marked = gateway.jvm.java.util.HashMap()
    for relation in gateway.elements(plan.collectLeaves()):
        if class_name(relation) == "LogicalRelation":
            parts = [relation.productElement(i) for i in range(relation.productArity())]
            parts[_IS_STREAMING] = True
            marked.put(relation, relation.makeCopy(gateway.array(gateway.jvm.java.lang.Object, parts)))
    if marked.isEmpty():
        dataset = rows._jdf
        return session.internalCreateDataFrame(dataset.queryExecution().toRdd(), dataset.schema(), True)
    plan = plan.transformUpWithSubqueries(gateway.scala_map(marked))
    return gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan)


def _session(session: JavaObject) -> "SparkSession":
    """The PySpark session of a JVM session."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(SparkContext.getOrCreate(), session)


def _new(gateway: Gateway, name: str, arguments: Sequence[Any]) -> JavaObject:
    # Py4J puts Python objects into lists, but not into arrays.
    values = gateway.jvm.java.util.ArrayList()
    for argument in arguments:
        values.add(argument)
    return _class(gateway, f"{CLASS}${name}").getConstructors()[0].newInstance(values.toArray())


# --- the class ----------------------------------------------------------------------------------------------------

_providers = JvmValues[_Provider]()


def serve(spark: "SparkSession", provider: StreamProvider) -> None:
    """Let Spark find the format `CLASS` in the JVM of this session; no effect if it does already."""
    gateway = Gateway.of(spark)

    def created() -> _Provider:
        if not gateway.has_class(CLASS):
            _add_class(gateway)
        calls = _Provider(gateway, provider)
        _class(gateway, CLASS).getField("python").set(None, calls)
        return calls

    _providers.get(gateway.py4j, created)


def _add_class(gateway: Gateway) -> None:
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = compiled_source(gateway, "DeltaStreams")
    shared = loader
    while shared is not None and not _takes_urls(shared):
        shared = shared.getParent()
    if shared is None:
        raise UnsupportedEnvironmentError(
            "Streams of Delta tables need a class loader to which a class can be added, but the one of this JVM "
            f"({loader}) isn't one. Start Spark by pyspark or spark-submit."
        )
    names = [str(name) for name in compiler.getBytecodes().keySet()]
    with tempfile.TemporaryDirectory() as directory:
        for name in names:
            file = Path(directory, *name.split(".")).with_suffix(".class")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(compiler.getBytecodes().get(name))
        shared.addURL(gateway.jvm.java.io.File(directory).toURI().toURL())
        for name in names:  # the files are needed only once
            gateway.jvm.java.lang.Class.forName(name, True, shared)


def _class(gateway: Gateway, name: str) -> JavaObject:
    return gateway.jvm.org.apache.spark.util.Utils.classForName(name, True, False)


def _takes_urls(loader: JavaObject) -> bool:
    """Whether a class loader has the public method `addURL`, as Spark's own have."""
    return any(method.getName() == "addURL" for method in loader.getClass().getMethods())


# --- readers and writers ------------------------------------------------------------------------------------------


def frame(spark: "SparkSession", schema_json: str, options: Mapping[str, str]) -> "DataFrame":
    """The streaming frame that reads with these options and this schema."""
    gateway = Gateway.of(spark)
    reader = jvm_session(spark).readStream().format(CLASS).schema(gateway.schema(schema_json))
    for name, value in options.items():
        reader = reader.option(name, value)
    return frames.of_dataset(reader.load(), spark)


def java_pattern(spark: "SparkSession", text: str) -> Callable[[str], bool]:
    """Whether a regular expression of Java matches a part of a text: Python's have another syntax."""
    predicate = Gateway.of(spark).jvm.java.util.regex.Pattern.compile(text).asPredicate()
    return lambda value: bool(predicate.test(value))


@dataclass(frozen=True)
class UnresolvedStream:
    """`STREAM(table)` in a parsed query. `name_parts` is a Scala `Seq`; `alias` is the last part of the name."""

    node: JavaObject
    name_parts: JavaObject
    alias: str
    options: dict[str, str]


def unresolved(plan: JavaObject) -> list[UnresolvedStream]:
    """The tables that a parsed query reads as streams, also in its subqueries."""
    streams = []
    for subplan in [plan, *Gateway.elements(plan.subqueriesAll())]:
        for leaf in Gateway.elements(subplan.collectLeaves()):
            if class_name(leaf) == "UnresolvedRelation" and leaf.isStreaming():
                parts = leaf.multipartIdentifier()
                options = dict(leaf.options().asCaseSensitiveMap())
                streams.append(UnresolvedStream(leaf, parts, str(parts.last()), options))
    return streams


def with_relations(
    spark: "SparkSession", plan: JavaObject, relations: "Sequence[tuple[UnresolvedStream, DataFrame]]"
) -> "DataFrame":
    """The frame of a parsed query, with streaming frames in place of some tables."""
    gateway = Gateway.of(spark)
    by_node = gateway.jvm.java.util.HashMap()
    for stream, rows in relations:
        by_node.put(stream.node, frames.analyzed(rows))
    return plans.frame_of(spark, plan.transformUpWithSubqueries(gateway.scala_map(by_node)))
