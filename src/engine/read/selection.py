"""Restricts a version with a large log to the files that a command needs; Spark's executors find them.

Commands identify files by their index in `Snapshot.files`. So a command on a large log works on a snapshot that has
only the files that it may need (`Snapshot.with_files`), and the columns of the other files are never on the driver.
The executors may select too many files, never too few: the command selects among them again, as in a small log.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.log.columns import counted
from ...core.skipping import predicates
from ...core.skipping.generation import derived
from ...core.table.difference import OfPaths, changed_paths
from ...settings.declarations import STATS_SKIPPING
from ..jvm.connection import settings
from ..jvm.connection.sessions import is_classic
from ..sql import generation
from . import file_groups, large_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.log.replay import Totals
    from ...core.table.snapshot import Snapshot

_MOST_BYTES = 64 << 20
"""The most bytes of commits whose paths are sent to the executors: some 250,000 files."""


def differing(
    spark: "SparkSession", log: "DeltaLog", then: "Snapshot", now: "Snapshot"
) -> "tuple[Snapshot, Snapshot, Totals] | None":
    """Two versions of a table with only the files that may differ, and the totals of the earlier one.

    None if the driver has to compare all files, because neither log is large, the executors can't read it, or too many
    files differ.
    """
    if not is_classic(spark) or not (large_log.wanted(spark, then) or large_log.wanted(spark, now)):
        return None
    changed = changed_paths(log, then, now, _MOST_BYTES)
    if changed is None:
        return None
    choice = OfPaths(now.table, pa.array(sorted(changed), pa.string()))
    parts = [_chosen(spark, log, snapshot, choice) for snapshot in (then, now)]
    if parts[0] is None or parts[1] is None:
        return None
    return then.with_files(parts[0].files), now.with_files(parts[1].files), parts[0].totals


def _chosen(
    spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot", choice: large_log.Choice
) -> large_log.PlannedFiles | None:
    if large_log.wanted(spark, snapshot):
        return large_log.chosen(spark, log, snapshot, choice, None, texts=True)
    files = snapshot.files_with_stats_text()
    return large_log.PlannedFiles(choice(files)[0].select(large_log.NO_FILES.schema.names), counted(files), len(files))


def satisfying(
    spark: "SparkSession",
    log: "DeltaLog",
    snapshot: "Snapshot",
    predicate: predicates.Predicate,
    *,
    grouped: bool = False,
) -> "large_log.PlannedFiles | None":
    """The files that may have a row for which `predicate` (logical names) is TRUE; see `conditions.planned`."""
    if not is_classic(spark) or not large_log.wanted(spark, snapshot):
        return None
    mapping, zone = snapshot.mapping, settings.time_zone(spark)
    names = mapping.physical_partition_columns
    whole = predicates.all_of([predicate, derived(predicate, generation.partition_columns(spark, snapshot))])
    of_values, of_rows = predicates.split(predicates.with_columns(whole, mapping.to_physical), names)
    if not settings.of(spark, STATS_SKIPPING):
        of_rows = predicates.TRUE
    filters = large_log.Filters(of_values, of_rows, mapping.physical, names, zone)
    chosen = file_groups.chooser(grouped=grouped)
    return chosen(spark, log, snapshot, filters, predicates.columns(of_rows) or None)
