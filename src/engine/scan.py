"""A table, or some of its files, as a DataFrame."""

from typing import TYPE_CHECKING

from ..core.protocol import schema as schemas
from ..errors import InvalidArgumentError
from .conditions import Condition, candidates, exact_partitions, split_condition
from .file_index import FileIndex, Newest, Pinned
from .gateway import Gateway
from .types import read_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ..core.deltalog import DeltaLog
    from ..core.table.snapshot import Snapshot

__all__ = ["Condition", "candidates", "exact_partitions", "frame", "split_condition"]


def frame(
    spark: "SparkSession",
    log: "DeltaLog",
    *,
    snapshot: "Snapshot | None" = None,
    files: "pa.Table | None" = None,
    file_number: str | None = None,
    options: "Mapping[str, str] | None" = None,
) -> "DataFrame":
    """The rows of a table, in the order of its schema's columns.

    `snapshot` pins a version; without it each execution sees the newest one (`SchemaChangedError` where the schema
    changed under the frame). `files` is an explicit subset, rows of `snapshot.files` or `.prune`; it needs `snapshot`.
    `file_number` names one more column, the last, that gives the row of `files` (else of `snapshot.files`) that a
    record comes from; it costs nothing to read. `options` are Spark's and Hadoop's for reading Parquet files.
    """
    if snapshot is None and (files is not None or file_number is not None):
        raise InvalidArgumentError("files and file_number need the snapshot that they belong to")
    analysed = snapshot if snapshot is not None else log.snapshot()
    gateway = Gateway.of(spark)
    schema = read_schema(analysed.schema)
    if not len(schema):
        raise InvalidArgumentError(f"the table {analysed.table} has no columns yet: write to it before reading it")
    if file_number is not None and schema.get(file_number) is not None:
        raise InvalidArgumentError(f"the table {analysed.table} has a column {file_number} of its own")
    source = Pinned(analysed) if snapshot is not None else Newest(log, analysed, spark.sparkContext.applicationId)
    index = FileIndex(gateway, spark, source, files=files, file_number=file_number)
    full = schemas.to_json(schema)
    relation = gateway.relation(spark, index, index.partition_schema, gateway.schema(full), dict(options or {}))
    return gateway.frame(spark, relation)
