"""What the programs that `spark-submit` runs have in common: they find only tablelog and this folder."""

import logging

from pyspark.sql import SparkSession

from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.settings.declarations import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from tablelog.spark import conf


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def warnings_kept() -> list[str]:
    """tablelog's warnings from now on."""
    kept = _Kept()
    logging.getLogger("tablelog").addHandler(kept)
    return kept.messages


def check_planned_by_executors(spark: SparkSession, path: str, count: int) -> None:
    """The log of `path` counts as large; `count` of its rows have an id of at least 5."""
    checkpoint._AT_ONCE = 0
    DeltaLog.for_path(path).checkpoint()
    conf.forget()
    spark.conf.set(LOG_DRIVER_BYTES.key, "0")
    spark.conf.set(SNAPSHOT_PARTITIONS.key, "2")
    assert spark.read.format("delta").load(path).where("id >= 5").count() == count
    base = conf.delta_log(path, conf.session_conf(spark, path)).snapshot().base
    assert base is not None
    assert not base.loaded, "executors should have planned the query"
