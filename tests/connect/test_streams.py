"""Streams that read and write Delta tables on Spark Connect."""

import json
import re
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest

from support.spark_tables import Table
from tablelog import __version__
from tablelog.core import DeltaLog
from tablelog.core.streaming import offset
from tablelog.engine.read import python_stream
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError


@pytest.fixture
def target(spark: Any, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "target")


def source(table: Table, **options: Any) -> Any:
    return table.spark.readStream.format("delta").options(**options).load(table.path)


def run(stream: Any, target: Table, checkpoint: Path, mode: str = "append", by: tuple[str, ...] = ()) -> int:
    """Write everything that is new; returns the number of rows that the query read."""
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).outputMode(mode)
    query = writer.partitionBy(*by).trigger(availableNow=True).start(target.path)
    assert query.awaitTermination(120)
    error = query.exception()
    if error is not None:
        raise error
    return sum(progress.numInputRows for progress in query.recentProgress)


def test_rows_go_from_table_to_table_once(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def copy() -> int:
        return run(source(table, maxFilesPerTrigger=1).selectExpr("id", "id * 10 v"), target, checkpoint)

    for first in (0, 2):
        table.write(spark.range(first, first + 2).coalesce(1))
    assert copy() == 4
    assert target.version == 1, "a batch for each file"
    table.write(spark.range(4, 5))
    assert copy() == 1
    assert copy() == 0
    assert target.rows() == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]
    assert target.info()["operation"] == "STREAMING UPDATE"
    assert target.info()["operationParameters"]["outputMode"] == "Append"
    # Classic sessions and delta-spark can go on with the checkpoint: it has their offsets and the id of the query.
    read = offset.parse((checkpoint / "offsets" / "2").read_text().splitlines()[-1])
    assert (read.version, read.index, read.initial) == (3, offset.BEFORE_FILES, False)
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    assert DeltaLog.for_path(target.path).snapshot().transactions[query].version == 2


def _change(table: Table) -> None:
    table.delta.delete("id = 1")


def _rename(table: Table) -> None:
    table.delta.renameColumn("id", "k")


@pytest.mark.parametrize(
    ("change", "options", "condition"),
    [
        (_change, {}, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        (lambda table: table.delta.delete(), {}, "DELTA_SOURCE_IGNORE_DELETE"),
        (_rename, {}, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"),
        (lambda table: None, {"startingVersion": 99}, "DELTA_VERSION_NOT_FOUND"),
        (lambda table: None, {"startingTimestamp": "2100-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_an_error_of_the_source_names_its_condition(
    spark: Any, table: Table, target: Table, tmp_path: Path, change: Any, options: dict[str, Any], condition: str
) -> None:
    """Also to a query that had read everything before a change and starts again."""
    table.write(spark.range(3).coalesce(1), **{"delta.columnMapping.mode": "name"})
    if not options:
        assert run(source(table), target, tmp_path / "checkpoint") == 3
    change(table)
    if change is _rename:
        table.write(spark.range(5, 6).withColumnRenamed("id", "k"))
    with pytest.raises(pyspark.errors.StreamingQueryException, match=rf"Error: \[{condition}\]"):
        run(source(table, **options), target, tmp_path / "checkpoint")


def test_a_batch_that_failed_is_read_and_written_again(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    table.write(spark.range(0, 2).coalesce(1))
    table.write(spark.range(2, 4).coalesce(1))
    broken = source(table, maxFilesPerTrigger=1).selectExpr("if(id < 2, raise_error('boom'), id) as id")
    with pytest.raises(pyspark.errors.StreamingQueryException, match="boom"):
        run(broken, target, checkpoint)
    assert not DeltaLog.for_path(target.path).exists()
    table.write(spark.range(4, 6))  # a query that starts now would begin with a later version
    assert run(source(table, maxFilesPerTrigger=1), target, checkpoint) == 6
    assert target.rows() == [0, 1, 2, 3, 4, 5]
    written = target.version
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    run(source(table, maxFilesPerTrigger=1), target, checkpoint)
    assert target.version == written, "the batch was in the table already"


def test_a_first_batch_from_latest_that_failed_is_read_again(
    spark: Any, table: Table, target: Table, tmp_path: Path
) -> None:
    """The checkpoint has the end of the batch, and not its start, which was the newest version at that time."""
    table.write(spark.range(0, 2))
    broken = source(table, startingVersion="latest").selectExpr("if(id = 2, raise_error('boom'), id) as id")
    writer = broken.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start(target.path)
    try:
        query.processAllAvailable()  # the stream has begun, and found nothing
        table.write(spark.range(2, 3))
        with pytest.raises(pyspark.errors.StreamingQueryException, match="boom"):
            query.awaitTermination(120)
    finally:
        query.stop()
    table.write(spark.range(3, 5))
    assert run(source(table, startingVersion="latest"), target, tmp_path / "checkpoint") == 3
    assert target.rows() == [2, 3, 4]


def test_partitions_vectors_mapped_names_and_void_columns(
    spark: Any, table: Table, target: Table, tmp_path: Path
) -> None:
    feed = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    rows = spark.sql(
        "SELECT id, 'p ' || id % 2 || 'é=%' p, date'2024-02-29' d, array(named_struct('a', id)) s, null v FROM range(6)"
    )
    table.write(rows, by=("p",), **feed)
    table.delta.renameColumn("d", "day")
    assert source(table).columns == ["id", "p", "day", "s", "v"]
    assert run(source(table).drop("v"), target, tmp_path / "checkpoint", by=("p",)) == 6
    assert target.read().exceptAll(table.read().drop("v")).count() == 0
    assert target.rows("id") == list(range(6))
    assert target.delta.detail().first().partitionColumns == ["p"]


def test_the_change_feed(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    table.write(spark.range(4).coalesce(1), **{"delta.enableChangeDataFeed": "true"})
    changes = ("id", "_change_type", "_commit_version")

    def copy() -> None:
        run(source(table, readChangeFeed="true").select(*changes), target, tmp_path / "checkpoint")

    copy()
    table.delta.update("id = 1", {"id": "10"})
    table.write(spark.range(20, 21))
    table.delta.delete("id = 10")
    copy()
    expected = [
        (row.id, row._change_type, row._commit_version)
        for row in table.read(readChangeFeed="true", startingVersion=1).select(*changes).collect()
    ]
    assert target.rows() == sorted([*((id_, "insert", 0) for id_ in range(4)), *expected])


def test_a_start_and_a_change_that_rows_can_not_express(
    spark: Any, table: Table, target: Table, tmp_path: Path
) -> None:
    table.write(spark.range(2))
    table.write(spark.range(2, 4))
    by_name = spark.readStream.option("startingVersion", 1).table(f"delta.`{table.path}`")
    assert run(by_name, target, tmp_path / "checkpoint") == 2
    table.delta.update("id = 0", {"id": "7"})
    with pytest.raises(pyspark.errors.StreamingQueryException, match=r"Version 2 of .* changed rows"):
        run(source(table, startingVersion=1), target, tmp_path / "checkpoint")
    table.write(spark.range(4, 5))
    assert run(source(table, startingVersion=1, skipChangeCommits="true"), target, tmp_path / "checkpoint") == 1
    assert target.rows() == [2, 3, 4]


def test_an_aggregate_replaces_the_table(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    for first in (0, 3):
        table.write(spark.range(first, first + 3))
        run(
            source(table).selectExpr("id % 2 odd").groupBy("odd").count(),
            target,
            tmp_path / "checkpoint",
            mode="complete",
        )
    assert target.rows() == [(0, 3), (1, 3)]


def test_a_table_whose_columns_changed(spark: Any, table: Table, target: Table, tmp_path: Path) -> None:
    table.write(spark.range(1))
    stream = source(table)
    table.delta.alterColumn("id", comment="a number")
    assert run(stream, target, tmp_path / "checkpoint") == 1
    table.delta.addColumns("v string")
    with pytest.raises(pyspark.errors.StreamingQueryException, match=r"schema of .* changed since the streaming Data"):
        run(stream, target, tmp_path / "checkpoint")


def test_what_a_stream_does_not_do(spark: Any, table: Table, target: Table, conf: Any) -> None:
    table.write(spark.range(1), by=())
    for option in ("excludeRegex", "readRowIds", "schemaTrackingLocation", "withEventTimeOrder"):
        with pytest.raises(UnsupportedFeatureError, match=option):
            source(table, **{option: "true"})
    with pytest.raises(InvalidArgumentError, match="maxFilesPerTrigger"):
        source(table, maxFilesPerTrigger=0)
    writer = source(table).writeStream.format("delta")
    with pytest.raises(InvalidArgumentError, match="checkpointLocation"):
        writer.start(target.path)
    with pytest.raises(InvalidArgumentError, match="output mode Update"):
        writer.start(target.path, outputMode="update")
    with pytest.raises(pyspark.errors.PySparkException, match="is not a Delta table"):
        spark.readStream.format("delta").load(target.path)
    assert not target.root.exists()


def test_the_server_has_another_tablelog(
    spark: Any, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(spark.range(1))
    monkeypatch.setattr(python_stream, "__version__", "0")
    query = source(table).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    found = re.escape(f"the client's version 0, and the server has {__version__}")
    with pytest.raises(pyspark.errors.StreamingQueryException, match=found):
        query.awaitTermination(60)


def test_the_checkpoint_of_the_session(spark: Any, table: Table, target: Table, tmp_path: Path, conf: Any) -> None:
    table.write(spark.range(2))
    conf("spark.sql.streaming.checkpointLocation", str(tmp_path / "a {b}"))
    query = source(table).writeStream.start(
        target.path, format="delta", queryName="named", trigger=None, userMetadata="by a stream"
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert (tmp_path / "a {b}" / "named" / "metadata").exists()
    assert target.info()["userMetadata"] == "by a stream"
    assert target.rows() == [0, 1]
