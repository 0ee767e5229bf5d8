"""The rows of a version read without Spark: nested values, nulls, mapped and missing columns."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablelog.core import AddFile, DeltaLog, Metadata, Operation, Protocol
from tablelog.core.protocol.schema import from_arrow, to_json
from tablelog.core.table_maintenance.rows import batches

NESTED = pa.schema(
    [
        ("list", pa.list_(pa.int64())),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("struct", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"list": [1, None], "map": [("k", 1)], "struct": {"a": 1, "b": ["x"]}},
    {"list": None, "map": None, "struct": None},
    {"list": [], "map": [], "struct": {"a": None, "b": None}},
]


def table(root: Path, schema_string: str, data: pa.Table, protocol: Protocol | None = None, **conf: str) -> DeltaLog:
    root.mkdir()
    pq.write_table(data, root / "a.parquet")
    log = DeltaLog.for_path(str(root))
    transaction = log.transaction()
    transaction.set_metadata(Metadata("x", schema_string, (), conf))
    if protocol is not None:
        transaction.set_protocol(protocol)
    add = AddFile("a.parquet", {}, (root / "a.parquet").stat().st_size, 1, True)
    transaction.commit([add], Operation("WRITE"))
    return log


def rows(log: DeltaLog) -> list[dict[str, Any]]:
    snapshot = log.snapshot()
    found: list[dict[str, Any]] = []
    for batch in batches(log, snapshot, [0], snapshot.schema.names):
        found.extend(batch.to_pylist())
    return found


@pytest.mark.parametrize("repeated", [1, 3_000])  # more rows than one batch has
def test_nested_values_and_their_nulls(repeated: int, tmp_path: Path) -> None:
    data = pa.Table.from_pylist(ROWS * repeated, schema=NESTED)
    assert rows(table(tmp_path / "t", to_json(from_arrow(NESTED)), data)) == ROWS * repeated


def test_mapped_columns_have_their_logical_names(tmp_path: Path) -> None:
    def field(name: str, physical: str, number: int, kind: Any) -> dict[str, Any]:
        metadata = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    inner = {"type": "struct", "fields": [field("inside", "col-2", 2, "long")]}
    schema = {"type": "struct", "fields": [field("outside", "col-1", 1, inner), field("new", "col-3", 3, "string")]}
    data = pa.table({"col-1": pa.array([{"col-2": 7}, None])})
    settings = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    log = table(tmp_path / "t", json.dumps(schema), data, Protocol(2, 5), **settings)
    assert rows(log) == [{"outside": {"inside": 7}, "new": None}, {"outside": None, "new": None}]


def test_a_column_that_was_widened(tmp_path: Path) -> None:
    wide = to_json(from_arrow(pa.schema([("n", pa.int64()), ("d", pa.decimal128(12, 4))])))
    data = pa.table({"n": pa.array([1], pa.int32()), "d": pa.array(["1.50"]).cast(pa.decimal128(5, 2))})
    (row,) = rows(table(tmp_path / "t", wide, data))
    assert (row["n"], str(row["d"])) == (1, "1.5000")
