"""Tables whose log a test writes by hand, on a store that it chooses."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from tablelog.clock import SystemClock
from tablelog.core import DeltaLog
from tablelog.core.log.memory_limits import DEFAULT_LIMITS
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tablelog.core.protocol.paths import commit_name
from tablelog.logstore import LogStore, MemoryLogStore

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
PARTITIONED = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"day","type":"date","nullable":true,"metadata":{}}]}'
)


class SetClock(SystemClock):
    """A clock that shows what the test sets; the store's modification times come from it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now


def metadata(
    configuration: Mapping[str, str] | None = None,
    *,
    partition_columns: tuple[str, ...] = (),
    schema: str = SCHEMA,
    table_id: str | None = None,
) -> Metadata:
    return Metadata(
        id=table_id or str(uuid.uuid4()),
        schema_string=schema,
        partition_columns=partition_columns,
        configuration=configuration or {},
        created_time=1_700_000_000_000,
    )


def add(path: str, *, size: int = 100, **fields: Any) -> AddFile:
    values = {"partition_values": {}, "modification_time": 1_700_000_000_000, "data_change": True, **fields}
    return AddFile(path=path, size=size, **values)


def remove(path: str, *, at: int = 1_700_000_000_000, **fields: Any) -> RemoveFile:
    values = {"extended_file_metadata": True, "partition_values": {}, "size": 100, **fields}
    return RemoveFile(path=path, deletion_timestamp=at, data_change=True, **values)


class LogBuilder:
    """Writes commits straight to the store, as another program would; `log()` is a fresh handle."""

    def __init__(self, store: LogStore | None = None, root: str = "memory:/table") -> None:
        self.clock = SetClock()
        self.limits = DEFAULT_LIMITS
        self.store = store or MemoryLogStore(self.clock)
        self.root = self.store.resolve(root)
        self.log_path = f"{self.root}/_delta_log"
        self.version = -1

    def create(self, *actions: Action, configuration: Mapping[str, str] | None = None, **fields: Any) -> "LogBuilder":
        return self.commit(Protocol(1, 2), metadata(configuration, **fields), *actions)

    def commit(self, *actions: Action, at: int | None = None, **info: Any) -> "LogBuilder":
        self.version += 1
        self.write_commit(self.version, [CommitInfo(timestamp=self.clock.now, operation="WRITE", **info), *actions], at)
        return self

    def write_commit(self, version: int, actions: Iterable[Action], at: int | None = None) -> None:
        self.clock.now = self.clock.now + 1000 if at is None else at
        self.store.write(f"{self.log_path}/{commit_name(version)}", codec.serialise(actions))

    def write(self, name: str, data: bytes) -> None:
        self.store.write(f"{self.log_path}/{name}", data, overwrite=True)

    def read(self, name: str) -> bytes:
        return self.store.read(f"{self.log_path}/{name}")

    def delete(self, *names: str) -> None:
        for name in names:
            self.store.delete(f"{self.log_path}/{name}")

    def names(self) -> list[str]:
        return [status.path.rpartition("/")[2] for status in self.store.list_from(f"{self.log_path}/0")]

    def log(self, store: LogStore | None = None, **arguments: Any) -> DeltaLog:
        return DeltaLog.for_path(
            self.root, store=store or self.store, clock=self.clock, limits=self.limits, **arguments
        )

    def paths(self, version: int | None = None) -> list[str]:
        return sorted(self.log().snapshot(version).files.column("path").to_pylist())
