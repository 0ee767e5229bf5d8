"""The schema: its JSON, its Arrow form, and what is asked of it before a commit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablelog.core.protocol import schema
from tablelog.core.protocol.actions import Metadata
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.schema import (
    BINARY,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
)
from tablelog.errors import CorruptLogError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError


def field(name: str, data_type: schema.DataType = LONG, **more: Any) -> StructField:
    return StructField(name, data_type, **more)


def struct(*fields: StructField | str) -> StructType:
    return StructType(tuple(f if isinstance(f, StructField) else field(f) for f in fields))


DEEP = '{"type":"array","elementType":' * 400 + '"long"' + "}" * 400
DEEP = f'{{"type":"struct","fields":[{{"name":"a","type":{DEEP}}}]}}'


@pytest.mark.parametrize("corpus", ["golden", "dat"])
def test_every_schema_of_the_corpora_survives(corpus: str, request: pytest.FixtureRequest) -> None:
    root: Path = request.getfixturevalue(corpus)("")
    seen = 0
    for path in sorted(root.rglob("_delta_log/*.json")):
        for action in parse_commit(path.read_bytes()):
            if isinstance(action, Metadata) and action.schema_string:
                parsed = schema.parse_schema(action.schema_string)
                assert json.loads(schema.to_json(parsed)) == json.loads(action.schema_string), path
                assert schema.arrow_schema(parsed).names == list(parsed.names)
                schema.check_no_duplicates(parsed)
                schema.check_partition_columns(parsed, action.partition_columns)
                seen += 1
    assert seen > 10


def test_every_type_has_its_json_and_its_arrow_form() -> None:
    forms: list[tuple[str, pa.DataType]] = [
        ("byte", pa.int8()), ("short", pa.int16()), ("integer", pa.int32()), ("long", pa.int64()),
        ("float", pa.float32()), ("double", pa.float64()), ("string", pa.string()), ("binary", pa.binary()),
        ("boolean", pa.bool_()), ("date", pa.date32()), ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")), ("decimal(38,18)", pa.decimal128(38, 18)), ("void", pa.null()),
    ]  # fmt: skip
    text = json.dumps(
        {
            "type": "struct",
            "fields": [{"name": n, "type": n, "nullable": True, "metadata": {}} for n, _ in forms],
        }
    )
    parsed = schema.parse_schema(text)
    assert schema.arrow_schema(parsed) == pa.schema(forms)
    assert json.loads(schema.to_json(parsed)) == json.loads(text)
    assert schema.from_arrow(pa.schema(forms)) == parsed


def test_void_without_nulls_has_an_arrow_form_except_as_a_key() -> None:
    """Arrow refuses a null type without nulls. Found by fuzzing."""
    void = StructType((StructField("v", VOID, nullable=False),))
    nested = StructType(
        (
            StructField("a", ArrayType(VOID, contains_null=False), nullable=False),
            StructField("m", MapType(STRING, VOID, value_contains_null=False)),
            StructField("s", void),
        )
    )
    assert schema.arrow_schema(void) == pa.schema([("v", pa.null())])
    found = schema.arrow_schema(nested)
    assert found.field("a").type.value_type == pa.null()
    assert found.field("m").type.item_type == pa.null()
    assert found.field("s").type.field("v").type == pa.null()
    with pytest.raises(UnsupportedFeatureError, match="a map with keys of the type 'void'"):
        schema.arrow_type(MapType(VOID, STRING))


def test_nested_types_keep_nullability_and_metadata() -> None:
    text = json.dumps(
        {
            "type": "struct",
            "fields": [
                {
                    "name": "a",
                    "type": {
                        "type": "array",
                        "elementType": {
                            "type": "struct",
                            "fields": [
                                {
                                    "name": "m",
                                    "type": {
                                        "type": "map",
                                        "keyType": "string",
                                        "valueType": "decimal(5,2)",
                                        "valueContainsNull": False,
                                    },
                                    "nullable": False,
                                    "metadata": {"deep": {"list": [1, 2.5, None]}, "long": 2**60},
                                }
                            ],
                        },
                        "containsNull": False,
                    },
                    "nullable": True,
                    "metadata": {"comment": 'é "quoted"'},
                }
            ],
        }
    )
    parsed = schema.parse_schema(text)
    assert json.loads(schema.to_json(parsed)) == json.loads(text)
    inner = struct(field("m", MapType(STRING, schema.decimal(5, 2), False), nullable=False))
    assert parsed.fields[0].data_type == ArrayType(
        StructType(
            (StructField("m", inner.fields[0].data_type, False, {"deep": {"list": [1, 2.5, None]}, "long": 2**60}),)
        ),
        False,
    )
    arrow = schema.arrow_type(parsed.fields[0].data_type)
    assert not arrow.value_field.nullable
    assert not arrow.value_type.field("m").nullable
    assert not arrow.value_type.field("m").type.item_field.nullable
    assert hash(parsed) == hash(schema.parse_schema(text))


def test_older_and_rarer_spellings() -> None:
    text = (
        '{"type":"struct","fields":[{"name":"n","type":"null"},{"name":"d","type":"decimal"},{"name":"v","type":"variant",'
        '"nullable":true,"metadata":{}},{"name":"u","type":{"type":"udt","class":"x.Y","pyClass":null,"sqlType":"long"}}]}'
    )
    parsed = schema.parse_schema(text)
    assert [f.data_type for f in parsed][:3] == [VOID, PrimitiveType("decimal(10,0)"), VARIANT]
    udt = parsed.fields[3].data_type
    assert isinstance(udt, UserDefinedType)
    assert schema.arrow_type(udt) == pa.int64()
    assert schema.type_json(udt) == {"type": "udt", "class": "x.Y", "pyClass": None, "sqlType": "long"}
    with pytest.raises(UnsupportedFeatureError, match="variant"):
        schema.arrow_type(VARIANT)
    assert schema.parse_schema("") == StructType()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting"),
        ("[]", "isn't a struct"),
        ('"long"', "isn't a struct"),
        ('{"type":"struct"}', "no array of fields"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "has no name"),
        ('{"type":"struct","fields":[{"name":"a"}]}', "type of a should be"),
        ('{"type":"struct","fields":[{"name":"a","type":{"type":"list"}}]}', "neither struct"),
        ('{"type":"struct","fields":[{"name":"a","type":"decimal(39,2)"}]}', "out of bounds"),
        ('{"type":"struct","fields":[{"name":"a","type":"decimal(5,6)"}]}', "out of bounds"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","nullable":"no"}]}', "'nullable' of a"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":3}]}', "metadata of a"),
        (DEEP, "deeper"),
        ("[" * 100_000, "too deep"),
        # What can't be written again, or has another meaning for another reader.
        ('{"type":"struct","fields":[{"name":"\\ud800","type":"long"}]}', "unpaired surrogate"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"x":NaN}}]}', "NaN is not JSON"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"x":1e999}}]}', "out of range"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","type":"string"}]}', "'type' occurs twice"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_a_typed_error(text: str, says: str) -> None:
    with pytest.raises(CorruptLogError, match=says):
        schema.parse_schema(text)


def test_a_number_of_many_digits_in_a_type() -> None:
    digits = "9" * 5000
    with pytest.raises(UnsupportedFeatureError, match="decimal"):
        schema.parse_schema(f'{{"type":"struct","fields":[{{"name":"a","type":"decimal({digits},0)"}}]}}')
    assert schema.char_varchar(field("a", STRING, metadata={schema.CHAR_VARCHAR_KEY: f"char({digits})"})) is None


def test_a_type_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="geometry") as error:
        schema.parse_schema('{"type":"struct","fields":[{"name":"where","type":"geometry(4326)"}]}')
    assert "where" in str(error.value)


def test_names_are_found_whatever_their_case_the_exact_one_first() -> None:
    table = struct("a", "A", field("S", struct("Inner")))
    assert table.get("A") is table.fields[1]
    assert table.get("s") is table.fields[2]
    assert table.get("s", case_sensitive=True) is None
    found = schema.find(table, ("s", "INNER"))
    assert found is not None
    assert found[0] == ("S", "Inner")
    assert schema.find(table, ("a", "b")) is None
    assert schema.find(table, ()) is None


def test_indexed_leaves_are_counted_as_delta_counts_them() -> None:
    table = struct(
        "a", "p", field("s", struct("x", field("t", struct("y", "z")), "w")), field("l", ArrayType(LONG)),
        field("m", MapType(STRING, LONG)), "b",
    )  # fmt: skip

    def indexed(**how: Any) -> list[str]:
        return [".".join(name) for name, _ in schema.indexed_leaves(table, ["p"], **how)]

    everything = ["a", "s.x", "s.t.y", "s.t.z", "s.w", "l", "m", "b"]
    assert indexed() == everything
    assert indexed(num_indexed=-1) == everything
    assert indexed(num_indexed=0) == []
    assert indexed(num_indexed=3) == everything[:3]
    assert indexed(num_indexed=6) == everything[:6]
    assert indexed(stats_columns=[("B",), ("S", "t")]) == ["s.t.y", "s.t.z", "b"]
    assert indexed(stats_columns=[("a", "nothing"), ("gone",)]) == []
    assert indexed(num_indexed=1, stats_columns=[("b",)]) == ["b"]
    wide = struct(*(f"c{i}" for i in range(40)))
    assert len(schema.indexed_leaves(wide, [])) == 32


def test_bounds_are_kept_of_numbers_dates_timestamps_and_strings_only() -> None:
    with_bounds = [LONG, schema.decimal(10, 2), PrimitiveType("float"), DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING]
    assert all(schema.has_min_max(t) for t in with_bounds)
    assert not any(schema.has_min_max(t) for t in (BINARY, schema.BOOLEAN, VOID, VARIANT, ArrayType(LONG), struct("a")))


def test_char_and_varchar_live_in_the_metadata() -> None:
    assert schema.char_varchar(field("c", STRING, metadata={schema.CHAR_VARCHAR_KEY: "varchar(10)"})) == ("varchar", 10)
    assert schema.char_varchar(field("c", STRING, metadata={schema.CHAR_VARCHAR_KEY: "char(3)"})) == ("char", 3)
    assert schema.char_varchar(field("c", STRING)) is None


def test_duplicate_names_are_refused_at_every_depth() -> None:
    schema.check_no_duplicates(struct("a", field("b", struct("a"))))
    for table in (
        struct("a", "A"),
        struct(field("s", struct("x", "X"))),
        struct(field("l", ArrayType(struct("x", "x")))),
        struct(field("m", MapType(STRING, struct("k", "K")))),
    ):
        with pytest.raises(SchemaMismatchError, match="occurs twice"):
            schema.check_no_duplicates(table)


@pytest.mark.parametrize("char", list(" ,;{}()\n\t="))
def test_names_that_parquet_forbids_are_refused(char: str) -> None:
    for table in (struct(f"a{char}b"), struct(field("s", struct(f"{char}")))):
        with pytest.raises(InvalidArgumentError, match="column mapping"):
            schema.check_parquet_names(table, struct("c"))
        schema.check_parquet_names(table, table)
    schema.check_parquet_names(struct("a.b", "é", "`", "a-b", "'"), struct())


def test_partition_columns_are_checked() -> None:
    table = struct("a", "p", field("s", struct("x")), field("l", ArrayType(LONG)))
    schema.check_partition_columns(table, ["p"])
    schema.check_partition_columns(table, [])
    for names, says in (
        (["gone"], "not in the schema"), (["P"], "not in the schema"), (["p", "p"], "twice"),
        (["s"], "struct<x: bigint>"), (["l"], "array<bigint>"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=says):
            schema.check_partition_columns(table, names)
    with pytest.raises(InvalidArgumentError, match="every column"):
        schema.check_partition_columns(struct("a", "b"), ["b", "a"])


def test_arrow_data_of_other_widths_has_a_delta_schema() -> None:
    arrow = pa.schema(
        [
            ("a", pa.large_string()), ("b", pa.dictionary(pa.int8(), pa.string())),
            ("c", pa.timestamp("ns", "Europe/Paris")), ("d", pa.timestamp("ms")),
            ("e", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            ("f", pa.map_(pa.string(), pa.struct([("x", pa.date64())]))), ("g", pa.decimal128(5, 2)),
            ("h", pa.binary(3)),
        ]
    )  # fmt: skip
    assert schema.from_arrow(arrow) == struct(
        field("a", STRING), field("b", STRING), field("c", TIMESTAMP), field("d", TIMESTAMP_NTZ),
        field("e", ArrayType(INTEGER, False)), field("f", MapType(STRING, struct(field("x", DATE)))),
        field("g", schema.decimal(5, 2)), field("h", BINARY),
    )  # fmt: skip
    with pytest.raises(SchemaMismatchError, match=r"a\.x.*uint64"):
        schema.from_arrow(pa.schema([("a", pa.struct([("x", pa.uint64())]))]))


def test_types_are_shown_as_sql_shows_them() -> None:
    shown: Callable[[schema.DataType], str] = schema.type_text
    assert shown(struct(field("a", INTEGER), field("b", MapType(STRING, ArrayType(schema.decimal(4, 1)))))) == (
        "struct<a: int, b: map<string, array<decimal(4,1)>>>"
    )
    assert schema.dotted(("a", "b c", "d`e")) == "a.`b c`.`d``e`"
