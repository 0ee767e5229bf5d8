"""A table that maps its columns, in the core: pruning, conflicts, checkpoints and checks by their physical names."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.memory_table import NO_CRC, SCHEMA, WRITE, lines, new_log
from tablelog.core import DeltaLog
from tablelog.core.protocol import column_mapping as mapping
from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.schema_evolution import changes as evolution
from tablelog.core.skipping.predicates import Compare, IsNull, Opaque, Predicate, all_of
from tablelog.core.txn.operation import Operation
from tablelog.errors import ConcurrentAppendException, InvalidArgumentError

ADDS = 6


def compare(op: Any, name: str, value: int, kind: pa.DataType) -> Compare:
    return Compare(op, (name,), pa.scalar(value, kind))


def p_is(value: int) -> Predicate:
    return compare("=", "p", value, pa.int32())


def v_is(op: str, value: int) -> Predicate:
    return compare(op, "v", value, pa.int64())


@pytest.fixture(params=[NO_CRC, {**NO_CRC, "spark.databricks.delta.properties.defaults.checkpointInterval": "3"}])
def log(request: pytest.FixtureRequest) -> DeltaLog:
    """A file for each p from 0 to 5, with v from 10 p to 10 p + 9; with a checkpoint at version 3, or without."""
    made = new_log(conf=request.param)
    transaction = made.transaction()
    transaction.set_metadata(Metadata("id", SCHEMA, ("p",), {"delta.columnMapping.mode": "name"}))
    told = mapping.ColumnMapping.of(transaction.protocol, transaction.metadata)
    transaction.commit([], Operation("CREATE TABLE"))
    for p in range(ADDS):
        made.transaction().commit([add(told, p)], WRITE)
    return DeltaLog(made.table, made.store, conf=made.conf)


def add(told: mapping.ColumnMapping, p: int) -> AddFile:
    v = told.to_physical(("v",))[0]
    stats = {"numRecords": 10, "minValues": {v: 10 * p}, "maxValues": {v: 10 * p + 9}, "nullCount": {v: 0}}
    return AddFile(f"f{p}", {told.to_physical(("p",))[0]: str(p)}, 10, 1, True, stats=json.dumps(stats))


def test_the_log_has_physical_names(log: DeltaLog) -> None:
    snapshot = log.snapshot()
    assert snapshot.partition_columns == ("p",)
    assert all(name.startswith("col-") for name in snapshot.mapping.physical.names)
    (line,) = [action["metaData"] for action in lines(log, 0) if "metaData" in action]
    assert line["partitionColumns"] == ["p"]
    assert line["configuration"]["delta.columnMapping.maxColumnId"] == "2"


@pytest.mark.parametrize(
    ("predicate", "files"),
    [
        (p_is(3), {"f3"}),
        (v_is(">", 44), {"f4", "f5"}),
        (all_of([v_is("<", 25), compare(">", "p", 0, pa.int32())]), {"f1", "f2"}),
        (IsNull(("v",)), set()),
        (all_of([p_is(1), Opaque("f(v)", frozenset({("v",)}))]), {"f1"}),
    ],
)
def test_pruning_by_logical_names(log: DeltaLog, predicate: Predicate, files: set[str]) -> None:
    assert set(log.snapshot().prune(predicate, time_zone="UTC").column("path").to_pylist()) == files


def test_records_are_counted_by_stats(log: DeltaLog) -> None:
    assert log.snapshot().num_records().to_pylist() == [10] * ADDS


def test_a_checkpoint_has_physical_names_in_its_structs(log: DeltaLog) -> None:
    names = [f"{log.log_path}/{version:020d}.checkpoint.parquet" for version in (3, 6)]
    if "spark.databricks.delta.properties.defaults.checkpointInterval" not in log.conf:
        with pytest.raises(FileNotFoundError):
            log.store.read(names[0])
        return
    told = log.snapshot().mapping
    add_type = pq.read_schema(pa.BufferReader(log.store.read(names[1]))).field("add").type
    parsed = add_type.field("stats_parsed").type
    assert [f.name for f in parsed.field("minValues").type] == [told.to_physical(("v",))[0]]
    assert [f.name for f in add_type.field("partitionValues_parsed").type] == list(told.physical_partition_columns)


def test_conflicts_are_of_the_partitions_read(log: DeltaLog) -> None:
    told = log.snapshot().mapping
    for p, conflicts in ((1, True), (2, False)):
        reader = log.transaction()
        removed = reader.snapshot.add_files(reader.snapshot.prune_mask(p_is(1), time_zone="UTC"))  # type: ignore[union-attr]
        reader.read_files(p_is(1), time_zone="UTC")
        log.transaction().commit([AddFile(f"n{p}", {told.physical_partition_columns[0]: str(p)}, 1, 1, True)], WRITE)
        staged = [file.remove(1) for file in removed[:1]]
        if conflicts:
            with pytest.raises(ConcurrentAppendException):
                reader.commit(staged, Operation("DELETE"))
        else:
            reader.commit(staged, Operation("DELETE"))


def test_values_by_logical_names_are_refused(log: DeltaLog) -> None:
    with pytest.raises(InvalidArgumentError, match="has values for the partition columns"):
        log.transaction().commit([AddFile("x", {"p": "1"}, 1, 1, True)], WRITE)


def test_a_partition_column_can_be_renamed_and_not_exchanged(log: DeltaLog) -> None:
    renaming = log.transaction()
    renaming.set_metadata(evolution.renamed(renaming.metadata, ("p",), "part"))
    renaming.commit([], Operation("RENAME COLUMN"))
    assert log.snapshot().partition_columns == ("part",)
    found = log.snapshot().prune(compare("=", "part", 4, pa.int32()), time_zone="UTC").column("path").to_pylist()
    assert found == ["f4"]
    other = log.transaction()
    before = other.metadata
    other.set_metadata(Metadata(before.id, before.schema_string, ("v",), before.configuration))
    with pytest.raises(InvalidArgumentError, match="can't change the partition columns"):
        other.commit([], Operation("SET TBLPROPERTIES"))


def test_the_largest_id_is_not_for_a_user_to_set(log: DeltaLog) -> None:
    fresh = new_log(conf=NO_CRC).transaction()
    with pytest.raises(InvalidArgumentError, match="maxColumnId"):
        fresh.set_metadata(Metadata("id", SCHEMA, (), {mapping.MODE: "name", mapping.MAX_ID: "7"}))
