"""The files beside the commits: delta-spark reads a table through ours alone, and puts into them what we do."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks.worker import Worker

from interop.log_tables import EXPECTED, KINDS, table, without_commits
from tablelog.core import DeltaLog
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE

SHOW = """
from pyspark.sql.functions import count, sum
row = spark.read.format("delta").load(path).agg(count("*"), sum("id")).first()
result = [row[0], row[1]]
"""
APPEND = "spark.createDataFrame([(100, 'z')], 'id long, p string').write.format('delta').mode('append').save(path)"


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_through_ours_and_goes_on(peer: Worker, tmp_path: Path, kind: str) -> None:
    conf, configuration = KINDS[kind]
    path = tmp_path / "table"
    path.mkdir()
    table(path, conf, configuration)
    without_commits(path, kind)
    assert peer("run", code=SHOW, path=str(path)) == EXPECTED
    peer("run", code=APPEND, path=str(path))
    # What it adds to our checksum is what we count, or opening the files would raise.
    log = DeltaLog.for_path(str(path))
    crc = json.loads((path / f"_delta_log/{13:020d}.crc").read_bytes())
    snapshot = log.snapshot()
    assert (snapshot.version, snapshot.files.num_rows, crc["numFiles"]) == (13, 13, 13)
    assert {file["path"] for file in crc["allFiles"]} == set(snapshot.files["path"].to_pylist())
    if kind != "compacted":
        peer("checkpoint", path=str(path))
        assert DeltaLog.for_path(str(path)).snapshot().base_version == 13
        assert DeltaLog.for_path(str(path)).snapshot().files.num_rows == 13


def test_its_parts_are_ours(peer: Worker, tmp_path: Path) -> None:
    """Two writers of one multi-part checkpoint may each write some of the parts."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    table(ours, {}, {"delta.checkpointInterval": "100"})
    shutil.copytree(ours, theirs)
    DeltaLog.for_path(str(ours), conf={CHECKPOINT_PART_SIZE.key: "3"}).checkpoint()
    peer(
        "run",
        code=f"""
spark.conf.set("{CHECKPOINT_PART_SIZE.key}", "3")
log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
none = spark._jvm.scala.Option.empty()
log.checkpoint(log.update(False, none, none), none)
spark.conf.unset("{CHECKPOINT_PART_SIZE.key}")
""",
        path=str(theirs),
    )

    def parts(root: Path) -> dict[str, list[str]]:
        found = {}
        for file in sorted((root / "_delta_log").glob("*.checkpoint.*.parquet")):
            rows = pq.read_table(file).to_pylist()
            held = [f"{k} {(row[k] or {}).get('path', '')}" for row in rows for k in row if row[k] is not None]
            found[file.name] = sorted(held)
        return found

    assert len(parts(ours)) == 5
    assert parts(ours) == parts(theirs)
