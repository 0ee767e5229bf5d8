"""TRUNCATE TABLE: removes all files of a table without reading them."""

import time

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.whole_files import remove_all


def truncate(spark: SparkSession, log: DeltaLog, options: CommitOptions = PLAIN) -> Committed | None:
    """Remove all rows and commit. Returns None if the table has no files; then there is no commit.

    Raises AppendOnlyTableError, the conflict errors and CommitStateUnknownError.
    """
    with command_scope(spark, "TRUNCATE", log.table):
        began = time.monotonic()
        command = Command.on(spark, log, options)
        command.check_removable()
        removal = remove_all(command)
        if not removal.counts.removed:
            return None
        metrics: dict[str, int | str] = {
            "numRemovedFiles": removal.counts.removed,
            "executionTimeMs": round((time.monotonic() - began) * 1000),
        }
        operation = Operation("TRUNCATE", {}, metrics)
        now = log.clock.now_ms()
        return command.commit(removal.actions(now), operation, bulk=removal.bulk(now))
