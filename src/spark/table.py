"""`DeltaTable`, which mirrors `delta.tables.DeltaTable` call for call, as far as it is built."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from pyspark.sql import Column, DataFrame, SparkSession
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

from ..core.deltalog import DeltaLog
from ..core.protocol import features
from ..core.protocol.actions import CommitInfo
from ..core.protocol.schema import arrow_schema, parse_schema
from ..core.table.history import HistoryEntry
from ..dml.delete import delete
from ..engine import scan
from ..engine.gateway import is_classic
from ..errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError
from .conf import session_conf
from .options import Options, transaction_option
from .reader import find_table, not_a_table
from .writer import reset_session_transaction

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


class DeltaTable:
    """A Delta table in a Spark session. Made by `forPath`; works whether or not the session is enabled."""

    def __init__(self, spark: SparkSession, log: DeltaLog, alias: str | None = None) -> None:
        self._spark = spark
        self._log = log
        self._alias = alias

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> "DeltaTable":
        """The table at `path`, or the one that has `path` as a partition directory.

        `hadoopConf` may hold `fs.*` and `dfs.*` keys only. Raises TableNotFoundError where there is no table.
        """
        _check_session(sparkSession)
        table = find_table(path, session_conf(sparkSession, path), _file_system(hadoopConf))
        if table is None:
            raise not_a_table(path)
        return cls(sparkSession, table)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":
        """A table by its name in Spark's catalog: not built yet."""
        raise UnsupportedFeatureError(
            f"DeltaTable.forName({tableOrViewName!r}) comes with a later version of tablelog, with tables in Spark's "
            "catalog. Use DeltaTable.forPath(spark, path)."
        )

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at the path `identifier`."""
        _check_session(sparkSession)
        return find_table(identifier, session_conf(sparkSession), {}) is not None

    def toDF(self) -> DataFrame:
        """The table as a DataFrame; each execution reads the newest version."""
        frame = scan.frame(self._spark, self._log)
        return frame.alias(self._alias) if self._alias else frame

    def alias(self, aliasName: str) -> "DeltaTable":
        """The table under another name, for use in conditions."""
        return DeltaTable(self._spark, self._log, aliasName)

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which `condition` (SQL text or a Column) is TRUE; all rows where it is left out."""
        if condition is not None and not isinstance(condition, str | Column):
            raise TypeError(f"condition must be a string or a Column, not {type(condition).__name__}")
        conf = session_conf(self._spark)
        try:
            delete(
                self._spark,
                self._log,
                condition,
                alias=self._alias,
                user_metadata=conf.get("spark.databricks.delta.commitInfo.userMetadata"),
                transaction=transaction_option(Options({}), conf),
            )
        finally:
            reset_session_transaction(self._spark, conf)

    def history(self, limit: int | None = None) -> DataFrame:
        """The latest `limit` commits (all: None), newest first, with the columns of DESCRIBE HISTORY."""
        if limit is not None and limit <= 0:
            raise InvalidArgumentError(f"history(limit) takes a number of commits from 1 on, not {limit}.")
        return _local_frame(self._spark, [_history_row(entry) for entry in self._log.history(limit)], HISTORY)

    def detail(self) -> DataFrame:
        """One row about the table, with the columns of DESCRIBE DETAIL."""
        snapshot = self._log.snapshot()
        metadata, protocol = snapshot.metadata, snapshot.protocol
        row = (
            "delta",
            metadata.id,
            metadata.name,
            metadata.description,
            self._log.table,
            None if metadata.created_time is None else _instant(metadata.created_time),
            _instant(snapshot.timestamp_ms),
            list(metadata.partition_columns),
            _clustering_columns(snapshot.domain_metadata),
            snapshot.num_files,
            snapshot.size_in_bytes,
            dict(metadata.configuration),
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(features.supported(protocol)),
        )
        return _local_frame(self._spark, [row], DETAIL)

    def __getattr__(self, name: str) -> Any:
        if name in _LATER:
            _refuse(name)
        raise AttributeError(f"'DeltaTable' object has no attribute {name!r}")


_LATER = frozenset(
    "update merge vacuum optimize generate restoreToVersion restoreToTimestamp upgradeTableProtocol addFeatureSupport "
    "dropFeatureSupport clone cloneAtVersion cloneAtTimestamp".split()
)


def _refuse(name: str) -> NoReturn:
    raise UnsupportedFeatureError(f"DeltaTable.{name} comes with a later version of tablelog.", (name,))


def _check_session(spark: SparkSession) -> None:
    if not is_classic(spark):
        raise UnsupportedEnvironmentError(
            "DeltaTable needs a classic Spark session; Spark Connect comes with a later version of tablelog."
        )


def _file_system(hadoopConf: Mapping[str, str] | None) -> dict[str, str]:
    wrong = [key for key in hadoopConf or {} if not key.startswith(("fs.", "dfs."))]
    if wrong:
        raise InvalidArgumentError(f"hadoopConf takes keys that begin with 'fs.' or 'dfs.' only, not {wrong}.")
    return dict(hadoopConf or {})


def _local_frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """A DataFrame of few rows for which Spark needs no job: Arrow becomes a local relation."""
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else ([] for _ in schema.fields)
    arrow = arrow_schema(parse_schema(schema.json()))
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, arrow, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=arrow), schema)


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)


def _texts(values: Mapping[str, Any] | None) -> dict[str, str | None] | None:
    """A map of JSON values as Delta shows it: text as it is, anything else as JSON."""
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


def _clustering_columns(domains: Mapping[str, Any]) -> list[str]:
    found = domains.get("delta.clustering")
    if found is None or found.removed:
        return []
    columns = json.loads(found.configuration).get("clusteringColumns", [])
    return [".".join(column) for column in columns]
