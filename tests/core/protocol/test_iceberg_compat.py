"""What the compatibility with Iceberg forbids a table, and what it asks of its files."""

from dataclasses import replace

import pytest

from support.memory_table import WRITE, add, new_log, schema_of
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import iceberg_compat
from tablelog.core.protocol.actions import DeletionVectorDescriptor, Metadata, Protocol
from tablelog.core.txn.operation import Operation
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError

CREATE = Operation("CREATE TABLE")
ARRAY = (
    '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},'
    '"type":{"type":"array","elementType":"long","containsNull":true}}]}'
)


def create(schema: str = "", *by: str, **configuration: str) -> DeltaLog:
    log = new_log()
    txn = log.transaction()
    given = {f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()}
    txn.set_metadata(Metadata("id", schema or schema_of(("p", "integer"), ("v", "long")), by, given))
    txn.commit([], CREATE)
    return log


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_new_table_maps_its_columns(version: str) -> None:
    snapshot = create(**{f"enableIcebergCompat{version}": "true"}).snapshot()
    assert snapshot.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert snapshot.protocol == Protocol(
        2, 7, None, frozenset({"appendOnly", "invariants", "columnMapping", f"icebergCompat{version}"})
    )
    assert iceberg_compat.materialises(snapshot.protocol, snapshot.metadata)


@pytest.mark.parametrize(
    ("schema", "configuration", "says"),
    [
        ("", {"enableIcebergCompatV1": "true", "enableIcebergCompatV2": "true"}, "at the same time"),
        ("", {"enableIcebergCompatV1": "true", "columnMapping__mode": "none"}, "name or id"),
        ("", {"enableIcebergCompatV2": "true", "enableDeletionVectors": "true"}, "deletion vectors"),
        (ARRAY, {"enableIcebergCompatV1": "true"}, "arrays and maps"),
        (schema_of(("v", "void"), ("w", "long")), {"enableIcebergCompatV1": "true"}, "the column v"),
    ],
)
def test_what_a_table_cannot_be(schema: str, configuration: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        create(schema, **configuration)


def test_what_a_commit_cannot_hold() -> None:
    log = create(enableIcebergCompatV1="true")
    log.transaction().commit([add("a")], WRITE)
    with pytest.raises(InvalidArgumentError, match="number of rows"):
        log.transaction().commit([replace(add("b"), stats='{"nullCount":{}}')], WRITE)
    vector = DeletionVectorDescriptor("i", "x", 1, 1)
    with pytest.raises(InvalidArgumentError, match="has a deletion vector"):
        log.transaction().commit([replace(add("b"), deletion_vector=vector)], WRITE)
    unmapped = log.transaction()
    kept = {k: v for k, v in unmapped.metadata.configuration.items() if not k.startswith("delta.columnMapping")}
    with pytest.raises(InvalidArgumentError, match="mode"):
        unmapped.set_metadata(replace(unmapped.metadata, configuration=kept))


def test_a_partitioning_stays() -> None:
    log = create("", "p", enableIcebergCompatV2="true")
    replacing = log.transaction()
    replacing.set_metadata(replace(replacing.metadata, partition_columns=("v",)), replaces_table=True)
    with pytest.raises(InvalidArgumentError, match="can't change from"):
        replacing.commit([], Operation("REPLACE TABLE", replaces_table=True))


def test_what_tablelog_does_not_do_cannot_be_asked_for() -> None:
    for key, value in (
        ("universalFormat__enabledFormats", "hudi"),
        ("coordinatedCommits__commitCoordinator-preview", "dynamodb"),
        ("redirectReaderWriter-preview", "{}"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=key.replace("__", ".").split("-")[0]):
            create(**{key: value})
