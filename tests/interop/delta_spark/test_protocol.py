"""Properties and features by the same commands in delta-spark and here leave the same commits, which both can read."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable

Commit = dict[str, Any]

STEPS = [
    ("set", {"delta.appendOnly": "true", "mine": "x", "delta.CHECKPOINTINTERVAL": "100"}),
    ("unset", ["delta.appendOnly", "mine"]),
    ("upgrade", (1, 4)),
    ("add", "vacuumProtocolCheck"),
    ("set", {"delta.enableInCommitTimestamps": "true", "delta.columnMapping.mode": "name"}),
    ("set", {"delta.enableRowTracking": "true"}),
    ("append", None),
    ("drop", "rowTracking"),
    ("drop", "inCommitTimestamp"),
]
THEIRS = """
import json
def text(value):
    return "'" + value + "'"
name = f"delta.`{path}`"
for kind, given in json.loads(STEPS):
    if kind == "set":
        pairs = ", ".join(f"{text(key)} = {text(value)}" for key, value in given.items())
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})")
    elif kind == "unset":
        spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ({', '.join(map(text, given))})")
    elif kind == "upgrade":
        DeltaTable.forPath(spark, path).upgradeTableProtocol(*given)
    elif kind == "add":
        DeltaTable.forPath(spark, path).addFeatureSupport(given)
    elif kind == "drop":
        DeltaTable.forPath(spark, path).dropFeatureSupport(given)
    else:
        spark.range(3, 5, 1, 1).write.format("delta").mode("append").save(path)
"""


def mine(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    does: dict[str, Any] = {
        "set": table.setProperties,
        "unset": table.unsetProperties,
        "upgrade": lambda given: table.upgradeTableProtocol(*given),
        "add": table.addFeatureSupport,
        "drop": table.dropFeatureSupport,
        "append": lambda _: spark.range(3, 5, 1, 1).write.format("delta").mode("append").save(path),
    }
    for kind, given in STEPS:
        does[kind](given)


def told(path: Path) -> list[Commit]:
    """What the commits say, but for what is another in each table: names, times, sizes."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        if not file.stem.isdigit():
            continue
        commit: Commit = {"adds": [], "rest": []}
        for line in file.read_text().splitlines():
            ((kind, body),) = json.loads(line).items()
            if kind == "commitInfo":
                commit["operation"] = body["operation"]
                given = body["operationParameters"].items()
                commit["parameters"] = {key: _plain(value) for key, value in given if key != "ifExists"}
                commit["tags"] = body.get("tags") or {}
                commit["timed"] = "inCommitTimestamp" in body
            elif kind == "protocol":
                commit["protocol"] = {key: sorted(v) if isinstance(v, list) else v for key, v in body.items()}
            elif kind == "metaData":
                commit["properties"] = {key: _masked(key, value) for key, value in body["configuration"].items()}
            elif kind == "add":
                commit["adds"].append((body.get("baseRowId"), body.get("defaultRowCommitVersion"), body["dataChange"]))
            else:
                marks = json.loads(body["configuration"])["rowIdHighWaterMark"]
                commit["rest"].append((kind, body["domain"], marks, body["removed"]))
        commit["adds"].sort(key=repr)
        found.append(commit)
    return found


def _plain(value: Any) -> Any:
    """JSON text with its keys in order; the versions and lists of a protocol are compared where they are committed."""
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError):
        return value
    if isinstance(parsed, dict):
        parsed.pop("readerFeatures", None)
        parsed.pop("writerFeatures", None)
    return json.dumps(parsed, sort_keys=True)


def _masked(key: str, value: str) -> str:
    if key.endswith(("ColumnName", "EnablementTimestamp")):
        return value.partition("col-")[0] if "col-" in value else "a time"
    return value


@pytest.mark.timeout(900)
def test_the_same_commands_leave_the_same_commits(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    ours, yours = tmp_path / "ours", tmp_path / "yours"
    spark.range(0, 3, 1, 1).write.format("delta").save(str(ours))
    peer("run", code="spark.range(0, 3, 1, 1).write.format('delta').save(path)", path=str(yours))
    mine(spark, str(ours))
    peer("run", code=f"STEPS = {json.dumps(STEPS)!r}\n{THEIRS}", path=str(yours))
    left, right = told(ours), told(yours)
    assert [commit["operation"] for commit in left] == [commit["operation"] for commit in right]
    for version, (a, b) in enumerate(zip(left, right, strict=True)):
        assert a == b, f"version {version}"

    count = "result = spark.read.format('delta').load(path).count()"
    assert peer("run", code=count, path=str(ours)) == 5
    assert spark.read.format("delta").load(str(yours)).count() == 5
    assert DeltaLog.for_path(str(yours)).snapshot().protocol == DeltaLog.for_path(str(ours)).snapshot().protocol
