"""Puts a catalog in front of a session's own catalog, so that Spark's analyzer asks tablelog for Delta tables.

The catalog is a subclass of Spark's `DelegatingCatalogExtension`, compiled by the Janino compiler that Spark contains.
Everything that isn't about a Delta table stays inside the JVM: it costs no call to Python, and exceptions keep their
classes. (An exception of a callback would reach Spark as Py4J's own, and Spark wouldn't recognize a missing table.)
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from ....core.protocol import column_mapping
from ....core.protocol import schema as schemas
from ....errors import UnsupportedFeatureError
from ..catalog import SESSION_CATALOG, query_catalog_table
from ..connection import frames
from ..connection.callbacks import Connections, carried
from ..connection.compiled import compiled_class
from ..connection.gateway import Gateway, JavaObject
from ..connection.sessions import session_state
from ..registry.classes import TRUNCATABLE_TABLE
from .inserts import InsertTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ....core.table.snapshot import Snapshot

_CLASS = "DeltaSessionCatalog"
_SEPARATOR = "\0"


class Use(Enum):
    """What Spark wants a table for."""

    QUERY = "query"
    WRITE = "write"
    COMMAND = "command"
    ALTER = "alter"
    EXISTS = "exists"


@dataclass(frozen=True)
class TableRequest:
    """A table that Spark's analyzer asks for.

    `name` has the parts of the name in the session catalog, with the database first; the path of a table
    delta.`path` is the last part, and `entry` is None then. `entry` is the catalog's `CatalogTable`. `timestamp_us` is
    in microseconds since the epoch. `options` are those of the reader, or of `WITH (...)`, that the catalog
    names as its own; Spark gives them to a catalog since 4.3.
    """

    name: tuple[str, ...]
    use: Use
    version: str | None
    timestamp_us: int | None
    entry: JavaObject | None
    options: Mapping[str, str] = field(default_factory=dict)


Tables = Callable[[TableRequest], Any]
"""Gives the JVM's `Table` for a request; for `Use.EXISTS`, any object or None."""


class _Answers:
    """Implements `java.util.function.BiFunction`, by which the catalog asks for Delta tables."""

    def __init__(self, gateway: Gateway, tables: Tables) -> None:
        self._connections = Connections.of(gateway)
        self._tables = tables

    @carried
    def apply(self, request: str, entry: JavaObject | None) -> JavaObject:
        with self._connections.entered():
            use, version, timestamp, options, rest = request.split(_SEPARATOR, 4)
            *words, rest = rest.split(_SEPARATOR, 2 * int(options))
            count, rest = rest.split(_SEPARATOR, 1)
            name = rest.split(_SEPARATOR, int(count))
            return self._tables(
                TableRequest(
                    tuple(name),
                    Use(use),
                    version or None,
                    int(timestamp) if timestamp else None,
                    entry,
                    dict(zip(words[::2], words[1::2], strict=True)),
                )
            )

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


class InstalledCatalog:
    """The catalog in front of a session's own catalog, for `remove`."""

    def __init__(self, spark: "SparkSession", tables: Tables) -> None:
        self._gateway = gateway = Gateway.of(spark)
        self._manager = session_state(spark).catalogManager()
        self._original = self._manager.v2SessionCatalog()
        # Py4J puts Python objects into lists, but not into arrays.
        arguments = gateway.jvm.java.util.ArrayList()
        arguments.add(_Answers(gateway, tables))
        arguments.add(self._original)
        arguments.add(session_state(spark).catalog())
        self._catalog = compiled_class(gateway, _CLASS).getConstructors()[0].newInstance(arguments.toArray())
        self._replace(self._catalog)

    def remove(self) -> None:
        """Put the session's own catalog back."""
        self._replace(self._original)

    def _replace(self, catalog: JavaObject) -> None:
        # A session catalog that the user configured is kept in the map of loaded catalogs.
        default = self._field("defaultSessionCatalog")
        if default.get(self._manager).equals(self._manager.v2SessionCatalog()):
            default.set(self._manager, catalog)
        else:
            self._field("catalogs").get(self._manager).put(SESSION_CATALOG, catalog)

    def _field(self, name: str) -> JavaObject:
        field = self._manager.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field


def query_table(spark: "SparkSession", frame: "DataFrame", request: TableRequest) -> JavaObject:
    """A `V1Table` that Spark replaces by the plan of `frame` where a query names the table.

    Spark finds the plan in its cache of relations, by the table's name. The catalog part of the name is
    `tablelog`, with the version and the options if there are any, so that Spark's own entries and other versions of the
    table have other names. It is only for queries: Spark's own commands would treat the table as one of the session
    catalog.
    """
    gateway = Gateway.of(spark)
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    some = gateway.jvm.scala.Some
    *database, table = request.name
    version = request.version if request.version is not None else request.timestamp_us
    catalog = "tablelog" if version is None else f"tablelog@{version}"
    if request.options:
        catalog += json.dumps(dict(request.options), sort_keys=True)
    plan = frames.analyzed(frame)
    session_state(spark).catalog().cacheTable(catalyst.QualifiedTableName(catalog, database[0], table), plan)
    identifier = catalyst.TableIdentifier(table, some(database[0]), some(catalog))
    kinds, storage = catalyst.catalog.CatalogTableType, catalyst.catalog.CatalogStorageFormat.empty()
    entry = query_catalog_table(gateway, identifier, kinds.EXTERNAL(), storage, plan.schema(), some("delta"))
    return gateway.jvm.org.apache.spark.sql.connector.catalog.V1Table(entry)


def own_command_refused(request: TableRequest) -> UnsupportedFeatureError:
    """The error for a command of Spark's own that would change a table."""
    return UnsupportedFeatureError(
        f"Spark's own command does not support the Delta table {'.'.join(request.name)}: nothing was changed. "
        "Run the statement by spark.sql(text), as a separate statement."
    )


class DescribedTable(InsertTarget):
    """A table with names, types and properties, and no capabilities: Spark can neither read nor write it.

    The columns and properties are those that delta-spark shows in DESCRIBE, SHOW and `spark.catalog`. `clustered_by`
    are the clustering columns, None for a table that isn't clustered.
    """

    _purpose = "described by a command"

    def __init__(
        self,
        gateway: Gateway,
        request: TableRequest,
        snapshot: "Snapshot",
        clustered_by: Sequence[schemas.Column] | None = None,
    ) -> None:
        self._request = request
        super().__init__(
            gateway, ".".join((SESSION_CATALOG, *request.name)), list(snapshot.schema), snapshot.partition_columns
        )
        shown = column_mapping.transformed(snapshot.schema, lambda f, _: replace(f, metadata=_shown(f.metadata)))
        assert isinstance(shown, schemas.StructType)
        self._schema = gateway.schema(schemas.to_json(shown))
        self._properties = _properties_shown(request, snapshot, clustered_by)

    def _column(self, kind: JavaObject, index: int) -> JavaObject:
        field, data_type = self._fields[index], self._schema.apply(index).dataType()
        metadata = _shown(field.metadata)
        comment, default = metadata.pop("comment", None), metadata.pop(schemas.DEFAULT_KEY, None)
        if default is None:
            return kind.create(field.name, data_type, field.nullable, comment, json.dumps(metadata))
        value = self._default(default, data_type)
        return kind.create(field.name, data_type, field.nullable, comment, value, json.dumps(metadata))

    @carried
    def capabilities(self) -> JavaObject:
        return self._gateway.jvm.java.util.HashSet()

    @carried
    def truncateTable(self, *_: JavaObject) -> bool:
        raise own_command_refused(self._request)

    @carried
    def supportedCustomMetrics(self) -> JavaObject:
        return self._gateway.py4j.new_array(self._gateway.jvm.org.apache.spark.sql.connector.metric.CustomMetric, 0)

    @carried
    def reportDriverMetrics(self) -> JavaObject:
        return self._gateway.py4j.new_array(self._gateway.jvm.org.apache.spark.sql.connector.metric.CustomTaskMetric, 0)

    @carried
    def properties(self) -> JavaObject:
        values = self._gateway.jvm.java.util.HashMap()
        for key, value in self._properties.items():
            values.put(key, value)
        return values

    class Java:
        implements: ClassVar[list[str]] = [TRUNCATABLE_TABLE]


def _shown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a column without what only writers need; default values are shown."""
    return {key: value for key, value in metadata.items() if not key.startswith("delta.")}


def _properties_shown(
    request: TableRequest, snapshot: "Snapshot", clustered_by: Sequence[schemas.Column] | None
) -> dict[str, str]:
    """The properties of a table, with Spark's own ones for its provider, location, kind and comment."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    shown = {key: value for key, value in metadata.configuration.items() if key != "path"}
    shown["delta.minReaderVersion"] = str(protocol.min_reader_version)
    shown["delta.minWriterVersion"] = str(protocol.min_writer_version)
    for name in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}:
        shown[f"delta.feature.{name}"] = "supported"
    if clustered_by is not None:
        shown["clusteringColumns"] = json.dumps([list(column) for column in clustered_by], separators=(",", ":"))
    if metadata.description is not None:
        shown["comment"] = metadata.description
    managed = request.entry is not None and request.entry.tableType().name() == "MANAGED"
    if managed:
        shown["is_managed_location"] = "true"
    elif request.entry is not None:
        shown["external"] = "true"
    location = request.name[-1] if request.entry is None else snapshot.table.replace("file:///", "file:/", 1)
    return {**shown, "provider": "delta", "location": location}
