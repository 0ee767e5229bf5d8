"""The tables that Delta's own statements name, and Delta's errors for what is no Delta table."""

from dataclasses import dataclass
from typing import Any, NoReturn

from ...core.protocol.schema import quoted
from ...engine.jvm.catalog import CatalogEntry, SessionCatalog
from ...engine.jvm.statements import definitions, statements
from ...errors import InvalidArgumentError, TableNotFoundError
from .. import names
from ..conf import delta_log, session_conf
from ..reader import find_table
from . import tables
from .grammar.nodes import Name, Target
from .tables import NamedTable
from .values import Values


@dataclass(frozen=True)
class TableName:
    """A name in a statement: its parts, also as a Scala `Seq`."""

    parts: tuple[str, ...]
    seq: Any

    @classmethod
    def of(cls, values: Values, name: Name) -> "TableName":
        """The name of a statement. Raises Spark's ParseException."""
        return cls.parsed(values.name_parts(name))

    @classmethod
    def parsed(cls, seq: Any) -> "TableName":
        """The name of its parts, a Scala `Seq`."""
        return cls(definitions.strings(seq), seq)

    @property
    def quoted(self) -> str:
        """The name for messages."""
        return quoted(*self.parts)

    @property
    def identifier(self) -> str:
        """The name as the methods of `DeltaTable` take it: a path is `` provider.`/path` ``."""
        if len(self.parts) == 2 and self.parts[0].isidentifier():
            return f"{self.parts[0]}.{quoted(self.parts[1])}"
        return self.quoted


def table_of(values: Values, target: Target, operation: str) -> NamedTable:
    """The Delta table of a statement, by its name or its path. A view is refused, as Delta does.

    Raises TableNotFoundError or InvalidArgumentError with the condition that Delta has for the case.
    """
    if not isinstance(target, Name):
        return _at_path(values, values.text(target), operation)
    name = TableName.of(values, target)
    check_no_view(values, name, operation)
    table = tables.find(values.spark, name.seq)
    if table is None:
        refuse(SessionCatalog(values.spark).find_parts(name.seq), name, operation)
    return table


def check_no_view(values: Values, name: TableName, operation: str) -> None:
    """Raise InvalidArgumentError for the name of a temporary view."""
    if statements.is_temporary_view(values.spark, name.seq):
        _refuse_view(name, operation)


def refuse(entry: CatalogEntry | None, name: TableName, operation: str) -> NoReturn:
    """Raise the error for a name that is none of a Delta table. `entry`: what the catalog has by the name."""
    if entry is None:
        raise missing(name)
    if not entry.location:
        _refuse_view(name, operation)
    raise InvalidArgumentError(
        f"{operation} is only supported for Delta tables, and {entry.name} is none: {names.what_is(entry)}.",
        condition="DELTA_ONLY_OPERATION",
        parameters={"operation": operation},
    )


def missing(name: TableName) -> TableNotFoundError:
    """The error for a name that nothing has."""
    return TableNotFoundError(
        f"There is no table {name.quoted}: check the name, its schema and its catalog.",
        condition="TABLE_OR_VIEW_NOT_FOUND",
        parameters={"relationName": name.quoted},
    )


def _refuse_view(name: TableName, operation: str) -> NoReturn:
    raise InvalidArgumentError(
        f"{operation} expects a table, but {name.quoted} is a view: name the table itself, such as delta.`/path`.",
        condition="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        parameters={"operation": operation, "viewName": name.quoted},
    )


def _at_path(values: Values, path: str, operation: str) -> NamedTable:
    table = find_table(path, session_conf(values.spark, path), {})
    if table is None:
        raise not_a_table(values, path, operation)
    return NamedTable(values.spark, f"delta.`{path}`", table)


def not_a_table(values: Values, path: str, operation: str) -> TableNotFoundError:
    """The error for a path without a Delta table."""
    return TableNotFoundError(
        f"{path} is not a Delta table. {operation} is only supported for Delta tables.",
        condition="DELTA_TABLE_ONLY_OPERATION",
        parameters={"tableName": path, "operation": operation},
        table=delta_log(path, session_conf(values.spark, path)).table,
    )
