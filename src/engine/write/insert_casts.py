"""The casts of an INSERT that Spark's store assignment refuses, and Delta does: text for a number, for example.

Delta casts each value by ANSI rules: a value that can't be cast fails the job. With the policy LEGACY it is null.
"""

from typing import TYPE_CHECKING

from ...core.protocol import schema as schemas
from ...core.protocol.schema import ArrayType, DataType, MapType, StructField, StructType
from ...core.schema_evolution.merging import as_nullable
from ...errors import SchemaMismatchError
from ..jvm import plans
from ..jvm.connection import settings
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway
from ..jvm.types import table_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def arity_error(table: str, num_values: int, wanted: int) -> SchemaMismatchError:
    """The error for an INSERT by position with fewer columns than the table has."""
    return SchemaMismatchError(
        f"The table has {wanted} columns, but the INSERT has {num_values}: list the columns that it has values for. "
        "Nothing was written.",
        condition="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        parameters={
            "tableName": table,
            "columnName": "not enough data columns",
            "numColumns": str(wanted),
            "insertColumns": str(num_values),
        },
        table=table,
    )


def casted(
    frame: "DataFrame", columns: StructType, table: str, *, by_name: bool, ansi: bool
) -> "list[tuple[str, Column]]":
    """The values of an INSERT over the rows of its query, cast to the columns of the table, with the columns' names.

    `by_name`: columns are matched by name; otherwise by position, as the fields of structs always are.
    Raises SchemaMismatchError for too few or too many columns, and Spark's AnalysisException for a cast that no value
    can have.
    """
    gateway = Gateway.of(frame.sparkSession)
    query_schema = as_nullable(table_schema(frame.schema))
    wanted = as_nullable(columns)
    if not by_name and len(query_schema.fields) < len(wanted.fields):
        raise arity_error(table, len(query_schema.fields), len(wanted.fields))
    if len(query_schema.fields) > len(wanted.fields):
        raise SchemaMismatchError(
            f"The INSERT has more columns than the table: it has {', '.join(query_schema.names)}, and the table has "
            f"{', '.join(wanted.names)}. Nothing was written.",
            table=table,
        )
    case_sensitive = settings.case_sensitive(frame.sparkSession)
    casts = _Casts(frame, ansi)
    values = []
    for i, (field, attribute) in enumerate(zip(query_schema, gateway.elements(analyzed(frame).output()), strict=True)):
        column = wanted.get(field.name, case_sensitive=case_sensitive) if by_name else wanted.fields[i]
        value = gateway.column(attribute)
        # The write itself refuses a column that the table lacks.
        values.append(
            (field.name, value) if column is None else (column.name, casts.value(value, field.data_type, column))
        )
    return values


class _Casts:
    def __init__(self, frame: "DataFrame", ansi: bool) -> None:
        self._spark = frame.sparkSession
        self._gateway = Gateway.of(self._spark)
        self._ansi = ansi

    def value(self, value: "Column", value_type: DataType, column: StructField) -> "Column":
        """The value as one of the column, whose name the error of an overflow has."""
        from pyspark.sql import functions as F

        wanted = column.data_type
        if wanted in (value_type, schemas.VOID):
            return value
        if isinstance(value_type, StructType) and isinstance(wanted, StructType):
            if len(value_type.fields) != len(wanted.fields):
                return value  # the write itself refuses it
            pairs = zip(value_type, wanted, strict=True)
            fields = [self.value(value.getField(f.name), f.data_type, to).alias(to.name) for f, to in pairs]
            return F.when(value.isNotNull(), F.struct(*fields))
        if schemas.contains(value_type, lambda part: isinstance(part, StructType)):
            if isinstance(value_type, ArrayType) and isinstance(wanted, ArrayType):
                of_element = StructField(column.name, wanted.element_type)
                return F.transform(value, lambda element: self.value(element, value_type.element_type, of_element))
            if isinstance(value_type, MapType) and isinstance(wanted, MapType):
                of_key = StructField(column.name, wanted.key_type)
                of_value = StructField(column.name, wanted.value_type)
                value = F.transform_keys(value, lambda key, _: self.value(key, value_type.key_type, of_key))
                return F.transform_values(value, lambda _, entry: self.value(entry, value_type.value_type, of_value))
        expression = self._gateway.expression(self._spark, value)
        cast = plans.ansi_cast if self._ansi else plans.legacy_cast
        return self._gateway.column(cast(self._spark, expression, column))
