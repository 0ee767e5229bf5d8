"""The files beside the commits: delta-spark reads a table through ours alone, and puts into them what we do."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.worker import Worker

from tablelog.core import DeltaLog, Metadata, Operation
from tablelog.core.log.checkpoint_writer import PART_SIZE, TOP_LEVEL_FORMAT
from tablelog.core.log.compaction import FOR_WRITES
from tablelog.core.protocol.actions import AddFile

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
SHOW = """
from pyspark.sql.functions import count, sum
row = spark.read.format("delta").load(path).agg(count("*"), sum("id")).first()
result = [row[0], row[1]]
"""
APPEND = "spark.createDataFrame([(100, 'z')], 'id long, p string').write.format('delta').mode('append').save(path)"


def table(path: Path, conf: dict[str, str], configuration: dict[str, str]) -> DeltaLog:
    """Thirteen commits of one row each, of which the third is removed again; a checkpoint at version 10."""
    log = DeltaLog.for_path(str(path), conf=conf)
    for number in range(13):
        transaction = log.transaction()
        if number == 0:
            transaction.set_metadata(Metadata("the-id", SCHEMA, ("p",), configuration))
        value = "äé/b"[number % 4]
        name = f"f{number}.parquet"
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), path / name)
        stats = json.dumps(
            {"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}, "nullCount": {"id": 0}}
        )
        actions: list[Any] = [AddFile(name, {"p": value}, (path / name).stat().st_size, 1, True, stats=stats)]
        if number == 5:
            actions.append(log.snapshot().add_files()[2].remove(log.clock.now_ms()))
        transaction.commit(actions, Operation("WRITE", {"mode": "Append"}))
    return log


V2 = {"delta.checkpointPolicy": "v2"}
KINDS = {
    "classic": ({}, {}),
    "parts": ({PART_SIZE: "3"}, {}),
    "v2 json": ({TOP_LEVEL_FORMAT: "json"}, V2),
    "v2 parquet": ({TOP_LEVEL_FORMAT: "parquet", PART_SIZE: "4"}, V2),
    "compacted": ({FOR_WRITES: "true"}, {"delta.checkpointInterval": "100"}),
    "stats as structs": ({}, {"delta.checkpoint.writeStatsAsJson": "false"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_through_ours_and_goes_on(peer: Worker, tmp_path: Path, kind: str) -> None:
    conf, configuration = KINDS[kind]
    path = tmp_path / "table"
    path.mkdir()
    table(path, conf, configuration)
    for version in range(1, 5) if kind == "compacted" else range(10):
        (path / f"_delta_log/{version:020d}.json").rename(path / f"_delta_log/{version}.away")
        if kind == "compacted":  # it wants the commits to be listed, and then doesn't read them
            (path / f"_delta_log/{version:020d}.json").write_bytes(b"\n")
    expected = [12, sum(range(13)) - 2]
    assert peer("run", code=SHOW, path=str(path)) == expected
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
    DeltaLog.for_path(str(ours), conf={PART_SIZE: "3"}).checkpoint()
    peer(
        "run",
        code=f"""
spark.conf.set("{PART_SIZE}", "3")
log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
none = spark._jvm.scala.Option.empty()
log.checkpoint(log.update(False, none, none), none)
spark.conf.unset("{PART_SIZE}")
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
