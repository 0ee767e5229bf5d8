"""Job tagging, cancellation, cleanup of files and commit, shared by all commands."""

import functools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Concatenate, ParamSpec, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions

from ...core.deltalog import DeltaLog
from ...core.protocol import properties, row_tracking, rules, schema
from ...core.protocol.actions import Action, AddFile, RemoveFile, SetTransaction
from ...core.skipping.predicates import Predicate
from ...core.table.bin_packing import Partition
from ...core.table.snapshot import Snapshot
from ...core.txn.bulk_actions import BulkActions, is_large
from ...core.txn.operation import Operation
from ...core.txn.record import recorded
from ...core.txn.transaction import Committed, Transaction
from ...engine.jvm import interrupts
from ...engine.jvm.connection import settings
from ...engine.jvm.connection.sessions import active, is_classic
from ...engine.read import file_groups, row_ids, scan, selection
from ...engine.read.large_log import PlannedFiles
from ...engine.read.pinned_versions import note_commit
from ...engine.write import cleanup, large_checkpoint, writer
from ...engine.write.routes import WriteRoute
from ...error_context import error_context
from ...errors import AppendOnlyTableError, CommandInterrupted, TablelogError, TableNotFoundError, committed_text
from ...progress import Screen, files_text, reported, screen_of_process, stage
from ...settings.declarations import SHOW_PROGRESS
from ...settings.spark_own import CONSOLE_PROGRESS
from .hidden_names import HiddenNames

logger = logging.getLogger(__name__)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a commit that the user can set for any command.

    `user_metadata` is stored in `commitInfo`. `transaction` is (application ID, version) of an idempotent command
    (PROTOCOL.md, "Transaction Identifiers").
    """

    user_metadata: str | None = None
    transaction: tuple[str, int] | None = None


PLAIN = CommitOptions()
"""The default commit options."""


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """What a command did. `committed` is None if no row changed; `rows` is None if the rows were not counted."""

    committed: Committed | None
    rows: int | None


@contextmanager
def command_scope(spark: SparkSession, operation: str, table: str) -> Iterator[None]:
    """Run a command: tag its Spark jobs and record its commits, so that errors can report what was committed.

    On Ctrl-C, the jobs are cancelled and CommandInterrupted lists the commits. If another error is raised after a
    commit, a note with the commits is added to it. The field `table` of errors is set to `table`.
    """
    handled = sys.exc_info()[1]
    with (
        reported(operation, table, partial(_screen, spark)),
        active(spark),
        interrupts.tagged(spark, "tablelog") as tag,
        recorded() as records,
    ):
        try:
            yield
        except BaseException as error:
            commits = tuple((record.version, record.operation) for record in records if record.committed)
            if interrupts.is_behind(error, handled):
                interrupts.stop(spark, tag)
                unknown = next(((record.version, record.token) for record in records if record.committed is None), None)
                interrupt = CommandInterrupted(operation, table, commits, unknown)
                logger.warning("%s", interrupt)
                raise interrupt from None
            if commits:
                error.add_note(f"{operation} did not end, but {committed_text(table, commits)}.")
            if isinstance(error, TablelogError):
                error.with_context(table=table)
            raise


def _screen(spark: SparkSession) -> Screen | None:
    """The terminal or the notebook, unless the session's settings say that the progress isn't shown there."""
    screen = screen_of_process(shares_line=lambda: is_classic(spark) and settings.of(spark, CONSOLE_PROGRESS))
    return screen if screen is not None and settings.of(spark, SHOW_PROGRESS) else None


def reports_table(
    function: Callable[Concatenate[SparkSession, DeltaLog, _Arguments], _Result],
) -> Callable[Concatenate[SparkSession, DeltaLog, _Arguments], _Result]:
    """Decorates a command that works outside of `command_scope` too: sets the field `table` of all its errors."""

    @functools.wraps(function)
    def call(spark: SparkSession, log: DeltaLog, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with error_context(table=log.table):
            return function(spark, log, *args, **kwargs)

    return call


class Command:
    """One run of a command on one table: the session, the log, the transaction and the files written so far."""

    def __init__(self, spark: SparkSession, log: DeltaLog, txn: Transaction, options: CommitOptions = PLAIN) -> None:
        self.spark = spark
        self.log = log
        self.txn = txn
        if is_classic(spark):
            txn.sidecar_writer = partial(large_checkpoint.sidecars, spark, log)
        self.row_alias: str | None = None
        self.options = options
        self._selected: Snapshot | None = None
        self._read_every_file = False
        self.numbered: set[str] = set()
        """Identity columns for which this command generated values; the commit updates their high-water marks."""
        self.partitions_in_slices: set[Partition] = set()
        """The partitions of files that slices of this command add again. The actions of its commit don't have them."""
        self.resources = ExitStack()
        """Closed when the command has ended."""
        self._written: list[tuple[WriteRoute, list[str]]] = []
        self._last: tuple[pa.Array, str, DataFrame] | None = None
        """The last result of `rows` with a file number: the files, the name of the column, and the frame."""

    @classmethod
    def on(cls, spark: SparkSession, log: DeltaLog, options: CommitOptions = PLAIN) -> "Command":
        """Start a command on an existing table. Raises TableNotFoundError."""
        txn = log.transaction()
        if txn.snapshot is None:
            raise TableNotFoundError(
                f"There is no Delta table at {log.table}.",
                condition="DELTA_TABLE_NOT_FOUND",
                parameters={"tableName": log.table},
                table=log.table,
            )
        return cls(spark, log, txn, options)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the transaction reads; the table must exist.

        After `select` on a large log, it has only the selected files.
        """
        assert self.txn.snapshot is not None
        return self._selected or self.txn.snapshot

    @property
    def has_selected(self) -> bool:
        """Whether `snapshot` has only selected files."""
        return self._selected is not None

    def select(self, files: scan.Condition | Predicate) -> None:
        """Restrict `snapshot` to the files that may match, if the log is too large for the driver.

        Called once, before the command uses an index in `snapshot.files`. It may leave other files in: the command
        still selects its files itself.
        """
        planned = self._planned(files, grouped=False)
        if planned is not None:
            self.select_files(planned.files)

    def selections(self, files: scan.Condition | Predicate, search: Callable[[], pa.Array]) -> Iterator[bool]:
        """As `select`, for a command that can work on one slice of its files after the other.

        `search` reads data files: it returns the indexes of the files that the command needs. If many files may match,
        it is called for each group of them, with a snapshot of this group. If the needed files are many too, `snapshot`
        has one slice of them at each step; each step tells whether it is the last one.
        """
        planned = self._planned(files, grouped=True)
        if planned is None or planned.groups is None:
            if planned is not None:
                self.select_files(planned.files)
            yield True
            return
        self._read_every_file = True
        most = file_groups.MOST_FILES if is_large(self.snapshot, self.snapshot.metadata, self.txn.metadata) else None
        for slice_, last in file_groups.with_last(file_groups.joined(self._needed(planned.groups, search), most)):
            self.select_files(slice_)
            yield last

    def _needed(self, groups: Iterable[pa.Table], search: Callable[[], pa.Array]) -> Iterator[pa.Table]:
        for group in groups:
            self.select_files(group)
            yield group.take(search())

    def select_unless_many(self, files: scan.Condition | Predicate) -> bool:
        """As `select`; False, and nothing is selected, if very many files may match."""
        planned = self._planned(files, grouped=True)
        if planned is None:
            return True
        if planned.groups is not None:
            return False
        self.select_files(planned.files)
        return True

    def _planned(self, files: scan.Condition | Predicate, *, grouped: bool) -> PlannedFiles | None:
        if isinstance(files, scan.Condition):
            return scan.planned(self.spark, self.log, self.snapshot, files, grouped=grouped)
        return selection.satisfying(self.spark, self.log, self.snapshot, files, grouped=grouped)

    def record_read(self, predicate: Predicate, files: pa.Table | None = None) -> None:
        """Record in the transaction that the command selected these files by the predicate (logical names).

        None: the command reads each file that may match.
        """
        every_file = self._read_every_file or files is None
        self.txn.read_predicate(predicate, time_zone=settings.time_zone(self.spark), every_file=every_file)
        if not every_file:
            self.txn.read_table(files)

    def for_next_commit(self) -> "Command":
        """A command for one more commit of the same version and files (`Transaction.next`)."""
        command = Command(self.spark, self.log, self.txn.next(), self.options)
        command._selected = self._selected
        return command

    def select_files(self, files: pa.Table) -> None:
        """As `select`, by a caller that has the files already, with the columns of `files_with_stats_text`.

        A command that works on one part of the files after the other calls it for each.
        """
        self._selected, self._last = self.snapshot.with_files(files), None

    @property
    def column_names(self) -> frozenset[str]:
        """Logical and physical names of the table's columns, and the names in `carried`."""
        return scan.columns_of(self.snapshot) | set(self.carried)

    @cached_property
    def names(self) -> HiddenNames:
        """Names for the helper columns that the command adds to the table's columns."""
        return HiddenNames.avoiding(self.column_names)

    def name_rows(self, alias: scan.Alias | None) -> None:
        """Give the frames of `rows` the table's name in conditions. Only Spark Connect resolves these on each frame."""
        if isinstance(alias, str) and not is_classic(self.spark):
            self.row_alias = alias

    def avoid_columns(self, source: Iterable[str]) -> None:
        """Make `names` avoid the columns of the command's source too. Call it before `names` is used."""
        self.names = HiddenNames.avoiding({*self.column_names, *source})

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """Physical names of the row ID and row commit version columns, which are copied with each rewritten row.

        Empty if row tracking is disabled (PROTOCOL.md, "Row Tracking"). The values are null for new rows; see
        `passed_on` for changed rows.
        """
        seen = self.txn.snapshot
        if seen is None or not row_tracking.enabled(seen.protocol, seen.metadata):
            return ()
        return row_ids.columns(seen.metadata)

    def passed_on(self, frame: DataFrame, changed: Column) -> list[Column]:
        """The columns `carried` for the rows of `frame`. Rows for which `changed` is TRUE keep their row ID and get a
        null row commit version, so that the version of this commit applies.
        """
        if not self.carried:
            return []
        row_id, version = self.carried
        kept = functions.when(~changed.eqNullSafe(functions.lit(True)), frame[version]).alias(version)
        return [frame[row_id], kept]

    @property
    def applied_already(self) -> bool:
        """Whether this version of the application, or a later one, is already committed; then nothing is to do."""
        if self.options.transaction is None:
            return False
        app_id, version = self.options.transaction
        current = self.txn.transaction_version(app_id)
        if current is None or current < version:
            return False
        logger.info("%s: version %d of the application %s is applied already: skipped", self.txn.table, version, app_id)
        return True

    def check_removable(self) -> None:
        """Raise AppendOnlyTableError if `delta.appendOnly` is true. Called before any work is done."""
        if properties.TableProperties.of(self.txn.metadata).append_only:
            raise AppendOnlyTableError(
                f"The table {self.txn.table} is append-only (delta.appendOnly=true): its rows can't be deleted or "
                "replaced. To allow this, set delta.appendOnly to false.",
                condition="DELTA_CANNOT_MODIFY_APPEND_ONLY",
                parameters={"table_name": self.txn.table, "config": "delta.appendOnly"},
            )

    def rows(
        self,
        numbers: pa.Array,
        *,
        file_number: str | None = None,
        row_index: str | None = None,
        rewritten: bool = False,
    ) -> DataFrame:
        """The rows of some files, with the table's columns and the columns `carried`.

        `numbers` are indexes in `snapshot.files`. `file_number` is the name of an extra column with the index of the
        row's file in `numbers`; `row_index` is the name of one with the row's index in its data file (bigint).
        `rewritten`: the files are rewritten, so Spark evaluates filters on each row (`scan.without_pushdown`).
        """
        frame = self._cached_rows(numbers.cast(pa.int64()), file_number, row_index)
        return scan.without_pushdown(frame) if rewritten else frame

    def _cached_rows(self, numbers: pa.Array, file_number: str | None, row_index: str | None) -> DataFrame:
        if file_number is None and row_index is None and self._last is not None and self._last[0].equals(numbers):
            _, name, frame = self._last  # reuses the file listing in the JVM: saves about 0.1 s
            return frame.drop(name)
        frame = self._rows(numbers, file_number, row_index)
        if self.row_alias is not None:
            frame = frame.alias(self.row_alias)
        if file_number is not None and row_index is None:
            self._last = numbers, file_number, frame
        return frame

    def _rows(self, numbers: pa.Array, file_number: str | None, row_index: str | None) -> DataFrame:
        seen = self.snapshot
        files = seen.files.take(numbers)
        if self.carried:
            return row_ids.frame(
                self.spark,
                self.log,
                row_ids.columns(seen.metadata),
                snapshot=seen,
                files=files,
                file_number=file_number,
                row_index=row_index,
                options=scan.EVERY_ROW,
            )
        return scan.frame(
            self.spark,
            self.log,
            snapshot=seen,
            files=files,
            file_number=file_number,
            row_index=row_index,
            options=scan.EVERY_ROW,
        )

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        *,
        empty: bool = False,
        bulk: BulkActions | None = None,
    ) -> Committed:
        """Commit, and refresh Spark's cache for the table, so that cached frames see the new version.

        The `txn` action of an idempotent command is put before `actions`, unless `actions` is empty and
        `empty` is false. `bulk` removes or replaces files of a large table.
        """
        empty = empty or bulk is not None
        if self.numbered:
            self._move_marks(actions, operation)
        if (actions or empty) and self.options.transaction is not None:
            actions = [SetTransaction(*self.options.transaction, self.log.clock.now_ms()), *actions]
        stage(f"committing {_files_of(actions, bulk)}")
        committed = self.txn.commit(actions, operation, user_metadata=self.options.user_metadata, bulk=bulk)
        stage(f"version {committed.version} is committed")
        note_commit(self.log.table)
        try:
            scan.refresh_cached(self.spark, self.log)
        except Exception as error:  # the commit is complete; a failed refresh doesn't change that
            logger.warning(
                "%s: version %d is committed, but Spark's cached frames of the table could not be refreshed: %s",
                self.log.table, committed.version, error,
            )  # fmt: skip
        for failure, step in _post_commit_steps.items():
            try:
                step(self, committed)
            except Exception:  # the commit is complete, and the next step still runs
                logger.warning(
                    "%s: version %d is committed, but %s", self.log.table, committed.version, failure, exc_info=True
                )
        return committed

    def _move_marks(self, actions: Sequence[Action], operation: Operation) -> None:
        """Stage new high-water marks of identity columns, taken from the statistics of the new files."""
        metadata = self.txn.metadata
        columns = schema.parse_schema(metadata.schema_string)
        updated = rules.moved_marks(
            columns, self.numbered, [action for action in actions if isinstance(action, AddFile)]
        )
        if updated != columns:
            changed = replace(metadata, schema_string=schema.to_json(updated))
            self.txn.set_metadata(changed, replaces_table=operation.replaces_table)

    def keep(self, written: writer.Written) -> writer.Written:
        """Record the written files for cleanup on failure; returns `written`."""
        self.keep_files(written.route, written.names)
        return written

    def keep_files(self, route: WriteRoute, names: Sequence[str]) -> None:
        """Record published files for cleanup on failure; `names` are relative to the table, not URL-encoded."""
        self._written.append((route, list(names)))

    @contextmanager
    def discarded_on_failure(self) -> Iterator[None]:
        """Delete the recorded files if the command fails, unless its commit succeeded or may have succeeded.

        At the end, close `resources`.
        """
        with self.resources:
            try:
                yield
            except BaseException:
                # Only this command's own transaction counts. An interrupt during a post-commit step (auto compaction)
                # reports no commit of that step, while these files are already part of the table.
                if not self.txn.may_be_committed:
                    self._discard()
                raise

    def _discard(self) -> None:
        for route, names in self._written:
            with cleanup.errors_logged(self.log.table, "command"):
                route.remove(names)
        self._written.clear()


def _files_of(actions: Sequence[Action], bulk: BulkActions | None) -> str:
    added = sum(isinstance(action, AddFile) for action in actions)
    removed = sum(isinstance(action, RemoveFile) for action in actions)
    if bulk is not None:
        added, removed = added + bulk.num_added, removed + bulk.num_removed
    return f"{files_text(added)} added, {files_text(removed)} removed"


PostCommitStep = Callable[[Command, Committed], None]

_post_commit_steps: dict[str, PostCommitStep] = {}


def register_post_commit_step(failure: str, step: PostCommitStep) -> None:
    """Register `step` to run after each commit of a command; `failure` is the text logged if the step fails.

    The package `tablelog.dml` registers the steps on import, because they are commands and depend on this module.
    """
    _post_commit_steps[failure] = step
