"""Column mapping: names at every depth, ids that only grow, and what is refused."""

import itertools
from dataclasses import replace

import pytest

from tablelog.core.protocol import column_mapping as mapping
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.column_mapping import ColumnMapping
from tablelog.core.protocol.schema import ArrayType, MapType, StructField, StructType
from tablelog.core.schema_evolution import changes as evolution
from tablelog.errors import CorruptLogError, InvalidArgumentError, SchemaMismatchError

LONG, STRING = schemas.LONG, schemas.STRING
NESTED = StructType(
    (
        StructField("a b", LONG),
        StructField(
            "st", StructType((StructField("x", LONG), StructField("y,z", StructType((StructField("q", STRING),)))))
        ),
        StructField("arr", ArrayType(StructType((StructField("u", LONG), StructField("v", LONG))))),
        StructField("m", MapType(STRING, StructType((StructField("w", LONG), StructField("w2", LONG))))),
        StructField("p", STRING),
    )
)
MAPPED = Protocol(2, 7, None, frozenset({"columnMapping"}))


def metadata(
    schema: StructType = NESTED, mode: str = "name", partition: tuple[str, ...] = ("p",), **more: str
) -> Metadata:
    configuration = {mapping.MODE: mode, **more} if mode != "none" else dict(more)
    return Metadata("id", schemas.to_json(schema), partition, configuration)


def fresh(made: Metadata, old: Metadata | None = None, **how: bool) -> Metadata:
    numbers = itertools.count(1)
    return mapping.assigned(made, old, None if old is None else MAPPED, new_name=lambda: f"col-{next(numbers)}", **how)


def of(made: Metadata) -> ColumnMapping:
    return ColumnMapping.of(MAPPED, made)


def names(made: Metadata) -> dict[tuple[str, ...], tuple[int | None, str]]:
    schema = schemas.parse_schema(made.schema_string)
    return {name: (mapping.field_id(f), mapping.physical_name(f)) for name, f in schemas.all_fields(schema)}


def test_a_new_table_gets_ids_and_names_at_every_depth() -> None:
    made = fresh(metadata())
    found = names(made)
    assert [number for number, _ in found.values()] == list(range(1, 13))
    assert [name for _, name in found.values()] == [f"col-{i}" for i in range(1, 13)]
    assert made.configuration[mapping.MAX_ID] == "12"
    assert fresh(made, made) == made
    mapping.check(made)


def test_names_go_both_ways_through_structs_arrays_and_maps() -> None:
    found = of(fresh(metadata()))
    for logical, physical in {
        ("a b",): ("col-1",),
        ("st", "y,z", "q"): ("col-2", "col-4", "col-5"),
        ("arr", "element", "u"): ("col-6", "element", "col-7"),
        ("m", "value", "w2"): ("col-9", "value", "col-11"),
        ("m", "key"): ("col-9", "key"),
    }.items():
        assert found.to_physical(logical) == physical
        assert found.to_logical(physical) == logical
    assert found.to_physical(("nowhere",)) == ("nowhere",)
    assert found.physical_partition_columns == (found.to_physical(("p",))[0],)
    assert [f.name for f in found.physical] == [mapping.physical_name(f) for f in found.logical]
    assert schemas.type_text(found.physical.fields[2].data_type) == "array<struct<col-7: bigint, col-8: bigint>>"


def test_without_a_mode_or_without_the_feature_nothing_is_mapped() -> None:
    made = fresh(metadata())
    assert ColumnMapping.of(Protocol(1, 2), made).mode == "none"
    assert ColumnMapping.of(Protocol(1, 2), made).to_physical(("a b",)) == ("a b",)
    plain = metadata(mode="none")
    assert fresh(plain) is plain
    assert of(plain).physical is of(plain).logical


def test_a_table_that_begins_to_map_keeps_its_names() -> None:
    plain = metadata(mode="none")
    up = fresh(replace(plain, configuration={mapping.MODE: "name"}), plain)
    assert all(physical == name[-1] for name, (_, physical) in names(up).items())
    assert up.configuration[mapping.MAX_ID] == "12"
    assert of(up).to_physical(("st", "x")) == ("st", "x")
    # What comes later has a name of its own, so that a column that was dropped doesn't come back with it.
    without = evolution.dropped(up, ("a b",))
    again = fresh(replace(without, schema_string=added(without, StructField("a b", LONG))), without)
    assert names(again)["a b",] == (13, "col-1")
    assert again.configuration[mapping.MAX_ID] == "13"


def test_a_mode_that_the_protocol_did_not_know_begins_to_count_with_the_names_of_the_files() -> None:
    told = metadata(mode="name")
    up = mapping.assigned(told, told, Protocol(1, 2))
    assert all(physical == name[-1] for name, (_, physical) in names(up).items())


def added(made: Metadata, *fields: StructField) -> str:
    return schemas.to_json(StructType((*schemas.parse_schema(made.schema_string).fields, *fields)))


@pytest.mark.parametrize(("before", "after"), [("none", "id"), ("name", "id"), ("id", "name"), ("name", "none")])
def test_a_change_of_mode_that_would_rewrite_files_is_refused(before: str, after: str) -> None:
    old = fresh(metadata(mode=before))
    new = replace(old, configuration={**old.configuration, mapping.MODE: after})
    with pytest.raises(InvalidArgumentError, match=f"from {before} to {after}"):
        fresh(new, old)


def test_a_table_that_begins_to_map_can_get_no_column_in_the_same_commit() -> None:
    plain = metadata(mode="none")
    new = replace(metadata(), schema_string=added(plain, StructField("n", LONG)))
    with pytest.raises(InvalidArgumentError, match="adds the column n"):
        fresh(new, plain)


def test_an_id_is_never_given_twice() -> None:
    old = fresh(metadata())
    less = evolution.dropped(old, ("m",))
    more = fresh(replace(less, schema_string=added(less, StructField("n", LONG))), less)
    assert names(more)["n",][0] == 13
    assert more.configuration[mapping.MAX_ID] == "13"


def test_an_overwrite_of_the_schema_keeps_what_is_the_same() -> None:
    old = fresh(metadata())
    columns = StructType((StructField("A B", LONG), StructField("st", LONG), StructField("p", STRING)))
    new = mapping.assigned(replace(old, schema_string=schemas.to_json(columns)), old, MAPPED, replaces_table=True)
    assert names(new)["A B",] == names(old)["a b",]
    assert names(new)["p",] == names(old)["p",]
    assert names(new)["st",][0] == 13
    assert names(new)["st",][1] != names(old)["st",][1]


def test_marks_of_a_mapping_that_comes_from_elsewhere_are_taken_out() -> None:
    foreign = replace(fresh(metadata()), configuration={})
    kept = fresh(foreign)
    assert "columnMapping" not in kept.schema_string
    # A table that has them already may need them, and can't begin to map.
    assert fresh(foreign, foreign) is foreign
    with pytest.raises(InvalidArgumentError, match="written by another writer"):
        fresh(replace(foreign, configuration={mapping.MODE: "name"}), foreign)


def test_rename_and_drop_touch_the_names_alone() -> None:
    old = fresh(metadata())
    new = evolution.renamed(old, ("ST", "x"), "x x")
    assert names(new)["st", "x x"] == names(old)["st", "x"]
    new = evolution.renamed(new, ("arr", "element", "u"), "uu")
    assert names(new)["arr", "element", "uu"] == names(old)["arr", "element", "u"]
    new = evolution.renamed(new, ("p",), "part")
    assert new.partition_columns == ("part",)
    assert of(new).physical_partition_columns == of(old).physical_partition_columns
    assert of(new).physical == of(old).physical
    new = evolution.dropped(new, ("m", "value", "w"))
    assert ("m", "value", "w") not in names(new)
    assert names(new)["m", "value", "w2"] == names(old)["m", "value", "w2"]


def test_what_can_not_be_renamed_or_dropped() -> None:
    made = fresh(metadata())
    with pytest.raises(SchemaMismatchError, match="taken"):
        evolution.renamed(made, ("st",), "ARR")
    assert ("st", "X") in names(evolution.renamed(made, ("st", "x"), "X"))
    with pytest.raises(InvalidArgumentError, match="no column nowhere"):
        evolution.renamed(made, ("nowhere",), "n")
    with pytest.raises(InvalidArgumentError, match="partition column"):
        evolution.dropped(made, ("p",))
    with pytest.raises(InvalidArgumentError, match="only column"):
        evolution.dropped(made, ("st", "y,z", "q"))
    with pytest.raises(InvalidArgumentError, match=r"column mapping is needed\. Set the table property"):
        evolution.dropped(metadata(mode="none"), ("m",))
    two = fresh(metadata(StructType((StructField("a", LONG), StructField("p", STRING)))))
    with pytest.raises(InvalidArgumentError, match="all others are partition columns"):
        evolution.dropped(two, ("a",))


def marked(name: str, number: object, physical: object) -> StructField:
    return StructField(name, LONG, True, {mapping.ID: number, mapping.PHYSICAL_NAME: physical})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((marked("a", 1, "x"), marked("b", 1, "y")), "have the same id, 1"),
        ((marked("a", 1, "x"), marked("b", 2, "x")), "the same physical name"),
        ((marked("a", None, "x"),), "no id"),
        ((marked("a", "1", "x"),), "no id"),
        ((marked("a", 2**31, "x"),), "no id"),
        ((marked("a", 1, None),), "no physical name"),
        ((marked("a", 1, ""),), "no physical name"),
    ],
)
def test_a_damaged_mapping_is_refused(fields: tuple[StructField, ...], message: str) -> None:
    damaged = metadata(StructType(fields), partition=(), **{mapping.MAX_ID: "9"})
    with pytest.raises(CorruptLogError, match=message):
        of(damaged)
    with pytest.raises(InvalidArgumentError, match=message):
        mapping.check(damaged)


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ((marked("a", 1, "x"), marked("a", 2, "y")), "a"),
        (
            (
                marked("a", 1, "x"),
                StructField("a", StructType((marked("b", 3, "z"),)), True, marked("a", 2, "y").metadata),
            ),
            "a",
        ),
        (
            (
                StructField(
                    "s", StructType((marked("b", 1, "x"), marked("b", 2, "y"))), True, marked("s", 3, "z").metadata
                ),
            ),
            "s.b",
        ),
    ],
)
def test_two_columns_of_one_name_are_refused(fields: tuple[StructField, ...], name: str, mode: str) -> None:
    damaged = metadata(StructType(fields), partition=(), mode=mode, **{mapping.MAX_ID: "9"})
    with pytest.raises(CorruptLogError, match=f"it has two columns {name}$"):
        of(damaged)


def test_names_that_differ_in_case_are_read() -> None:
    """An engine that tells case apart may have written them."""
    assert of(metadata(StructType((StructField("a", LONG), StructField("A", LONG))), partition=(), mode="none"))


def test_an_id_above_the_largest_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="has the id 7"):
        mapping.check(metadata(StructType((marked("a", 7, "x"),)), partition=(), **{mapping.MAX_ID: "6"}))
