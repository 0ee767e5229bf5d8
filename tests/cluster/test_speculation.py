"""Spark runs slow tasks twice: both attempts may write, and each row is in the table once."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from support.commands import ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.spark_tables import Table
from support.table_work import by_route, settings

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors don't have the tests

SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.task.duration.threshold": "500ms",  # of a stage of one task
    "spark.speculation.efficiency.enabled": "false",
}
_MOST_SECONDS = 30.0


def meeting(mark: str) -> Callable[[Any], Any]:
    """The same value; at the value 2 the first attempt of the task waits until the second has come to it too.

    So both go on to write at the same time, and either may win.
    """

    def same(value: Any) -> Any:
        if value == 2:
            with open(mark, "a") as file:
                file.write(f"{os.getpid()}\n")
            until = time.monotonic() + _MOST_SECONDS
            while len(Path(mark).read_text().split()) < 2 and time.monotonic() < until:
                time.sleep(0.005)
        return value

    return same


def met(column: Any, mark: Path) -> Column:
    return F.udf(meeting(str(mark)), LongType())(column)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return made(spark, tmp_path_factory.mktemp("twice"))


@pytest.fixture(params=["native", "arrow"])
def table(base: Table, request: pytest.FixtureRequest) -> Iterator[Table]:
    with settings(base.spark, by_route(request.param)):
        yield copy_of(base, request.node.name)


def rows(table: Table, mark: Path) -> DataFrame:
    """Four rows of two tasks, of which one is slow until it runs twice."""
    return table.spark.range(0, 4, 1, 2).select(
        (met("id", mark) + 300).alias("id"), (F.col("id") % 2).cast("int").alias("p")
    )


def streamed(table: Table, mark: Path) -> None:
    """Copies a table of those rows by a stream, whose batch has the slow task."""
    source = table.beside(f"{table.root.name} source")
    source.write(table.spark.range(0, 4, 1, 2))
    rows = table.spark.readStream.format("delta").load(source.path)
    rows = rows.select((met("id", mark) + 300).alias("id"), (F.col("id") % 2).cast("int").alias("p"))
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{mark}-checkpoint")
    query = writer.trigger(availableNow=True).start(table.path)
    query.awaitTermination()
    assert query.exception() is None


NEW = ((300, 0), (301, 1), (302, 0), (303, 1))
COMMANDS: dict[str, Callable[[Table, Path], Any]] = {
    "append": lambda t, mark: t.write(rows(t, mark)),
    "overwrite": lambda t, mark: t.write(rows(t, mark), "overwrite"),
    "replaceWhere": lambda t, mark: t.write(rows(t, mark).where("p = 0"), "overwrite", replaceWhere="p = 0"),
    "partitions": lambda t, mark: t.write(rows(t, mark).where("p = 0"), "overwrite", partitionOverwriteMode="dynamic"),
    "stream": streamed,
    "merge": lambda t, mark: (
        t.delta.alias("t")
        .merge(rows(t, mark).alias("s"), "t.id = s.id AND t.p = s.p")
        .whenNotMatchedInsertAll()
        .execute()
    ),
    "update": lambda t, mark: t.delta.update("p = 0", {"id": met("id", mark) + 0}),
    "delete by vectors": lambda t, mark: t.delta.delete(met("id", mark) < 0),
}
LEAVES = {
    "append": (*ROWS, *NEW),
    "overwrite": NEW,
    "replaceWhere": (*(row for row in ROWS if row[1] == 1), *(row for row in NEW if row[1] == 0)),
    "partitions": (*(row for row in ROWS if row[1] == 1), *(row for row in NEW if row[1] == 0)),
    "stream": (*ROWS, *NEW),
    "merge": (*ROWS, *NEW),
    "update": ROWS,
    "delete by vectors": ROWS,
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.smoke if n == "append" else ()) for n in COMMANDS])
def test_a_task_runs_twice(table: Table, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "met"
    COMMANDS[name](table, mark)
    assert len(mark.read_text().split()) >= 2
    assert rows_of(table) == tuple(sorted(LEAVES[name]))
    assert sorted(tuple(row) for row in table.read().collect()) == sorted(LEAVES[name])
    nothing_is_left_behind(table)
