"""DELETE and UPDATE leave what delta-spark leaves: the same commits, actions, metrics and rows, case by case."""

import json
import os
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from support.rows import assert_same_rows
from tablelog.spark import DeltaTable

COLUMNS = """
table = f"delta.`{path}`"
spark.sql(f"create table {table} (id bigint, k int, v int, s string, d date, x decimal(10,2), b boolean, "
          f"st struct<a: int, b: string>) using delta %s tblproperties (%s)")
for start, end, files in %s:
    spark.range(start, end, 1, files).selectExpr(
        "id", "if(id %% 11 = 0, null, cast(id %% 3 as int)) k", "if(id %% 7 = 0, null, cast(id * 2 as int)) v",
        "if(id %% 5 = 0, null, concat('s', id %% 4)) s", "date_add(date'2024-01-01', cast(id as int)) d",
        "cast(id / 4 as decimal(10,2)) x", "id %% 2 = 0 b",
        "if(id %% 13 = 0, null, named_struct('a', cast(id as int), 'b', cast(id as string))) st",
    ).write.format("delta").mode("append").save(path)
"""
VECTORS, FEED, MAPPED = (
    f"'delta.{key}' = '{value}'"
    for key, value in (
        ("enableDeletionVectors", "true"),
        ("enableChangeDataFeed", "true"),
        ("columnMapping.mode", "name"),
    )
)
NO_VECTORS = "'delta.enableDeletionVectors' = 'false'"
# One file a partition, so that the number of new files is nobody's choice.
BY_K, FLAT = ("partitioned by (k)", "[(0, 60, 1)]"), ("", "[(0, 30, 2), (30, 60, 2)]")
TABLES = {
    "flat": (FLAT, NO_VECTORS),
    "partitioned": (BY_K, NO_VECTORS),
    "flat_with_vectors": (FLAT, VECTORS),
    "partitioned_with_vectors": (BY_K, f"{VECTORS}, {MAPPED}"),
    "feed": (BY_K, f"{NO_VECTORS}, {FEED}"),
    "feed_with_vectors": (BY_K, f"{VECTORS}, {FEED}, {MAPPED}"),
}
CONDITIONS = (
    "id = {n}", "id < {m}", "id >= {n}", "id between {n} and {n} + 4", "id % 7 = {m}", "k = {m}", "k in (0, {m})",
    "k is null", "k = {m} and v > {n}", "k = {m} or id = {n}", "v is null", "not (v > {n})", "v <=> null",
    "s like 's1%'",
    "s is null and b", "st.a > {n} + 20", "st is null", "d >= date'2024-02-{m}1'", "x between {m} and {m} + 1", "b",
    "coalesce(v, id) = {n}", "false", "id = 999", "k = 77", "cast(id as string) = '{n}'",
)  # fmt: skip
CASES = int(os.environ.get("TABLELOG_CASES", "8"))
SETS: tuple[dict[str, str], ...] = (
    {"v": "v + 1"}, {"s": "upper(s)", "b": "not b"}, {"st.a": "id"}, {"k": "k + 1"}, {"v": "null"}, {"x": "v * 1.5"},
    {"d": "'2024-02-29'"}, {"st": "named_struct('a', v, 'b', s)"}, {"b": "v > 3", "v": "id"}, {"s": "id"},
)  # fmt: skip


def cases(seed: str, count: int, *, moving: bool) -> list[dict[str, Any]]:
    """Conditions, with what is set where they hold, or for deletion; `moving`: `k` may be set too."""
    dice = random.Random(seed)
    sets = [values for values in SETS if moving or "k" not in values]
    made: list[dict[str, Any]] = []
    for _ in range(count):
        where = dice.choice(CONDITIONS).format(n=dice.randrange(60), m=dice.randrange(3))
        values = dice.choice(sets) if dice.random() < 0.6 else None
        made.append({"where": where, "set": values})
    return [*made, {"where": None, "set": dice.choice(sets)}, {"where": None, "set": None}]


def version(path: Path) -> int:
    return max(int(one.stem) for one in (path / "_delta_log").glob("*.json"))


ON_THEM = """
import json
from pathlib import Path
table = DeltaTable.forPath(spark, path)
result = []
for case in json.loads(cases):
    if case["set"] is None:
        table.delete(case["where"])
    else:
        table.update(case["where"], case["set"])
    result.append(max(int(one.stem) for one in (Path(path) / "_delta_log").glob("*.json")))
"""


def told(path: Path, at: int) -> dict[str, Any]:
    """What must be the same of a commit of two writers."""
    lines = (path / "_delta_log" / f"{at:020}.json").read_text().splitlines()
    actions = [next(iter(json.loads(line).items())) for line in lines]
    info = next(action for kind, action in actions if kind == "commitInfo")
    metrics = info["operationMetrics"]
    adds = [action for kind, action in actions if kind == "add"]
    removes = {action["path"]: action for kind, action in actions if kind == "remove"}
    marked = [add for add in adds if add["path"] in removes]
    return {
        "operation": info["operation"],
        "predicate": re.sub(r"#\d+", "", info["operationParameters"]["predicate"]),
        "metrics": {key: value for key, value in metrics.items() if not key.endswith(("TimeMs", "Bytes"))},
        "actions": Counter(kind for kind, _ in actions),
        "vectors": Counter((add["deletionVector"]["cardinality"], wide(add["stats"])) for add in marked),
        "removed": Counter(remove.get("deletionVector", {}).get("cardinality", 0) for remove in removes.values()),
        "rows": sum(json.loads(add["stats"])["numRecords"] for add in adds if add not in marked),
        "change": {(kind, action["dataChange"]) for kind, action in actions if kind in ("add", "remove", "cdc")},
    }


def wide(stats: str) -> str:
    """Statistics of a file with a vector, whatever its columns' physical names."""
    found = json.loads(stats)
    counts = json.dumps(sorted(json.dumps(value) for value in found["nullCount"].values()))
    return f"{found['numRecords']} {found['tightBounds']} {counts}"


@pytest.mark.parametrize("name", TABLES)
def test_the_same_as_delta_spark(spark: SparkSession, peer: Worker, tmp_path: Path, name: str) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (partitioning, appends), properties = TABLES[name]
    peer("run", code=COLUMNS % (partitioning, properties, appends), path=str(theirs))
    shutil.copytree(theirs, ours)
    wanted = cases(name, CASES, moving=not partitioning)
    versions = peer("run", code=f"cases = {json.dumps(wanted)!r}\n{ON_THEM}", path=str(theirs))
    table = DeltaTable.forPath(spark, str(ours))
    before = version(ours)
    different = []
    for case, at in zip(wanted, versions, strict=True):
        if case["set"] is None:
            table.delete(case["where"])
        else:
            table.update(case["where"], case["set"])
        assert version(ours) == at, case
        if at > before:
            left, right = told(ours, at), told(theirs, at)
            different += [(case, key, left[key], right[key]) for key in left if left[key] != right[key]]
            before = at
    assert not different
    for at in range(2, before + 1, 3):
        frames = [
            spark.read.format("delta").option("versionAsOf", at).load(str(path)).toArrow() for path in (ours, theirs)
        ]
        assert_same_rows(*frames)
    out = tmp_path / "rows"
    peer("read", path=str(ours), version=before - 1, out=str(out))
    assert_same_rows(
        spark.read.parquet(str(out)).toArrow(),
        spark.read.format("delta").option("versionAsOf", before - 1).load(str(theirs)).toArrow(),
    )
