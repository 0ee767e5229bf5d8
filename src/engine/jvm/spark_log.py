"""Spark's log about rows that a write refuses (`java/ReportedErrorFilter.java`)."""

from typing import TYPE_CHECKING

from .connection.compiled import compiled_instance
from .connection.gateway import Gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = "org.apache.logging.log4j.core.LoggerContext"


def hide_refused_rows(spark: "SparkSession") -> None:
    """The driver's JVM doesn't log what the errors of commands report about refused rows.

    Executors that are processes of their own write their own logs, which aren't changed.
    """
    gateway = Gateway.of(spark)
    if gateway.has_class(_LOG4J):
        compiled_instance(gateway, "ReportedErrorFilter").install()


def show_refused_rows(spark: "SparkSession") -> None:
    """Undo `hide_refused_rows`."""
    gateway = Gateway.of(spark)
    if gateway.has_class(_LOG4J):
        compiled_instance(gateway, "ReportedErrorFilter").uninstall()
