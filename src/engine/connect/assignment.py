"""Spark's store assignment by public functions: what `TableOutputResolver` does in a classic session.

Only the policy ANSI is supported: a value that can't be stored is an error, not a null. Casts of arrays, maps and
structs need a session with ANSI casts.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ...core.protocol.schema import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    char_varchar,
    dotted,
    quoted,
    to_json,
    type_text,
)
from ...errors import SchemaMismatchError, UnsupportedEnvironmentError, UnsupportedFeatureError
from ...settings.spark_own import ANSI, STORE_ASSIGNMENT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType

OVERFLOW = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
"""The condition of the error for a value that its column's type can't represent."""

_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def assigned(
    df: "DataFrame",
    schema: StructType,
    new: StructType,
    table: str,
    checked: "Callable[..., DataFrame]",
) -> "DataFrame":
    """`df`, whose columns are `new`, converted to the columns of `schema`, by position.

    The fields of structs are those of `schema` too, in its order. `checked` is `engine.sql.checks.checked`. Raises
    SchemaMismatchError for a type that can't be stored, UnsupportedEnvironmentError for settings that this module
    doesn't support, UnsupportedFeatureError for char and varchar inside other types.
    """
    from pyspark.sql import functions as F

    casts: dict[str, Callable[[Column], Column]] = {}
    for to, of in zip(schema, new, strict=True):
        _check_types(to.data_type, of.data_type, (to.name,), table)
        if _alike(to.data_type, of.data_type):
            continue
        if not casts:
            _check_policy(df, table)
        wanted = spark_type(_nullable(to.data_type))
        if isinstance(to.data_type, PrimitiveType):
            value = df[quoted(of.name)]
            message = (
                f"a value of the column {dotted((to.name,))} is out of the range of the column's type, "
                f"{type_text(to.data_type)} (the data has {type_text(of.data_type)}); nothing was written"
            )
            fits = value.isNull() | value.try_cast(wanted).isNotNull()
            df = checked(df, fits, message, on=of.name, broken=(OVERFLOW, {"columnName": to.name}))
            casts[of.name] = partial(_tried, wanted)
        else:
            check_settings(df, table, to.name)
            casts[of.name] = partial(_casted, wanted)
    columns = []
    for to, of in zip(schema, new, strict=True):
        value = df[quoted(of.name)]
        if of.name in casts:
            value = casts[of.name](value)
        columns.append(_of_length(value, to, table).alias(to.name))
    df = df.select(*columns)
    for to, of in zip(schema, new, strict=True):
        value = df[quoted(to.name)]
        for name, condition in _not_null(value, to, of):
            message = f"the column {dotted(name)} is NOT NULL, and the data has a null there; nothing was written"
            rule = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", {"columnName": dotted(name)}
            df = checked(df, condition, message, on=to.name, broken=rule)
        limit = char_varchar(to)
        if limit is not None:
            message = (
                f"a value is longer than the {limit[1]} characters that {dotted((to.name,))} ({limit[0]}({limit[1]})) "
                "can hold; nothing was written"
            )
            rule = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", {"value": "?", "expr": to.name}
            fits = F.coalesce(F.length(df[quoted(to.name)]) <= limit[1], F.lit(True))
            df = checked(df, fits, message, on=to.name, broken=rule)
    return df


def _tried(wanted: "SparkType", value: "Column") -> "Column":
    return value.try_cast(wanted)


def _casted(wanted: "SparkType", value: "Column") -> "Column":
    return value.cast(wanted)


def spark_type(data_type: DataType) -> "SparkType":
    """The PySpark type of a type of the log."""
    from pyspark.sql.types import StructType as SparkStruct

    # A copy: PySpark changes the metadata that it gets.
    return SparkStruct.fromJson(json.loads(to_json(StructType((StructField("c", data_type),)))))["c"].dataType


def by_name(kept: DataType, new: DataType) -> DataType:
    """The type `new` with the fields of its structs in the order and the spelling of `kept`, matched by name.

    A struct with other fields is unchanged: `assigned` refuses it.
    """
    if isinstance(kept, StructType) and isinstance(new, StructType):
        known = {f.name.lower(): f for f in new}
        if len(known) != len(new.fields) or known.keys() != {f.name.lower() for f in kept}:
            return new
        pairs = ((f, known[f.name.lower()]) for f in kept)
        return StructType(
            tuple(StructField(f.name, by_name(f.data_type, of.data_type), of.nullable) for f, of in pairs)
        )
    if isinstance(kept, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(by_name(kept.element_type, new.element_type), new.contains_null)
    if isinstance(kept, MapType) and isinstance(new, MapType):
        return MapType(
            by_name(kept.key_type, new.key_type), by_name(kept.value_type, new.value_type), new.value_contains_null
        )
    return new


def check_settings(df: "DataFrame", table: str, column: str) -> None:
    """Raise UnsupportedEnvironmentError unless the session casts by ANSI rules."""
    conf = df.sparkSession.conf
    if (conf.get(ANSI.key) or "true").lower() != "true":
        raise UnsupportedEnvironmentError(
            f"{table}: the type of {column} in the data differs from the table's. On Spark Connect, tablelog converts "
            f"it only with {ANSI.key}=true: set it, or cast the column yourself"
        )


def _check_policy(df: "DataFrame", table: str) -> None:
    policy = df.sparkSession.conf.get(STORE_ASSIGNMENT.key) or "ANSI"
    if policy.upper() != "ANSI":
        raise UnsupportedEnvironmentError(
            f"{table}: the data has other types than the table. On Spark Connect, tablelog converts them only with "
            f"{STORE_ASSIGNMENT.key}=ANSI, not {policy}: set it, or cast the columns yourself"
        )


def _check_types(kept: DataType, new: DataType, at: tuple[str, ...], table: str) -> None:
    """Raise SchemaMismatchError unless a value of the type `new` may be stored as `kept` by the policy ANSI."""
    if new in (kept, VOID):
        return
    if isinstance(kept, StructType) and isinstance(new, StructType) and kept.names == new.names:
        for to, of in zip(kept, new, strict=True):
            _check_types(to.data_type, of.data_type, (*at, to.name), table)
        return
    if isinstance(kept, ArrayType) and isinstance(new, ArrayType):
        _check_types(kept.element_type, new.element_type, (*at, "element"), table)
        return
    if isinstance(kept, MapType) and isinstance(new, MapType):
        _check_types(kept.key_type, new.key_type, (*at, "key"), table)
        _check_types(kept.value_type, new.value_type, (*at, "value"), table)
        return
    if isinstance(kept, PrimitiveType) and isinstance(new, PrimitiveType) and _storable(kept, new):
        return
    raise SchemaMismatchError(
        f"{table}: the column {dotted(at)} has the type {type_text(kept)}, and values of the type {type_text(new)} "
        "can't be stored in it safely: cast them; nothing was written",
        condition="DELTA_FAILED_TO_MERGE_FIELDS",
        parameters={"currentField": dotted(at), "updateField": dotted(at)},
    )


def _storable(kept: PrimitiveType, new: PrimitiveType) -> bool:
    if kept.is_numeric and new.is_numeric:
        return True
    if kept in _TIMES and new in _TIMES:
        return True
    plain = new.is_numeric or new in _TIMES or new == BINARY or new.name == "boolean"
    return kept == STRING and plain


def _alike(kept: DataType, new: DataType) -> bool:
    """Whether the types differ in nullability and in the metadata of fields only."""
    if isinstance(kept, StructType) and isinstance(new, StructType) and kept.names == new.names:
        return all(a.name == b.name and _alike(a.data_type, b.data_type) for a, b in zip(kept, new, strict=True))
    if isinstance(kept, ArrayType) and isinstance(new, ArrayType):
        return _alike(kept.element_type, new.element_type)
    if isinstance(kept, MapType) and isinstance(new, MapType):
        return _alike(kept.key_type, new.key_type) and _alike(kept.value_type, new.value_type)
    return kept == new


def _nullable(data_type: DataType) -> DataType:
    """The type with nulls allowed inside: a cast never asserts that there are none, the checks do."""
    if isinstance(data_type, StructType):
        return StructType(tuple(StructField(f.name, _nullable(f.data_type)) for f in data_type))
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(_nullable(data_type.key_type), _nullable(data_type.value_type), True)
    return data_type


def _of_length(value: "Column", field: StructField, table: str) -> "Column":
    """A value of a char or varchar column: padded, and without trailing spaces that don't fit."""
    from pyspark.sql import functions as F

    if any(char_varchar(inner) is not None for _, inner in all_fields(StructType((field,))) if inner is not field):
        raise UnsupportedFeatureError(
            f"{table}: the column {field.name} has char or varchar fields, whose lengths can't be checked on Spark "
            "Connect: write from a classic session",
            ("char and varchar in structs",),
        )
    limit = char_varchar(field)
    if limit is None:
        return value
    kind, length = limit
    spaces = F.rtrim(F.substring(value, length + 1, 2**31 - 1)) == ""
    value = F.when((F.length(value) > length) & spaces, F.substring(value, 1, length)).otherwise(value)
    if kind == "char":
        value = F.when(F.length(value) < length, F.rpad(value, length, " ")).otherwise(value)
    return value


def _not_null(value: "Column", kept: StructField, new: StructField) -> "Iterator[tuple[tuple[str, ...], Column]]":
    """The name and the condition of each NOT NULL column, field, element or value that may be null in the data."""
    if new.nullable and not kept.nullable:
        yield (kept.name,), value.isNotNull()
    for name, condition in _not_null_inside(value, kept.data_type, new.data_type):
        yield (kept.name, *name), condition


def _not_null_inside(value: "Column", kept: DataType, new: DataType) -> "Iterator[tuple[tuple[str, ...], Column]]":
    from pyspark.sql import functions as F

    if isinstance(kept, StructType) and isinstance(new, StructType):
        for to, of in zip(kept, new, strict=True):
            for name, condition in _not_null(value.getField(to.name), to, of):
                yield name, value.isNull() | condition
    elif isinstance(kept, ArrayType) and isinstance(new, ArrayType):
        if new.contains_null and not kept.contains_null:
            yield ("element",), F.coalesce(F.forall(value, lambda one: one.isNotNull()), F.lit(True))
        yield from _of_elements(value, "element", kept.element_type, new.element_type)
    elif isinstance(kept, MapType) and isinstance(new, MapType):
        if new.value_contains_null and not kept.value_contains_null:
            values = F.map_values(value)
            yield ("value",), F.coalesce(F.forall(values, lambda one: one.isNotNull()), F.lit(True))
        yield from _of_elements(F.map_values(value), "value", kept.value_type, new.value_type)
        yield from _of_elements(F.map_keys(value), "key", kept.key_type, new.key_type)


def _of_elements(
    values: "Column", name: str, kept: DataType, new: DataType
) -> "Iterator[tuple[tuple[str, ...], Column]]":
    from pyspark.sql import functions as F

    # Only the kinds of the checks are needed here; each is evaluated for the elements.
    for i, (inside, _) in enumerate(_not_null_inside(F.lit(None), kept, new)):

        def holds(one: "Column", place: int = i) -> "Column":
            return list(_not_null_inside(one, kept, new))[place][1]

        yield (name, *inside), F.coalesce(F.forall(values, holds), F.lit(True))
