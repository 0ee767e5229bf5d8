"""The sources of CONVERT TO DELTA and CLONE: a directory, a catalog table, or a version of a table."""

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from ...core.deltalog import DeltaLog
from ...core.protocol import paths, schema
from ...core.table.snapshot import Snapshot
from ...dml.maintain.clone import CloneSource
from ...dml.maintain.convert import convert
from ...engine.jvm.catalog import CatalogEntry
from ...engine.jvm.types import table_schema
from ...errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from .. import names
from ..conf import delta_log, session_conf
from ..writer import commit_of


def converted(
    spark: SparkSession, identifier: str, partition_schema: str | StructType | None, *, statistics: bool
) -> DeltaLog:
    """The log of the table that was converted from the Parquet files of `identifier`, or existed already."""
    named_by_path = names.by_path(identifier)
    if named_by_path is None:
        return _of_catalog(spark, identifier, partition_schema, statistics)
    provider, path = named_by_path
    if provider == "iceberg":
        raise UnsupportedFeatureError(
            f"{path}: Iceberg tables can't be converted. Read it with Spark and write it as a Delta table",
            ("iceberg",),
        )
    if provider not in ("parquet", "delta"):
        raise InvalidArgumentError(
            f"CONVERT TO DELTA needs a directory of Parquet files (parquet.`/path`), not {provider}",
            condition="DELTA_CONVERT_NON_PARQUET_TABLE",
            parameters={"sourceName": provider, "tableId": path},
        )
    log = delta_log(path, session_conf(spark, path))
    convert(spark, log, _columns(partition_schema), statistics=statistics, options=commit_of(spark))
    return log


def _of_catalog(
    spark: SparkSession, name: str, partition_schema: str | StructType | None, statistics: bool
) -> DeltaLog:
    """Convert a catalog table, and change its catalog entry to a Delta table."""
    catalog = names.of_catalog(spark, name)
    entry = catalog.find(name)
    if entry is None:
        raise TableNotFoundError(
            f"There is no table {name} in Spark's catalog. For a directory, use parquet.`/path`.",
            condition="DELTA_TABLE_NOT_FOUND",
            parameters={"tableName": name},
        )
    if entry.is_delta:
        return delta_log(entry.location, session_conf(spark, entry.location))
    if not entry.is_parquet:
        raise InvalidArgumentError(
            f"CONVERT TO DELTA needs a Parquet table, but {entry.name} is not one: {names.what_is(entry)}.",
            condition="DELTA_CONVERT_NON_PARQUET_TABLE",
            parameters={"sourceName": entry.provider, "tableId": entry.name},
        )
    if entry.bucketed:
        raise UnsupportedFeatureError(f"{entry.name} is bucketed; Delta tables don't support buckets", ("bucketing",))
    known = table_schema(entry.partition_schema)
    requested = known if partition_schema is None else _columns(partition_schema)
    if requested != known:
        raise InvalidArgumentError(
            f"{entry.name} is partitioned by {list(known.names)} in Spark's catalog, but the given partition schema "
            f"has other names or types: {list(requested.names)}. Omit it",
            condition="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            parameters={"catalogPartitionSchema": list(known.names), "userPartitionSchema": list(requested.names)},
        )
    log = delta_log(entry.location, session_conf(spark, entry.location))
    partitions = _below(entry, catalog.partition_locations(entry))
    convert(
        spark,
        log,
        known,
        statistics=statistics,
        partitions=partitions,
        catalog_name=entry.quoted_name,
        options=commit_of(spark),
    )
    catalog.make_delta(entry)
    return log


def _below(entry: CatalogEntry, locations: list[str] | None) -> frozenset[str] | None:
    """The partitions in the catalog, by their directories relative to the table."""
    if locations is None:
        return None
    root = f"{entry.location}/"
    elsewhere = [location for location in locations if not location.startswith(root)]
    if elsewhere:
        raise UnsupportedFeatureError(
            f"{entry.name} has partitions outside of its directory ({elsewhere[0]}); Delta tables don't support this",
            ("partitions with locations of their own",),
        )
    return frozenset(location.removeprefix(root) for location in locations)


def _columns(partition_schema: str | StructType | None) -> schema.StructType:
    if partition_schema is None:
        return schema.StructType()
    if isinstance(partition_schema, str):
        parsed = DataType.fromDDL(partition_schema)
        if not isinstance(parsed, StructType):
            raise InvalidArgumentError(
                f"partitionSchema is {partition_schema!r}: it needs to be a list of columns, such as 'day date, n int'"
            )
        partition_schema = parsed
    if not isinstance(partition_schema, StructType):
        raise TypeError(f"partitionSchema must be a string or a StructType, not {type(partition_schema).__name__}")
    return table_schema(partition_schema)


def named(snapshot: Snapshot, entry: CatalogEntry | None = None) -> CloneSource:
    """A version of a table as a clone source, with Delta's name for it: that of the catalog, or of its path."""
    return CloneSource(snapshot, f"delta.`{hadoop_path(snapshot.table)}`" if entry is None else entry.name)


def hadoop_path(table: str) -> str:
    """A table's root as Hadoop prints it: not URL-encoded, and with one slash for a local path."""
    place = paths.absolute(table, "")
    return f"file:{place}" if place.startswith("/") else place
