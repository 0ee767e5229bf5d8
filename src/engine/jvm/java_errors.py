"""The errors that come out of the JVM: which there are, the Java exception behind one, and its error condition."""

from collections.abc import Iterator, Mapping
from typing import Any

from .sessions import JavaObject, is_instance

_CAUSES = 8


def thrown_by_java() -> tuple[type[Exception], ...]:
    """The errors that stand for a Java exception: that of Py4J, and those that PySpark makes of some exceptions."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return Py4JJavaError, PySparkException


def raised_by_calls() -> tuple[type[Exception], ...]:
    """All errors that a call to the JVM raises: those, and what Py4J raises of a connection that is lost, say."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def java_exception(error: BaseException) -> JavaObject | None:
    """The Java exception behind an error; `None` where there is none."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return error._origin if isinstance(error, CapturedException) else None


def conditions(error: BaseException) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The conditions and message parameters of an error that came out of Spark, and of its causes, outermost first."""
    from pyspark.errors import PySparkException

    java = java_exception(error)
    if java is None and isinstance(error, PySparkException):
        condition = error.getCondition()
        if condition is not None:
            yield condition, error.getMessageParameters() or {}
    for one in _throwables(java):
        condition = one.getCondition()
        if condition is not None:
            yield str(condition), {str(key): str(value) for key, value in dict(one.getMessageParameters()).items()}


def _throwables(java: Any) -> Iterator[Any]:
    """Those of a Java exception and its causes that have a condition."""
    for _ in range(_CAUSES):
        if java is None:
            return
        if is_instance(java, "org.apache.spark.SparkThrowable"):
            yield java
        java = java.getCause()
