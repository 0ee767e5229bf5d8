"""Errors from the JVM: their Python classes, their Java exceptions, and their error conditions."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .sessions import JavaObject, is_instance

_CAUSES = 8


def thrown_by_java() -> tuple[type[Exception], ...]:
    """The classes of errors for a Java exception: Py4J's, and PySpark's, to which it converts some exceptions."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return Py4JJavaError, PySparkException


def raised_by_calls() -> tuple[type[Exception], ...]:
    """The classes of all errors that a call to the JVM raises, including Py4J's own (such as a lost connection)."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def java_exception(error: BaseException) -> JavaObject | None:
    """The Java exception that caused an error; `None` if there is none."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return error._origin if isinstance(error, CapturedException) else None


def text_with_causes(java: JavaObject | None) -> str:
    """The messages of a Java exception and its causes."""
    return "\n".join(str(one.toString()) for one in _with_causes(java))


def frames_with_causes(java: JavaObject | None) -> str:
    """The stack frames of a Java exception and its causes; each is a call to the JVM."""
    return "\n".join(str(frame.toString()) for one in _with_causes(java) for frame in one.getStackTrace())


def _with_causes(java: JavaObject | None) -> Iterator[JavaObject]:
    for _ in range(_CAUSES):
        if java is None:
            return
        yield java
        java = java.getCause()


def is_failed_query(text: str) -> bool:
    """Whether a Java exception with this text is the one of a streaming query that failed."""
    return text.startswith("org.apache.spark.sql.streaming.StreamingQueryException: ")


def with_visible_cause(converted: BaseException) -> BaseException:
    """PySpark's error of a streaming query, with its cause where Python shows causes.

    PySpark converts the cause too, but raises the error `from None`.
    """
    converted.__class__ = _failed_query_class()
    return converted


@cache
def _failed_query_class() -> Any:
    from pyspark.errors.exceptions.captured import StreamingQueryException

    fields = {"__cause__": property(lambda error: error._cause), "__module__": StreamingQueryException.__module__}
    return type("StreamingQueryException", (StreamingQueryException,), fields)


def conditions(error: BaseException) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The error conditions and message parameters of an error from Spark and of its causes, outermost first."""
    from pyspark.errors import PySparkException

    java = java_exception(error)
    if java is None and isinstance(error, PySparkException):
        condition = error.getCondition()
        if condition is not None:
            yield condition, error.getMessageParameters() or {}
    for throwable in _throwables(java):
        condition = throwable.getCondition()
        if condition is not None:
            yield (
                str(condition),
                {str(key): str(value) for key, value in dict(throwable.getMessageParameters()).items()},
            )


def _throwables(java: Any) -> Iterator[Any]:
    """The exceptions with an error condition, among a Java exception and its causes."""
    return (one for one in _with_causes(java) if is_instance(one, "org.apache.spark.SparkThrowable"))
