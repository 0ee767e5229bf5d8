"""The rows of a table without Spark: what the core and pyarrow read."""

import pyarrow as pa

from tablelog.core import DeltaLog
from tablelog.core.protocol.schema import arrow_schema
from tablelog.core.table_maintenance.rows import batches


def by_core(path: str, version: int | None = None) -> pa.Table:
    log = DeltaLog.for_path(path)
    snapshot = log.snapshot(version)
    names = snapshot.schema.names
    found = list(batches(log, snapshot, range(snapshot.files.num_rows), names))
    return pa.Table.from_batches(found) if found else arrow_schema(snapshot.schema).empty_table()
