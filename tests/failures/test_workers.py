"""Python workers killed in their tasks: what is tried again leaves no trace, and what fails for good leaves nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from support.commands import KINDS, ROWS, copy_of, made, nothing_is_left_behind, rows_of
from support.spark_tables import Table
from support.table_work import by_route
from tablelog.engine.write.routes import arrow

TRIES = 3
ROUTES = ["native", "arrow"]


@pytest.fixture(scope="module")
def base(spark, tmp_path_factory) -> Table:
    return made(spark, tmp_path_factory.mktemp("workers"))


@pytest.fixture(params=ROUTES)
def table(base, conf, request) -> Table:
    for key, value in by_route(request.param).items():
        conf(key, value)
    return copy_of(base, f"{request.node.name}")


def deadly(kills: int) -> Callable[[Any], Any]:
    """A function for rows, at one of which the worker dies in the first `kills` tries of the task."""

    def same(value: Any) -> Any:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        if value == 2 and context.attemptNumber() < kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    return same


def rows(table: Table, kills: int) -> DataFrame:
    """Four rows of two tasks, one of which dies with a row of its own on its way into a file."""
    same = F.udf(deadly(kills), LongType())
    return table.spark.range(0, 4, 1, 2).select((same("id") + 300).alias("id"), F.lit(0).alias("p"))


NEW = tuple((300 + i, 0) for i in range(4))
COMMANDS: dict[str, Callable[[Table, int], None]] = {
    "append": lambda t, kills: t.write(rows(t, kills)),
    "overwrite": lambda t, kills: t.write(rows(t, kills), "overwrite"),
    "merge": lambda t, kills: (
        t.delta.alias("t")
        .merge(rows(t, kills).alias("s"), "t.id = s.id AND t.p = s.p")
        .whenNotMatchedInsertAll()
        .execute()
    ),
    "update": lambda t, kills: t.delta.update("p = 0", {"id": F.udf(deadly(kills), LongType())("id") + 0}),
}
LEAVES = {"append": (*ROWS, *NEW), "overwrite": NEW, "merge": (*ROWS, *NEW), "update": ROWS}


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_in_two_tries(table, name):
    COMMANDS[name](table, TRIES - 1)
    assert rows_of(table) == LEAVES[name]
    nothing_is_left_behind(table)


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_in_every_try(table, name):
    version = table.version
    with pytest.raises(Exception, match=r"crashed|Python worker|exited unexpectedly"):
        COMMANDS[name](table, TRIES)
    assert table.version == version
    assert rows_of(table) == ROWS
    nothing_is_left_behind(table)
    COMMANDS[name](table, 0)
    assert rows_of(table) == LEAVES[name]


@pytest.mark.parametrize("kills", [TRIES - 1, TRIES])
def test_a_worker_that_has_written_its_file(base, conf, monkeypatch, kills):
    """It dies between the upload of a file and its answer: the file is one that the table never gets."""
    for key, value in by_route("arrow").items():
        conf(key, value)
    table = copy_of(base, f"uploaded {kills}")
    task = arrow._task

    def killing(plan: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
        run = task(plan)

        def killed(batches: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            context: Any = TaskContext.get()
            for done in run(batches):
                if context.partitionId() == 1 and context.attemptNumber() < kills:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield done

        return killed

    monkeypatch.setattr(arrow, "_task", killing)
    frame = table.spark.range(300, 304, 1, 2).repartition(2).selectExpr("id", "0 p")
    version = table.version
    if kills < TRIES:
        table.write(frame)
        assert rows_of(table) == (*ROWS, *NEW)
    else:
        with pytest.raises(Exception, match=r"crashed|Python worker|exited unexpectedly"):
            table.write(frame)
        assert (table.version, rows_of(table)) == (version, ROWS)
    nothing_is_left_behind(table)
    assert KINDS["append"].run(table) is None
