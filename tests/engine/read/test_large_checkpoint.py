"""The V2 checkpoint of a large log, which Spark's executors write: it holds what the driver's holds."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog, Snapshot
from tablelog.core.log_maintenance.checkpoint_parquet import NO_BOUND
from tablelog.core.log_maintenance.checkpoint_rows import CheckpointLayout, layout
from tablelog.core.log_maintenance.checkpoint_writer import Sidecars
from tablelog.core.protocol.actions import Action
from tablelog.engine.read import large_log
from tablelog.engine.write import large_checkpoint
from tablelog.logstore.data_files import DataFiles
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE
from tablelog.spark import conf

from .large_logs import V2_KINDS, changes, made

SIDECARS = "_delta_log/_sidecars"


def told(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """All that a version says of its files and tombstones, in an order of their own."""
    adds = [replace(add, data_change=False) for add in snapshot.add_files()]
    files = [replace(add, stats=None if add.stats is None else json.dumps(json.loads(add.stats))) for add in adds]
    return sorted(map(str, files)), sorted(map(str, snapshot.tombstones.drop_columns("dataChange").to_pylist()))


@settings(max_examples=12)
@given(changes, changes, st.sampled_from(V2_KINDS), st.integers(1, 5), st.sampled_from([1, 2, NO_BOUND]))
def test_tasks_and_the_driver_write_the_same(
    tmp_path_factory: pytest.TempPathFactory, before: Any, after: Any, kind: str, tasks: int, most: int
) -> None:
    live: dict[int, Action] = {}
    builder = made(tmp_path_factory.mktemp("log"), before, after, kind, live)
    log = builder.log()
    snapshot = log.snapshot()
    assert snapshot.base is not None
    if not snapshot.base.files:
        return  # a checkpoint of no file is never large
    used: list[Sidecars] = []

    def by_tasks(snapshot: Snapshot, layout: CheckpointLayout) -> Sidecars:
        reading = large_log.reading_in(log, snapshot, tasks)
        work = large_checkpoint.Writing(reading, DataFiles.of(log.log_path, log.conf, {}), layout, most)
        numbers = [pa.record_batch([pa.array([number])], names=["id"]) for number in range(len(reading.tasks))]
        rows = pa.Table.from_batches([rows for one in numbers for rows in work(iter([one]))])
        assert rows.column("trouble").null_count == rows.num_rows
        used.append(large_checkpoint.put_together(log, rows))
        return used[0]

    hint = log.checkpoint(snapshot, sidecar_writer=by_tasks)
    assert not snapshot.base.loaded
    assert hint.num_of_add_files == len(live)
    assert len(used) == 1
    fresh = builder.log().snapshot()
    assert fresh.base is not None
    assert fresh.base.version == snapshot.version
    assert told(fresh) == told(snapshot)


# --- through Spark ----------------------------------------------------------------------------------------------------


@pytest.fixture
def large(spark: SparkSession, table: Table) -> Table:
    """Version 3, whose checkpoint has two sidecars; the next version that is divided by 5 gets another."""
    rows = spark.range(40).select("id", (F.col("id") % 4).alias("p"))
    table.write(rows, by=("p",), **{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "5"})
    for start in (100, 200, 300):
        table.write(spark.range(start, start + 4).select("id", F.lit(start).alias("p")))
    log = DeltaLog.for_path(table.path, conf={CHECKPOINT_PART_SIZE.key: "4"})
    log.checkpoint()
    conf.forget()
    return table


def sidecars(table: Table) -> set[str]:
    return {file.name for file in (table.root / SIDECARS).iterdir()}


def test_a_commit_has_spark_write_the_checkpoint(spark: SparkSession, large: Table, by_spark: None) -> None:
    before = sidecars(large)
    large.delta.delete("p = 100")  # of the metadata alone, yet with a list of the files
    conf.forget()
    large.write(spark.range(500, 501).select("id", F.lit(1).alias("p")))
    assert large.version == 5
    handle = conf.delta_log(large.path, conf.session_conf(spark, large.path))
    base = handle.snapshot().base
    assert base is not None
    assert (base.version, base.loaded) == (3, False)
    assert len(sidecars(large) - before) == 3  # one of each task, and the driver's for what came after
    fresh = DeltaLog.for_path(large.path).snapshot()
    assert fresh.base is not None
    assert fresh.base.version == 5
    assert fresh.tombstones.num_rows == 1
    expected = sorted([*range(40), *range(200, 204), *range(300, 304), 500])
    assert large.rows("id") == expected
    conf.forget()
    assert large.read().where("id >= 300").count() == 5  # planned by Spark over what it wrote


def test_the_driver_writes_it_where_spark_cannot(
    spark: SparkSession, large: Table, by_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fails(self: large_log.Reading, *_: object) -> None:
        asked.append(self.table)

    before = sidecars(large)
    large.write(spark.range(400, 401).select("id", F.lit(1).alias("p")))
    monkeypatch.setattr(large_log.Reading, "run", fails)
    large.write(spark.range(500, 501).select("id", F.lit(1).alias("p")))
    assert len(asked) == 1
    assert len(sidecars(large) - before) == 1
    fresh = DeltaLog.for_path(large.path).snapshot()
    assert fresh.base is not None
    assert (fresh.base.version, fresh.num_files) == (5, 9)


def test_trouble_in_a_task_is_told_with_the_sidecars_that_are_there(large: Table) -> None:
    log = DeltaLog.for_path(large.path)
    snapshot = log.snapshot()
    reading = large_log.reading_in(log, snapshot, 2)
    (large.root / SIDECARS / reading.tasks[0][0].path.rpartition("/")[2]).write_bytes(b"PAR1, it says")
    work = large_checkpoint.Writing(reading, DataFiles.of(log.log_path, {}, {}), layout(snapshot), NO_BOUND)
    (rows,) = work(iter([pa.record_batch([pa.array([0])], names=["id"])]))
    assert "DamagedCheckpointError" in rows.column("trouble")[-1].as_py()
