"""The schema log of a stream: delta-spark goes on with what tablelog wrote, and the reverse, over the same batches."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from .test_streams import offsets, ours

QUERY = """
options = {options}
options["schemaTrackingLocation"] = path + "/checkpoint/schema"
result = "read"
try:
    stream = spark.readStream.format("delta").options(**options).load(path + "/source")
    if "readChangeFeed" in options:
        stream = stream.withColumnRenamed("_change_type", "kind").drop("_commit_version", "_commit_timestamp")
    writer = stream.writeStream.format("delta").option("checkpointLocation", path + "/checkpoint")
    query = writer.option("mergeSchema", "true").trigger(availableNow=True).start(path + "/target")
    query.awaitTermination()
except Exception as error:
    text = str(error)
    known = ["DELTA_STREAMING_METADATA_EVOLUTION",
             "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
             "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"]
    get = getattr(error, "getCondition", lambda: None)
    result = next((one for one in known if one in text or one == get()), text)
"""


def entries(path: str) -> list[dict[str, Any]]:
    (directory,) = Path(path, "checkpoint", "schema").iterdir()
    files = sorted((f for f in directory.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
    found = []
    for file in files:
        entry = json.loads(file.read_text().splitlines()[1])
        protocol = json.loads(entry["protocolJson"])["protocol"]
        entry["protocolJson"] = {key: sorted(one) if isinstance(one, list) else one for key, one in protocol.items()}
        fields = json.loads(entry["dataSchemaJson"])["fields"]
        entry["dataSchemaJson"] = [(f["name"], f["type"], f["metadata"]["delta.columnMapping.id"]) for f in fields]
        for name in ("sourceMetadataPath", "tableId"):
            del entry[name]
        found.append(entry)
    return found


def change(spark: SparkSession, path: str, step: int) -> None:
    """What happens to the source before the runs of a step."""
    table = f"delta.`{path}/source`"
    if step == 0:
        rows = spark.sql("SELECT 1L id, 'x' a, 1 n").coalesce(1)
        names = ("columnMapping.mode", "enableTypeWidening", "enableChangeDataFeed")
        features = {f"delta.{name}": value for name, value in zip(names, ("name", "true", "true"), strict=True)}
        rows.write.format("delta").options(**features).save(path + "/source")
    elif step == 1:
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN a TO b")
        spark.sql(f"INSERT INTO {table} VALUES (2, 'y', 2)")
    elif step == 2:
        spark.sql(f"ALTER TABLE {table} ADD COLUMN c STRING")
        spark.sql(f"ALTER TABLE {table} DROP COLUMN b")
        spark.sql(f"INSERT INTO {table} VALUES (3, 3, 'z')")
    else:
        spark.sql(f"INSERT INTO {table} VALUES (4, 4, 'w')")


ALLOWED = {"allowSourceColumnRename": "always", "allowSourceColumnDrop": "always"}


@pytest.mark.parametrize(
    ("options", "theirs_first"), [({}, True), ({"readChangeFeed": "true", "startingVersion": "0"}, False)]
)
def test_the_same_changes_make_the_same_log(
    peer: Worker, spark: SparkSession, tmp_path: Path, options: dict[str, str], theirs_first: bool
) -> None:
    """By each program alone, and by both in turn: the same errors, offsets and entries."""
    found = []
    for name, turn in (("theirs", [True]), ("ours", [False]), ("both", [theirs_first, not theirs_first])):
        path, results = str(tmp_path / name), []
        for step in range(4):
            change(spark, path, step)
            for allowed in ({}, {}, ALLOWED)[: 3 if step else 1]:
                code = QUERY.format(options={**options, **allowed})
                theirs = turn[len(results) % len(turn)]
                results.append(peer("run", code=code, path=path) if theirs else ours(spark, path, code))
        rows = sorted(row.id for row in spark.read.format("delta").load(path + "/target").select("id").collect())
        found.append((results, offsets(path), entries(path), rows))
    for other in found[1:]:
        assert other == found[0]
    assert found[0][3] == [1, 2, 3, 4]
