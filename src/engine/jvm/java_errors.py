"""The condition of an error of Spark's, which PySpark gives of some Java exceptions and of others not."""

from collections.abc import Iterator, Mapping
from typing import Any

_CAUSES = 8


def conditions(error: BaseException) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The conditions and message parameters of an error that came out of Spark, and of its causes, outermost first."""
    from pyspark.errors import PySparkException

    java = getattr(error, "java_exception", None)  # of Py4J's own errors
    if java is None:
        java = getattr(error, "_origin", None)  # of those that PySpark makes of Java exceptions
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
    from py4j.java_gateway import is_instance_of
    from pyspark import SparkContext

    for _ in range(_CAUSES):
        if java is None:
            return
        if is_instance_of(SparkContext._gateway, java, "org.apache.spark.SparkThrowable"):
            yield java
        java = java.getCause()
