"""Tables of Spark's session catalog: look up, register, convert and drop Delta tables.

The entry of a Delta table contains the provider `delta` and the location, but no columns: those are in the log. Other
engines on the same metastore find tablelog's tables by these entries, and tablelog finds theirs.
"""

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ...logstore.common.uri import local_path, scheme_of
from .connection.gateway import Gateway, JavaObject, changed
from .connection.jvm_values import JvmValues
from .connection.sessions import parsed_by, session_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_NAME = re.compile(r"[A-Za-z0-9_]+")
SESSION_CATALOG = "spark_catalog"
_SEPARATOR = "\0"
_TABLE = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
_NO_COLUMNS = '{"type":"struct","fields":[]}'  # the log has the columns


@dataclass(frozen=True)
class CatalogEntry:
    """A table or view of the catalog. `location`: a local path without scheme or a URI; empty for a view."""

    name: str
    provider: str | None
    location: str
    bucketed: bool
    partition_schema: "StructType"
    table: JavaObject

    @property
    def short_name(self) -> str:
        """The name without its database, which queries may use."""
        return str(self.table.identifier().table())

    @property
    def quoted_name(self) -> str:
        """The name with each part in backquotes."""
        return str(self.table.identifier().quotedString())

    @property
    def is_delta(self) -> bool:
        return self.provider == "delta" and bool(self.location)

    @property
    def is_managed(self) -> bool:
        """Whether dropping the table deletes its files."""
        return bool(self.table.tableType().name() == "MANAGED")

    @property
    def comment(self) -> str:
        """The description, empty if there is none."""
        comment = self.table.comment()
        return str(comment.get()) if comment.isDefined() else ""

    @property
    def created_ms(self) -> int:
        """When the entry was created, in milliseconds since the epoch."""
        return int(self.table.createTime())

    @property
    def properties(self) -> dict[str, str]:
        """The table properties in the catalog."""
        pairs = Gateway.elements(self.table.properties().toSeq())
        return {str(pair.productElement(0)): str(pair.productElement(1)) for pair in pairs}

    @property
    def location_uri(self) -> str:
        """The location as Hadoop spells it."""
        return str(self.table.storage().locationUri().get()).replace("file:///", "file:/", 1)

    @property
    def is_parquet(self) -> bool:
        """Whether it is a table of Parquet files, by Spark's provider or Hive's."""
        serde = self.table.storage().serde()
        hive = self.provider == "hive" and serde.isDefined() and "parquet" in serde.get().lower()
        return bool(self.location) and (self.provider == "parquet" or hive)


def location_text(gateway: Gateway, uri: JavaObject) -> str:
    """A location of Spark's catalog: a path on this machine, or a URI."""
    # Hadoop writes the directory "a%20b" as file:/a%20b without escapes. Decoding that URI gives another directory.
    on_this_machine = uri.getScheme() in (None, "file")
    utilities = gateway.jvm.org.apache.spark.sql.catalyst.catalog.CatalogUtils
    return str(uri.getPath() if on_this_machine else utilities.URIToString(uri))


def catalog_table(gateway: Gateway, *fields: JavaObject) -> JavaObject:
    """A `CatalogTable` with values for its first fields; the others have their defaults."""
    companion = gateway.jvm.org.apache.spark.sql.catalyst.catalog.CatalogTable
    return companion.apply(*fields, *_defaults_of_fields(gateway, len(fields)))


def query_catalog_table(gateway: Gateway, *fields: JavaObject) -> JavaObject:
    """`catalog_table` for the analyzer of a query, by fewer calls. Its times are those of the first one."""
    companion = gateway.jvm.org.apache.spark.sql.catalyst.catalog.CatalogTable
    count = len(fields)
    defaults = _defaults.get(gateway.py4j, lambda: _defaults_of_fields(gateway, count), str(count))
    return companion.apply(*fields, *defaults)


_defaults = JvmValues[list[JavaObject]]()


def _defaults_of_fields(gateway: Gateway, count: int) -> list[JavaObject]:
    """The defaults of the fields of a `CatalogTable` after the first ones."""
    companion = gateway.jvm.org.apache.spark.sql.catalyst.catalog.CatalogTable
    arity = len(gateway.type(_TABLE).getConstructors()[0].getParameterTypes())
    return [getattr(companion, f"apply$default${i}")() for i in range(count + 1, arity + 1)]


class SessionCatalog:
    """The session's own catalog (`spark_catalog`), with Hive's metastore or without."""

    def __init__(self, spark: "SparkSession") -> None:
        self._gateway = Gateway.of(spark)
        self._spark = spark
        self._state = session_state(spark)
        self._catalog = self._state.catalog()
        self._classes = self._gateway.jvm.org.apache.spark.sql.catalyst

    def find(self, name: str) -> CatalogEntry | None:
        """The entry of a table or view; None if there is none. Temporary views have no entry."""
        return self._find(self._identifier(name))

    def find_parts(self, name_parts: JavaObject) -> CatalogEntry | None:
        """The same for the parts of a name (a Scala `Seq`); None also for a name of another catalog."""
        parts = name_parts.mkString(_SEPARATOR).split(_SEPARATOR)
        current = self._state.catalogManager().currentCatalog().name()
        if len(parts) > 3 or (parts[0] if len(parts) == 3 else current) != SESSION_CATALOG:
            return None
        return self._find(self._identifier_of(name_parts))

    def _find(self, identifier: JavaObject) -> CatalogEntry | None:
        from pyspark.sql.types import StructType

        if not self._catalog.tableExists(identifier):
            return None
        table = self._catalog.getTableMetadata(identifier)
        provider = table.provider()
        return CatalogEntry(
            f"{SESSION_CATALOG}.{table.identifier().unquotedString().removeprefix(f'{SESSION_CATALOG}.')}",
            provider.get().lower() if provider.isDefined() else None,
            self.location_of(table),
            table.bucketSpec().isDefined(),
            StructType.fromJson(json.loads(table.partitionSchema().json())),
            table,
        )

    def is_own_name(self, name_parts: JavaObject) -> bool:
        """Whether the parts of a name (a Scala `Seq`) are of a table of the session catalog."""
        parts = name_parts.mkString(_SEPARATOR).split(_SEPARATOR)
        if len(parts) == 3:
            return bool(parts[0] == SESSION_CATALOG)
        return len(parts) < 3 and bool(self._state.catalogManager().currentCatalog().name() == SESSION_CATALOG)

    def location_of_new(self, name: str) -> str:
        """The default location of a new table: in the directory of its database.

        Raises InvalidArgumentError if the database doesn't exist or the name is invalid. Spark's catalog would raise
        an error only after the table's files are written.
        """
        identifier = self._identifier(name)
        table, database = str(identifier.table()), identifier.database()
        if database.isDefined() and not self._catalog.databaseExists(database.get()):
            raise InvalidArgumentError(
                f"The database {database.get()} of the table {table} doesn't exist in Spark's catalog.",
                condition="SCHEMA_NOT_FOUND",
                parameters={"schemaName": f"`{SESSION_CATALOG}`.`{database.get()}`"},
            )
        if not _NAME.fullmatch(table):
            raise InvalidArgumentError(
                f"{table!r} isn't a valid table name: use ASCII letters, digits and underscores.",
                condition="INVALID_SCHEMA_OR_RELATION_NAME",
                parameters={"name": table},
            )
        return self._text(self._catalog.defaultTablePath(identifier))

    def schema_location(self, name_parts: JavaObject) -> str | None:
        """The directory of a schema (a Scala `Seq`, the parts of its name); None if the session catalog has none."""
        parts = name_parts.mkString(_SEPARATOR).split(_SEPARATOR)
        if len(parts) == 2 and parts[0] == SESSION_CATALOG:
            parts = parts[1:]
        elif len(parts) != 1 or self._state.catalogManager().currentCatalog().name() != SESSION_CATALOG:
            return None
        if not self._catalog.databaseExists(parts[0]):
            return None
        return self._text(self._catalog.getDatabaseMetadata(parts[0]).locationUri())

    def partition_locations(self, entry: CatalogEntry) -> list[str] | None:
        """The directories of the table's partitions in the catalog; None if the catalog doesn't have them."""
        # Hive tracks the partitions of each table, and refuses to list those of a table without partition columns.
        if not entry.table.tracksPartitionsInCatalog() or entry.table.partitionColumnNames().isEmpty():
            return None
        partitions = self._catalog.listPartitions(entry.table.identifier(), self._gateway.none).toIndexedSeq()
        return [self._text(partitions.apply(i).location()) for i in range(partitions.size())]

    def register(self, name: str, location: str, *, managed: bool, comment: str | None = None) -> None:
        """Add a Delta table to the catalog. `managed`: dropping it deletes its files.

        As with delta-spark, the entry has the table's description, but no columns and no properties.
        """
        kinds = self._classes.catalog.CatalogTableType
        uri = self._uri(location)
        storage = changed(self._classes.catalog.CatalogStorageFormat.empty(), locationUri=self._some(uri))
        entry = catalog_table(
            self._gateway,
            self._identifier(name),
            kinds.MANAGED() if managed else kinds.EXTERNAL(),
            storage,
            self._gateway.schema(_NO_COLUMNS),
            self._some("delta"),
        )
        entry = changed(entry, comment=self._some(comment), tracksPartitionsInCatalog=True)
        self._catalog.createTable(entry, False, False)

    def relocate(self, entry: CatalogEntry, location: str) -> None:
        """Change the location of an entry; no file is moved."""
        storage = changed(entry.table.storage(), locationUri=self._some(self._uri(location)))
        self._catalog.alterTable(changed(entry.table, storage=storage))
        self._catalog.refreshTable(entry.table.identifier())

    def rename(self, entry: CatalogEntry, name_parts: JavaObject) -> None:
        """Rename an entry. Spark's catalog moves the directory of a managed table.

        Raises Spark's AnalysisException for a name that exists, and for another database.
        """
        self._catalog.renameTable(entry.table.identifier(), self._identifier_of(name_parts))

    def drop_by(self, plan: JavaObject) -> bool:
        """Drop the Delta table that a parsed DROP TABLE names; False for other statements and other tables.

        Spark's own command fails, because it first loads the provider's classes.
        """
        if plan.nodeName() != "DropTable":
            return False
        entry = self._find(self._identifier_of(plan.child().nameParts()))
        if entry is None or not entry.is_delta:
            return False
        self._catalog.dropTable(entry.table.identifier(), plan.ifExists(), plan.purge())
        return True

    def make_delta(self, entry: CatalogEntry) -> None:
        """Change the entry of a Parquet table to that of a Delta table, as Delta does."""
        none = self._gateway.none
        storage = changed(entry.table.storage(), inputFormat=none, outputFormat=none, serde=none)
        self._catalog.alterTable(
            changed(
                entry.table,
                provider=self._some("delta"),
                storage=storage,
                schema=self._gateway.schema(_NO_COLUMNS),
                partitionColumnNames=self._gateway.seq([]),
                tracksPartitionsInCatalog=False,
            )
        )
        self._catalog.refreshTable(entry.table.identifier())

    def _identifier(self, name: str) -> JavaObject:
        return self._identifier_of(parsed_by(self._spark, "parseMultipartIdentifier", name))

    def _identifier_of(self, name_parts: JavaObject) -> JavaObject:
        parts = name_parts.mkString(_SEPARATOR).split(_SEPARATOR)
        current = self._state.catalogManager().currentCatalog().name()
        catalog = parts[0] if len(parts) > 2 else current
        if catalog != SESSION_CATALOG or len(parts) > 3:
            raise UnsupportedFeatureError(
                f"{'.'.join(parts)} is a table of the catalog {catalog}: tablelog supports only Spark's session "
                f"catalog ({SESSION_CATALOG}). Use the table's path instead",
                (catalog,),
            )
        database = self._some(parts[-2]) if len(parts) > 1 else self._gateway.none
        return self._classes.TableIdentifier(parts[-1], database)

    def location_of(self, entry: JavaObject) -> str:
        """The location of a `CatalogTable`: a path on this machine, or a URI; empty where it has none."""
        uri = entry.storage().locationUri()
        return self._text(uri.get()) if uri.isDefined() else ""

    def _text(self, uri: JavaObject) -> str:
        return location_text(self._gateway, uri)

    def _uri(self, location: str) -> JavaObject:
        if scheme_of(location) != "file":
            return self._classes.catalog.CatalogUtils.stringToURI(location)
        # Absolute, because the catalog resolves a relative path against the directory of its database.
        return self._gateway.jvm.java.net.URI("file", None, os.path.abspath(local_path(location)), None)

    def _some(self, value: object) -> JavaObject:
        return self._gateway.jvm.scala.Option.apply(value)
