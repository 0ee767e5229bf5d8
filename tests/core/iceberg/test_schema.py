"""Schemas, partitionings and partition values in Iceberg's types."""

from decimal import Decimal
from typing import Any

import pytest
from pyiceberg import types

from support.memory_table import new_log
from tablelog.core.deltalog import DeltaLog
from tablelog.core.iceberg.schema import partitions_of, schema_of, spec_of
from tablelog.core.protocol import nested_ids
from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.protocol.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    to_json,
)
from tablelog.core.txn.operation import Operation
from tablelog.errors import CorruptLogError

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def table(columns: dict[str, DataType], *by: str) -> DeltaLog:
    log = new_log()
    schema = StructType(tuple(StructField(name, data_type) for name, data_type in columns.items()))
    txn = log.transaction()
    txn.set_metadata(Metadata("id", to_json(schema), by, {"delta.enableIcebergCompatV2": "true"}))
    txn.commit([], Operation("CREATE TABLE"))
    return log


def test_each_type_has_its_counterpart() -> None:
    names = "byte short integer long float double string binary boolean date timestamp timestamp_ntz decimal(9,2)"
    log = table({name.partition("(")[0]: PrimitiveType(name) for name in names.split()})
    found = {field.name: str(field.field_type) for field in schema_of(log.snapshot().schema).fields}
    assert found == {
        "byte": "int", "short": "int", "integer": "int", "long": "long", "float": "float", "double": "double",
        "string": "string", "binary": "binary", "boolean": "boolean", "date": "date", "timestamp": "timestamptz",
        "timestamp_ntz": "timestamp", "decimal": "decimal(9, 2)",
    }  # fmt: skip


NESTED: dict[str, DataType] = {
    "a": ArrayType(ArrayType(LONG)),
    "m": MapType(TEXT, StructType((StructField("x", ArrayType(LONG)), StructField("y", LONG)))),
}


def test_elements_keys_and_values_have_ids_of_their_own() -> None:
    log = table(NESTED)
    schema = log.snapshot().schema
    physical = {field.name: field.metadata["delta.columnMapping.physicalName"] for _, field in all_fields(schema)}
    stored = {field.name: dict(nested_ids.of(field)) for _, field in all_fields(schema)}
    a, m, x = (physical[name] for name in "amx")
    assert stored == {
        "a": {f"{a}.element": 5, f"{a}.element.element": 6},
        "m": {f"{m}.key": 7, f"{m}.value": 8},
        "x": {f"{x}.element": 9},
        "y": {},
    }
    assert log.snapshot().metadata.configuration["delta.columnMapping.maxColumnId"] == "9"
    iceberg = schema_of(schema)
    found = {iceberg.find_column_name(number): number for number in iceberg.field_ids}
    assert found["a.element"] == 5
    assert found["a.element.element"] == 6
    assert found["m.key"] == 7
    assert found["m.value"] == 8
    assert found["m.value.x.element"] == 9


def test_ids_stay_when_columns_are_added_or_renamed() -> None:
    log = table(NESTED)
    before = {field.name: dict(nested_ids.of(field)) for _, field in all_fields(log.snapshot().schema)}
    txn = log.transaction()
    fields = [StructField("n", f.data_type, True, f.metadata) if f.name == "a" else f for f in log.snapshot().schema]
    schema = StructType((*fields, StructField("b", ArrayType(TEXT))))
    txn.set_metadata(Metadata("id", to_json(schema), (), log.snapshot().metadata.configuration))
    txn.commit([], Operation("CHANGE"))
    after = {field.name: dict(nested_ids.of(field)) for _, field in all_fields(log.snapshot().schema)}
    assert after["n"] == before["a"]
    assert after["m"] == before["m"]
    assert list(after["b"].values()) == [11]


def test_a_schema_without_ids_is_refused() -> None:
    with pytest.raises(CorruptLogError, match="a has no id"):
        schema_of(StructType((StructField("a", LONG),)))
    with pytest.raises(CorruptLogError, match="element has no id"):
        schema_of(StructType((StructField("a", ArrayType(LONG), True, {"delta.columnMapping.id": 1}),)))


def test_a_comment_is_the_doc() -> None:
    field = StructField("a", LONG, False, {"delta.columnMapping.id": 1, "comment": "why"})
    assert schema_of(StructType((field,))).fields == (types.NestedField(1, "a", types.LongType(), False, "why"),)


def test_a_partitioning_is_found_again() -> None:
    mapping = table({"p": LONG, "q": TEXT, "v": LONG}, "p", "q").snapshot().mapping
    first = spec_of(mapping, [])
    assert [(f.source_id, f.field_id, f.name) for f in first.fields] == [(1, 1000, "p"), (2, 1001, "q")]
    assert spec_of(mapping, [first]) is first
    other = spec_of(table({"v": LONG, "p": LONG}, "p").snapshot().mapping, [first])
    assert (other.spec_id, [f.field_id for f in other.fields]) == (1, [1002])


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("integer", "7", 7),
        ("string", "a=b/c", "a=b/c"),
        ("string", "", None),
        ("boolean", "true", True),
        ("date", "2024-01-02", 19724),
        ("timestamp", "2024-01-02T00:00:00.000001Z", 1704153600000001),
        ("timestamp_ntz", "1969-12-31 23:59:59.999999", -1),
        ("decimal(9,2)", "1.50", Decimal("1.50")),
        ("double", "1.5", 1.5),
        ("binary", "ab", b"ab"),
    ],
)
def test_partition_values(name: str, text: str, value: Any) -> None:
    mapping = table({"v": LONG, "p": PrimitiveType(name)}, "p").snapshot().mapping
    physical = mapping.physical_partition_columns[0]
    adds = [AddFile("f", {physical: each}, 1, 1, True) for each in (text, None)]
    assert [record[0] for record in partitions_of(mapping, adds)] == [value, None]
