"""Small tables made by hand: Parquet by pyarrow, commits by the codec, so that reading is tested apart from writing."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import codec, paths
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from tablelog.engine.read import explain


def stats_of(data: pa.Table) -> str:
    """The statistics of a file, for columns of numbers and strings (whole ones), as the log has them."""
    low: dict[str, object] = {}
    high: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for name in data.column_names:
        column = data.column(name)
        nulls[name] = column.null_count
        kind = column.type
        if column.null_count == len(column) or not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind)
        ):
            continue
        bounds = pc.min_max(column)
        low[name], high[name] = bounds["min"].as_py(), bounds["max"].as_py()
    return json.dumps({"numRecords": data.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls})


class HandMade:
    """A table whose log is written line by line."""

    def __init__(
        self,
        root: Path,
        schema: Mapping[str, str] | schemas.StructType,
        partition_columns: Sequence[str] = (),
        *,
        table_id: str = "11111111-2222-3333-4444-555555555555",
    ) -> None:
        """`schema` gives each column's type by its name in the log."""
        self.root = root
        self.partition_columns = tuple(partition_columns)
        (root / "_delta_log").mkdir(parents=True)
        self.version = -1
        self._id = table_id
        self._count = 0
        self.commit([Protocol(1, 2), self.metadata(schema)])

    def metadata(self, schema: Mapping[str, str] | schemas.StructType) -> Metadata:
        if not isinstance(schema, schemas.StructType):
            schema = schemas.StructType(
                tuple(schemas.StructField(name, schemas.PrimitiveType(kind)) for name, kind in schema.items())
            )
        return Metadata(self._id, schemas.to_json(schema), self.partition_columns, created_time=1_700_000_000_000)

    def commit(self, actions: Sequence[Action]) -> int:
        self.version += 1
        (self.root / "_delta_log" / paths.commit_name(self.version)).write_bytes(codec.serialise(actions))
        return self.version

    def file(
        self,
        data: pa.Table,
        values: Mapping[str, str | None] | None = None,
        *,
        stats: bool = True,
        name: str | None = None,
    ) -> AddFile:
        """Write a data file (it may have a name with any characters) and give its action."""
        self._count += 1
        name = name or f"part-{self._count:05d}.parquet"
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, target)
        return AddFile(
            paths.encode(name),
            dict(values or {}),
            target.stat().st_size,
            1_700_000_000_000,
            True,
            stats=stats_of(data) if stats else None,
        )

    def append(self, data: pa.Table, values: Mapping[str, str | None] | None = None, *, stats: bool = True) -> AddFile:
        add = self.file(data, values, stats=stats)
        self.commit([add])
        return add

    def remove(self, add: AddFile) -> None:
        self.commit([RemoveFile(add.path, 1_700_000_000_000, True)])

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(str(self.root))


def files_read(frame: DataFrame) -> str:
    """`5 of 20 files`: what the frame's one scan reads; no text where Spark found that no row can be in the result."""
    texts = re.findall(r"\b\d+ of \d+ files\b", explain.describe(frame))
    assert len(texts) <= 1
    return texts[0] if texts else ""
