"""Tables whose log has every kind of file that may stand beside the commits, made with no Spark."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablelog.core import DeltaLog, Metadata, Operation
from tablelog.core.protocol.actions import AddFile
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE, CHECKPOINT_V2_FORMAT, COMPACTED_LOG_WRITES

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)


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


EXPECTED = [12, sum(range(13)) - 2]
"""The number of rows, and the sum of their ids."""

V2 = {"delta.checkpointPolicy": "v2"}
KINDS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "classic": ({}, {}),
    "parts": ({CHECKPOINT_PART_SIZE.key: "3"}, {}),
    "v2 json": ({CHECKPOINT_V2_FORMAT.key: "json"}, V2),
    "v2 parquet": ({CHECKPOINT_V2_FORMAT.key: "parquet", CHECKPOINT_PART_SIZE.key: "4"}, V2),
    "compacted": ({COMPACTED_LOG_WRITES.key: "true"}, {"delta.checkpointInterval": "100"}),
    "stats as structs": ({}, {"delta.checkpoint.writeStatsAsJson": "false"}),
}


def without_commits(path: Path, kind: str) -> None:
    """Take away what the files beside the commits stand for."""
    for version in range(1, 5) if kind == "compacted" else range(10):
        commit = path / f"_delta_log/{version:020d}.json"
        if kind == "compacted":
            commit.write_bytes(b"\n")  # readers want to see it listed, and then don't read it
        else:
            commit.unlink()
