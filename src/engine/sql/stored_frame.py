"""A frame that is computed once and stored on the executors."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from ..jvm.connection.frames import analyzed
from ..jvm.connection.java_errors import conditions
from ..jvm.connection.messages import chain
from ..jvm.connection.sessions import scala_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


class StoredFrame:
    """A frame computed once and stored on the executors. If they lose rows, reads fail: nothing is computed again.

    `replicated` stores each row on two executors.
    """

    def __init__(self, frame: "DataFrame", *, replicated: bool = False) -> None:
        self._spark = frame.sparkSession
        level = StorageLevel.MEMORY_AND_DISK_2 if replicated else StorageLevel.MEMORY_AND_DISK
        self.frame = frame.localCheckpoint(eager=True, storageLevel=level)
        self._rdd = analyzed(self.frame).rdd()

    @property
    def bytes(self) -> int:
        """The memory and disk space that all copies use, in bytes."""
        infos = scala_context(self._spark).getRDDStorageInfo()
        return sum(int(info.memSize() + info.diskSize()) for info in infos if info.id() == self._rdd.id())

    def release(self, rows: str) -> None:
        """Remove the rows from Spark's cache; `rows` names them, with the table, in the warning of a failure."""
        # `RDD.unpersist` would warn that a locally checkpointed RDD can't be recomputed.
        release(lambda: scala_context(self._spark).unpersistRDD(self._rdd.id(), False), rows)


def release(unpersist: Callable[[], object], rows: str) -> None:
    """Remove `rows` from Spark's cache. A failure only warns: the command has an error of its own, or is committed."""
    try:
        unpersist()
    except Exception as error:
        logger.warning("%s stay in Spark's cache until Spark evicts them: %s", rows, error)


def is_lost(error: BaseException) -> bool:
    """Whether a read failed because the executors have lost rows of a `StoredFrame`."""
    return any(
        condition == "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND" for part in chain(error) for condition, _ in conditions(part)
    )
