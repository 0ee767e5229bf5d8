"""A log too large for the driver: Spark finds the same files, the driver holds only these, and commands work."""

import datetime
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.spark_tables import Table
from tablelog.core import DeltaLog, Snapshot
from tablelog.core.log import checksum, large_commits
from tablelog.core.protocol.actions import Action
from tablelog.core.protocol.schema import LONG, TIMESTAMP, StructField, StructType
from tablelog.core.skipping import predicates as core
from tablelog.engine.read import explain, large_log, scan
from tablelog.errors import ChecksumMismatchError
from tablelog.spark import DeltaTable, conf

from .large_logs import KINDS, changes, made
from .tables import HandMade, files_read

# --- the same answer --------------------------------------------------------------------------------------------------

literals = st.integers(0, 14)
leaves = st.one_of(
    st.builds(
        lambda op, value: core.Compare(op, ("a",), pa.scalar(value, pa.int64())),
        st.sampled_from(["=", "!=", "<", ">=", "<=>"]),
        literals,
    ),
    st.builds(lambda op, v: core.Compare(op, ("x",), pa.scalar(float(v))), st.sampled_from(["<=", ">"]), literals),
    st.builds(lambda value: core.Compare("=", ("p",), pa.scalar(value)), st.sampled_from(["a", "c"])),
    st.builds(core.IsNull, st.sampled_from([("a",), ("p",)])),
    st.just(core.Opaque("?")),
)
conditions = st.recursive(
    leaves,
    lambda inner: (
        st.builds(core.Not, inner)
        | st.builds(core.And, st.tuples(inner, inner))
        | st.builds(core.Or, st.tuples(inner, inner))
    ),
    max_leaves=4,
)


def keys(files: pa.Table) -> list[tuple[str, Any]]:
    vectors = files.column("deletionVector").to_pylist()
    found = zip(files.column("path").to_pylist(), vectors, strict=True)
    return sorted((path, None if vector is None else vector["offset"]) for path, vector in found)


def planned(
    log: DeltaLog, snapshot: Snapshot, condition: core.Predicate, tasks: int, *, texts: bool = False
) -> large_log.PlannedFiles:
    """What the job finds, its tasks one after another in this process."""
    of_values, _ = core.split(condition, ["p"])
    filters = large_log.Filters(of_values, condition, snapshot.schema, ("p",), "UTC")
    reading = large_log.reading_in(log, snapshot, tasks)
    work = large_log.Choosing(reading, filters, core.columns(condition) or None, texts)
    ids = pa.record_batch([pa.array(range(len(reading.tasks)), pa.int64())], names=["id"])
    return large_log.put_together(snapshot, filters, pa.Table.from_batches(work(iter([ids]))), texts=texts)


@settings(max_examples=12)
@given(
    changes,
    changes,
    conditions,
    KINDS,
    st.integers(1, 5),
)
def test_spark_and_the_driver_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, before: Any, after: Any, condition: Any, kind: str, tasks: int
) -> None:
    live: dict[int, Action] = {}
    builder = made(tmp_path_factory.mktemp("log"), before, after, kind, live)
    log = builder.log()
    fresh, known = log.snapshot(), builder.log().snapshot()
    assert fresh.base is not None
    if not fresh.base.files:
        return  # a checkpoint of no file is never large
    found = planned(log, fresh, condition, tasks)
    assert keys(found.files) == keys(known.prune(condition, time_zone="UTC"))
    assert found.total == known.num_files == len(live)
    totals = known.totals()
    assert totals is not None
    assert found.totals == replace(totals, file_counts=(), file_bytes=(), deleted_counts=())
    assert not fresh.base.loaded
    everything = planned(log, fresh, core.TRUE, tasks).files
    rows = known.files.schema.names
    assert sorted(map(str, everything.select(rows).to_pylist())) == sorted(map(str, known.files.to_pylist()))
    told = planned(log, fresh, condition, tasks, texts=True)
    part, mask = fresh.with_files(told.files), known.prune_mask(condition, time_zone="UTC")
    assert not fresh.base.loaded
    assert sorted(map(str, part.add_files())) == sorted(map(str, known.add_files(mask)))
    assert (part.num_files, part.size_in_bytes) == (found.files.num_rows, sum(found.files.column("size").to_pylist()))
    assert part.prune(condition, time_zone="UTC").num_rows == part.num_files
    assert told.totals == found.totals


# --- through Spark ----------------------------------------------------------------------------------------------------


def test_a_query_plans_by_spark(spark: SparkSession, clustered: HandMade, by_spark: None) -> None:
    clustered.log.checkpoint()
    clustered.append(pa.table({"id": pa.array([500], pa.int64()), "s": ["v3"]}), {"p": "1"})
    log = clustered.log
    frame = scan.frame(spark, log)
    # Translated, evaluated by Spark over the partition values, both, and none.
    for condition, files, rows in (
        ("id between 30 and 41", 2, 12),
        ("p % 2 = 1 and id > 150", 4, 30),
        ("true", 21, 201),
    ):
        chosen = frame.where(condition)
        assert files_read(chosen) == f"{files} of 21 files", condition
        assert chosen.count() == rows
    base = log.snapshot().base
    assert base is not None
    assert not base.loaded
    assert explain.describe(frame.where("p = 1 and id > 150")).count("15 files pruned by partition values, 4 by stat")


def test_what_tasks_count_is_compared_with_the_checksum(
    spark: SparkSession, clustered: HandMade, by_spark: None
) -> None:
    log = clustered.log
    log.checkpoint()
    told = checksum.of(log.snapshot(), log.snapshot().totals())
    name = clustered.root / "_delta_log" / f"{log.snapshot().version:020}.crc"
    for wrong, match in (
        (replace(told.totals, num_files=19), "the number of files is 20, the checksum says 19"),
        (replace(told.totals, size_in_bytes=7), "the checksum says 7"),
    ):
        name.write_bytes(checksum.serialise(replace(told, totals=wrong)))
        with pytest.raises(ChecksumMismatchError, match=match):
            scan.frame(spark, clustered.log).where("id < 5").count()
    name.write_bytes(checksum.serialise(told))
    read = clustered.log
    assert scan.frame(spark, read).where("id < 5").count() == 5
    base = read.snapshot().base
    assert base is not None
    assert not base.loaded


def test_what_tasks_cannot_read_the_driver_reads(
    spark: SparkSession, clustered: HandMade, by_spark: None, caplog: pytest.LogCaptureFixture
) -> None:
    clustered.log.checkpoint()
    log = clustered.log
    frame = scan.frame(spark, log).where("id < 5")
    file = clustered.root / "_delta_log" / f"{1:020}.checkpoint.parquet"
    data = file.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    file.write_bytes(data[:4] + bytes(footer - 4) + data[footer:])
    assert frame.count() == 5
    assert "the driver reads the large log itself" in caplog.text


class OfAMissingModule:
    """Cannot be unpickled by an executor, as nothing of tablelog's can where it isn't installed."""

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        return piece, piece.num_rows

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return import_module, ("no_such_module",)


def test_the_driver_reads_where_executors_have_no_tablelog(
    spark: SparkSession, clustered: HandMade, caplog: pytest.LogCaptureFixture
) -> None:
    clustered.log.checkpoint()
    log = clustered.log
    assert large_log.chosen(spark, log, log.snapshot(), OfAMissingModule(), None) is None
    assert "no_such_module" in caplog.text


def test_the_driver_reads_where_the_selected_files_are_too_many_for_a_result(
    spark: SparkSession, clustered: HandMade, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clustered.log.checkpoint()
    log = clustered.log
    reading = large_log.reading_of(spark, log, log.snapshot())
    assert reading is not None
    told = "Total size of serialized results of 1 tasks (6.5 KiB) is bigger than spark.driver.maxResultSize (2.0 KiB)"
    for words in (told, "something else"):

        def fails(_: Any, words: str = words) -> None:
            raise PySparkException(words)

        monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.toArrow", fails)
        work = large_log.Choosing(reading, large_log.OneOfEachTuple(("p",)), None)
        if words == told:
            assert reading.run(spark, work, large_log.Choosing.SCHEMA) is None
            assert "the selected files exceed spark.driver.maxResultSize" in caplog.text
        else:
            with pytest.raises(PySparkException, match="something else"):
                reading.run(spark, work, large_log.Choosing.SCHEMA)


@pytest.mark.slow
def test_commands_on_a_large_log(spark: SparkSession, table: Table, by_spark: None) -> None:
    rows = spark.range(40).select("id", (F.col("id") % 4).alias("p"))
    table.write(rows.repartition(2), by=("p",), **{"delta.enableDeletionVectors": "true"})
    DeltaLog.for_path(table.path).checkpoint()
    conf.forget()
    table.write(spark.range(1000, 1001).select("id", F.lit(1).cast("long").alias("p")))
    assert table.read().where("id >= 1000").count() == 1
    base = conf.delta_log(table.path, conf.session_conf(spark, table.path)).snapshot().base
    assert base is not None
    assert not base.loaded  # neither an append nor a query needs all files
    delta = DeltaTable.forPath(spark, table.path)
    delta.delete("id = 3")
    delta.update("id = 4", {"id": "104"})
    source = spark.range(5, 7).select("id", (F.col("id") % 4).alias("p"))
    delta.alias("t").merge(source.alias("s"), "t.id = s.id and t.p = s.p").whenMatchedDelete().execute()
    expected = sorted([*({*range(40)} - {3, 4, 5, 6}), 104, 1000])
    assert table.rows("id") == expected
    delta.optimize().executeCompaction()
    assert table.rows("id") == expected


def test_a_large_commit_without_a_checkpoint_is_planned_on_the_driver(
    spark: SparkSession, table: Table, by_spark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors don't see the driver's temporary files. The driver reads these piece by piece, and keeps no columns."""
    rows = spark.range(40).select("id", (F.col("id") % 4).alias("p"))
    table.write(rows.repartition(2), by=("p",), **{"delta.enableDeletionVectors": "true"})
    table.write(spark.range(40, 60).select("id", (F.col("id") % 4).alias("p")))
    conf.forget()
    monkeypatch.setattr(large_commits, "LARGE_COMMIT", 0)
    jobs: list[int] = []
    run = large_log.Reading.run
    monkeypatch.setattr(large_log.Reading, "run", lambda *arguments: jobs.append(1) or run(*arguments))
    assert sorted(row.id for row in table.read().where("id > 37 AND p = 2").collect()) == [38, 42, 46, 50, 54, 58]
    assert table.read().where("right(p, 1) = '3'").count() == 15
    assert table.read().count() == 60
    log = conf.delta_log(table.path, conf.session_conf(spark, table.path))
    base = log.snapshot().base
    assert base is not None
    assert (base.in_log, base.loaded, jobs) == (False, False, [])
    # A command plans in the same way, and its commit is followed by the checkpoint that the log lacks.
    delta = DeltaTable.forPath(spark, table.path)
    delta.update("id = 4", {"id": "104"})
    assert jobs == []
    base = log.snapshot().base
    assert base is not None
    assert (base.in_log, base.version) == (True, 2)
    delta.delete("id = 3")
    assert jobs
    assert table.rows("id") == sorted([*({*range(60)} - {3, 4}), 104])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "+05:30"])
def test_partitions_that_name_no_zone_are_of_the_session(zone: str) -> None:
    known = ZoneInfo("Asia/Kolkata" if zone == "+05:30" else zone)
    schema = StructType((StructField("a", LONG), StructField("t", TIMESTAMP)))
    values = [[("t", f"2024-03-01 {hour:02}:00:00")] for hour in range(24)]
    files = pa.table({"partitionValues": pa.array(values, pa.map_(pa.string(), pa.string()))})
    noon = datetime.datetime(2024, 3, 1, 12, tzinfo=known).astimezone(datetime.UTC)
    at_noon = core.Compare("=", ("t",), pa.scalar(noon, pa.timestamp("us", "UTC")))
    for of_values, of_rows in ((at_noon, core.TRUE), (core.TRUE, at_noon)):
        filters = large_log.Filters(of_values, of_rows, schema, ("t",), zone)
        assert filters(files)[0].column("partitionValues").to_pylist() == [values[12]]
