"""Statistics and partition values that were written in narrower types than the columns have now."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tablelog.core import DeltaLog
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.protocol.schema import PrimitiveType, StructField, StructType
from tablelog.core.schema_evolution.changes import ColumnChange, altered
from tablelog.core.skipping.predicates import Compare
from tablelog.core.txn.operation import Operation

OLD = {"i": "integer", "d": "date", "c": "decimal(10,2)", "l": "long", "p": "date"}
NEW = {"i": "decimal(12,2)", "d": "timestamp_ntz", "c": "decimal(12,4)", "l": "decimal(22,2)", "p": "timestamp_ntz"}
PROPERTIES = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}


def add(k: int) -> AddFile:
    bounds = f'{{"i":{k},"d":"2024-01-0{k}","c":1.5{k},"l":{k}}}'
    stats = f'{{"numRecords":1,"minValues":{bounds},"maxValues":{bounds},"nullCount":{{"i":0,"d":0,"c":0,"l":0}}}}'
    return AddFile(f"f{k}", {"p": f"2024-01-0{k}"}, 1, 0, data_change=True, stats=stats)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_files_are_chosen_by_what_they_said_before(tmp_path: Path, checkpoint: bool) -> None:
    log = DeltaLog.for_path(str(tmp_path))
    columns = StructType(tuple(StructField(name, PrimitiveType(kind)) for name, kind in OLD.items()))
    txn = log.transaction()
    txn.set_metadata(Metadata("id", schemas.to_json(columns), ("p",), PROPERTIES))
    txn.commit([add(k) for k in (1, 2, 3)], Operation("WRITE"))
    for name, kind in NEW.items():
        txn = log.transaction()
        change = ColumnChange((name,), StructField("", PrimitiveType(kind)))
        txn.set_metadata(altered(txn.metadata, txn.protocol, change))
        txn.commit([], Operation("CHANGE COLUMN"))
    if checkpoint:
        log.checkpoint()
    snapshot = DeltaLog.for_path(str(tmp_path)).snapshot()
    day = pa.scalar(dt.datetime(2024, 1, 2), pa.timestamp("us"))
    for name, value in (
        ("i", pa.scalar(Decimal("2.00"), pa.decimal128(12, 2))),
        ("d", day),
        ("c", pa.scalar(Decimal("1.5200"), pa.decimal128(12, 4))),
        ("l", pa.scalar(Decimal("2.00"), pa.decimal128(22, 2))),
        ("p", day),
    ):
        assert snapshot.prune(Compare("=", (name,), value), time_zone="UTC").column("path").to_pylist() == ["f2"], name
