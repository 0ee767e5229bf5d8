"""A log of ten million files: made, opened, planned, checkpointed. One piece of work a process, as in `log_work`."""

import json
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.log_work import ADD_FIELDS, METADATA, PROTOCOL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 365
ROWS = 1000
"""Rows of a file; its ids follow those of the file before it."""
_LINKS = 50_000
"""The names of one file: ext4 allows 65,000."""

_BOUNDS = pa.struct([("id", pa.int64()), ("k", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
_NULLS = pa.struct([(name, pa.int64()) for name in ("id", "k", "x", "s")])
_STATS = pa.struct([("numRecords", pa.int64()), ("minValues", _BOUNDS), ("maxValues", _BOUNDS), ("nullCount", _NULLS)])
_ADD = pa.struct([*ADD_FIELDS, ("stats_parsed", _STATS)])
_SCHEMA = pa.schema([("protocol", PROTOCOL), ("metaData", METADATA), ("add", _ADD)])
_COLUMNS = {"day": "string", "id": "long", "k": "long", "x": "double", "s": "string"}


def make(table: Path, adds: int, parts: int, existing: int = 0) -> None:
    """A table of one checkpoint in `parts`, shaped as Spark's Delta writes it, statistics as text and as structs.

    Its files exist if `existing` is 1: they have the rows of the first one.
    """
    data = _write_data(table) if existing else None
    log = table / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in _COLUMNS.items()]
    described = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": []},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": [("delta.checkpoint.writeStatsAsStruct", "true")],
        "createdTime": 0,
    }
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}, "metaData": None, "add": None},
        {"protocol": None, "metaData": described, "add": None},
    ]
    random = np.random.default_rng(adds)
    each, size = -(-adds // parts), 0
    for part in range(parts):
        path = log / f"{0:020}.checkpoint.{part + 1:010}.{parts:010}.parquet"
        with pq.ParquetWriter(path, _SCHEMA, compression="snappy") as writer:
            if part == 0:
                writer.write_table(pa.Table.from_pylist(head, schema=_SCHEMA))
            for start in range(part * each, min((part + 1) * each, adds), 100_000):
                numbers = range(start, min(start + 100_000, (part + 1) * each, adds))
                add = _adds(numbers, random)
                if data is not None:
                    add = _linked(table, add, data)
                nulls = {name: pa.nulls(len(add), _SCHEMA.field(name).type) for name in ("protocol", "metaData")}
                writer.write_table(pa.table({**nulls, "add": add}, schema=_SCHEMA))
        size += path.stat().st_size
    hint = {"version": 0, "size": adds + 2, "parts": parts, "sizeInBytes": size, "numOfAddFiles": adds}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _adds(numbers: range, random: np.random.Generator) -> pa.Array:
    count = len(numbers)
    texts = random.bytes(32 * count).hex()
    k, x = random.integers(0, 500, count), random.random(count)
    day = [f"2024-{number % DAYS // 31 + 1:02}-{number % DAYS % 31 + 1:02}" for number in numbers]
    low_s = [texts[64 * i + 32 : 64 * i + 48] for i in range(count)]
    high_s = [texts[64 * i + 48 : 64 * i + 64] for i in range(count)]
    path = [
        f"day={day[i]}/part-{i % 200:05}-{texts[at : at + 8]}-{texts[at + 8 : at + 32]}-c000.snappy.parquet"
        for i, at in enumerate(range(0, 64 * count, 64))
    ]
    ids = np.arange(numbers.start, numbers.stop, dtype=np.int64) * ROWS
    stats = [
        f'{{"numRecords":{ROWS},"minValues":{{"id":{i * ROWS},"k":{a},"x":{b!r},"s":"{c}"}},'
        f'"maxValues":{{"id":{i * ROWS + ROWS - 1},"k":{a + 499},"x":{b + 1!r},"s":"{d}"}},'
        f'"nullCount":{{"id":0,"k":0,"x":0,"s":0}}}}'
        for i, a, b, c, d in zip(numbers, k.tolist(), x.tolist(), low_s, high_s, strict=True)
    ]
    zero = pa.array(np.zeros(count, np.int64))
    low = pa.StructArray.from_arrays([pa.array(ids), pa.array(k), pa.array(x), pa.array(low_s)], fields=list(_BOUNDS))
    high = pa.StructArray.from_arrays(
        [pa.array(ids + ROWS - 1), pa.array(k + 499), pa.array(x + 1), pa.array(high_s)], fields=list(_BOUNDS)
    )
    nulls = pa.StructArray.from_arrays([zero] * len(_NULLS), fields=list(_NULLS))
    parsed = pa.StructArray.from_arrays(
        [pa.array(np.full(count, ROWS, np.int64)), low, high, nulls], fields=list(_STATS)
    )
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    values = pa.MapArray.from_arrays(offsets, pa.array(["day"] * count), pa.array(day))
    columns = [
        pa.array(path),
        values,
        pa.array(1_000_000 + ids // ROWS),
        pa.array(1_700_000_000_000 + ids // ROWS),
        pa.array(np.zeros(count, np.bool_)),
        pa.array(stats),
        parsed,
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_ADD))


def _write_data(table: Path) -> bytes:
    """The content of a data file."""
    table.mkdir(parents=True)
    ids = np.arange(ROWS)
    columns = {"id": ids, "k": ids % 500, "x": ids.astype(np.float64), "s": ids.astype(str)}
    pq.write_table(pa.table(columns), table / "data.parquet")
    content = (table / "data.parquet").read_bytes()
    (table / "data.parquet").unlink()
    return content


def _linked(table: Path, add: pa.StructArray, data: bytes) -> pa.StructArray:
    """Files of this content, and the actions with its size. A file has many names, because a disk has few files."""
    first: Path | None = None
    for number, name in enumerate(add.field("path").to_pylist()):
        path = table / name
        path.parent.mkdir(exist_ok=True)
        if first is None or number % _LINKS == 0:
            path.write_bytes(data)
            first = path
        else:
            path.hardlink_to(first)
    fields = {field.name: add.field(i) for i, field in enumerate(add.type)}
    fields["size"] = pa.repeat(pa.scalar(len(data), pa.int64()), len(add))
    return pa.StructArray.from_arrays(list(fields.values()), fields=list(add.type))


# --- the work ---------------------------------------------------------------------------------------------------------


def _measured(work: Callable[[], Any]) -> dict[str, float]:
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}


def _peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def driver(table: str) -> dict[str, Any]:
    """Without Spark: opening, the columns of all files, a first plan and a second one."""
    from tablelog.core import DeltaLog
    from tablelog.core.skipping.predicates import And, Compare

    log = DeltaLog.for_path(table)
    opened = _measured(log.snapshot)
    peak_opened = _peak()
    snapshot = log.snapshot()
    columns = _measured(lambda: snapshot.files)

    def plan(first: int) -> None:
        low, high = pa.scalar(first * ROWS, pa.int64()), pa.scalar((first + 5) * ROWS - 1, pa.int64())
        assert (
            snapshot.prune(And((Compare(">=", ("id",), low), Compare("<=", ("id",), high))), time_zone="UTC").num_rows
            == 5
        )

    return {
        "open": opened,
        "peak of opening, MiB": peak_opened,
        "columns": columns,
        "first plan": _measured(lambda: plan(7)),
        "second plan": _measured(lambda: plan(70)),
        "peak, MiB": _peak(),
    }


def checkpoint(table: str) -> dict[str, Any]:
    """A checkpoint of the version after, by a process that has only opened the table."""
    from tablelog.core import DeltaLog

    Path(table, "_delta_log", f"{1:020}.json").write_text(json.dumps(_one_more("one.parquet")))
    conf = {"spark.databricks.delta.checkpoint.partSize": "200000"}
    log = DeltaLog.for_path(table, conf=conf)
    snapshot = log.snapshot()
    taken = _measured(lambda: log.checkpoint(snapshot))
    return {**taken, "peak, MiB": _peak()}


def _one_more(path: str) -> dict[str, Any]:
    told = {"partitionValues": {"day": "2024-01-01"}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {"path": path, **told}}


def checkpoint_by_spark(table: str) -> dict[str, Any]:
    """The same as `checkpoint`, as a V2 checkpoint whose sidecars Spark writes."""
    from tablelog.core import DeltaLog, Protocol
    from tablelog.core.protocol.codec import to_json
    from tablelog.engine.write import large_checkpoint

    spark = _session()
    log = DeltaLog.for_path(table)
    seen = log.snapshot()
    described = replace(seen.metadata, configuration={**seen.metadata.configuration, "delta.checkpointPolicy": "v2"})
    features = frozenset({"v2Checkpoint"})
    actions = [to_json(Protocol(3, 7, features, features)), to_json(described), json.dumps(_one_more("two.parquet"))]
    Path(table, "_delta_log", f"{seen.version + 1:020}.json").write_text("\n".join(actions))
    snapshot = log.snapshot()
    taken = _measured(lambda: log.checkpoint(snapshot, sidecar_writer=partial(large_checkpoint.sidecars, spark, log)))
    assert snapshot.base is not None
    assert not snapshot.base.loaded
    return {**taken, "sidecars": len(os.listdir(Path(table, "_delta_log", "_sidecars"))), **_memory(spark)}


def _session() -> "SparkSession":
    from pyspark.sql import SparkSession

    from tablelog.spark import enable

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.range(10).count()
    return enable(spark)


def _memory(spark: "SparkSession") -> dict[str, float]:
    status = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text()
    return {"driver, MiB": _peak(), "JVM, MiB": int(status.partition("VmHWM:")[2].split()[0]) / 1024}


def by_spark(table: str, times: int) -> dict[str, Any]:
    """Plans of queries through Spark, the driver never holding more than the files that they need."""
    from tablelog.engine.read.explain import describe
    from tablelog.spark.conf import delta_log, session_conf

    spark = _session()
    log = delta_log(table, session_conf(spark, table))
    opened = _measured(log.snapshot)
    read = spark.read.format("delta").load(table)
    found: dict[str, Any] = {"open": opened}
    for name, condition, files in (
        ("5 files by statistics", f"id between {7 * ROWS} and {12 * ROWS - 1}", "5 of "),
        ("a day by its partition, 2 files of it", f"day = '2024-01-08' and id < {400 * ROWS}", "2 of "),
        ("a day, evaluated by Spark", "right(day, 5) = '01-08'", ""),
    ):
        taken = []
        for _ in range(times):
            told: list[str] = []
            taken.append(_measured(lambda told=told, condition=condition: told.append(describe(read.where(condition)))))  # type: ignore[misc]
            assert f", {files}" in told[0], told[0]
        found[name] = [one["seconds"] for one in taken]
    base = log.snapshot().base
    assert base is not None
    assert not base.loaded
    return {**found, **_memory(spark)}


def writers(table: str, count: int) -> dict[str, Any]:
    """So many writers, each with a handle of its own, that commit one file each, all at once; requests of all."""
    from tablelog.core import AddFile, DeltaLog, Metadata, Operation, Protocol
    from tablelog.logstore import CountingLogStore, LocalLogStore

    store = CountingLogStore(LocalLogStore())
    schema = '{"type":"struct","fields":[]}'
    create = DeltaLog.for_path(table, store=store).transaction()
    create.commit([Protocol(1, 2), Metadata("writers", schema, ())], Operation("CREATE TABLE", {}))
    store.reset()
    together = Barrier(count)

    def one(number: int) -> None:
        log = DeltaLog.for_path(table, store=store)
        log.snapshot()
        together.wait()
        add = AddFile(f"{number}.parquet", {}, 1, 1, True)
        log.transaction().commit([add], Operation("WRITE", {"mode": "Append"}))

    def all_of_them() -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(one, range(count)))

    taken = _measured(all_of_them)
    assert DeltaLog.for_path(table).snapshot().num_files == count
    return {**taken, **{name: calls / count for name, calls in store.calls.items()}}


if __name__ == "__main__":
    work, table, *rest = sys.argv[1:]
    if work == "make":
        make(Path(table), *map(int, rest))
    else:
        print(json.dumps(globals()[work](table, *map(int, rest))))
