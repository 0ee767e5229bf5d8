"""Schemas and table properties."""

import json

from fuzz.target import Target, allowed
from tablelog.core.protocol import schema as schemas
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.properties import PROPERTIES, TableProperties, column_list, interval_ms, validate
from tablelog.core.protocol.rules import Rules
from tablelog.errors import CorruptLogError

from . import examples

_TYPED = [name for name, value in vars(TableProperties).items() if isinstance(value, property)]
_ALL = Protocol(
    3, 7, frozenset({"columnMapping"}),
    frozenset(
        {"columnMapping", "generatedColumns", "identityColumns", "checkConstraints", "allowColumnDefaults"}
    ),
)  # fmt: skip
_WORDS = [
    "struct", "array", "map", "udt", "elementType", "keyType", "valueType", "containsNull", "valueContainsNull",
    "fields",
    "name", "type", "nullable", "metadata", "decimal(38,18)", "decimal(10,2)", "decimal(" + "9" * 5000 + ",1)",
    "decimal",
    "decimal(0,0)", "decimal(5,-1)", "void", "variant", "timestamp_ntz", "interval", "string", "long", "sqlType",
    "pyClass",
    "__CHAR_VARCHAR_TYPE_STRING", "char(5)", "varchar(" + "9" * 5000 + ")", "delta.invariants", "CURRENT_DEFAULT",
    '{"expression":{"expression":"id > 0"}}', "delta.generationExpression", "delta.identity.start",
    "delta.identity.step",
    "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert", "delta.columnMapping.id",
    "delta.columnMapping.physicalName", "delta.typeChanges", "a", "A", "a.b", "`",
]  # fmt: skip


def schema(data: bytes) -> None:
    """A schema is written as it is read, and can be used, or a typed error says why not."""
    text = _text(data)
    parsed = schemas.parse_schema(text)
    assert schemas.parse_schema(schemas.to_json(parsed)) == parsed
    json.dumps(schemas.type_json(parsed), allow_nan=False).encode()
    allowed(lambda: schemas.arrow_schema(parsed))
    is_distinct = allowed(lambda: schemas.check_no_duplicates(parsed) or True)
    allowed(lambda: schemas.check_parquet_names(parsed, schemas.StructType()))
    allowed(lambda: Rules.of(_ALL, Metadata("id", text, (), {})))
    schemas.type_text(parsed).encode()
    for column, field in schemas.all_fields(parsed):
        schemas.dotted(column)
        allowed(lambda field=field: schemas.char_varchar(field))  # type: ignore[misc]
    for column, _ in schemas.leaves(parsed):
        assert not is_distinct or schemas.find(parsed, column, case_sensitive=True) is not None
    schemas.indexed_leaves(parsed, ["id"])


def table_property(data: bytes) -> None:
    """A property of a table: `key=value`."""
    name, _, value = _text(data).partition("=")
    known = PROPERTIES.get(name.lower().removeprefix("delta."))
    use_properties(TableProperties({known.key if known else name: value}))
    allowed(lambda: validate({name: value}))
    allowed(lambda: validate({f"delta.{name}": value}))
    if known is None:
        raise CorruptLogError("not a property")
    if known.parse is interval_ms:
        assert known.check(value) >= 0
    elif known.parse is column_list:
        columns = known.check(value)
        assert column_list(", ".join(schemas.quoted(*column) for column in columns)) == columns
    else:
        known.check(value)


def use_properties(properties: TableProperties) -> None:
    for name in _TYPED:
        allowed(lambda name=name: getattr(properties, name))  # type: ignore[misc]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptLogError("not UTF-8") from None


def _schema_seeds() -> list[bytes]:
    def column(name: str, type_: object, **metadata: object) -> dict[str, object]:
        return {"name": name, "type": type_, "nullable": True, "metadata": metadata}

    identity = {f"delta.identity.{key}": value for key, value in
                {"start": 1, "step": 2, "highWaterMark": 9, "allowExplicitInsert": False}.items()}  # fmt: skip
    doubles = {"type": "array", "elementType": "double", "containsNull": False}
    fields = [
        column("id", "long", **identity),
        column("c", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)", CURRENT_DEFAULT="'a'"),
        column("i", "integer", **{"delta.invariants": '{"expression":{"expression":"i > 0"}}'}),
        column("g", "date", **{"delta.generationExpression": "CAST(t AS DATE)", "delta.columnMapping.id": 4}),
        column("u", {"type": "udt", "class": "C", "sqlType": doubles}),
    ]  # fmt: skip
    other = json.dumps({"type": "struct", "fields": fields})
    return [examples.SCHEMA.encode(), other.encode(), b'{"type":"struct","fields":[]}']


_VALUES = {
    "interval_ms": "interval 2 days 3 hours 1.5 seconds", "boolean": "true", "column_list": "a, b.c, `odd ``name`.d",
    "any_text": "x", "formats": "iceberg", "parquet_version": "2.4.0",
}  # fmt: skip


def _property_seeds() -> list[bytes]:
    return [
        f"delta.{known.name}={known.default or _VALUES.get(known.parse.__name__, '3')}".encode()
        for known in PROPERTIES.values()
    ] + [f"delta.logRetentionDuration={_VALUES['interval_ms']}".encode(), b"delta.dataSkippingStatsColumns=a, `b``c`.d"]


_PROPERTY_WORDS = [
    "interval", "week", "weeks", "day", "month", "microseconds", "seconds", "1.123456789", "-", "+", "9" * 5000,
    "9" * 30,
    "true", "false", "delta.", "=", ",", "`", "``", ".", " ", "iceberg", "hudi", "2.9.9", "é", "\0", "\n", "none",
    "name",
]  # fmt: skip

TARGETS = (
    Target("schema", schema, _schema_seeds, "json", _WORDS),
    Target("property", table_property, _property_seeds, "text", _PROPERTY_WORDS),
)
