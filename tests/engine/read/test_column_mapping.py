"""Columns found by their physical names or ids, at every depth, on every route; conditions by their logical names."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

from tablelog.core.protocol import column_mapping as mapping
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.schema import ArrayType, MapType, StructField, StructType
from tablelog.core.schema_evolution import changes as schema_evolution
from tablelog.engine.read import scan
from tablelog.errors import CorruptLogError, SchemaChangedError

from .conftest import Make
from .tables import HandMade, files_read

MAPPED = Protocol(2, 7, None, frozenset({"columnMapping"}))
LONG, STRING = schemas.LONG, schemas.STRING


def column(name: str, number: int, physical: str, data_type: schemas.DataType = LONG) -> StructField:
    return StructField(name, data_type, True, {mapping.ID: number, mapping.PHYSICAL_NAME: physical})


# Physical names that are other columns' logical ones, as a table has them whose columns have changed names.
SCHEMA = StructType(
    (
        column("a", 1, "b"),
        column("b", 2, "a"),
        column("the day", 3, "p", STRING),
        column("st", 4, "s", StructType((column("x", 5, "y"), column("y", 6, "x"), column("new", 7, "z")))),
        column("fresh", 8, "f", StructType((column("in side", 9, "i"), column("o", 10, "j", STRING)))),
        column("arr", 11, "r", ArrayType(StructType((column("u", 12, "v"),)))),
        column("m", 13, "m", MapType(STRING, StructType((column("w", 14, "k"),)))),
        column("later", 15, "col-15"),
    )
)


def ided(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def data(start: int, *, ids: bool) -> pa.Table:
    """Ten rows; with `ids` the names of the file say nothing."""

    def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return ided(f"any{number}", kind, number) if ids else pa.field(name, kind)

    st = pa.struct([field("y", pa.int64(), 5), field("x", pa.int64(), 6)])
    fresh = pa.struct([field("i", pa.int64(), 9), field("j", pa.string(), 10)])
    arr = pa.list_(pa.struct([field("v", pa.int64(), 12)]))
    m = pa.map_(pa.string(), pa.struct([field("k", pa.int64(), 14)]))
    schema = pa.schema(
        [
            field("b", pa.int64(), 1), field("a", pa.int64(), 2), field("s", st, 4), field("f", fresh, 8),
            field("r", arr, 11), field("m", m, 13),
        ]
    )  # fmt: skip
    names = [[f.name for f in kind] for kind in (st, fresh)]
    inner, entry = arr.value_type.field(0).name, m.item_type.field(0).name
    numbers = range(start, start + 10)
    columns: list[Any] = [
        list(numbers),
        [-i for i in numbers],
        [dict(zip(names[0], (i, i * 2), strict=True)) for i in numbers],
        [None if i % 5 == 4 else dict(zip(names[1], (i * 3, f"o{i}"), strict=True)) for i in numbers],
        [[{inner: i}, {inner: -i}] for i in numbers],
        [[("key", {entry: i})] for i in numbers],
    ]
    return pa.table([pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)], schema=schema)


def expected(i: int) -> Row:
    fresh = None if i % 5 == 4 else Row(**{"in side": i * 3, "o": f"o{i}"})
    return Row(
        a=i, b=-i, **{"the day": f"d{i // 10}"}, st=Row(x=i, y=i * 2, new=None), fresh=fresh,
        arr=[Row(u=i), Row(u=-i)], m={"key": Row(w=i)}, later=None,
    )  # fmt: skip


def metadata(schema: StructType, mode: str) -> Metadata:
    return Metadata(
        "11111111-2222-3333-4444-555555555555",
        schemas.to_json(schema),
        ("the day",) if schema.get("the day") else (),
        {mapping.MODE: mode, mapping.MAX_ID: "20"},
    )


@pytest.fixture(params=["name", "id"])
def mapped(request: pytest.FixtureRequest, make: Make) -> HandMade:
    """Five files of ten rows, a from 0 to 49 in their order, each a partition of its own."""
    table = make({"id": "long"})
    adds = []
    for i in range(5):
        add = table.file(data(i * 10, ids=request.param == "id"), {"p": f"d{i}"}, stats=False)
        bounds = '{"numRecords":10,"minValues":{"b":%d,"a":%d,"s":{"y":%d}},"maxValues":{"b":%d,"a":%d,"s":{"y":%d}},'
        low, high = i * 10, i * 10 + 9
        stats = bounds % (low, -high, low, high, -low, high) + '"nullCount":{"b":0,"a":0,"s":{"y":0}}}'
        adds.append(replace(add, stats=stats))
    table.commit([MAPPED, metadata(SCHEMA, request.param), *adds])
    return table


def test_rows_are_those_of_the_logical_columns(spark: SparkSession, mapped: HandMade, route: str) -> None:
    frame = scan.frame(spark, mapped.log)
    assert frame.columns == list(SCHEMA.names)
    assert sorted(frame.collect(), key=lambda row: row.a) == [expected(i) for i in range(50)]
    assert [row.a for row in frame.where("a = 7").collect()] == [7]
    assert [row.a for row in frame.where("b = -33 and st.x = 33").collect()] == [33]
    assert [row.a for row in frame.where("st.y = 22 and m['key'].w = 11").collect()] == [11]
    assert sorted(row.a for row in frame.where("`the day` = 'd2' and fresh.`in side` > 80").collect()) == [27, 28]
    assert frame.where("fresh is null").count() == 10
    assert frame.where("a > 1000 or later is not null").count() == 0


def test_files_are_skipped_by_logical_names(spark: SparkSession, mapped: HandMade) -> None:
    frame = scan.frame(spark, mapped.log)
    # Names that are swapped inside a struct need a cast, through which Spark sees nothing.
    for condition, files in {"a < 5": 1, "b < -35": 2, "`the day` in ('d1', 'd3')": 2, "st.x = 42": 5}.items():
        assert files_read(frame.where(condition)) == f"{files} of 5 files", condition


def test_a_struct_is_read_no_further_than_needed(spark: SparkSession, mapped: HandMade) -> None:
    frame = scan.frame(spark, mapped.log).select("fresh.o")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<f:struct<j:string>>" in plan


def test_nothing_of_the_mapping_shows_in_a_frame(spark: SparkSession, mapped: HandMade, route: str) -> None:
    schema = scan.frame(spark, mapped.log).schema
    assert "columnMapping" not in schema.json()
    assert "parquet.field" not in schema.json()


def test_the_number_of_the_file(spark: SparkSession, mapped: HandMade, route: str) -> None:
    snapshot = mapped.log.snapshot()
    frame = scan.frame(spark, mapped.log, snapshot=snapshot, files=snapshot.files.take([3, 1]), file_number="__file")
    assert frame.columns == [*SCHEMA.names, "__file"]
    assert {(row.a // 10, row["__file"]) for row in frame.select("a", "__file").collect()} == {(3, 0), (1, 1)}


def test_a_change_of_names_under_a_frame(spark: SparkSession, mapped: HandMade) -> None:
    frame = scan.frame(spark, mapped.log)
    assert frame.count() == 50
    before = mapped.log.snapshot().metadata
    mapped.commit([schema_evolution.renamed(before, ("b",), "c")])
    with pytest.raises(SchemaChangedError, match="the column b no longer exists"):
        frame.count()
    assert scan.frame(spark, mapped.log).where("c = -8").count() == 1
    less = schema_evolution.dropped(before, ("b",))
    again = StructType((*schemas.parse_schema(less.schema_string).fields, column("b", 16, "col-16")))
    mapped.commit([replace(less, schema_string=schemas.to_json(again))])
    with pytest.raises(SchemaChangedError, match="the column b is a different column now"):
        frame.count()
    assert scan.frame(spark, mapped.log).where("b is null").count() == 50


@pytest.mark.parametrize("place", [(), ("st",), ("arr", "element"), ("m", "value")], ids=".".join)
def test_names_that_are_swapped_under_a_frame(spark: SparkSession, mapped: HandMade, place: schemas.Column) -> None:
    inside = {"arr": ("u", "u2"), "m": ("w", "w2"), "st": ("x", "y"), "": ("a", "b")}
    one, other = inside[place[0] if place else ""]
    frame = scan.frame(spark, mapped.log)
    assert frame.count() == 50
    changed = mapped.log.snapshot().metadata
    for old, new in ((one, "t"), (other, one), ("t", other)):
        if (*place, old) in dict(schemas.all_fields(schemas.parse_schema(changed.schema_string))):
            changed = schema_evolution.renamed(changed, (*place, old), new)
    if other.endswith("2"):
        added = StructField(one, LONG, True, {mapping.ID: 17, mapping.PHYSICAL_NAME: "col-17"})
        changed = replace(changed, schema_string=schemas.to_json(_with_field(changed, place, added)))
    mapped.commit([changed])
    with pytest.raises(SchemaChangedError, match="is a different column now"):
        frame.count()


def _with_field(changed: Metadata, place: schemas.Column, field: StructField) -> StructType:
    """The schema with one more field in the struct inside the array or the map at `place`."""
    fields = []
    for top in schemas.parse_schema(changed.schema_string).fields:
        kind = top.data_type
        if top.name == place[0] and isinstance(kind, ArrayType):
            assert isinstance(kind.element_type, StructType)
            kind = replace(kind, element_type=StructType((*kind.element_type.fields, field)))
        elif top.name == place[0] and isinstance(kind, MapType):
            assert isinstance(kind.value_type, StructType)
            kind = replace(kind, value_type=StructType((*kind.value_type.fields, field)))
        fields.append(replace(top, data_type=kind))
    return StructType(tuple(fields))


def test_by_id_a_file_with_no_ids_is_refused(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    add = table.file(pa.table({"x": [1]}), stats=False)
    table.commit([MAPPED, metadata(StructType((column("x", 1, "x"),)), "id"), add])
    with pytest.raises(Exception, match="doesn't contain any field Ids"):
        scan.frame(spark, table.log).collect()


def test_a_mapping_counts_only_where_the_protocol_knows_it(spark: SparkSession, make: Make, route: str) -> None:
    table = make({"id": "long"})
    add = table.file(pa.table({"x": [1], "y": [2]}))
    table.commit([Protocol(1, 2), metadata(StructType((column("x", 1, "y"),)), "name"), add])
    assert scan.frame(spark, table.log).collect() == [Row(x=1)]


def test_a_damaged_mapping_is_an_error(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    table.commit([MAPPED, metadata(StructType((column("x", 1, "n"), column("y", 1, "o"))), "name")])
    with pytest.raises(CorruptLogError, match="have the same id, 1"):
        scan.frame(spark, table.log)
