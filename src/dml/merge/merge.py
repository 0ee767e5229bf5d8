"""MERGE: rows of a source update, delete and join those of a table, in one commit.

Two passes over the table at most. The first one (`merge_find`) joins the source with the files that may hold matching
rows, and tells which rows change; the second one (`merge_write`) writes the files that take their place. What the
first one can bring to the driver, the second one doesn't compute again.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.txn.operation import Operation
from ...engine.sql.violations import translated
from ...settings.honoured import AUTO_MERGE
from ..command import deletion_vectors as vectors
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from . import clauses as merge_clauses
from . import find as merge_find
from . import source as merge_source
from .clauses import Clause
from .resolve import Resolved, resolve
from .write import MergeOutput, write

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Counts:
    """How many rows of the table a MERGE changed."""

    updated: int
    deleted: int
    inserted: int

    @property
    def affected(self) -> int:
        return self.updated + self.deleted + self.inserted


def merge(
    spark: SparkSession,
    log: DeltaLog,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: str | None = None,
    evolve: bool = False,
    options: CommitOptions = PLAIN,
) -> Counts | None:
    """Merge `source` into the table and commit; nothing is committed where nothing changes. None: applied already.

    `alias` is the table's name within the expressions. `evolve` adds columns to the table that clauses set and only
    the source has; so does the session's `spark.databricks.delta.schema.autoMerge.enabled`. Raises Spark's
    AnalysisException for an expression that doesn't resolve, InvalidArgumentError for clauses against the rules and for
    a row of the table that several source rows match, SchemaMismatchError, ConstraintViolationError,
    AppendOnlyTableError, the conflicts and CommitStateUnknownError.
    """
    merge_clauses.check(clauses)
    with command_scope(spark, "MERGE", log.table):
        began = time.monotonic()
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        evolve = evolve or AUTO_MERGE.of(log.conf)
        resolved = resolve(command, source, condition, clauses, alias=alias, evolve=evolve)
        with command.discarded_on_failure(), merge_source.prepared(command, source, resolved) as ready:
            prepared_ms = _ms(began)
            scanned = time.monotonic()
            found = merge_find.find(command, resolved, ready, places=_places(command, resolved))
            scan_ms = _ms(scanned)
            written = time.monotonic()
            try:
                with translated(log.table, resolved.columns):
                    outcome = write(command, resolved, ready, found)
            finally:
                found.release()
            times = {
                "executionTimeMs": _ms(began),
                "materializeSourceTimeMs": prepared_ms,
                "scanTimeMs": scan_ms,
                "rewriteTimeMs": _ms(written),
            }
            metrics = {"numSourceRows": ready.rows, **outcome.metrics(), **times}
            _commit(command, outcome, Operation("MERGE", resolved.parameters, metrics))
        return Counts(outcome.updated, outcome.deleted, outcome.inserted)


def _places(command: Command, resolved: Resolved) -> bool:
    return bool(resolved.changing) and vectors.enabled(command, "merge")


def _commit(command: Command, outcome: MergeOutput, operation: Operation) -> None:
    actions = outcome.actions(command.log.clock.now_ms())
    if not actions and command.txn.metadata == command.snapshot.metadata:
        logger.info("%s: MERGE changes no row, nothing committed", command.log.table)
        return
    command.commit(actions, operation)


def _ms(since: float) -> int:
    return round((time.monotonic() - since) * 1000)
