"""Reads settings of the session, each with one call to the JVM."""

from typing import TYPE_CHECKING, TypeVar

from ....settings.setting import Setting
from ....settings.spark_own import CASE_SENSITIVE, SESSION_TIME_ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def of(spark: "SparkSession", setting: Setting[T]) -> T:
    """The session's value, or the default of the declaration. Raises the setting's error for an invalid value."""
    text = spark.conf.get(setting.key, None)
    return setting.default if text is None else setting.parsed(text)


def in_force(spark: "SparkSession", setting: Setting[T]) -> T:
    """The value of one of Spark's own settings: the session's value or Spark's default."""
    text = spark.conf.get(setting.key)
    return setting.default if text is None else setting.parsed(text)


def case_sensitive(spark: "SparkSession") -> bool:
    """Whether column names that differ only by case are different columns."""
    return of(spark, CASE_SENSITIVE)


def time_zone(spark: "SparkSession") -> str:
    """The session's time zone."""
    return in_force(spark, SESSION_TIME_ZONE)
