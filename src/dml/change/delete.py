"""DELETE: all rows, whole partitions, or the rows for which a condition is TRUE."""

import logging
import time

from pyspark.sql import Column, SparkSession

from ...core.deltalog import DeltaLog
from ...core.txn.operation import Operation
from ...engine.read import scan
from ...engine.write import writer
from ..command.command import PLAIN, Command, CommitOptions, RowsChanged, command_scope
from ..command.removal import Removal
from ..command.whole_files import remove_all
from .touched_files import remove_matching

logger = logging.getLogger(__name__)


def delete(
    spark: SparkSession,
    log: DeltaLog,
    condition: str | Column | None = None,
    *,
    alias: scan.Alias | None = None,
    options: CommitOptions = PLAIN,
) -> RowsChanged | None:
    """Delete the rows for which `condition` is TRUE (None: all rows) and commit.

    `alias` is the table's name in the condition. If no row matches, there is no commit. Returns None if the transaction
    of `options` was already committed. Raises
    AppendOnlyTableError, InvalidArgumentError or UnsupportedFeatureError for a condition that can't be evaluated twice,
    the conflict errors and CommitStateUnknownError.
    """
    with command_scope(spark, "DELETE", log.table):
        began = time.monotonic()
        command = Command.on(spark, log, options)
        command.check_removable()
        if command.applied_already:
            return None
        command.name_rows(alias)
        with command.discarded_on_failure():
            split = None
            if condition is not None:
                frame = scan.for_conditions(spark, command.snapshot, alias)
                split = scan.split_condition(frame, condition, command.snapshot.mapping, command.row_alias)
            if split is None or split.always:
                removal = remove_all(command, count_rows=True)
            else:
                removal = remove_matching(command, split, writer.WriteOptions())
            if not removal.counts.removed:
                logger.info("%s: no row matches the condition of DELETE, nothing committed", log.table)
                return RowsChanged(None, 0)
            metrics = _metrics(removal, round((time.monotonic() - began) * 1000))
            operation = Operation("DELETE", {"predicate": split.sql if split else ["true"]}, metrics)
            now = log.clock.now_ms()
            committed = command.commit(removal.actions(now), operation, bulk=removal.bulk(now))
            return RowsChanged(committed, removal.deleted_rows)


def _metrics(removal: Removal, execution_ms: int) -> dict[str, int | str]:
    """The operation metrics, as Delta defines them. A file that only gets a deletion vector counts neither as removed
    nor as added, and its bytes are not counted. Row counts are left out if the rows were not counted.
    """
    counts_bytes = not removal.by_vectors
    metrics: dict[str, int | str] = {
        "numRemovedFiles": removal.counts.files,
        "numRemovedBytes": removal.counts.bytes if counts_bytes else 0,
        "numAddedBytes": sum(add.size for add in removal.written),
        "numAddedChangeFiles": len(removal.changes),
        **removal.vector_metrics(),
        "executionTimeMs": execution_ms,
        "scanTimeMs": removal.scan_ms,
        "rewriteTimeMs": removal.rewrite_ms,
    }
    if removal.deleted_rows:
        metrics |= {
            "numDeletedRows": removal.deleted_rows,
            "numCopiedRows": removal.copied_rows,
            "numAddedFiles": len(removal.written),
        }
    return metrics
