"""Streams: a query that delta-spark began goes on with us, and the reverse, at any offset (`make interop`)."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from tablelog.spark import DeltaTable

QUERY = """
stream = spark.readStream.format("delta").options(**{options}).load(path + "/source")
writer = stream.writeStream.format("delta").option("checkpointLocation", path + "/checkpoint")
query = writer.trigger(**{trigger}).start(path + "/target")
query.awaitTermination()
result = query.id
"""


def append(spark: SparkSession, path: str, first: int, files: int) -> None:
    frame = spark.range(first, first + files * 2, numPartitions=files).selectExpr("id", "id % 2 AS p")
    frame.write.format("delta").mode("append").option("delta.enableChangeDataFeed", "true").save(path + "/source")


def offsets(path: str) -> list[str]:
    """The offsets of the source in the checkpoint, in order, without the table's id."""
    files = sorted(
        (f for f in Path(path, "checkpoint", "offsets").iterdir() if f.name.isdigit()), key=lambda f: int(f.name)
    )
    found = []
    for file in files:
        offset = json.loads(file.read_text().splitlines()[2])
        del offset["reservoirId"]
        found.append(json.dumps(offset))
    return found


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path + "/target").collect())


def ours(spark: SparkSession, path: str, code: str) -> Any:
    scope: dict[str, Any] = {"spark": spark, "path": path}
    exec(code, scope)
    return scope["result"]


@pytest.mark.parametrize("theirs_first", [True, False])
@pytest.mark.parametrize("options", [{"maxFilesPerTrigger": "2"}, {"maxBytesPerTrigger": "1", "startingVersion": "0"}])
def test_a_query_changes_hands(
    peer: Worker, spark: SparkSession, tmp_path: Path, theirs_first: bool, options: dict[str, str]
) -> None:
    path = str(tmp_path)
    append(spark, path, 0, 5)
    code = QUERY.format(options=options, trigger={"availableNow": True})

    def run(theirs: bool) -> Any:
        return peer("run", code=code, path=path) if theirs else ours(spark, path, code)

    first = run(theirs_first)
    append(spark, path, 100, 3)
    DeltaTable.forPath(spark, path + "/source").optimize().executeCompaction()
    append(spark, path, 200, 1)
    assert run(not theirs_first) == first
    append(spark, path, 300, 1)
    assert run(theirs_first) == first
    assert ids(spark, path) == [*range(10), *range(100, 106), 200, 201, 300, 301]


@pytest.mark.parametrize(
    "options",
    [
        {"maxFilesPerTrigger": "2"},
        {"maxFilesPerTrigger": "1", "startingVersion": "0", "ignoreChanges": "true"},
        {"maxBytesPerTrigger": "1000", "startingVersion": "1", "skipChangeCommits": "true"},
    ],
)
def test_the_same_commits_make_the_same_batches(
    peer: Worker, spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    source = str(tmp_path)
    for first in (0, 20, 40):
        append(spark, source, first, 3)
    table = DeltaTable.forPath(spark, source + "/source")
    table.optimize().executeCompaction()
    table.update("id = 21", {"p": "5"})
    append(spark, source, 60, 2)
    found = []
    for theirs in (True, False):
        code = QUERY.format(options=options, trigger={"availableNow": True})
        name = "theirs" if theirs else "ours"
        code = code.replace('"/checkpoint"', f'"/{name}/checkpoint"').replace('"/target"', f'"/{name}/target"')
        if theirs:
            peer("run", code=code, path=source)
        else:
            ours(spark, source, code)
        found.append((offsets(f"{source}/{name}"), ids(spark, f"{source}/{name}")))
    assert found[1] == found[0]


IN_ORDER = """
stream = spark.readStream.format("delta").option("withEventTimeOrder", "true").option("maxFilesPerTrigger", 1)
once = stream.load(path + "/source").withWatermark("t", "1 hour").dropDuplicates(["id", "t"])

def keep(batch, number):
    if number == {fails_at}:
        raise ValueError("the test ends the query")
    batch.write.format("delta").mode("append").save(path + "/target")

query = once.writeStream.foreachBatch(keep).option("checkpointLocation", path + "/checkpoint")
result = None
try:
    query.trigger(availableNow=True).start().awaitTermination()
except Exception as error:
    result = str(error)
"""


def test_delta_spark_refuses_a_checkpoint_within_the_order_of_event_time(
    peer: Worker, spark: SparkSession, tmp_path: Path
) -> None:
    """It has no such order: it would read the files again by their index. After the first version it goes on."""
    path = str(tmp_path)
    for day in reversed(range(1, 5)):
        frame = spark.sql(f"SELECT CAST({day} AS bigint) AS id, timestamp'2024-01-0{day}' AS t").coalesce(1)
        frame.write.format("delta").mode("append").save(path + "/source")
    failure = ours(spark, path, IN_ORDER.format(fails_at=2))
    assert "the test ends the query" in failure
    refusal = peer("run", code=IN_ORDER.format(fails_at=-1), path=path)
    assert "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION" in refusal
    assert ids(spark, path) == [1, 2]
    assert ours(spark, path, IN_ORDER.format(fails_at=-1)) is None
    assert ids(spark, path) == [1, 2, 3, 4]
    spark.sql(f"INSERT INTO delta.`{path}/source` VALUES (9, timestamp'2024-02-01')")
    assert peer("run", code=IN_ORDER.format(fails_at=-1), path=path) is None
    assert ids(spark, path) == [1, 2, 3, 4, 9]
