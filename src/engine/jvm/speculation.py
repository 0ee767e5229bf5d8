"""Speculative execution: Spark runs a slow task a second time, and kills the attempt that the other one overtakes."""

from typing import TYPE_CHECKING

from ...settings.spark_own import SPECULATION
from . import interrupts
from .connection import settings
from .connection.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def overtaken(spark: "SparkSession", tag: str) -> None:
    """Wait until no task of successful jobs with a tag runs, 20 s at most: Spark is killing attempts of slow tasks.

    Returns at once if the session has no speculative execution.
    """
    if is_classic(spark) and settings.of(spark, SPECULATION):
        interrupts.settle(spark, tag)
