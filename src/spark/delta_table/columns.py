"""Converts column definitions of the user, as DDL or PySpark types, for the commands."""

from collections.abc import Iterable

from pyspark.errors import ParseException
from pyspark.sql.types import DataType, StructField, StructType

from ...core.protocol.schema import StructField as TableField
from ...core.protocol.schema import with_name
from ...core.schema_evolution.changes import ColumnChange, NewColumn, Position, column_of
from ...engine.jvm.types import declared
from ...errors import InvalidArgumentError


def new_columns(columns: str | StructType | Iterable[StructField], position: str | None) -> list[NewColumn]:
    """Columns to add. Field names are parsed as SQL, so `a.b` is a field of the struct `a`.

    With a position, the first column goes there, and each other one after the previous one.
    """
    struct = _ddl(columns) if isinstance(columns, str) else StructType(list(columns))
    added: list[NewColumn] = []
    place = None if position is None else Position.of(position)
    for field in declared(struct):
        *parent, name = column_of(field.name)
        if added and place is not None:
            if tuple(parent) != added[-1].parent:
                raise InvalidArgumentError("Columns that are added at a position must be in the same struct.")
            place = Position(added[-1].field.name)
        added.append(NewColumn(with_name(field, name), tuple(parent), place))
    return added


def column_change(
    column: str,
    *,
    data_type: str | DataType | None,
    nullable: bool | None,
    comment: str | None,
    position: str | None,
    default: str | None,
    drop_default: bool,
) -> ColumnChange:
    """The requested change of a column. Raises InvalidArgumentError if nothing is to be changed."""
    if default is not None and drop_default:
        raise InvalidArgumentError("The default of a column can't be set and dropped at the same time.")
    if default is not None and not default.strip():
        raise InvalidArgumentError("The default of a column must be an SQL expression, not an empty string.")
    change = ColumnChange(
        column_of(column),
        None if data_type is None else _type(data_type),
        nullable,
        comment,
        "" if drop_default else default,
        None if position is None else Position.of(position),
    )
    if change == ColumnChange(change.column):
        raise InvalidArgumentError(f"alterColumn({column!r}) needs at least one change.")
    return change


def _type(data_type: str | DataType) -> TableField:
    struct = _ddl(f"c {data_type}") if isinstance(data_type, str) else StructType([StructField("c", data_type)])
    return declared(struct).fields[0]


def _ddl(text: str) -> StructType:
    try:
        parsed = DataType.fromDDL(text)
    except ParseException as error:
        raise InvalidArgumentError(
            f"{text!r} is not a list of columns: {error}", condition="PARSE_SYNTAX_ERROR"
        ) from error
    if not isinstance(parsed, StructType):
        raise InvalidArgumentError(f"{text!r} is not a list of columns: each needs a name and a type.")
    return parsed
