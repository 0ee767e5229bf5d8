"""What statements answer: small DataFrames on the driver."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def nothing(spark: SparkSession) -> DataFrame:
    """The answer of a statement that has none: no columns, no rows."""
    return spark.createDataFrame([], StructType())


def rows(spark: SparkSession, schema: str, values: Sequence[Sequence[Any]]) -> DataFrame:
    """A local frame; `schema` as DDL, such as "num_affected_rows BIGINT"."""
    return spark.createDataFrame([tuple(value) for value in values], schema)
