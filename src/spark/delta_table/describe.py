"""The frames of `history()` and `detail()`, with the columns of DESCRIBE HISTORY and DESCRIBE DETAIL."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ...core.deltalog import DeltaLog
from ...core.protocol import features
from ...core.protocol.actions import CommitInfo
from ...core.protocol.schema import arrow_schema, parse_schema
from ...core.table.history import HistoryEntry
from ...dml.maintain import cluster_by
from ...engine.jvm.catalog import CatalogEntry
from ...errors import InvalidArgumentError

_STRINGS = MapType(StringType(), StringType())
_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")


def _struct(**fields: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


HISTORY = _struct(
    version=LongType(),
    timestamp=TimestampType(),
    userId=StringType(),
    userName=StringType(),
    operation=StringType(),
    operationParameters=_STRINGS,
    job=_struct(**dict.fromkeys(_JOB, StringType())),
    notebook=_struct(notebookId=StringType()),
    clusterId=StringType(),
    readVersion=LongType(),
    isolationLevel=StringType(),
    isBlindAppend=BooleanType(),
    operationMetrics=_STRINGS,
    userMetadata=StringType(),
    engineInfo=StringType(),
)
DETAIL = _struct(
    format=StringType(),
    id=StringType(),
    name=StringType(),
    description=StringType(),
    location=StringType(),
    createdAt=TimestampType(),
    lastModified=TimestampType(),
    partitionColumns=ArrayType(StringType()),
    clusteringColumns=ArrayType(StringType()),
    numFiles=LongType(),
    sizeInBytes=LongType(),
    properties=_STRINGS,
    minReaderVersion=IntegerType(),
    minWriterVersion=IntegerType(),
    tableFeatures=ArrayType(StringType()),
)


def history(spark: SparkSession, log: DeltaLog, limit: int | None = None) -> DataFrame:
    """The latest `limit` commits (all: None), newest first."""
    if limit is not None and limit <= 0:
        raise InvalidArgumentError(f"history(limit) needs a positive number of commits, not {limit}.")
    return local_frame(spark, [_history_row(entry) for entry in log.history(limit)], HISTORY)


def detail(spark: SparkSession, log: DeltaLog, name: str | None = None) -> DataFrame:
    """One row about the table. `name`: its name in the catalog (default: the one in the log)."""
    snapshot = log.snapshot()
    metadata, protocol = snapshot.metadata, snapshot.protocol
    row = (
        "delta",
        metadata.id,
        name or metadata.name,
        metadata.description,
        log.table.replace("file:///", "file:/", 1),  # as Hadoop and Delta spell it
        None if metadata.created_time is None else _instant(metadata.created_time),
        _instant(snapshot.timestamp_ms),
        list(metadata.partition_columns),
        [".".join(column) for column in cluster_by.current(snapshot) or ()],
        snapshot.num_files,
        snapshot.size_in_bytes,
        dict(metadata.configuration),
        protocol.min_reader_version,
        protocol.min_writer_version,
        sorted(features.supported(protocol)),
    )
    return local_frame(spark, [row], DETAIL)


def detail_of_entry(spark: SparkSession, entry: CatalogEntry) -> DataFrame:
    """One row about a catalog table of another format, from its catalog entry."""
    known = {
        "format": entry.provider,
        "name": entry.name,
        "description": entry.comment,
        "location": entry.location_uri,
        "createdAt": _instant(entry.created_ms),
        "partitionColumns": entry.partition_schema.names,
        "properties": entry.properties,
    }
    return local_frame(spark, [tuple(known.get(field.name) for field in DETAIL.fields)], DETAIL)


def detail_of_path(spark: SparkSession, path: str) -> DataFrame:
    """One row about a directory that isn't a Delta table; it has only the location."""
    known = {"location": path, "properties": dict[str, str]()}
    return local_frame(spark, [tuple(known.get(field.name) for field in DETAIL.fields)], DETAIL)


def local_frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """A DataFrame of a few rows that needs no Spark job: Arrow data becomes a local relation."""
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else ([] for _ in schema.fields)
    arrow = arrow_schema(parse_schema(schema.json()))
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, arrow, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), schema)


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)


def _texts(values: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    """A map of JSON values as Delta shows it: strings unchanged, other values as JSON."""
    if values is None:
        return None
    return {
        key: value if isinstance(value, str) or value is None else json.dumps(value) for key, value in values.items()
    }


def _parts(value: Any, names: tuple[str, ...]) -> dict[str, str | None] | None:
    if not isinstance(value, Mapping):
        return None
    return {name: None if value.get(name) is None else str(value[name]) for name in names}


def _history_row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.commit_info or CommitInfo()
    return (
        entry.version,
        _instant(entry.timestamp_ms),
        info.user_id,
        info.user_name,
        info.operation,
        _texts(info.operation_parameters),
        _parts(info.extra.get("job"), _JOB),
        _parts(info.extra.get("notebook"), ("notebookId",)),
        info.cluster_id,
        info.read_version,
        info.isolation_level,
        info.is_blind_append,
        _texts(info.operation_metrics),
        info.user_metadata,
        info.engine_info,
    )
