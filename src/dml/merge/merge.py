"""MERGE: updates, deletes and inserts rows of a table from the rows of a source, in one commit.

It reads the table at most twice. The first pass (`matching`) joins the source with the files that may contain matching
rows and finds the rows that change. The second pass (`write`) writes the new files. Results of the first pass that fit
on the driver are reused by the second.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.txn.operation import Operation
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read.scan import Alias
from ...engine.sql.stored_frame import is_lost
from ...engine.sql.violations import translated
from ...errors import SourceRowsLostError
from ...progress import stage
from ...settings.declarations import AUTO_MERGE
from ..command import row_deletion
from ..command.command import PLAIN, Command, CommitOptions, command_scope, reports_table
from ..command.slices import Slices
from . import matching, unplanned
from .clauses import Clause, check_clauses
from .output import MergeOutput
from .resolve import Resolved, resolve
from .source import MergeSource, prepare_source
from .write import write

logger = logging.getLogger(__name__)

_ATTEMPTS = 4  # as delta-spark: a cluster that loses an executor at each attempt has another problem


@dataclass(frozen=True)
class Counts:
    """The number of table rows that a MERGE updated, deleted and inserted."""

    updated: int
    deleted: int
    inserted: int

    @property
    def affected(self) -> int:
        return self.updated + self.deleted + self.inserted


@reports_table
def merge(
    spark: SparkSession,
    log: DeltaLog,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: Alias | None = None,
    evolve: bool = False,
    options: CommitOptions = PLAIN,
    recorded_as: Callable[[Mapping[str, int | str]], Operation] | None = None,
) -> Counts | None:
    """Merge `source` into the table and commit; if nothing changes, there is no commit.

    `alias` is the table's name in expressions. `evolve` adds columns to the table that clauses assign and only the
    source has; the session setting `spark.databricks.delta.schema.autoMerge.enabled` does the same.
    `recorded_as` gives the operation in the history, by the metrics, for another command that is run as a MERGE.

    Returns: the counts; None if the transaction of `options` was already committed. Raises: Spark's AnalysisException
    for an expression that doesn't resolve; InvalidArgumentError for invalid clauses, and for a table row that matches
    several source rows; SchemaMismatchError, ConstraintViolationError, AppendOnlyTableError, SourceRowsLostError, the
    conflict errors and CommitStateUnknownError.
    """
    check_clauses(clauses)
    with command_scope(spark, "MERGE", log.table):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return _attempt(
                    Command.on(spark, log, options),
                    source,
                    condition,
                    clauses,
                    alias=alias,
                    evolve=evolve or AUTO_MERGE.of(log.conf),
                    recorded_as=recorded_as,
                    replicated=attempt > 1,
                )
            except Exception as error:
                if not is_lost(error):
                    raise
                if attempt == _ATTEMPTS:
                    raise SourceRowsLostError(
                        f"{log.table}: executors were lost in each of {_ATTEMPTS} attempts of the MERGE, and with them "
                        "rows of its source; nothing was committed. Find out why they are lost (memory, preemption), "
                        "or write the source to a table and merge from there."
                    ) from error
                logger.warning(
                    "%s: the executors lost source rows of a MERGE; attempt %d of %d stores each row on two of them",
                    log.table,
                    attempt + 1,
                    _ATTEMPTS,
                )
    raise AssertionError("the last attempt returns or raises")


def _attempt(
    command: Command,
    source: DataFrame,
    condition: str | Column,
    clauses: Sequence[Clause],
    *,
    alias: Alias | None,
    evolve: bool,
    recorded_as: Callable[[Mapping[str, int | str]], Operation] | None,
    replicated: bool,
) -> Counts | None:
    """Run the MERGE once; the parameters are those of `merge`, and of `prepare_source`."""
    if command.applied_already:
        return None
    if not is_classic(command.spark):
        with command.discarded_on_failure():
            outcome, operation = unplanned.merge(command, source, condition, clauses, alias=alias, evolve=evolve)
            _commit(command, outcome, operation)
        return Counts(outcome.updated, outcome.deleted, outcome.inserted)
    began = time.monotonic()
    resolved = resolve(command, source, condition, clauses, alias=alias, evolve=evolve)
    stage("reading the source")
    with (
        command.discarded_on_failure(),
        prepare_source(command, source, resolved, replicated=replicated) as merge_source,
    ):
        prepared_ms = _ms(began)
        outcome, rewrite_ms = _changed(command, resolved, merge_source)
        execution_ms = _ms(began)
        times = {
            "executionTimeMs": execution_ms,
            "materializeSourceTimeMs": prepared_ms,
            "scanTimeMs": execution_ms - prepared_ms - rewrite_ms,
            "rewriteTimeMs": rewrite_ms,
        }
        metrics = {"numSourceRows": merge_source.rows, **outcome.metrics(), **times}
        recorded = None if recorded_as is None else recorded_as(metrics)
        _commit(command, outcome, recorded or Operation("MERGE", resolved.parameters, metrics))
    return Counts(outcome.updated, outcome.deleted, outcome.inserted)


def _changed(command: Command, resolved: Resolved, source: MergeSource) -> tuple[MergeOutput, int]:
    """Find the rows that change and write the new files; return what was written, and the milliseconds of writing."""
    table, rewrite_ms = command.log.table, 0
    outcome, slices = MergeOutput(), Slices(command)
    for matches, last in matching.find(command, resolved, source, places=_places(command, resolved)):
        began = time.monotonic()
        try:
            with translated(table, resolved.columns):
                part = write(command, resolved, source, matches, inserts=last)
        finally:
            matches.release(table)
        rewrite_ms += _ms(began)
        slices.add(part.removal, last=last)
        outcome.extend(part)
    outcome.removal = slices.total()
    return outcome, rewrite_ms


def _places(command: Command, resolved: Resolved) -> bool:
    return bool(resolved.changing) and row_deletion.vectors_enabled(command, "merge")


def _commit(command: Command, outcome: MergeOutput, operation: Operation) -> None:
    now = command.log.clock.now_ms()
    actions, bulk = outcome.actions(now), outcome.removal.bulk(now)
    if not actions and bulk is None and command.txn.metadata == command.snapshot.metadata:
        logger.info("%s: MERGE changes no row, nothing committed", command.log.table)
        return
    command.commit(actions, operation, bulk=bulk)


def _ms(since: float) -> int:
    return round((time.monotonic() - since) * 1000)
