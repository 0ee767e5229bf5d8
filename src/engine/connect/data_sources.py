"""Registers Python data sources in a session, of either kind."""

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_registering = Lock()


def register(spark: "SparkSession", source: "type[DataSource]") -> None:
    """Register a data source, in place of one with the same name.

    Spark replaces a source, but if two threads register one at the same time, one of them gets
    DATA_SOURCE_ALREADY_EXISTS.
    """
    with _registering:
        spark.dataSource.register(source)
