"""What every command does around its Spark jobs: Ctrl-C ends them and says what is committed, files of a failure go."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions

from ...core.deltalog import DeltaLog
from ...core.protocol import properties, row_tracking, rules, schema
from ...core.protocol.actions import Action, AddFile, SetTransaction
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...core.txn.record import recorded
from ...core.txn.transaction import Committed, Transaction
from ...engine.jvm import interrupts
from ...engine.read import row_ids, scan
from ...engine.write import large_checkpoint, writer
from ...engine.write.routes import Placement
from ...errors import AppendOnlyTableError, CommandInterrupted, TableNotFoundError, committed_text
from .hidden_names import HiddenNames

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """What a user may say of the commit of any command.

    `transaction` is (application, version) of an idempotent command (PROTOCOL.md, "Transaction Identifiers").
    """

    user_metadata: str | None = None
    transaction: tuple[str, int] | None = None


PLAIN = CommitOptions()
"""The options of a commit of which nothing is said."""


@contextmanager
def command_scope(spark: SparkSession, operation: str, table: str) -> Iterator[None]:
    """Run a command: tag its Spark jobs and note its commits, so that whatever ends it early can say what they are.

    On Ctrl-C the jobs are cancelled, and CommandInterrupted says what is committed. Another error of a command that has
    committed something gets a note that says so.
    """
    handled = sys.exc_info()[1]
    with interrupts.tagged(spark, "tablelog") as tag, recorded() as records:
        try:
            yield
        except BaseException as error:
            commits = tuple((record.version, record.operation) for record in records if record.committed)
            if interrupts.is_behind(error, handled):
                interrupts.stop(spark, tag)
                unknown = next(((one.version, one.token) for one in records if one.committed is None), None)
                interrupt = CommandInterrupted(operation, table, commits, unknown)
                logger.warning("%s", interrupt)
                raise interrupt from None
            if commits:
                error.add_note(f"{operation} did not end, but {committed_text(table, commits)}.")
            raise


class Command:
    """One command on one table: its session, handle and transaction, and the data files that it has written."""

    def __init__(self, spark: SparkSession, log: DeltaLog, txn: Transaction, options: CommitOptions = PLAIN) -> None:
        self.spark = spark
        self.log = log
        self.txn = txn
        txn.sidecar_writer = partial(large_checkpoint.sidecars, spark, log)
        self.options = options
        self.numbered: set[str] = set()
        """Identity columns whose values this command has made: the commit moves their high-water marks."""
        self._written: list[tuple[Placement, list[str]]] = []
        self._last: tuple[pa.Array, str, DataFrame] | None = None
        """The files whose rows were asked for last with the number of their file, its column, and the frame."""

    @classmethod
    def on(cls, spark: SparkSession, log: DeltaLog, options: CommitOptions = PLAIN) -> "Command":
        """A command on a table that has to be there: TableNotFoundError."""
        txn = log.transaction()
        if txn.snapshot is None:
            raise TableNotFoundError(
                f"There is no Delta table at {log.table}.",
                condition="DELTA_TABLE_NOT_FOUND",
                parameters={"tableName": log.table},
            )
        return cls(spark, log, txn, options)

    @property
    def snapshot(self) -> Snapshot:
        """The table as the transaction reads it; there is one."""
        assert self.txn.snapshot is not None
        return self.txn.snapshot

    @property
    def column_names(self) -> frozenset[str]:
        """What the table's columns are called, by its users and in its data files."""
        return scan.columns_of(self.snapshot) | set(self.carried)

    @cached_property
    def names(self) -> HiddenNames:
        """The names of columns that the command adds to the table's."""
        return HiddenNames.beside(self.column_names)

    def name_beside(self, source: Iterable[str]) -> None:
        """Have `names` differ also from the columns of the command's source; before any of them is used."""
        self.names = HiddenNames.beside({*self.column_names, *source})

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """Columns of `rows` beside the table's that a command passes on with each row that it writes again: id and
        version of the row where the table tracks them, as its data files call them.

        They are null for a new row; `passed_on` says what they are for one that changed.
        """
        seen = self.txn.snapshot
        if seen is None or not row_tracking.enabled(seen.protocol, seen.metadata):
            return ()
        return row_ids.columns(seen.metadata)

    def passed_on(self, frame: DataFrame, changed: Column) -> list[Column]:
        """The columns `carried` of the rows of `frame`, of which those are changed for which `changed` is TRUE: these
        keep their id, and get the version of the commit.
        """
        if not self.carried:
            return []
        row_id, version = self.carried
        kept = functions.when(~changed.eqNullSafe(functions.lit(True)), frame[version]).alias(version)
        return [frame[row_id], kept]

    @property
    def applied_already(self) -> bool:
        """Whether the application's version, or a later one, is in the table: then there is nothing to do."""
        if self.options.transaction is None:
            return False
        app_id, version = self.options.transaction
        current = self.txn.transaction_version(app_id)
        if current is None or current < version:
            return False
        logger.info("%s: version %d of the application %s is applied already: skipped", self.txn.table, version, app_id)
        return True

    def check_removable(self) -> None:
        """AppendOnlyTableError where the table forbids to remove data; told before any work is done."""
        if properties.TableProperties.of(self.txn.metadata).append_only:
            raise AppendOnlyTableError(
                f"The table {self.txn.table} is append-only (delta.appendOnly=true): rows can't be removed or "
                "replaced. Unset the property first if that is what you want.",
                condition="DELTA_CANNOT_MODIFY_APPEND_ONLY",
                parameters={"table_name": self.txn.table, "config": "delta.appendOnly"},
            )

    def rows(self, numbers: pa.Array, *, file_number: str | None = None, row_index: str | None = None) -> DataFrame:
        """The rows of some files (by their rows in `snapshot.files`) as the table has them, with what is `carried`.

        `file_number` names one more column: where in `numbers` the file of a row stands. `row_index` names another:
        the row's place in its data file (bigint).
        """
        numbers = numbers.cast(pa.int64())
        if file_number is None and row_index is None and self._last is not None and self._last[0].equals(numbers):
            _, name, frame = self._last  # Spark's JVM has a listing of these files: some 0.1 s less
            return frame.drop(name)
        frame = self._rows(numbers, file_number, row_index)
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
            )
        return scan.frame(
            self.spark, self.log, snapshot=seen, files=files, file_number=file_number, row_index=row_index
        )

    def commit(self, actions: Sequence[Action], operation: Operation) -> Committed:
        """Commit, and have Spark forget what it cached of the table, so that cached frames see the new version.

        The `txn` action of an idempotent command is put before `actions`, unless there are none.
        """
        if self.numbered:
            self._move_marks(actions, operation)
        if actions and self.options.transaction is not None:
            actions = [SetTransaction(*self.options.transaction, self.log.clock.now_ms()), *actions]
        committed = self.txn.commit(actions, operation, user_metadata=self.options.user_metadata)
        try:
            scan.refresh_cached(self.spark, self.log)
        except Exception as error:  # the commit stands, whatever becomes of Spark's cache
            logger.warning(
                "%s: version %d is committed, but Spark's cached frames of the table could not be refreshed: %s",
                self.log.table, committed.version, error,
            )  # fmt: skip
        for failure, step in _post_commit_steps.items():
            try:
                step(self, committed)
            except Exception:  # the commit stands, and the next step runs
                logger.warning(
                    "%s: version %d is committed, but %s", self.log.table, committed.version, failure, exc_info=True
                )
        return committed

    def _move_marks(self, actions: Sequence[Action], operation: Operation) -> None:
        """Stage the identity columns' high-water marks that the new files ask for."""
        metadata = self.txn.metadata
        columns = schema.parse_schema(metadata.schema_string)
        moved = rules.moved_marks(columns, self.numbered, [one for one in actions if isinstance(one, AddFile)])
        if moved != columns:
            changed = replace(metadata, schema_string=schema.to_json(moved))
            self.txn.set_metadata(changed, replaces_table=operation.replaces_table)

    def keep(self, written: writer.Written) -> writer.Written:
        """Note what was written; returns it."""
        self.keep_files(written.placement, written.names)
        return written

    def keep_files(self, placement: Placement, names: Sequence[str]) -> None:
        """Note files that were published by a placement, by their names in the table, not encoded."""
        self._written.append((placement, list(names)))

    @contextmanager
    def discarded_on_failure(self) -> Iterator[None]:
        """Remove the files when the command fails, unless they are, or may be, part of the table."""
        try:
            yield
        except BaseException:
            # This command's own transaction decides: an interrupt of what runs after its commit (compaction) says
            # that nothing was committed by that, and these files are part of the table.
            if not self.txn.may_be_committed:
                self._discard()
            raise

    def _discard(self) -> None:
        for placement, names in self._written:
            placement.remove(names)
        self._written.clear()


PostCommitStep = Callable[[Command, Committed], None]

_post_commit_steps: dict[str, PostCommitStep] = {}


def register_post_commit_step(failure: str, step: PostCommitStep) -> None:
    """Have `step` run after each commit of a command; `failure` is what is logged where it fails.

    The package `tablelog.dml` registers its steps when it is imported: they are commands themselves, above this module.
    """
    _post_commit_steps[failure] = step
