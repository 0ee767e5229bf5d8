"""Tables of the server's session catalog, by SQL statements that need no Delta source: find one, and add one."""

import re
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ...core.protocol.schema import quoted
from ...engine.connect import client, delta_entries
from ...engine.connect.sql_text import name_parts
from ...errors import InvalidArgumentError, UnsupportedFeatureError
from .. import names
from ..not_on_connect import refused

_NAME = re.compile(r"[A-Za-z0-9_]+")
_SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class Entry:
    """A table of the catalog. `location`: a local path without scheme or a URI; empty for a view."""

    name: str
    provider: str | None
    location: str
    managed: bool

    @property
    def short_name(self) -> str:
        """The name without its schema."""
        return self.name.rpartition(".")[2]

    @property
    def is_delta(self) -> bool:
        return self.provider == "delta" and bool(self.location)


def find(spark: SparkSession, name: str) -> Entry | None:
    """The table with this name; `None` if there is none. It makes one request.

    Raises:
        InvalidArgumentError: It isn't a valid name, or it is that of a view, or a comment of the table imitates what
            the server says about it.
        UnsupportedFeatureError: The name is in another catalog.
        pyspark.errors.AnalysisException: There is no such schema.
    """
    *schema, table = _parts(name)
    inside = f" IN {_SESSION_CATALOG}.{quoted(schema[0])}" if schema else ""
    # A pattern without * and | matches this name alone, in any case, and a temporary view of this name.
    rows = client.sql(spark, f"SHOW TABLE EXTENDED{inside} LIKE '{table}'").collect()
    if not schema and any(row.isTemporary for row in rows):
        raise InvalidArgumentError(f"{name} is a temporary view: give the schema of the table too, as in default.t")
    for row in rows:
        if row.isTemporary:
            continue
        said = row.information
        if _said(said, "Catalog", name) not in (None, _SESSION_CATALOG):
            raise _in_another_catalog(name)
        return Entry(
            name=f"{row.namespace}.{row.tableName}",
            provider=_said(said, "Provider", name),
            location=re.sub(r"^file:/+", "/", _said(said, "Location", name) or ""),
            managed=_said(said, "Type", name) == "MANAGED",
        )
    return None


def delta_table(spark: SparkSession, name: str) -> Entry | None:
    """The Delta table that Spark resolves a name to. It makes one request.

    `None` for all else: another kind of table, a view, a name in another catalog, one that doesn't exist.
    """
    try:
        entry = find(spark, name)
    except (PySparkException, InvalidArgumentError, UnsupportedFeatureError):
        return None
    return entry if entry is not None and entry.is_delta else None


def path_of(spark: SparkSession, name: str) -> str | None:
    """The directory of a Delta table, by `` delta.`path` `` or its name in the catalog; None for all else."""
    named = names.by_path(name)
    if named is not None:
        return named[1] if named[0] == "delta" else None
    entry = delta_table(spark, name)
    return None if entry is None else entry.location


def location_of(spark: SparkSession, entry: Entry, wanted: str | None) -> str:
    """The location of a Delta table. `wanted`: the one that the caller gives, which must be the same.

    Raises:
        InvalidArgumentError: It is another kind of table, or has another location.
    """
    if not entry.is_delta:
        raise InvalidArgumentError(
            f"{entry.name} can't become a Delta table: {names.what_is(entry)}. Drop it first.",
            condition="DELTA_NOT_A_DELTA_TABLE",
            parameters={"tableName": entry.name},
        )
    names.check_same(spark, entry.name, entry.location, wanted)
    return entry.location


def add(spark: SparkSession, name: str, location: str | None) -> Entry:
    """Add a Delta table to the catalog, whose columns are in its log, as other engines do.

    Args:
        spark: The session.
        name: The name of the table.
        location: Its directory. None: the server chooses the directory, and deletes it when the table is dropped.

    Returns:
        The entry; also if another session has added it in the meantime.

    Raises:
        UnsupportedFeatureError: The name has no schema, and the session uses another catalog.
        pyspark.errors.AnalysisException: The server refuses the name or the directory.
    """
    *schema, table = _parts(name)
    if not schema:
        if spark.catalog.currentCatalog() != _SESSION_CATALOG:
            raise _in_another_catalog(name)
        schema = [spark.catalog.currentDatabase()]
    delta_entries.create(spark, ".".join(map(quoted, (_SESSION_CATALOG, *schema, table))), location)
    entry = find(spark, name)
    if entry is None:
        raise InvalidArgumentError(f"Another session has dropped the table {name} while it was created: try again.")
    return entry


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name in the session catalog: the table, and its schema if the name has one."""
    parts = name_parts(name)
    if parts is not None and len(parts) > 1 and parts[0].lower() == _SESSION_CATALOG:
        parts = parts[1:]
    if parts is not None and len(parts) > 2:
        raise _in_another_catalog(name)
    if parts is None or not all(map(_NAME.fullmatch, parts)):
        raise InvalidArgumentError(
            f"{name!r} isn't a valid table name: use ASCII letters, digits and underscores.",
            condition="INVALID_SCHEMA_OR_RELATION_NAME",
            parameters={"name": name},
        )
    return parts


def _in_another_catalog(name: str) -> Exception:
    return refused(f"The table {name} in another catalog than {_SESSION_CATALOG}", "the path of the table")


def _said(information: str, key: str, name: str) -> str | None:
    """What the server says about a table for a key; `None` if it says nothing."""
    found = re.findall(rf"^{key}: (.*)$", information, re.MULTILINE)
    if len(found) > 1:
        raise InvalidArgumentError(
            f"What the server says about {name} has several lines for {key}, perhaps from the table's comment: use the "
            "path of the table."
        )
    return str(found[0]) if found else None
