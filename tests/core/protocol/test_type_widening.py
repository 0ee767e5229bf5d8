"""Which types may become which, what a write widens by itself, and the record that readers check."""

import pytest

from tablelog.core.protocol import features
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata
from tablelog.core.protocol.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from tablelog.core.protocol.type_widening import can_widen, changes_of, check, was_float, widens_by_itself
from tablelog.core.schema_evolution.merging import merged, merged_schema, retyped
from tablelog.errors import CorruptLogError, InvalidArgumentError, UnsupportedFeatureError
from tablelog.settings.declarations import AUTOMATIC_WIDENING

WIDER = {
    "byte": "short integer long double decimal(10,0) decimal(38,18)",
    "short": "integer long double decimal(10,0) decimal(12,2)",
    "integer": "long double decimal(10,0) decimal(38,28)",
    "long": "decimal(20,0) decimal(38,18)",
    "float": "double",
    "date": "timestamp_ntz",
    "decimal(10,2)": "decimal(11,2) decimal(12,4) decimal(38,2)",
}
NAMES = sorted({*WIDER, *" ".join(WIDER.values()).split(), "string", "timestamp", "boolean", "void", "decimal(11,4)"})
D = "decimal(10,2)"
BY_ICEBERG = {("float", "double"), *((D, f"decimal({p},2)") for p in (11, 12, 38))}


def t(name: str) -> PrimitiveType:
    return PrimitiveType(name)


@pytest.mark.parametrize("old", [name for name in NAMES if not name.startswith("decimal") or name in WIDER])
def test_what_the_specification_allows_and_nothing_else(old: str) -> None:
    wide = [n for n in NAMES if can_widen(t(old), t(n))]
    listed = set(WIDER.get(old, "").split())
    decimals = {n for n in wide if n.startswith("decimal")}
    assert set(wide) - decimals == {n for n in listed if not n.startswith("decimal")}
    assert {n for n in listed if n.startswith("decimal")} <= decimals
    for name in decimals:  # each keeps every digit of what was there
        precision, scale = t(name).decimal or (0, 0)
        least, fraction = t(old).decimal or ((20, 0) if old == "long" else (10, 0))
        assert precision - scale >= least - fraction
        assert scale >= fraction


def test_what_iceberg_has_too() -> None:
    assert can_widen(t("byte"), t("long"), iceberg=True)
    found = {(o, n) for o in NAMES for n in NAMES if can_widen(t(o), t(n), iceberg=True)}
    assert {pair for pair in found if pair[0] in ("float", "date", "decimal(10,2)")} == BY_ICEBERG
    assert not any(new.startswith("decimal") or new == "double" for old, new in found if old in ("integer", "long"))


def test_what_a_write_widens_by_itself() -> None:
    assert widens_by_itself(t("integer"), t("double"), "always")
    assert not widens_by_itself(t("integer"), t("double"), "same_family_type")
    assert not widens_by_itself(t("integer"), t("decimal(20,0)"), "same_family_type")
    for old, new in (
        ("integer", "long"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(10,2)", "decimal(12,2)"),
    ):
        assert widens_by_itself(t(old), t(new), "same_family_type")
        assert not widens_by_itself(t(old), t(new), "never")


WIDENING = features.protocol_of({"typeWidening"})
PREVIEW = features.protocol_of({"typeWidening-preview"})


def table(schema: StructType, enabled: str = "true") -> Metadata:
    return Metadata("id", schemas.to_json(schema), (), {"delta.enableTypeWidening": enabled})


def struct(**types: PrimitiveType | ArrayType | MapType | StructType) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in types.items()))


OLD = struct(i=t("integer"), f=t("float"), a=ArrayType(t("short")), s=struct(x=t("integer")), b=t("byte"))
NEW = struct(
    I=t("long"), f=t("double"), a=ArrayType(t("long")), s=struct(X=t("decimal(12,2)"), y=t("long")), b=t("string")
)


def test_new_data_widens_where_the_table_allows_it() -> None:
    found = schemas.parse_schema(merged(table(OLD), NEW, protocol=WIDENING).schema_string)
    fields = dict(schemas.all_fields(found))
    assert [f.data_type for f in found][:3] == [t("long"), t("double"), ArrayType(t("long"))]
    assert fields["s", "x"].data_type == t("decimal(12,2)")
    assert fields["b",].data_type == t("byte")
    assert [c.json() for c in changes_of(fields["a",])] == [
        {"fromType": "short", "toType": "long", "fieldPath": "element"}
    ]
    assert fields["s",].metadata == {}
    assert len(changes_of(fields["s", "x"])) == 1
    assert {name for name, _, _ in retyped(OLD, found)} == {("i",), ("f",), ("a",), ("s", "x")}


def test_new_data_widens_nothing_elsewhere() -> None:
    kept = struct(
        i=t("integer"), f=t("float"), a=ArrayType(t("short")), s=struct(x=t("integer"), y=t("long")), b=t("byte")
    )
    for metadata, protocol, conf in (
        (table(OLD, "false"), WIDENING, {}),
        (table(OLD), features.protocol_of(()), {}),
        (table(OLD), None, {}),
        (table(OLD), WIDENING, {AUTOMATIC_WIDENING.key: "NEVER"}),
    ):
        assert schemas.parse_schema(merged(metadata, NEW, protocol=protocol, conf=conf).schema_string) == kept
    same = merged(table(OLD), NEW, protocol=WIDENING, conf={AUTOMATIC_WIDENING.key: "same_family_type"})
    assert dict(schemas.all_fields(schemas.parse_schema(same.schema_string)))["s", "x"].data_type == t("integer")
    with pytest.raises(InvalidArgumentError, match=AUTOMATIC_WIDENING.key):
        merged(table(OLD), NEW, protocol=WIDENING, conf={AUTOMATIC_WIDENING.key: "sometimes"})
    with pytest.raises(UnsupportedFeatureError, match="preview"):
        merged(table(OLD), NEW, protocol=PREVIEW)
    assert merged(table(OLD), OLD, protocol=PREVIEW) == table(OLD)


def test_generated_columns_keep_their_type() -> None:
    for rule in (schemas.GENERATION_KEY, "delta.identity.start"):
        made = StructType((StructField("g", t("integer"), True, {rule: "1"}),))
        assert merged(table(made), struct(g=t("long")), protocol=WIDENING) == table(made)


def test_types_that_files_have_alike_grow_without_the_feature() -> None:
    found = merged_schema(struct(b=t("byte"), s=t("short")), struct(b=t("integer"), s=t("byte")))
    assert found == struct(b=t("integer"), s=t("short"))


def recorded(old: str, new: str, data_type: str = "double") -> StructField:
    return StructField("c", t(data_type), True, {schemas.TYPE_CHANGES_KEY: [{"fromType": old, "toType": new}]})


def test_readers_refuse_what_the_feature_does_not_have() -> None:
    check(StructType((recorded("int", "bigint"), recorded("decimal(6, 2)", "decimal(10, 4)"))), "t")
    check(struct(s=StructType((recorded("char(3)", "string"),))), "t")
    for old, new in (("long", "integer"), ("string", "long"), ("long", "double")):
        with pytest.raises(UnsupportedFeatureError, match=r"a\.element\.c was changed"):
            check(struct(a=ArrayType(StructType((recorded(old, new),)))), "t")
    for wrong in ([{"fromType": "int"}], "x", [1], 7):
        with pytest.raises(CorruptLogError, match=r"delta\.typeChanges of the column c isn't a list"):
            check(StructType((StructField("c", t("long"), True, {schemas.TYPE_CHANGES_KEY: wrong}),)), "t")


def test_doubles_that_were_floats_are_known() -> None:
    assert was_float(recorded("float", "double"))
    assert not was_float(recorded("integer", "double"))
    assert not was_float(StructField("c", t("double")))
