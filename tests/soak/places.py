"""The tables of a soak: where they are, and how they begin."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from soak.effects import Row
from tablelog.core import AddFile, DeltaLog, Metadata, Operation, Snapshot
from tablelog.core.table_maintenance import rows as file_rows
from tablelog.logstore.data_files import DataFiles

ACCOUNTS, SHARE = 16, 1000
"""The rows of the partition `accounts`, and what each holds at the beginning: transfers keep the sum."""

_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "amount", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)


@dataclass(frozen=True, eq=False)
class Place:
    """A local directory or a bucket with three tables.

    `main` gets every command; `events` is appended to and compacted; a stream copies it to `copied`.
    """

    name: str
    root: str
    conf: Mapping[str, str] = field(default_factory=dict)
    vectors: bool = False

    def url(self, table: str) -> str:
        return f"{self.root}/{table}"

    def log(self, table: str) -> DeltaLog:
        return DeltaLog.for_path(self.url(table), conf=self.conf)

    def files(self, table: str) -> DataFiles:
        return DataFiles.of(self.log(table).table, self.conf, {})


@dataclass(frozen=True)
class Run:
    """What every process of a soak is told."""

    directory: str
    seed: int
    places: tuple[Place, ...]
    retention_seconds: int
    class_path: str = ""

    @property
    def stopped(self) -> bool:
        return Path(self.directory, "stop").exists()

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> "Run":
        values = json.loads(text)
        places = tuple(Place(**place) for place in values.pop("places"))
        return cls(places=places, **values)


def create(place: Place, retention_seconds: int) -> list[Row]:
    """Create `main` and `events`; the first rows of `main`."""
    properties = {
        "delta.enableDeletionVectors": str(place.vectors).lower(),
        "delta.deletedFileRetentionDuration": f"interval {retention_seconds} seconds",
    }
    accounts = [Row(number, "accounts", SHARE) for number in range(ACCOUNTS)]
    for table, rows in (("main", accounts), ("events", [])):
        transaction = place.log(table).transaction()
        transaction.set_metadata(Metadata(f"soak-{place.name}-{table}", _SCHEMA, ("p",), properties))
        adds = [written(place, table, "accounts", rows)] if rows else []
        transaction.commit(adds, Operation("CREATE TABLE"))
    return accounts


def written(place: Place, table: str, partition: str, rows: Iterable[Row]) -> AddFile:
    """Write a data file; its `add`."""
    chosen = list(rows)
    ids, amounts = [row.id for row in chosen], [row.amount for row in chosen]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "amount": pa.array(amounts, pa.int64())}), sink)
    data = sink.getvalue().to_pybytes()
    name = f"p={partition}/{uuid.uuid4()}.parquet"
    place.files(table).write(name, data)
    stats = json.dumps({"numRecords": len(ids), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}})
    return AddFile(name, {"p": partition}, len(data), int(time.time() * 1000), True, stats)


def read(log: DeltaLog, snapshot: Snapshot, indices: Iterable[int] | None = None) -> list[Row]:
    """The rows of a version, or of some of its files."""
    chosen = list(range(snapshot.files.num_rows) if indices is None else indices)
    found = []
    for batch in file_rows.batches(log, snapshot, chosen, ["id", "p", "amount"]):
        found += [Row(*values) for values in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    return found
