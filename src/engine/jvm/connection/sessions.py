"""The JVM objects of a PySpark session, which PySpark keeps in private attributes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JavaObject: TypeAlias = Any
"""A JVM object, accessed by Py4J. It has no static type."""


def is_classic(spark: "SparkSession") -> bool:
    """Whether the session has a JVM in this process (a Spark Connect session has none)."""
    return getattr(spark, "_jsparkSession", None) is not None


def master() -> str | None:
    """The master of the Spark that this process drives; `None` if it drives none, as a client of Spark Connect."""
    if find_spec("py4j") is None:
        return None
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return None if context is None else str(context.master)


def jvm_session(spark: "SparkSession") -> JavaObject:
    """The JVM's `SparkSession`."""
    return spark._jsparkSession


_activated = threading.local()


@contextmanager
def active(spark: "SparkSession") -> Iterator[None]:
    """Make a classic session the active one of this thread, as Spark does for each of its own calls.

    Spark's parser and its expressions read their settings from the active session, which may be another one, with
    another time zone or another ANSI mode.
    """
    if getattr(_activated, "session", None) is spark or not is_classic(spark):
        yield
        return
    session = jvm_session(spark)
    sessions = getattr(getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession$"), "MODULE$")
    before = sessions.getActiveSession()
    outer, is_other = getattr(_activated, "session", None), not before.contains(session)
    if is_other:
        sessions.setActiveSession(session)
    _activated.session = spark
    try:
        yield
    finally:
        _activated.session = outer
        if is_other and before.isDefined():
            sessions.setActiveSession(before.get())
        elif is_other:
            sessions.clearActiveSession()


def parsed_by(spark: "SparkSession", method: str, *arguments: Any) -> JavaObject:
    """What a method of the session's parser returns for a text, by the session's settings."""
    with active(spark):
        return getattr(session_state(spark).sqlParser(), method)(*arguments)


def session_id(spark: "SparkSession") -> str:
    """The id of the session within its JVM."""
    return str(jvm_session(spark).sessionUUID())


def session_state(spark: "SparkSession") -> JavaObject:
    """The `SessionState`: parser, catalog and configuration of the session."""
    return jvm_session(spark).sessionState()


def hadoop_configuration(spark: "SparkSession") -> JavaObject:
    """A new Hadoop `Configuration` with the settings of the session."""
    return session_state(spark).newHadoopConf()


def java_context(spark: "SparkSession") -> JavaObject:
    """The JVM's `JavaSparkContext`."""
    return spark.sparkContext._jsc


def scala_context(spark: "SparkSession") -> JavaObject:
    """The JVM's `SparkContext`."""
    return java_context(spark).sc()


def py4j_of(spark: "SparkSession") -> Any:
    """The Py4J gateway of the session."""
    return spark.sparkContext._gateway


def is_instance(value: JavaObject, name: str) -> bool:
    """Whether a JVM object is of the class or the interface `name`."""
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    return bool(is_instance_of(SparkContext._gateway, value, name))


def start_callbacks(py4j: Any) -> None:
    """Let Py4J accept callbacks from the JVM."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(py4j)  # type: ignore[no-untyped-call]
