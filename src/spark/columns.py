"""What a user says of columns, in DDL text or PySpark's types, as the commands take it."""

from collections.abc import Iterable
from dataclasses import replace

from pyspark.errors import ParseException
from pyspark.sql.types import DataType, StructField, StructType

from ..core.protocol.schema import StructField as TableField
from ..core.schema_evolution.changes import ColumnChange, NewColumn, Position, column_of
from ..engine.jvm.types import declared
from ..errors import InvalidArgumentError


def new_columns(columns: str | StructType | Iterable[StructField], position: str | None) -> list[NewColumn]:
    """Columns to add: a field's name is one of SQL, so that `a.b` is a field of the struct a.

    With a position the first goes there and each other one behind the one before it.
    """
    given = _ddl(columns) if isinstance(columns, str) else StructType(list(columns))
    found: list[NewColumn] = []
    place = None if position is None else Position.of(position)
    for f in declared(given):
        *parent, name = column_of(f.name)
        if found and place is not None:
            if tuple(parent) != found[-1].parent:
                raise InvalidArgumentError("Columns that are added at a position have to be of one struct.")
            place = Position(found[-1].field.name)
        found.append(NewColumn(replace(f, name=name), tuple(parent), place))
    return found


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
    """What is to be changed of a column; InvalidArgumentError where that is nothing."""
    if default is not None and drop_default:
        raise InvalidArgumentError("A column can't be given a default and lose it at once.")
    if default is not None and not default.strip():
        raise InvalidArgumentError("The default of a column is an SQL expression, and not an empty text.")
    change = ColumnChange(
        column_of(column),
        None if data_type is None else _type(data_type),
        nullable,
        comment,
        "" if drop_default else default,
        None if position is None else Position.of(position),
    )
    if change == ColumnChange(change.column):
        raise InvalidArgumentError(f"alterColumn({column!r}) doesn't say what to change.")
    return change


def _type(data_type: str | DataType) -> TableField:
    struct = _ddl(f"c {data_type}") if isinstance(data_type, str) else StructType([StructField("c", data_type)])
    return declared(struct).fields[0]


def _ddl(text: str) -> StructType:
    try:
        found = DataType.fromDDL(text)
    except ParseException as error:
        raise InvalidArgumentError(f"{text!r} declares no columns: {error}", condition="PARSE_SYNTAX_ERROR") from error
    if not isinstance(found, StructType):
        raise InvalidArgumentError(f"{text!r} declares no columns: give each a name and a type.")
    return found
