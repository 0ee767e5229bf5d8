"""A table with real Parquet files, written without Spark, for tests of what reads the files themselves."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablelog.core import DeltaLog, Metadata, Operation
from tablelog.core.protocol.actions import Action, AddFile, Protocol
from tablelog.core.protocol.schema import from_arrow, leaves, to_json
from tablelog.core.skipping.stats_writer import collect

WRITE = Operation("WRITE", {"mode": "Append", "partitionBy": []})
ROWS = pa.schema([("id", pa.int64()), ("user", pa.string()), ("amount", pa.float64()), ("day", pa.date32())])
DAYS = ("2024-05-01", "2024-05-02")


class ArrowTable:
    """A table of events, partitioned by day; each commit adds one file."""

    def __init__(
        self, root: Path, configuration: dict[str, str] | None = None, *, protocol: Protocol | None = None
    ) -> None:
        self.root = root
        self.log_directory = root / "_delta_log"
        self.files: list[str] = []
        log = self.log()
        transaction = log.transaction()
        schema = from_arrow(ROWS)
        transaction.set_metadata(Metadata("table-id", to_json(schema), ("day",), configuration or {}))
        if protocol is not None:
            transaction.set_protocol(protocol)
        transaction.commit([], Operation("CREATE TABLE"))

    def log(self) -> DeltaLog:
        return DeltaLog.for_path(str(self.root))

    @property
    def path(self) -> str:
        return str(self.root)

    def write_file(self, first: int, rows: int = 3, day: str = DAYS[0], **fields: Any) -> AddFile:
        name = f"day={day}/part-{len(self.files):05}.parquet"
        self.files.append(name)
        data = pa.table(
            {
                "id": pa.array(range(first, first + rows), pa.int64()),
                "user": pa.array([f"user {number % 3}" for number in range(rows)]),
                "amount": pa.array([1.5 * number for number in range(rows)]),
            }
        )
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, path)
        stats = collect(data, list(leaves(from_arrow(data.schema))))
        status = path.stat()
        values: dict[str, Any] = {"partition_values": {"day": day}, "stats": stats, "data_change": True, **fields}
        return AddFile(name, size=status.st_size, modification_time=int(status.st_mtime * 1000), **values)

    def append(self, first: int, rows: int = 3, day: str = DAYS[0], **fields: Any) -> AddFile:
        add = self.write_file(first, rows, day, **fields)
        self.commit(add)
        return add

    def commit(self, *actions: Action, operation: Operation = WRITE) -> int:
        return self.log().transaction().commit(actions, operation).version

    def with_rows(self, files: int = 3) -> "ArrowTable":
        for number in range(files):
            self.append(3 * number, day=DAYS[number % 2])
        return self

    def commit_file(self, version: int) -> Path:
        return self.log_directory / f"{version:020}.json"

    def lose_file(self, version: int) -> None:
        """Remove the row of a file from the checkpoint of a version."""
        path = self.log_directory / f"{version:020}.checkpoint.parquet"
        rows = pq.read_table(path)
        first = next(row for row, add in enumerate(rows.column("add").to_pylist()) if add)
        pq.write_table(rows.take([row for row in range(len(rows)) if row != first]), path)
