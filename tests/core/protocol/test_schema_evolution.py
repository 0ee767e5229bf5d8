"""Columns added, renamed, dropped and altered: what the schema then is, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol import column_mapping, features
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from tablelog.core.schema_evolution.changes import (
    ColumnChange,
    NewColumn,
    Position,
    added,
    altered,
    column_of,
    dropped,
    renamed,
)
from tablelog.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError

LONG, STRING, INTEGER = schemas.LONG, schemas.STRING, schemas.INTEGER
POINT = StructType((StructField("x", INTEGER, False, {"comment": "east"}), StructField("y", INTEGER)))
SCHEMA = StructType(
    (
        StructField("id", INTEGER, False),
        StructField("s", POINT),
        StructField("a", ArrayType(POINT)),
        StructField("m", MapType(STRING, INTEGER)),
        StructField("v", schemas.VOID),
        StructField("t", STRING, True, {schemas.CHAR_VARCHAR_KEY: "varchar(5)"}),
        StructField("p", STRING),
    )
)
PLAIN = features.protocol_of({"appendOnly", "invariants"})
WIDENING = features.protocol_of({"typeWidening"})


def metadata(schema: StructType = SCHEMA, **configuration: str) -> Metadata:
    known = {key.replace("_", "."): value for key, value in configuration.items()}
    return Metadata("id", schemas.to_json(schema), ("p",) if schema is SCHEMA else (), known)


def widening() -> Metadata:
    return metadata(delta_enableTypeWidening="true")


def of(made: Metadata) -> StructType:
    return schemas.parse_schema(made.schema_string)


def at(made: Metadata, *name: str) -> StructField:
    return dict(schemas.all_fields(of(made)))[name]


def names(made: Metadata, *struct: str) -> list[str]:
    inside = [name for name, _ in schemas.all_fields(of(made)) if name[:-1] == struct]
    return [name[-1] for name in inside]


def new(name: str, position: str | None = None, data_type: Any = LONG, **more: Any) -> NewColumn:
    *parent, last = name.split(".")
    return NewColumn(StructField(last, data_type, **more), tuple(parent), position and Position.of(position))


def test_names_and_positions_are_read_as_sql_has_them() -> None:
    assert column_of("a.`b.c`.element") == ("a", "b.c", "element")
    assert column_of("a b.`c``d`") == ("a b", "c`d")
    for wrong in ("", "a..b", "`a", ".a", "a`b`"):
        with pytest.raises(InvalidArgumentError, match="isn't a valid column name"):
            column_of(wrong)
    assert str(Position.of(" first ")) == "FIRST"
    assert str(Position.of("after `a b`")) == "AFTER a b"
    for wrong in ("last", "after", "after a.b", ""):
        with pytest.raises(InvalidArgumentError):
            Position.of(wrong)


def test_columns_are_added_where_they_are_wanted() -> None:
    made = added(metadata(), [new("n"), new("first", "FIRST"), new("mid", "AFTER ID"), new("mid2", "AFTER mid")])
    assert names(made) == ["first", "id", "mid", "mid2", "s", "a", "m", "v", "t", "p", "n"]
    made = added(metadata(), [new("S.z"), new("a.element.w", "FIRST"), new("q", None, POINT_OF_NULLS), new("q.z")])
    assert names(made, "s") == ["x", "y", "z"]
    assert names(made, "a", "element") == ["w", "x", "y"]
    assert names(made, "q") == ["x", "z"]
    assert at(made, "s", "x").metadata == {"comment": "east"}


POINT_OF_NULLS = StructType((StructField("x", INTEGER),))


def test_what_can_not_be_added() -> None:
    for wrong, reason in (
        (new("n", nullable=False), "NOT NULL"),
        (new("n", None, POINT), "n.x can't be added as NOT NULL"),
        (new("n", metadata={schemas.DEFAULT_KEY: "1"}), "default"),
        (new("n", metadata={schemas.GENERATION_KEY: "id"}), "generated"),
        (new("id.n"), "id isn't a struct but int"),
        (new("a.n"), "a isn't a struct but array"),
        (new("zz.n"), "there is no column zz"),
        (new("a.key.n"), "there is no column a.key: a has element"),
        (new("n", "AFTER zz"), "can't be placed after zz"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            added(metadata(), [wrong])
    for taken in (new("ID"), new("s.X")):
        with pytest.raises(SchemaMismatchError, match="occurs twice"):
            added(metadata(), [taken])


def mapped(**configuration: str) -> Metadata:
    return metadata(delta_columnMapping_mode="name", **configuration)


def test_the_columns_of_statistics_follow_a_rename_and_a_drop() -> None:
    old = replace(mapped(), configuration={**mapped().configuration, "delta.dataSkippingStatsColumns": "id,S,s.x,`t`"})
    new = renamed(old, ("s",), "point s")
    assert new.configuration["delta.dataSkippingStatsColumns"] == "id,`point s`,`point s`.x,t"
    assert dropped(old, ("S", "X")).configuration["delta.dataSkippingStatsColumns"] == "id,S,t"
    less = dropped(dropped(dropped(old, ("s",)), ("t",)), ("id",))
    assert less.configuration["delta.dataSkippingStatsColumns"] == ""


@pytest.mark.parametrize(("name", "reason"), [("m.value", "isn't a field of a struct"), ("m.zz", "there is no column")])
def test_only_columns_are_renamed_and_dropped(name: str, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason):
        renamed(mapped(), column_of(name), "n")
    with pytest.raises(InvalidArgumentError, match=reason):
        dropped(mapped(), column_of(name))


def change(name: str, wanted: Any = None, **more: Any) -> ColumnChange:
    type_of = None
    if wanted is not None:
        type_of = wanted if isinstance(wanted, StructField) else StructField("", wanted)
    return ColumnChange(column_of(name), type_of, **more)


def test_a_column_is_altered() -> None:
    made = altered(metadata(), PLAIN, change("ID", nullable=True, comment="key", position=Position("p")))
    assert names(made) == ["s", "a", "m", "v", "t", "p", "id"]
    assert at(made, "id") == StructField("id", INTEGER, True, {"comment": "key"})
    made = altered(made, PLAIN, change("a.element.x", nullable=True, comment="west", position=Position("Y")))
    assert names(made, "a", "element") == ["y", "x"]
    assert at(made, "a", "element", "x").metadata == {"comment": "west"}
    assert at(altered(made, PLAIN, change("id", comment="")), "id").metadata == {"comment": ""}
    assert at(altered(made, PLAIN, change("id", drops_comment=True)), "id").metadata == {}
    assert altered(made, PLAIN, change("id", position=Position("id"))) == made
    assert at(altered(metadata(), PLAIN, change("v", LONG)), "v").data_type == LONG
    assert altered(metadata(), PLAIN, change("id", INTEGER)) == metadata()


def text(length: str | None) -> StructField:
    return StructField("", STRING, True, {} if length is None else {schemas.CHAR_VARCHAR_KEY: length})


def test_the_length_of_texts() -> None:
    longer = altered(metadata(), PLAIN, change("t", text("varchar(9)")))
    assert at(longer, "t").metadata == {schemas.CHAR_VARCHAR_KEY: "varchar(9)"}
    assert at(altered(longer, PLAIN, change("t", text(None))), "t").metadata == {}
    for name, wrong in (("t", "varchar(4)"), ("t", "char(5)"), ("p", "varchar(5)")):
        with pytest.raises(InvalidArgumentError, match="existing texts may be longer"):
            altered(metadata(), PLAIN, change(name, text(wrong)))


def test_what_can_not_be_altered() -> None:
    for wrong, reason in (
        (change("s.y", nullable=False), r"s\.y can't be made NOT NULL.*CHECK constraint"),
        (change("s", LONG), "can't be changed as a whole"),
        (change("m", MapType(STRING, LONG)), "can't be changed as a whole"),
        (change("id", LONG), "set the table property delta.enableTypeWidening"),
        (change("id", schemas.SHORT), "from int to smallint: the data files"),
        (change("t", LONG), r"from varchar\(5\) to bigint"),
        (change("m.value", comment="c"), "only its type can be changed"),
        (change("m.value", drops_comment=True), "only its type can be changed"),
        (change("m.key", nullable=True), "only its type can be changed"),
        (change("zz", comment="c"), "there is no column zz: the table has id, s, a"),
        (change("s.x", position=Position("id")), "can't be placed after id"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            altered(metadata(), PLAIN, wrong)
    with pytest.raises(UnsupportedFeatureError, match="allowColumnDefaults"):
        altered(metadata(), PLAIN, change("p", default="'x'"))
    for rule in (schemas.GENERATION_KEY, "delta.identity.start"):
        generated = metadata(StructType((StructField("g", INTEGER, True, {rule: "1"}), *SCHEMA.fields)))
        with pytest.raises(InvalidArgumentError, match="generated column g can't be changed"):
            altered(generated, WIDENING, change("g", LONG))


def test_defaults_are_set_and_taken_away() -> None:
    protocol = features.protocol_of({"allowColumnDefaults"})
    made = altered(metadata(), protocol, change("s.y", default="1 + 1"))
    assert at(made, "s", "y").metadata == {schemas.DEFAULT_KEY: "1 + 1"}
    assert altered(made, protocol, change("s.y", default="")) == metadata()


def test_widening_is_recorded_at_the_nearest_field() -> None:
    made = widening()
    for one in (
        change("id", LONG),
        change("id", PrimitiveType("decimal(22,2)")),
        change("a.element.x", schemas.DOUBLE),
        change("m.value", LONG),
    ):
        made = altered(made, WIDENING, one)
    key = schemas.TYPE_CHANGES_KEY
    assert at(made, "id").metadata[key] == [
        {"fromType": "integer", "toType": "long"},
        {"fromType": "long", "toType": "decimal(22,2)"},
    ]
    assert at(made, "a", "element", "x").metadata == {
        "comment": "east",
        key: [{"fromType": "integer", "toType": "double"}],
    }
    assert at(made, "m").metadata == {key: [{"fromType": "integer", "toType": "long", "fieldPath": "value"}]}
    assert key not in at(made, "a").metadata
    assert at(altered(made, WIDENING, change("v", LONG)), "v").metadata == {}


def test_widening_takes_the_feature_and_what_iceberg_has() -> None:
    preview = Protocol(3, 7, frozenset({"typeWidening-preview"}), frozenset({"typeWidening-preview"}))
    with pytest.raises(UnsupportedFeatureError, match="preview"):
        altered(widening(), preview, change("id", LONG))
    with pytest.raises(InvalidArgumentError, match=r"delta\.enableTypeWidening"):
        altered(widening(), PLAIN, change("id", LONG))
    iceberg = features.protocol_of({"typeWidening", "icebergCompatV2"})
    assert at(altered(widening(), iceberg, change("id", LONG)), "id").data_type == LONG
    with pytest.raises(InvalidArgumentError, match="Iceberg doesn't support this change"):
        altered(widening(), iceberg, change("id", schemas.DOUBLE))


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["add", "rename", "drop"]), st.integers(0, 30), st.sampled_from("abcdef")), max_size=25
)


@given(OPERATIONS)
@settings(max_examples=150)
def test_whatever_is_renamed_a_column_keeps_its_data(operations: list[tuple[str, int, str]]) -> None:
    """Physical names and ids stay with their columns, and none is ever given a second time."""
    protocol = features.protocol_of({"columnMapping"})
    made = column_mapping.assigned(metadata(POINT_OF_NULLS, delta_columnMapping_mode="name"), None)
    given_before = _ids(made)
    for kind, which, name in operations:
        columns = [column for column, _ in schemas.all_fields(of(made))]
        column = columns[which % len(columns)]
        before = _ids(made)
        try:
            if kind == "add":
                parent = column[:-1]
                changed = added(made, [NewColumn(StructField(name, POINT_OF_NULLS), parent)])
            elif kind == "rename":
                changed = renamed(made, column, name)
            else:
                changed = dropped(made, column)
        except (InvalidArgumentError, SchemaMismatchError):
            continue
        made = column_mapping.assigned(changed, made, protocol)
        column_mapping.check(made)
        after = _ids(made)
        new = after.keys() - before.keys()
        assert new.isdisjoint(given_before)
        assert kind == "add" or not new
        assert kind == "drop" or not before.keys() - after.keys()
        assert all(after[one] == before[one] for one in after.keys() & before.keys())
        given_before |= after


def _ids(made: Metadata) -> dict[int, str]:
    fields = [f for _, f in schemas.all_fields(of(made))]
    found = {f.metadata[column_mapping.ID]: f.metadata[column_mapping.PHYSICAL_NAME] for f in fields}
    assert len(found) == len(fields)
    return found
