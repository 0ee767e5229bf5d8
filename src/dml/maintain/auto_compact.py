"""What a table may have done after each commit of data. What fails there warns, for the commit stands."""

import logging
from collections import Counter
from typing import TYPE_CHECKING

from ...core.protocol import properties
from ...core.protocol.actions import AddFile
from ...core.table import bin_packing as bins
from ...core.txn.transaction import Committed
from ...engine.jvm import settings

if TYPE_CHECKING:
    from ..command.command import Work

logger = logging.getLogger(__name__)

_PREFIX = "spark.databricks.delta.autoCompact."
_MIB = 1 << 20


def run(work: "Work", committed: Committed) -> None:
    """Do what the table, or the session, asks for once `committed` is in the log."""
    touched = {
        bins.partition_of(a.partition_values) for a in committed.actions if isinstance(a, AddFile) and a.data_change
    }
    if not touched:
        return
    try:
        if _compacts(work):
            _compact(work, touched)
    except Exception:
        logger.warning(
            "%s: version %d is committed, but its small files were not compacted after it",
            work.log.table, committed.version, exc_info=True,
        )  # fmt: skip


def _compacts(work: "Work") -> bool:
    """The session's word goes before the table's; `delta.autoOptimize` is the older name of it."""
    asked = settings.text(work.spark, f"{_PREFIX}enabled")
    if asked is None:
        configuration = work.txn.metadata.configuration
        if properties.get(configuration, "autoOptimize"):
            return True
        asked = properties.get(configuration, "autoOptimize.autoCompact") or "false"
    return bool(properties.PROPERTIES["autooptimize.autocompact"].check(asked, f"{_PREFIX}enabled") != "false")


def _compact(work: "Work", touched: set[bins.Partition]) -> None:
    """Compact the partitions just written to that have gathered enough small files."""
    from .optimize import Layout, optimize  # which commits as well

    largest = settings.byte_count(work.spark, f"{_PREFIX}maxFileSize", 128 * _MIB)
    smallest = settings.byte_count(work.spark, f"{_PREFIX}minFileSize", largest // 2)
    enough = settings.number(work.spark, f"{_PREFIX}minNumFiles", 50)
    files = work.log.snapshot().files
    small = Counter(
        bins.partition_of(values)
        for values, size in zip(
            files.column("partitionValues").to_pylist(), files.column("size").to_pylist(), strict=True
        )
        if size < smallest
    )
    ripe = {partition for partition in touched if small[partition] >= enough}
    if ripe:
        layout = Layout(smallest=smallest, largest=largest, auto=True)
        optimize(work.spark, work.log, layout, within=ripe)
