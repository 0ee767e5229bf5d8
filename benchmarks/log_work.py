"""The work that needs no Spark, one piece a process: opening a large log, and committing."""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]})

# Of a checkpoint, as Spark's Delta writes it.
STRING_MAP = pa.map_(pa.string(), pa.string())
PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", STRING_MAP),
        ("createdTime", pa.int64()),
    ]
)
ADD_FIELDS = [
    ("path", pa.string()),
    ("partitionValues", STRING_MAP),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
]


def statistics_of(i: int, random: Random) -> str:
    """Statistics of five columns, as long and as hard to compress as those of a real table."""
    low = {"id": i * 1000, "k": random.randrange(500), "x": random.random(), "s": f"row-{random.getrandbits(64):x}"}
    high = {"id": i * 1000 + 999, "k": 999, "x": random.random() + 1, "s": f"row-{random.getrandbits(64):x}"}
    low["ts"] = high["ts"] = f"2024-01-{i % 28 + 1:02}T{i % 24:02}:00:00.{i % 1000:03}Z"
    nulls = dict.fromkeys(low, 0)
    return json.dumps({"numRecords": 1000, "minValues": low, "maxValues": high, "nullCount": nulls})


def make_large_log(table: Path, adds: int) -> None:
    """A table whose log is one checkpoint of `adds` files, shaped as Spark's Delta writes it, with JSON statistics.

    `delta.checkpointInterval` is set to its default, so that delta-rs (whose own is 100) checkpoints as often.
    """
    from deltalake import DeltaTable, Schema

    log = table / "_delta_log"
    DeltaTable.create(str(table), Schema.from_json(SCHEMA), configuration={"delta.checkpointInterval": "10"})
    commit = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    metadata = next(action["metaData"] for action in commit if "metaData" in action)
    add = pa.struct([*ADD_FIELDS, ("tags", STRING_MAP)])
    schema = pa.schema([("protocol", PROTOCOL), ("metaData", METADATA), ("add", add)])
    head = pa.table(
        {
            "protocol": pa.array([{"minReaderVersion": 1, "minWriterVersion": 2}, None], PROTOCOL),
            "metaData": pa.array(
                [
                    None,
                    {
                        "id": metadata["id"],
                        "format": {"provider": "parquet", "options": []},
                        "schemaString": SCHEMA,
                        "partitionColumns": [],
                        "configuration": list(metadata["configuration"].items()),
                        "createdTime": 0,
                    },
                ],
                METADATA,
            ),
            "add": pa.nulls(2, add),
        },
        schema=schema,
    )
    with pq.ParquetWriter(log / f"{0:020}.checkpoint.parquet", schema, compression="snappy") as writer:
        writer.write_table(head)
        random = Random(adds)
        for start in range(0, adds, 100_000):
            part = range(start, min(start + 100_000, adds))
            rows = [
                {
                    "path": f"part-{i % 200:05}-{uuid.UUID(int=random.getrandbits(128))}-c000.snappy.parquet",
                    "partitionValues": [],
                    "size": 1_000_000 + i,
                    "modificationTime": 1_700_000_000_000 + i,
                    "dataChange": False,
                    "stats": statistics_of(i, random),
                    "tags": None,
                }
                for i in part
            ]
            writer.write_table(
                pa.table(
                    {
                        "protocol": pa.nulls(len(part), PROTOCOL),
                        "metaData": pa.nulls(len(part), METADATA),
                        "add": pa.array(rows, add),
                    },
                    schema=schema,
                )
            )
    size = (log / f"{0:020}.checkpoint.parquet").stat().st_size
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": adds + 2, "sizeInBytes": size}))


def snapshot_tablelog(table: str) -> int:
    from tablelog.core import DeltaLog

    return len(DeltaLog.for_path(table).snapshot().files["path"])


def snapshot_deltalake(table: str) -> int:
    from deltalake import DeltaTable

    return len(DeltaTable(table).file_uris())


def refresh_tablelog(table: str, commits: int) -> dict[str, float]:
    """The refreshes of a handle after commits of others, one file each, all of them: seconds and seconds of CPU.

    With the number of files, so that what a refresh leaves undone until it is asked for isn't missed.
    """
    from tablelog.core import DeltaLog

    log = DeltaLog.for_path(table)
    assert log.snapshot().files.num_rows == log.snapshot().num_files
    seconds = cpu = 0.0
    for version in range(1, commits + 1):
        add = {"path": f"{uuid.uuid4()}.parquet", "partitionValues": {}, "size": 1, "modificationTime": version}
        text = json.dumps({"commitInfo": {}}) + "\n" + json.dumps({"add": {**add, "dataChange": True}})
        Path(table, "_delta_log", f"{version:020}.json").write_text(text)
        start, start_cpu = time.perf_counter(), time.process_time()
        snapshot = log.snapshot()
        assert snapshot.version == version
        assert snapshot.num_files
        seconds, cpu = seconds + time.perf_counter() - start, cpu + time.process_time() - start_cpu
    return {"seconds": seconds, "cpu": cpu}


def _timed_once(work: Callable[[], Any]) -> dict[str, float]:
    start, start_cpu = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - start_cpu}


def checkpoint_tablelog(table: str) -> dict[str, float]:
    """A classic checkpoint of a handle that has the files, but of the statistics nothing yet."""
    from tablelog.core import DeltaLog

    log = DeltaLog.for_path(table)
    snapshot = log.snapshot()
    assert snapshot.files.num_rows
    return _timed_once(lambda: log.checkpoint(snapshot))


def checkpoint_pyarrow(table: str) -> dict[str, float]:
    """The newest checkpoint written again by pyarrow, from memory."""
    newest = max(Path(table, "_delta_log").glob("*.checkpoint.parquet"))
    content = pq.read_table(newest)
    return _timed_once(lambda: pq.write_table(content, f"{table}.parquet"))


def planning_tablelog(table: str, tries: int) -> dict[str, float]:
    """Opening a table with its files, and then, with statistics at hand, the median of some selective plans."""
    from tablelog.core import DeltaLog
    from tablelog.core.skipping.predicates import And, Compare

    log = DeltaLog.for_path(table)
    opened = _timed_once(lambda: log.snapshot().files)
    snapshot = log.snapshot()

    def plan(first: int) -> None:
        low, high = pa.scalar(first * 1000, pa.int64()), pa.scalar(first * 1000 + 4999, pa.int64())
        found = snapshot.prune(And((Compare(">=", ("id",), low), Compare("<=", ("id",), high))), time_zone="UTC")
        assert found.num_rows == 5

    first = _timed_once(lambda: plan(7))
    plans = sorted((_timed_once(partial(plan, 100 * each)) for each in range(tries)), key=lambda one: one["seconds"])
    middle = plans[tries // 2]
    return {
        "open": opened["seconds"],
        "open_cpu": opened["cpu"],
        "first": first["seconds"],
        "seconds": middle["seconds"],
        "cpu": middle["cpu"],
    }


WARM_UP = 10


def together(table: str, processes: int) -> None:
    """Wait until all processes have come here: what is timed after it is commits, not start-up."""
    meeting = Path(os.environ.get("BENCH_MEETING", table))  # a table in an object store is no place to meet
    Path(f"{meeting}.ready-{uuid.uuid4()}").touch()
    patience = time.monotonic() + 120
    while len(list(meeting.parent.glob(f"{meeting.name}.ready-*"))) < processes:
        if time.monotonic() > patience:
            raise TimeoutError(f"not all of the {processes} processes came to the start")
        time.sleep(0.002)


def commits_tablelog(table: str, count: int, processes: int) -> tuple[float, float]:
    from tablelog.core import AddFile, DeltaLog, Operation

    log = DeltaLog.for_path(table, conf=json.loads(os.environ.get("BENCH_CONF", "{}")))

    def commit() -> None:
        add = AddFile(f"{uuid.uuid4()}.parquet", {}, 1000, 1_700_000_000_000, True, '{"numRecords":10}')
        log.transaction().commit([add], Operation("WRITE", {"mode": "Append", "partitionBy": []}))

    return _timed(commit, table, count, processes)


def commits_deltalake(table: str, count: int, processes: int) -> tuple[float, float]:
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import AddAction

    patient = CommitProperties(max_commit_retries=10_000)  # with its default of 15, processes fail
    schema = Schema.from_json(SCHEMA)
    on_s3 = table.startswith("s3")  # where and with which keys, the SDK's variables in the environment say
    options = {"AWS_ALLOW_HTTP": "true", "conditional_put": "etag"} if on_s3 else None
    opened = DeltaTable(table, storage_options=options)

    def commit() -> None:
        add = AddAction(f"{uuid.uuid4()}.parquet", 1000, {}, 1_700_000_000_000, True, '{"numRecords":10}')
        opened.create_write_transaction([add], "append", schema, [], commit_properties=patient)
        opened.update_incremental()

    return _timed(commit, table, count, processes)


def _timed(commit: Callable[[], None], table: str, count: int, processes: int) -> tuple[float, float]:
    """When the first of `count` commits began and the last ended, in seconds since the epoch."""
    for _ in range(WARM_UP):
        commit()
    together(table, processes)
    start = time.time()
    for _ in range(count):
        commit()
    return start, time.time()


if __name__ == "__main__":
    work, table, *rest = sys.argv[1:]
    print(json.dumps(globals()[work](table, *map(int, rest))))
