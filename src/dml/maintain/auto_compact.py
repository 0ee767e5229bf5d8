"""Auto compaction: after a commit, small files of the partitions that it wrote to are merged into larger ones."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol import properties
from ...core.protocol.actions import AddFile
from ...core.table import bin_packing
from ...core.txn.transaction import Committed
from ...engine.jvm.connection import settings
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read import scan
from ...log_once import log_once
from ...settings import declarations
from ..command.command import Command
from .optimize import optimize
from .optimize_layout import OptimizeLayout


def run(command: Command, committed: Committed) -> None:
    """Compact the partitions that `committed` wrote to, if the table or the session enables auto compaction.

    Not on Spark Connect, where a warning names the table that enables it. The session's setting would be a request.
    """
    touched = {
        bin_packing.partition_of(a.partition_values)
        for a in committed.actions
        if isinstance(a, AddFile) and a.data_change
    }
    touched |= command.partitions_in_slices
    if not touched:
        return
    if is_classic(command.spark):
        if _compacts(command):
            _compact(command, touched)
    elif _of_table(command):
        log_once(
            f"auto compaction of {command.log.table}",
            "%s enables auto compaction, which has no effect on Spark Connect: run DeltaTable.optimize() instead",
            command.log.table,
        )


def _compacts(command: Command) -> bool:
    """The session's setting overrides the table's."""
    enabled = settings.of(command.spark, declarations.AUTO_COMPACT)
    return _of_table(command) if enabled is None else enabled != "false"


def _of_table(command: Command) -> bool:
    """Whether the table enables auto compaction; `delta.autoOptimize` is the older name of its property."""
    configuration = command.txn.metadata.configuration
    if properties.get(configuration, "autoOptimize"):
        return True
    return (properties.get(configuration, "autoOptimize.autoCompact") or "false") != "false"


def _compact(command: Command, touched: set[bin_packing.Partition]) -> None:
    """Compact those of the written partitions that have enough small files."""
    largest = settings.of(command.spark, declarations.AUTO_COMPACT_MAX_FILE_SIZE)
    smallest = settings.of(command.spark, declarations.AUTO_COMPACT_MIN_FILE_SIZE)
    if smallest is None:
        smallest = largest // 2
    enough = settings.of(command.spark, declarations.AUTO_COMPACT_MIN_NUM_FILES)
    newest = command.log.snapshot()
    in_touched = bin_packing.RewriteCandidates("small or marked", smallest, frozenset(touched))
    planned = scan.planned(command.spark, command.log, newest, None, in_touched, grouped=True)
    if planned is None:
        groups: Iterable[pa.Table] = [newest.files]
    else:
        groups = planned.groups or [planned.files]
    small: Counter[bin_packing.Partition] = Counter()
    for files in groups:
        of_small = files.filter(pc.less(files.column("size"), smallest))
        small.update(map(bin_packing.partition_of, of_small.column("partitionValues").to_pylist()))
    ripe = {partition for partition in touched if small[partition] >= enough}
    if ripe:
        layout = OptimizeLayout(smallest=smallest, largest=largest, auto=True)
        optimize(command.spark, command.log, layout, within=ripe)
