"""What every command does around its Spark jobs: Ctrl-C ends them and is told apart, files of a failure go away."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import SparkSession

from ..core.deltalog import DeltaLog
from ..core.protocol.actions import Action
from ..core.table.snapshot import Snapshot
from ..core.txn.operation import Operation
from ..core.txn.transaction import Committed, Transaction
from ..engine import interrupts, scan, writer
from ..errors import CommitInterrupted, CommitStateUnknownError

logger = logging.getLogger(__name__)


@contextmanager
def jobs(spark: SparkSession, operation: str, table: str) -> Iterator[None]:
    """Tag the Spark jobs of a command; on Ctrl-C cancel them and say that nothing was committed.

    An interrupt during the commit itself is the transaction's to explain (CommitInterrupted).
    """
    tag = f"tablelog-{uuid4().hex}"
    context = spark.sparkContext
    context.addJobTag(tag)
    try:
        with interrupts.raised():
            yield
    except CommitInterrupted as interrupt:
        logger.warning("%s on %s: %s", operation, table, interrupt)
        raise
    except BaseException as error:
        if not interrupts.is_behind(error):
            raise
        interrupts.stop(spark, tag)
        message = f"{operation} on {table} was interrupted: its Spark jobs are cancelled and nothing was committed."
        logger.warning(message)
        raise KeyboardInterrupt(message) from None
    finally:
        context.removeJobTag(tag)


class Work:
    """One command on one table: its session, handle and transaction, and the data files that it has written."""

    def __init__(self, spark: SparkSession, log: DeltaLog, txn: Transaction) -> None:
        self.spark = spark
        self.log = log
        self.txn = txn
        self._written: list[writer.Written] = []

    @property
    def snapshot(self) -> Snapshot:
        """The table as the transaction reads it; there is one."""
        assert self.txn.snapshot is not None
        return self.txn.snapshot

    def commit(self, actions: Sequence[Action], operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit, and have Spark forget what it cached of the table, so that cached frames see the new version."""
        committed = self.txn.commit(actions, operation, user_metadata=user_metadata)
        try:
            scan.refresh_cached(self.spark, self.log)
        except Exception as error:  # the commit stands, whatever becomes of Spark's cache
            logger.warning(
                "%s: version %d is committed, but Spark's cached frames of the table could not be refreshed: %s",
                self.log.table, committed.version, error,
            )  # fmt: skip
        return committed

    def keep(self, written: writer.Written) -> writer.Written:
        """Note what was written; returns it."""
        self._written.append(written)
        return written

    @contextmanager
    def discarded_on_failure(self) -> Iterator[None]:
        """Remove the files when the command fails, unless they are, or may be, part of the table."""
        try:
            yield
        except CommitStateUnknownError:
            raise
        except CommitInterrupted as interrupt:
            if interrupt.committed is False:
                self._discard()
            raise
        except BaseException:
            if not self.txn.may_be_committed:
                self._discard()
            raise

    def _discard(self) -> None:
        for written in self._written:
            writer.discard(written)
        self._written.clear()
