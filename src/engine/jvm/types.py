"""Conversion between the schemas of the log and of Spark."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.protocol import column_mapping
from ...core.protocol import schema as schemas

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WATERMARK = "spark.watermarkDelayMs"
"""The metadata of a column with a watermark in a query. In a table, a query of it would count as having a watermark."""
_WITH_LENGTH = re.compile(r"(var)?char\(\d+\)")
_COLLATED = "string collate "
_STRING = re.compile(rf"{_WITH_LENGTH.pattern}|{_COLLATED}.*")
_WRITERS_OWN = ("delta.", schemas.DEFAULT_KEY, "EXISTS_DEFAULT", _WATERMARK)


def spark_type(schema: schemas.StructType) -> "StructType":
    """The PySpark schema of a table schema."""
    from pyspark.sql.types import StructType

    # A copy: PySpark changes the metadata that it gets.
    return StructType.fromJson(json.loads(schemas.to_json(schema)))


def column_type(field: schemas.StructField) -> "DataType":
    """The PySpark type of a column, with its collations."""
    return spark_type(schemas.StructType((field,)))[0].dataType


def table_schema(spark_schema: "StructType") -> schemas.StructType:
    """The table schema of a PySpark schema, without the watermarks of the query."""
    text = spark_schema.json()
    schema = schemas.parse_schema(text)
    return _without_metadata(schema, lambda key: key == _WATERMARK) if _WATERMARK in text else schema


def declared(columns: "StructType") -> schemas.StructType:
    """The table schema of columns that a user declares: char and varchar are strings with their length as metadata."""
    plain = schemas.parse_schema(json.dumps(_with_strings(columns.jsonValue(), _WITH_LENGTH)))
    fields = []
    for field, column in zip(plain, columns, strict=True):
        declared_type = column.dataType.jsonValue()
        if _with_strings(declared_type, _WITH_LENGTH) != declared_type:
            field = replace(
                field, metadata={**field.metadata, schemas.CHAR_VARCHAR_KEY: column.dataType.simpleString()}
            )
        fields.append(field)
    return schemas.StructType(tuple(fields))


def type_of_json(text: str) -> schemas.DataType:
    """The type of an expression from Spark's JSON, without collations and lengths of strings."""
    kind = _with_strings(json.loads(text), _STRING)
    field = {"name": "value", "type": kind, "nullable": True, "metadata": {}}
    return schemas.parse_schema(json.dumps({"type": "struct", "fields": [field]})).fields[0].data_type


def is_collated(text: str) -> bool:
    """Whether a string in a type, in Spark's JSON, has a collation, or several of which none applies."""
    return _COLLATED in text


def _with_strings(kind: Any, replaced: re.Pattern[str]) -> Any:
    """The JSON of a type in which each primitive type that matches is replaced by string."""
    if isinstance(kind, str):
        return "string" if replaced.fullmatch(kind) else kind
    if kind["type"] == "struct":
        return {**kind, "fields": [{**f, "type": _with_strings(f["type"], replaced)} for f in kind["fields"]]}
    inside = {key: _with_strings(kind[key], replaced) for key in ("elementType", "keyType", "valueType") if key in kind}
    return {**kind, **inside}


def frame_schema(schema: schemas.StructType) -> schemas.StructType:
    """The schema of a DataFrame of the table, without metadata that only writers use."""
    return _without_metadata(schema, lambda key: key.startswith(_WRITERS_OWN))


def read_schema(schema: schemas.StructType) -> schemas.StructType:
    """`frame_schema` without void columns, which no file contains.

    A void inside an array or a map stays: Delta does not support it, and Spark refuses it with an error.
    """
    return _without_void(frame_schema(schema))


def has_same_columns(one: schemas.StructType, other: schemas.StructType) -> bool:
    """Whether two schemas have the same names, types, collations and NOT NULL; comments may differ."""
    bare, other_bare = (_without_metadata(each, lambda key: key != schemas.COLLATIONS_KEY) for each in (one, other))
    return bare == other_bare


def has_void(schema: schemas.StructType) -> bool:
    """Whether a column, or a field of a struct, is void."""
    return schemas.contains(schema, lambda data_type: data_type == schemas.VOID)


def _without_metadata(schema: schemas.StructType, dropped: Callable[[str], bool]) -> schemas.StructType:
    """The schema without the metadata of fields whose key is dropped."""

    def stripped(field: schemas.StructField, _: schemas.Column) -> schemas.StructField:
        return replace(field, metadata={key: value for key, value in field.metadata.items() if not dropped(key)})

    result = column_mapping.transformed(schema, stripped)
    assert isinstance(result, schemas.StructType)
    return result


def _without_void(schema: schemas.StructType) -> schemas.StructType:
    kept = []
    for field in schema.fields:
        if isinstance(field.data_type, schemas.StructType):
            kept.append(replace(field, data_type=_without_void(field.data_type)))
        elif field.data_type != schemas.VOID:
            kept.append(field)
    return schemas.StructType(tuple(kept))
