"""Restricts a version with a large log to the files that a command needs; Spark's executors find them.

Commands identify files by their index in `Snapshot.files`. So a command on a large log works on a snapshot that has
only the files that it may need (`Snapshot.with_files`), and the columns of the other files are never on the driver.
The executors may select too many files, never too few: the command selects among them again, as in a small log.
"""

from typing import TYPE_CHECKING

from ...core.skipping import predicates
from ...core.skipping.generation import derived
from ...settings.declarations import STATS_SKIPPING
from ..jvm.connection import settings
from ..jvm.connection.sessions import is_classic
from ..sql import generation
from . import conditions, large_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot
    from .conditions import Condition


def matching(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot", condition: "Condition") -> "Snapshot":
    """The version with only the files that may match the condition, or unchanged if the driver has to find them."""
    if condition.predicate == predicates.Constant(False) and large_log.wanted(spark, snapshot):
        return snapshot.with_files(large_log.NO_FILES)
    planned = conditions.planned(spark, log, snapshot, condition)
    return snapshot if planned is None else snapshot.with_files(planned.files)


def satisfying(
    spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot", predicate: predicates.Predicate
) -> "Snapshot":
    """The version with only the files that may have a row for which `predicate` (logical names) is TRUE.

    The version is returned unchanged if the driver has to find them.
    """
    if not is_classic(spark) or not large_log.wanted(spark, snapshot):
        return snapshot
    mapping, zone = snapshot.mapping, settings.time_zone(spark)
    names = mapping.physical_partition_columns
    whole = predicates.all_of([predicate, derived(predicate, generation.partition_columns(spark, snapshot))])
    of_values, of_rows = predicates.split(predicates.with_columns(whole, mapping.to_physical), names)
    if not settings.of(spark, STATS_SKIPPING):
        of_rows = predicates.TRUE
    filters = large_log.Filters(of_values, of_rows, mapping.physical, names, zone)
    planned = large_log.chosen(spark, log, snapshot, filters, predicates.columns(of_rows) or None, texts=True)
    return snapshot if planned is None else snapshot.with_files(planned.files)
