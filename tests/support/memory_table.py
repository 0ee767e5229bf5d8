"""A table in memory, handles on it, and the actions that tests of the transaction commit."""

import json
from typing import Any

from tablelog.clock import SystemClock
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.txn.commit import Patience
from tablelog.core.txn.operation import Operation
from tablelog.logstore.base import LogStore
from tablelog.logstore.memory import MemoryLogStore

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
)
WRITE = Operation("WRITE", {"mode": "Append", "partitionBy": []})
NO_CRC = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
QUICK = Patience(tries=3, shortest=0.0, longest=0.0)


def schema_of(*fields: tuple[str, str]) -> str:
    return json.dumps(
        {
            "type": "struct",
            "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields],
        }
    )


def add(path: str, p: int | None = None, *, data_change: bool = True, partitioned: bool = False) -> AddFile:
    values = {"p": None if p is None else str(p)} if partitioned or p is not None else {}
    return AddFile(path, values, 10, 1, data_change, stats='{"numRecords":1}')


class Patient(SystemClock):
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def new_log(store: LogStore | None = None, conf: dict[str, str] | None = None, clock: Any = None) -> DeltaLog:
    return DeltaLog.for_path("memory:///t", store=store or MemoryLogStore(), conf=conf or NO_CRC, clock=clock)


def create(log: DeltaLog, *partition_columns: str, configuration: dict[str, str] | None = None) -> None:
    transaction = log.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA, partition_columns, configuration or {}))
    transaction.commit([], Operation("CREATE TABLE"))


def table(*partition_columns: str, conf: dict[str, str] | None = None, **configuration: str) -> DeltaLog:
    log = new_log(conf=conf)
    create(log, *partition_columns, configuration={f"delta.{k}": v for k, v in configuration.items()})
    return log


def other(log: DeltaLog) -> DeltaLog:
    """Another process's handle on the same table."""
    return DeltaLog(log.table, log.store, conf=log.conf, clock=log.clock)


def lines(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    data = log.store.read(f"{log.log_path}/{version:020d}.json")
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode().splitlines()]
