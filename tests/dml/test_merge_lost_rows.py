"""MERGE when executors lose the stored rows of its source: it starts again, with each row on two executors."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from support.spark_tables import Table
from tablelog.dml.merge import source as merge_source
from tablelog.dml.merge import write as merge_write
from tablelog.engine.sql import stored_frame
from tablelog.spark.exceptions import SourceRowsLostError


@pytest.fixture
def table(spark, tmp_path) -> Table:
    table = Table(spark, tmp_path / "table")
    table.write(spark.range(6).selectExpr("id", "id * 10 v"))
    return table


class Loss:
    """Makes `StoredFrame` lose its rows: those of the frames whose number, in the order of creation, `lost` names."""

    def __init__(self, lost: Callable[[int], bool]) -> None:
        self.replicated: list[bool] = []
        self._lost = lost

    def frame(self, frame: DataFrame, *, replicated: bool = False) -> Any:
        self.replicated.append(replicated)
        stored = stored_frame.StoredFrame(frame, replicated=replicated)
        if self._lost(len(self.replicated)):
            stored.release("the rows of a test")
        return stored


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], bool]], Loss]:
    def install(lost: Callable[[int], bool]) -> Loss:
        loss = Loss(lost)
        for module in (merge_source, merge_write):
            monkeypatch.setattr(module, "StoredFrame", loss.frame)
        return loss

    return install


def upsert(table: Table) -> Any:
    rows = table.spark.range(4, 9).selectExpr("id", "-id v").repartition(2).alias("s")
    merge = table.delta.alias("t").merge(rows, "t.id = s.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


MERGED = [(0, 0), (1, 10), (2, 20), (3, 30), (4, -4), (5, -5), (6, -6), (7, -7), (8, -8)]


def test_nothing_is_lost(table, losing):
    loss = losing(lambda number: False)
    upsert(table)
    assert table.rows() == MERGED
    assert loss.replicated == [False]


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, 3])
def test_it_starts_again(table, losing, caplog, attempts):
    loss = losing(lambda number: number <= attempts)
    upsert(table)
    assert table.rows() == MERGED
    assert table.version == 1
    assert loss.replicated == [False] + attempts * [True]
    assert f"attempt {attempts + 1} of 4 stores each row on two of them" in caplog.text
    assert table.data_files() == table.logged_files()


@pytest.mark.slow
def test_rows_of_the_change_data_are_lost(table, losing):
    table.spark.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    loss = losing(lambda number: number == 2)  # the second frame has the new rows, written as data and as changes
    upsert(table)
    assert table.rows() == MERGED
    assert loss.replicated == [False, False, True, True]
    changes = table.read(readChangeFeed=True, startingVersion=table.version)
    assert changes.groupBy("_change_type").count().orderBy("_change_type").collect() == [
        ("insert", 3),
        ("update_postimage", 2),
        ("update_preimage", 2),
    ]


def test_it_gives_up_at_last(table, losing):
    losing(lambda number: True)
    with pytest.raises(SourceRowsLostError, match="each of 4 attempts") as raised:
        upsert(table)
    assert raised.value.getCondition() == "DELTA_MERGE_MATERIALIZE_SOURCE_FAILED_REPEATEDLY"
    assert table.version == 0
    assert table.data_files() == table.logged_files()
