"""The JVM objects behind DataFrames and Columns of PySpark, and the way back."""

from typing import TYPE_CHECKING

from .sessions import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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


def analyzed(frame: "DataFrame") -> JavaObject:
    """The logical plan of a frame after Spark's analyzer."""
    return frame._jdf.queryExecution().analyzed()


def with_cached_data(frame: "DataFrame") -> JavaObject:
    """The analysed plan of a frame in which what the user has cached is replaced by its cache."""
    return frame._jdf.queryExecution().withCachedData()


def optimized_plan(frame: "DataFrame") -> JavaObject:
    """The logical plan of a frame after Spark's optimizer."""
    return frame._jdf.queryExecution().optimizedPlan()


def executed_plan(frame: "DataFrame") -> JavaObject:
    """The physical plan of a frame."""
    return frame._jdf.queryExecution().executedPlan()


def internal_rows(frame: "DataFrame") -> JavaObject:
    """The rows of a frame as an `InternalRow[]` on the driver; no Spark job where the frame is a small local one."""
    return executed_plan(frame).executeCollect()
