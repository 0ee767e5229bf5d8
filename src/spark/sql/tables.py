"""The Delta table that a statement names: by a path, by a name of the catalog, or by a temporary view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol.schema import quoted
from ...engine.jvm.catalog import SESSION_CATALOG, CatalogEntry, SessionCatalog
from ...engine.jvm.statements import definitions, statements
from ...engine.jvm.statements.inserts import parsed_name
from ...engine.write import view_inserts
from ...errors import InvalidArgumentError, TableNotFoundError
from .. import names
from ..conf import delta_log, session_conf
from ..delta_table.table import DeltaTable
from ..reader import existing_table


@dataclass(frozen=True)
class NamedTable:
    """A Delta table as a statement names it.

    `name` is for messages. `entry` is the catalog's, None for a path or a view. `version` is that of a view of an
    older version; `by_view`: a temporary view stands for the table.
    """

    spark: SparkSession
    name: str
    log: DeltaLog
    entry: CatalogEntry | None = None
    version: int | None = None
    by_view: bool = False

    @property
    def delta_table(self) -> DeltaTable:
        """The table for the commands of `DeltaTable`."""
        return DeltaTable(self.spark, self.log)

    def check_newest(self) -> None:
        """Raise InvalidArgumentError for a view of an older version, which can't be changed."""
        if self.version is not None:
            raise InvalidArgumentError(
                f"The view shows version {self.version} of {self.log.table}, and older versions can't be changed: "
                "nothing was written. Use a view of the table without time travel.",
                table=self.log.table,
            )


def find(spark: SparkSession, name_parts: Any) -> NamedTable | None:
    """The Delta table with the name (a Scala `Seq` of its parts); None for another table, a view, or nothing.

    Raises TableNotFoundError for a path or a catalog entry of the provider delta without a Delta table.
    """
    parts = definitions.strings(name_parts)
    name = quoted(*parts)
    if statements.is_temporary_view(spark, name_parts):
        target = view_inserts.target(spark, name_parts)
        if target is None:
            return None
        log = target.log or delta_log(target.table, session_conf(spark, target.table))
        return NamedTable(spark, name, log, version=target.version, by_view=True)
    if (path := _path_of(parts)) is not None:
        return NamedTable(spark, name, existing_table(spark, path))
    entry = SessionCatalog(spark).find_parts(name_parts)
    if entry is None or not entry.is_delta:
        return None
    return NamedTable(spark, entry.name, names.log_of(spark, entry), entry)


def find_relation(spark: SparkSession, name_parts: Any) -> NamedTable | None:
    """`find` for a statement that reads or writes the rows, with Delta's condition for a path without a table."""
    try:
        return find(spark, name_parts)
    except TableNotFoundError as error:
        path = _path_of(definitions.strings(name_parts))
        if path is not None:
            raise no_relation(spark, path) from error
        raise


def _path_of(parts: Sequence[str]) -> str | None:
    """The path in `` delta.`/path` ``, also with Spark's catalog in front; None for the name of a table."""
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
        parts = parts[1:]
    return parts[1] if names.is_path(parts) else None


def no_relation(spark: SparkSession, path: str) -> TableNotFoundError:
    """The error for a path without a Delta table, where a statement reads or writes the rows."""
    if statements.path_exists(spark, path):
        return TableNotFoundError(
            f"{path} is not a Delta table: there is no transaction log in its _delta_log.",
            condition="DELTA_TABLE_NOT_FOUND",
            parameters={"tableName": path},
            table=path,
        )
    return TableNotFoundError(
        f"{path} is not a Delta table: the path doesn't exist.",
        condition="PATH_NOT_FOUND",
        parameters={"path": path},
        table=path,
    )


def find_by_text(spark: SparkSession, name: str) -> NamedTable | None:
    """`find` for a name as SQL. Raises Spark's ParseException."""
    return find(spark, parsed_name(spark, name))
