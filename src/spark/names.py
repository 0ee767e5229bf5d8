"""Names of tables: a path, provider.`path`, or a name in Spark's catalog."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ..core.deltalog import DeltaLog
from ..engine.jvm.catalog import CatalogEntry, SessionCatalog
from ..engine.jvm.connection.sessions import is_classic
from ..errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from .conf import delta_log, session_conf
from .not_on_connect import refused

_BY_PATH = re.compile(r"\s*(\w+)\s*\.\s*`((?:[^`]|``)+)`\s*", re.DOTALL)
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_PROVIDERS = ("delta", "parquet", "iceberg")


def by_path(identifier: str) -> tuple[str, str] | None:
    """The provider and the path of `` delta.`path` `` or similar; None for a catalog name or a plain path."""
    match = _BY_PATH.fullmatch(identifier)
    if match is None or (match[1].lower() not in _PROVIDERS and not _ABSOLUTE.match(match[2])):
        return None
    return match[1].lower(), match[2].replace("``", "`")


def is_absolute(path: str) -> bool:
    """Whether the text is an absolute path or a URI."""
    return _ABSOLUTE.match(path) is not None


def is_path(parts: Sequence[str]) -> bool:
    """Whether the parts of a name are those of `` delta.`path` ``."""
    return len(parts) == 2 and parts[0].lower() == "delta" and is_absolute(parts[1])


class Entry(Protocol):
    """A table or view of the catalog of a session, classic or of Spark Connect."""

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str | None: ...
    @property
    def location(self) -> str: ...
    @property
    def is_delta(self) -> bool: ...


E = TypeVar("E", bound=Entry)


def what_is(entry: Entry) -> str:
    """Describes a catalog entry that isn't a Delta table, for messages."""
    return f"its provider is {entry.provider}" if entry.location else "it is a view"


def is_delta_table(spark: SparkSession, name: object) -> bool:
    """Whether a name is that of a Delta table of the catalog, or of a path (``delta.`path` ``)."""
    if not isinstance(name, str):
        return False
    named = by_path(name)
    if named is not None:
        return named[0] == "delta"
    try:
        entry = SessionCatalog(spark).find(name)
    except (AnalysisException, UnsupportedFeatureError):
        return False  # Spark raises an error for an invalid name; other catalogs have no Delta tables
    return entry is not None and entry.is_delta


@dataclass(frozen=True)
class TableLocation:
    """The location of a table, existing or new. `name` is its name in the catalog; None for a table by path only."""

    path: str
    name: str | None = None
    entry: CatalogEntry | None = None
    managed: bool = False

    def enter(self, spark: SparkSession, comment: str | None = None) -> None:
        """Register the table, which exists, in the catalog. `comment`: the table's description, for other engines."""
        if self.name is None or self.entry is not None:
            return
        try:
            SessionCatalog(spark).register(self.name, self.path, managed=self.managed, comment=comment)
        except AnalysisException as error:
            entry = SessionCatalog(spark).find(self.name)  # another session may have registered it concurrently
            if entry is None or not entry.is_delta or not _same(spark, entry.location, self.path):
                error.add_note(
                    f"The Delta table at {self.path} is committed, but its name {self.name} isn't in the catalog."
                )
                raise


def delta_entry(spark: SparkSession, name: str) -> CatalogEntry:
    """The catalog entry of a Delta table. Raises TableNotFoundError if there is none, or for another kind of table."""
    return checked_delta(SessionCatalog(spark).find(name), name)


def checked_delta(entry: E | None, name: str) -> E:
    """The entry that was found for a name. Raises TableNotFoundError if there is none, or for another kind of table."""
    if entry is None:
        raise TableNotFoundError(
            f"There is no table {name} in Spark's catalog.",
            condition="DELTA_MISSING_DELTA_TABLE",
            parameters={"tableName": name},
        )
    if not entry.is_delta:
        raise TableNotFoundError(
            f"{entry.name} is not a Delta table: {what_is(entry)}.",
            condition="DELTA_MISSING_DELTA_TABLE",
            parameters={"tableName": entry.name},
        )
    return entry


def log_of(spark: SparkSession, entry: Entry) -> DeltaLog:
    """The log of the table of a catalog entry. Raises TableNotFoundError if its location has no Delta table."""
    log = delta_log(entry.location, session_conf(spark, entry.location))
    if not log.exists():
        raise TableNotFoundError(
            f"{entry.name} has the location {entry.location}, where there is no Delta table.",
            condition="DELTA_MISSING_DELTA_TABLE",
            parameters={"tableName": entry.name},
            table=log.table,
        )
    return log


def of_catalog(spark: SparkSession, name: str) -> SessionCatalog:
    """The catalog in which a name is looked up. Raises UnsupportedFeatureError on Spark Connect."""
    if not is_classic(spark):
        raise refused(f"The name {name} in the catalog", "a path, as in delta.`/path`")
    return SessionCatalog(spark)


def place(spark: SparkSession, identifier: str | None, location: str | None) -> TableLocation:
    """The location of a table by its name, its path, or both, which must agree."""
    if identifier is None:
        if not location:
            raise InvalidArgumentError(
                "A table needs a location: use location(path), or tableName(name).",
                condition="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            )
        return TableLocation(location)
    named = by_path(identifier)
    if named is not None:
        provider, path = named
        if provider != "delta":
            raise InvalidArgumentError(f"{identifier} must be a Delta table: use delta.`{path}`.")
        if location is not None and not _same(spark, location, path):
            raise InvalidArgumentError(
                f"The table's name is the path {path}, but its location is {location}.",
                condition="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
                parameters={"identifier": path, "location": location},
            )
        return TableLocation(path)
    catalog = of_catalog(spark, identifier)
    entry = catalog.find(identifier)
    if entry is None:
        default = catalog.location_of_new(identifier)
        return TableLocation(location or default, identifier, managed=location is None)
    if not entry.is_delta:
        raise InvalidArgumentError(
            f"{entry.name} can't become a Delta table: {what_is(entry)}. Drop it first.",
            condition="DELTA_NOT_A_DELTA_TABLE",
            parameters={"tableName": entry.name},
        )
    check_same(spark, entry.name, entry.location, location)
    return TableLocation(entry.location, entry.name, entry, managed=entry.is_managed)


def check_same(spark: SparkSession, name: str, location: str, given: str | None) -> None:
    """Raise InvalidArgumentError if a location is given that isn't the one of the table `name` of the catalog."""
    if given is not None and not _same(spark, given, location):
        raise InvalidArgumentError(
            f"{name} has the location {location}, but the given location is {given}.",
            condition="DELTA_TABLE_LOCATION_MISMATCH",
            parameters={"tableName": name, "existingTableLocation": location, "tableLocation": given},
        )


def target(spark: SparkSession, identifier: str) -> TableLocation:
    """The location of a clone's target; it may also be an absolute path."""
    return TableLocation(identifier) if _ABSOLUTE.match(identifier) else place(spark, identifier, None)


def _same(spark: SparkSession, path: str, other: str) -> bool:
    """Whether two paths refer to the same table."""
    return delta_log(path, session_conf(spark, path)).table == delta_log(other, session_conf(spark, other)).table
