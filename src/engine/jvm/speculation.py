"""Speculative execution: Spark runs a slow task a second time, and kills the attempt that the other one overtakes."""

from typing import TYPE_CHECKING

from ...settings.spark_own import SPECULATION
from . import interrupts
from .connection import settings
from .connection.gateway import Gateway, JavaObject
from .connection.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def overtaken(spark: "SparkSession", tag: str) -> bool:
    """Wait until no task of successful jobs with a tag runs, 20 s at most: Spark is killing attempts of slow tasks.

    Returns at once if the session has no speculative execution, and whether it has.
    """
    if not is_classic(spark) or not settings.of(spark, SPECULATION):
        return False
    interrupts.settle(spark, tag)
    return True


def most_copies(spark: "SparkSession", rdd: JavaObject) -> int:
    """The number of executors that store the same partition of an RDD, the most for all its partitions."""
    jvm = Gateway.of(spark).jvm
    master = jvm.org.apache.spark.SparkEnv.get().blockManager().master()
    number, partitions = rdd.id(), rdd.getNumPartitions()
    blocks = (jvm.org.apache.spark.storage.RDDBlockId(number, partition) for partition in range(partitions))
    return max((master.getLocations(block).size() for block in blocks), default=0)
