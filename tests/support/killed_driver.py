"""`python -m support.killed_driver <table> <kind> <point> <whom>`: a driver that kills itself in a command's midst.

`whom` is `python`, whose JVM lives on for a while and may still write, or `all`: both at once.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.commands import KINDS
from support.sessions import session_builder
from support.spark_tables import Table
from tablelog.core.txn import transaction
from tablelog.core.txn.transaction import Transaction
from tablelog.engine.storage.table_files import LocalFiles
from tablelog.engine.write import deletion_vector_writer, writer
from tablelog.engine.write.routes.local import LocalRoute
from tablelog.spark import enable

TASKS_WRITE = "while tasks write"


def session(scratch: str, *, tries: int) -> SparkSession:
    settings = {"spark.sql.warehouse.dir": f"{scratch}/warehouse", "spark.local.dir": f"{scratch}/local"}
    return session_builder(f"local[2,{tries}]", settings).getOrCreate()


def _instead(where: Any, name: str, die: Callable[[], None], *, nth: int = 1) -> None:
    """Die when the function is called for the n-th time."""
    function, calls = getattr(where, name), [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            die()
        return function(*args, **kwargs)

    setattr(where, name, call)


def _points(die: Callable[[], None]) -> dict[str, Callable[[], None]]:
    def after_reading() -> None:
        _instead(writer, "write_files", die)
        _instead(deletion_vector_writer, "write", die)

    return {
        "after reading": after_reading,
        "when files are staged": lambda: _instead(LocalRoute, "publish", die),
        "when one file is in place": lambda: _instead(os, "rename", die, nth=2),
        "before committing": lambda: _instead(Transaction, "commit", die),
        "as the commit is put": lambda: _instead(os, "link", die),
        "after the commit": lambda: _instead(transaction, "after_commit", die),
        "when files are deleted": lambda: _instead(LocalFiles, "remove_directories", die),
    }


def _write_slowly(table: Table, die: Callable[[], None]) -> None:
    """An append of two tasks, of which one has written its file when the other one kills the driver."""

    def rows(batches: Any) -> Any:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        for batch in batches:
            if context.partitionId() == 1:
                die()
            yield batch

    frame = table.spark.range(0, 4, 1, 2).mapInArrow(rows, "id bigint").selectExpr("id", "0 p")
    table.write(frame)


def main(path: str, kind: str, point: str, whom: str) -> None:
    spark = session(f"{path}-spark", tries=1)
    enable(spark)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    me, group = os.getpid(), os.getpgrp()

    def die() -> None:
        if whom == "all":
            os.killpg(group, signal.SIGKILL)
        os.kill(me, signal.SIGKILL)

    table = Table(spark, Path(path))
    jvm: Any = spark._jvm  # type: ignore[attr-defined]
    print(jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    if point == TASKS_WRITE:
        _write_slowly(table, die)
    else:
        _points(die)[point]()
        KINDS[kind].run(table)


if __name__ == "__main__":
    main(*sys.argv[1:])
