"""Conversion between DataFrames and Columns of PySpark and their JVM objects."""

from typing import TYPE_CHECKING

from .sessions import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession


def of_dataset(dataset: JavaObject, spark: "SparkSession") -> "DataFrame":
    """The DataFrame of a JVM `Dataset`."""
    from pyspark.sql.classic.dataframe import DataFrame

    return DataFrame(dataset, spark)


def of_java_column(column: JavaObject) -> "Column":
    """The Column of a JVM `Column`."""
    from pyspark.sql.classic.column import Column

    return Column(column)


def java_column(column: "Column") -> JavaObject:
    """The JVM's `Column`."""
    return column._jc


def session_of(frame: "DataFrame") -> JavaObject:
    """The JVM session that runs a frame, which may be a copy of `frame.sparkSession`'s."""
    return frame._jdf.sparkSession()


def java_writer(writer: "DataFrameWriter") -> JavaObject:
    """The JVM's `DataFrameWriter`."""
    return writer._jwrite


def command_executed(frame: "DataFrame") -> JavaObject:
    """The logical plan of a frame after its commands have run, each replaced by a `CommandResult`."""
    return frame._jdf.queryExecution().commandExecuted()


def analyzed(frame: "DataFrame") -> JavaObject:
    """The logical plan of a frame after Spark's analyzer."""
    return frame._jdf.queryExecution().analyzed()


def with_cached_data(frame: "DataFrame") -> JavaObject:
    """The analyzed plan of a frame, in which cached parts are replaced by their cache."""
    return frame._jdf.queryExecution().withCachedData()


def optimized_plan(frame: "DataFrame") -> JavaObject:
    """The logical plan of a frame after Spark's optimizer."""
    return frame._jdf.queryExecution().optimizedPlan()


def executed_plan(frame: "DataFrame") -> JavaObject:
    """The physical plan of a frame."""
    return frame._jdf.queryExecution().executedPlan()


def internal_rows(frame: "DataFrame") -> JavaObject:
    """The rows of a frame as an `InternalRow[]` on the driver. A small local relation needs no Spark job."""
    return executed_plan(frame).executeCollect()
