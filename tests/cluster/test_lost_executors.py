"""An executor is killed in the midst of a command: the work goes on elsewhere, and leaves no trace of what was lost."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from support.commands import ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.copied_streams import copied_by_streams
from support.spark_tables import Table
from support.table_work import by_route, settings

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors don't have the tests


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("lost"))


@pytest.fixture(params=["native", "arrow"])
def table(base: Table, request: pytest.FixtureRequest) -> Iterator[Table]:
    with settings(base.spark, by_route(request.param)):
        yield copy_of(base, request.node.name)


def kill_own_executor() -> None:
    """End the JVM that this Python worker belongs to: the worker's parent is a daemon, whose parent the JVM is."""
    daemon = os.getppid()
    fields = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(fields[1]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def killing(mark: str) -> Callable[[Any], Any]:
    """The same value; the first task that comes to the value 2 kills its executor, and says so by a file `mark`."""

    def same(value: Any) -> Any:
        if value == 2:
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            kill_own_executor()
        return value

    return same


def rows(table: Table, mark: Path) -> DataFrame:
    """Four rows of two tasks, of which one loses its executor with a row on its way into a file."""
    same = F.udf(killing(str(mark)), LongType())
    return table.spark.range(0, 4, 1, 2).select((same("id") + 300).alias("id"), F.lit(0).alias("p"))


NEW = tuple((300 + i, 0) for i in range(4))
COMMANDS: dict[str, Callable[[Table, Path], Any]] = {
    "append": lambda t, mark: t.write(rows(t, mark)),
    "overwrite": lambda t, mark: t.write(rows(t, mark), "overwrite"),
    "merge": lambda t, mark: (
        t.delta.alias("t")
        .merge(rows(t, mark).alias("s"), "t.id = s.id AND t.p = s.p")
        .whenNotMatchedInsertAll()
        .execute()
    ),
    "merge values": lambda t, mark: (
        t.delta.alias("t")
        .merge(
            t.spark.range(300, 304, 1, 2).selectExpr("id", "0 p").repartition(2).alias("s"), "t.id = s.id AND t.p = s.p"
        )
        .whenNotMatchedInsert(
            values={"id": F.udf(killing(str(mark)), LongType())(F.expr("s.id - 300")) + 300, "p": "s.p"}
        )
        .execute()
    ),
    "update": lambda t, mark: t.delta.update("p = 0", {"id": F.udf(killing(str(mark)), LongType())("id") + 0}),
}
LEAVES = {
    "append": (*ROWS, *NEW),
    "overwrite": NEW,
    "merge": (*ROWS, *NEW),
    "merge values": (*ROWS, *NEW),
    "update": ROWS,
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.smoke if n == "append" else ()) for n in COMMANDS])
def test_an_executor_is_killed(table: Table, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "killed"
    COMMANDS[name](table, mark)
    assert mark.exists()
    assert rows_of(table) == tuple(sorted(LEAVES[name]))
    nothing_is_left_behind(table)
    assert sorted(tuple(row) for row in table.read().collect()) == sorted(LEAVES[name])


def test_executors_are_killed_in_batches_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    """In one batch of each stream: of rows, of changes, and of a MERGE by `foreachBatch`."""
    marks: list[Path] = []

    def passed(column: Column) -> Column:
        marks.append(tmp_path / f"killed {len(marks)}")
        return F.udf(killing(str(marks[-1])), LongType())(column)

    copied_by_streams(spark, f"file://{tmp_path}/source", tmp_path / "checkpoints", passed)
    assert sum(mark.exists() for mark in marks) >= 3
