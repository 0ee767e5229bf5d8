"""Maintenance, on the same table by delta-spark and by us: the same files go, the same is told of it, both read on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.spark import DeltaTable

BASE = """
rows = spark.range(0, 12, 1, 1).selectExpr("id", "cast(id % 3 as string) p", "concat('s', id) s")
rows.write.format("delta").partitionBy("p").save(path)
t = DeltaTable.forPath(spark, path)
t.delete("p = '1'")
t.update("id = 2", {"s": "'changed'"})
more = spark.range(20, 22, 1, 1).selectExpr("id", "cast(null as string) p", "'a b' s")
more.write.format("delta").mode("append").save(path)
"""
RUN = {
    "vacuum": "t.vacuum(0)",
    "lite": 'spark.sql(f"vacuum delta.`{path}` lite retain 0 hours")',
    "restore": "t.restoreToVersion(0)",
}
UNCHECKED = 'spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")\n'


@pytest.fixture(scope="module")
def base(peer: Worker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table by delta-spark, to be copied."""
    path = tmp_path_factory.mktemp("upkeep") / "base"
    peer("run", code=BASE, path=str(path))
    return path


def told(table: Table, since: int) -> list[dict[str, Any]]:
    """What the commits from a version on say, without what differs by who wrote them and when."""
    found = []
    for version in range(since, table.version + 1):
        actions = table.actions(version)
        info = table.info(version)
        found.append(
            {
                "operation": info["operation"],
                # They write a null for what wasn't given, we leave it out.
                "parameters": {k: v for k, v in info["operationParameters"].items() if v is not None},
                "metrics": {k: int(v) for k, v in info.get("operationMetrics", {}).items()},
                "blind": info.get("isBlindAppend"),
                "level": info.get("isolationLevel"),
                "adds": sorted((a["add"]["path"], a["add"]["dataChange"]) for a in actions if "add" in a),
                "removes": sorted((a["remove"]["path"], a["remove"]["dataChange"]) for a in actions if "remove" in a),
            }
        )
    return found


def copies(spark: SparkSession, base: Path, tmp_path: Path) -> tuple[Table, Table]:
    made = []
    for name in ("theirs", "ours"):
        shutil.copytree(base, tmp_path / name)
        made.append(Table(spark, tmp_path / name))
    return made[0], made[1]


@pytest.mark.parametrize("name", RUN)
def test_the_same_is_left_and_told(spark: SparkSession, peer: Worker, base: Path, tmp_path: Path, name: str) -> None:
    theirs, ours = copies(spark, base, tmp_path)
    since = theirs.version + 1
    start = UNCHECKED + "t = DeltaTable.forPath(spark, path)\n"
    peer("run", code=start + RUN[name], path=theirs.path)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        if name == "restore":
            ours.delta.restoreToVersion(0)
        else:
            ours.delta.vacuum(0, mode="LITE" if name == "lite" else "FULL")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    visible = [{one for one in table.data_files() if "/." not in f"/{one}"} for table in (theirs, ours)]
    assert visible[0] == visible[1]
    assert told(theirs, since) == told(ours, since)
    assert theirs.rows() == ours.rows()
    out = tmp_path / "rows"
    assert peer("read", path=ours.path, out=str(out)) == len(ours.rows())
    if name == "lite":  # theirs goes on where ours ended
        peer("run", code=start + RUN[name], path=ours.path)
        assert ours.info()["operationMetrics"]["numDeletedFiles"] == "0"


def test_converted_and_cloned_tables(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    rows = spark.range(0, 30, 1, 3).selectExpr(
        "id", "cast(id % 2 as int) p", "case when id % 4 = 0 then null else concat('text ', id) end s",
        "cast(id as double) / 3 x", "date_add(date'2024-01-01', cast(id as int)) d", "cast(id as decimal(12,2)) m",
        "timestamp_seconds(id * 1000) t", "named_struct('a', id, 'b', array(id)) n",
    )  # fmt: skip
    rows.write.option("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS").partitionBy("p").parquet(str(plain))
    theirs, ours = copies(spark, plain, tmp_path)
    code = "DeltaTable.convertToDelta(spark, f'parquet.`{path}`', 'p int')"
    peer("run", code=code, path=theirs.path)
    DeltaTable.convertToDelta(spark, f"parquet.`{ours.path}`", "p int")
    assert told(theirs, 0) == told(ours, 0)
    found = []
    for table in (theirs, ours):
        actions = table.actions(0)
        schema = json.loads(next(a["metaData"]["schemaString"] for a in actions if "metaData" in a))
        stats = {a["add"]["path"]: json.loads(a["add"]["stats"]) for a in actions if "add" in a}
        for one in stats.values():
            one["nullCount"]["n"].pop("b", None)  # a footer counts elements, not lists
        found.append((schema["fields"], next(a["protocol"] for a in actions if "protocol" in a), stats))
    for theirs_of, ours_of in zip(*found, strict=True):
        assert theirs_of == ours_of
    clones = Table(spark, tmp_path / "their clone"), Table(spark, tmp_path / "our clone")
    peer("run", code=f"DeltaTable.forPath(spark, path).clone('{clones[0].path}', True)", path=ours.path)
    ours.delta.clone(clones[1].path, isShallow=True)
    tellings = [told(clone, 0) for clone in clones]
    for telling in tellings:
        assert all(path.startswith("file:") for path, _ in telling[0]["adds"])
        telling[0]["adds"] = len(telling[0]["adds"])
    assert tellings[0] == tellings[1]
    assert peer("read", path=clones[1].path, out=str(tmp_path / "rows")) == 30
    peer("delete", path=clones[1].path, condition="id < 10")
    assert clones[1].rows("id") == list(range(10, 30))
    assert clones[0].rows() == ours.rows()


def test_manifests_are_theirs(spark: SparkSession, peer: Worker, base: Path, tmp_path: Path) -> None:
    theirs, ours = copies(spark, base, tmp_path)
    peer("run", code="DeltaTable.forPath(spark, path).generate('symlink_format_manifest')", path=theirs.path)
    ours.delta.generate("symlink_format_manifest")
    found = []
    for table in (theirs, ours):
        root = table.root / "_symlink_format_manifest"
        texts = {p.relative_to(root).as_posix(): sorted(p.read_text().split("\n")) for p in root.rglob("manifest")}
        found.append({name: [line.replace(table.path, "") for line in lines] for name, lines in texts.items()})
    assert found[0] == found[1]
