"""A table with one of each trouble that the report shows, on a store in memory or on a disk."""

import json
from typing import Any

from support.log_builder import LogBuilder, add, remove
from tablelog.core.protocol.actions import CommitInfo, DeletionVectorDescriptor
from tablelog.logstore import LogStore

DAY_MS = 86_400_000
MIB = 1 << 20
PROPERTIES = {"delta.deletedFileRetentionDuration": "interval 7 days", "delta.enableDeletionVectors": "true"}


def schema(*names: str) -> str:
    types = {"id": "long", "user": "long", "day": "date", "text": "string"}
    fields = [{"name": n, "type": types.get(n, "string"), "nullable": True, "metadata": {}} for n in names]
    return json.dumps({"type": "struct", "fields": fields})


def stats(rows: int, low: dict[str, Any], high: dict[str, Any]) -> str:
    return json.dumps({"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)})


def vector(deleted: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, deleted)


def messy(store: LogStore | None = None, root: str = "memory:/shop/events", *, versions: int = 40) -> LogBuilder:
    """Small files in each of many commits, an old deletion, a file with deleted rows, and no checkpoint.

    Column `id` ascends with the files; `user` has the same range in each of them. A DELETE filters by `user`.
    """
    log = LogBuilder(store, root)
    log.create(schema=schema("id", "user", "day", "text"), partition_columns=("day",), configuration=PROPERTIES)
    for i in range(versions):
        values = {"day": f"2026-05-{1 + i // 20:02}"}
        bounds = stats(100, {"id": 100 * i, "user": 1, "text": "a"}, {"id": 100 * i + 99, "user": 1000, "text": "z"})
        log.commit(add(f"{i}.parquet", size=4 * MIB, partition_values=values, stats=bounds), read_version=log.version)
    first = add("0.parquet", size=4 * MIB, partition_values={"day": "2026-05-01"}, stats=bounds)
    info = CommitInfo(
        operation="DELETE", operation_parameters={"predicate": '["(user = 7)"]'}, read_version=log.version - 2
    )
    log.version += 1
    marked = add("0.parquet", size=4 * MIB, partition_values={"day": "2026-05-01"}, stats=bounds,
                 deletion_vector=vector(60))  # fmt: skip
    log.write_commit(log.version, [info, remove("0.parquet", at=log.clock.now, size=4 * MIB), marked], None)
    log.commit(remove("1.parquet", at=log.clock.now, size=4 * MIB, partition_values=first.partition_values))
    log.clock.now += 30 * DAY_MS
    return log
