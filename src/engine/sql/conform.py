"""Aligns a DataFrame with a table's schema before a write.

Columns and struct fields are matched by name; `spark.sql.caseSensitive` applies. Casts are Spark's store assignment
(`spark.sql.storeAssignmentPolicy`, ANSI by default: casts that may lose data are errors, and so are values out of
range). Missing columns are filled by the table's rules (`fill`), else with null. Lengths of char and varchar, NOT NULL
and the rules' checks are part of the plan, in the same pass as the write.
`violations.translate` adds the column names to the errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.protocol.rules import NO_RULES, Rules
from ...core.protocol.schema import (
    BINARY,
    CHAR_VARCHAR_KEY,
    LONG,
    STRING,
    VOID,
    ArrayType,
    Column,
    DataType,
    MapType,
    StructField,
    StructType,
    check_no_duplicates,
    contains,
    dotted,
    quoted,
    to_json,
    type_text,
)
from ...core.schema_evolution.merging import as_nullable
from ...errors import ConstraintViolationError, InvalidArgumentError, SchemaMismatchError
from ..connect import assignment
from ..jvm import plans
from ..jvm.connection import settings
from ..jvm.connection.sessions import is_classic
from ..jvm.types import spark_type, table_schema
from . import fill
from .char_columns import with_lengths
from .checks import checked, enforced
from .collations import collated
from .fill import ALONE, Turn
from .replaced_columns import replaced
from .violations import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def conform(
    df: "DataFrame",
    schema: StructType,
    *,
    table: str = "the table",
    rules: Rules = NO_RULES,
    carried: Sequence[str] = (),
    partition_columns: Sequence[str] = (),
    turn: Turn = ALONE,
) -> "DataFrame":
    """`df` with the non-void columns of a table's schema, in its order and types; no job is run.

    Missing columns are filled by the table's `rules`, or null; checks are added to the plan. The bigint columns
    `carried`, which are not in the table, are appended unchanged. Empty strings in `partition_columns` become null, as
    in the log, before rules are evaluated. `turn` identifies the frame among all frames of the commit for which
    identity values are generated. `table` is its name in messages.
    Raises SchemaMismatchError for columns that the table lacks and for types that can't be stored;
    ConstraintViolationError for a missing NOT NULL column. Rows that violate a rule fail the job that reads the result:
    see `violations.translated`.
    """
    without_void(schema)
    more = tuple(StructField(name, LONG) for name in carried)
    data = table_schema(df.schema)
    check_no_duplicates(data)
    case_sensitive = settings.case_sensitive(df.sparkSession)
    absent = [f for f in schema if f.data_type != VOID and data.get(f.name, case_sensitive=case_sensitive) is None]
    df = fill.with_defaults(df, absent, rules, table)
    data = table_schema(df.schema)
    computed = fill.made_of_rows(absent, rules)
    wanted_schema = StructType((*schema.without(computed).fields, *more))
    fit = _Fit(table, schema, data, case_sensitive)
    shape = fit.struct(wanted_schema, data, ())
    fit.check()
    with translated(table, schema):
        if shape != data:
            df = df.to(spark_type(shape))
        df = _assigned(df, wanted_schema, shape, table)
        df = collated(df, wanted_schema)
        df = without_empty(df, wanted_schema, partition_columns)
        if computed:
            stored = StructType((*without_void(schema).fields, *more))
            df = with_lengths(df, schema, lambda df: fill.with_made(df, stored, computed, rules, turn, table))
            df = _assigned(df, StructType((*schema.fields, *more)), table_schema(df.schema), table)
            df = without_empty(df, schema.select(computed), partition_columns)
        checks = fill.checks(rules, computed)
        return with_lengths(df, schema, lambda df: enforced(df, checks, table)) if checks else df


def _assigned(df: "DataFrame", schema: StructType, new_schema: StructType, table: str) -> "DataFrame":
    """Convert the columns `new_schema` of `df` by store assignment to `schema`, if that changes anything."""
    stored = StructType(tuple(_stored(schema)))
    if all(_accepts(kept, has) for kept, has in zip(stored, new_schema, strict=True)):
        return df
    if not is_classic(df.sparkSession):
        return assignment.assigned(df, stored, new_schema, table, checked)
    return plans.assigned(df, to_json(stored), table)


def without_empty(df: "DataFrame", schema: StructType, partition_columns: Sequence[str]) -> "DataFrame":
    """`df` with null for each empty string or binary value in the partition columns.

    The log can't distinguish the two (PROTOCOL.md, "Partition Value Serialization").
    """
    from pyspark.sql import functions as F

    wanted = {name.lower() for name in partition_columns}
    values = {}
    for field in schema:
        if field.name.lower() in wanted and field.data_type in (STRING, BINARY):
            value = df[quoted(field.name)]
            values[field.name] = F.when(F.octet_length(value) > 0, value)
    return replaced(df, values) if values else df


def new_table_schema(df: "DataFrame") -> StructType:
    """The schema of a new table for `df`: every column nullable, as in Delta, and without rules of other tables."""
    schema = table_schema(df.schema)
    check_no_duplicates(schema)
    return as_nullable(schema)


def without_void(schema: StructType) -> StructType:
    """The schema of data files: without void columns and fields.

    Raises `InvalidArgumentError` for a void inside an array or a map, and for a struct with void fields only: files
    can't store them.
    """
    return StructType(tuple(_kept(schema, "")))


def _kept(level: StructType, prefix: str) -> Iterator[StructField]:
    for field in level.fields:
        name = f"{prefix}{field.name}"
        if field.data_type == VOID:
            continue
        if not isinstance(field.data_type, StructType):
            if contains(field.data_type, lambda data_type: data_type == VOID):
                raise InvalidArgumentError(
                    f"the column {name} has a void type inside an array or a map, which data files can't store"
                )
        else:
            inner = tuple(_kept(field.data_type, f"{name}."))
            if not inner:
                raise InvalidArgumentError(
                    f"the column {name} is a struct without any field that a data file can store"
                )
            if inner != field.data_type.fields:
                yield StructField(field.name, StructType(inner), field.nullable, field.metadata)
                continue
        yield field


# --- matching the columns -----------------------------------------------------------------------------------------


class _Fit:
    """Compares a table's schema with the data's and collects the differences."""

    def __init__(self, table: str, schema: StructType, data: StructType, case_sensitive: bool) -> None:
        self.table = table
        self.schema = schema
        self.data = data
        self.case_sensitive = case_sensitive
        self.missing: list[Column] = []
        self.extra: list[str] = []

    def struct(self, kept: StructType, new: StructType, path: Column) -> StructType:
        """The table's columns by order and name, with the data's types where the data has the column."""
        fields = []
        used = set()
        for field in kept.fields:
            match = new.get(field.name, case_sensitive=self.case_sensitive)
            if match is not None:
                used.add(match.name)
            if field.data_type == VOID:
                if match is not None and match.data_type != VOID:
                    self.extra.append(f"{dotted((*path, field.name))} {type_text(match.data_type)} (void in the table)")
                continue
            if match is None:
                if not field.nullable:
                    self.missing.append((*path, field.name))
                fields.append(StructField(field.name, _without_void(field.data_type), True))
            else:
                data_type = self.type(field.data_type, match.data_type, (*path, field.name))
                fields.append(StructField(field.name, data_type, match.nullable))
        self.extra += [f"{dotted((*path, f.name))} {type_text(f.data_type)}" for f in new.fields if f.name not in used]
        return StructType(tuple(fields))

    def type(self, kept: DataType, new: DataType, path: Column) -> DataType:
        if isinstance(kept, StructType) and isinstance(new, StructType):
            return self.struct(kept, new, path)
        if isinstance(kept, ArrayType) and isinstance(new, ArrayType):
            element = self.type(kept.element_type, new.element_type, (*path, "element"))
            return ArrayType(element, new.contains_null)
        if isinstance(kept, MapType) and isinstance(new, MapType):
            return MapType(
                self.type(kept.key_type, new.key_type, (*path, "key")),
                self.type(kept.value_type, new.value_type, (*path, "value")),
                new.value_contains_null,
            )
        return new

    def check(self) -> None:
        if self.extra:
            raise SchemaMismatchError(
                f"{self.table}: the data has columns that the table doesn't have: {', '.join(self.extra)}. "
                f"The table has: {_listed(self.schema)}. The data has: {_listed(self.data)}. "
                "Write with the option mergeSchema=true to add them to the table, or leave them out."
            )
        if self.missing:
            raise ConstraintViolationError(
                f"{self.table}: the column {', '.join(map(dotted, self.missing))} is NOT NULL, and the data has no "
                f"such column. The data has: {_listed(self.data)}.",
                condition="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
                parameters={"columnName": ", ".join(map(dotted, self.missing))},
            )


def _listed(schema: StructType) -> str:
    return ", ".join(f"{dotted((f.name,))} {type_text(f.data_type)}" for f in schema.fields) or "no column"


def _without_void(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        fields = (f for f in data_type.fields if f.data_type != VOID)
        return StructType(tuple(replace(f, data_type=_without_void(f.data_type)) for f in fields))
    return data_type


# --- storing ------------------------------------------------------------------------------------------------------


def _stored(schema: StructType) -> Iterator[StructField]:
    """The table's columns with the only metadata that store assignment needs: the lengths of char and varchar."""
    for field in schema.fields:
        if field.data_type != VOID:
            metadata = {key: value for key, value in field.metadata.items() if key == CHAR_VARCHAR_KEY}
            data_type = field.data_type
            if isinstance(data_type, StructType):
                data_type = StructType(tuple(_stored(data_type)))
            yield StructField(field.name, data_type, field.nullable, metadata)


def _accepts(kept: StructField, new: StructField) -> bool:
    """Whether values fit without conversion: equal types, and no nullable values for a NOT NULL column."""
    if CHAR_VARCHAR_KEY in kept.metadata or (new.nullable and not kept.nullable):
        return False
    return _accepts_type(kept.data_type, new.data_type)


def _accepts_type(kept: DataType, new: DataType) -> bool:
    if isinstance(kept, StructType) and isinstance(new, StructType):
        return kept.names == new.names and all(map(_accepts, kept.fields, new.fields))
    if isinstance(kept, ArrayType) and isinstance(new, ArrayType):
        return (kept.contains_null or not new.contains_null) and _accepts_type(kept.element_type, new.element_type)
    if isinstance(kept, MapType) and isinstance(new, MapType):
        return (
            (kept.value_contains_null or not new.value_contains_null)
            and _accepts_type(kept.key_type, new.key_type)
            and _accepts_type(kept.value_type, new.value_type)
        )
    return kept == new
