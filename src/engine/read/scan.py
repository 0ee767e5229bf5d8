"""A table, or some of its files, as a DataFrame.

How Spark comes to the files is chosen by need: see `routes`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.protocol import schema as schemas
from ...errors import InvalidArgumentError
from ..jvm.gateway import Gateway
from ..jvm.types import frame_schema, read_schema
from ..sql import column_names
from ..storage import hadoop_settings
from . import deletion_vectors, large_log, read_errors, routes
from .conditions import Condition, candidates, exact_partitions, printed_conjuncts, split_condition
from .deletion_vectors import Hidden, Vectors
from .extra_columns import NOTHING, Beside
from .file_index import FileIndex
from .pinned_versions import Newest, Pinned
from .routes import arrow, manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

__all__ = [
    "Condition",
    "candidates",
    "columns_of",
    "exact_partitions",
    "for_conditions",
    "frame",
    "printed_conjuncts",
    "refresh_cached",
    "split_condition",
]


def frame(
    spark: "SparkSession",
    log: "DeltaLog",
    *,
    snapshot: "Snapshot | None" = None,
    files: "pa.Table | None" = None,
    beside: Beside = NOTHING,
    file_number: str | None = None,
    row_index: str | None = None,
    options: "Mapping[str, str] | None" = None,
) -> "DataFrame":
    """The rows of a table, in the order of its schema's columns.

    `snapshot` pins a version. Without it each execution sees the newest one (`SchemaChangedError` where the schema
    changed under the frame); on routes other than `native` the frame stays at the version at which it was made.
    `files` is an explicit subset, rows of `snapshot.files` or `.prune`; it needs `snapshot`. The columns of `beside`
    come behind the table's. `file_number` names one more column that gives the row of `files` (else of
    `snapshot.files`) that a record comes from; it costs nothing to read. `row_index` names another, the last: the
    record's place in its data file, counted from 0, deleted ones included (bigint). `options` are Spark's and Hadoop's
    for reading Parquet files.

    An execution is what plans anew: `count`, `show`, a write, or any action on a frame derived from this one. The
    second `collect` on one and the same DataFrame object reuses Spark's plan of the first, files included.
    """
    if snapshot is None and (files is not None or file_number is not None):
        raise InvalidArgumentError("files and file_number need the snapshot that they belong to")
    analysed = snapshot if snapshot is not None else log.snapshot()
    more = [*(f.name for f in beside.fields), *(name for name in (file_number, row_index) if name is not None)]
    schema = read_schema(analysed.schema)
    if not len(schema):
        raise InvalidArgumentError(
            f"the table {analysed.table} has no columns yet: write to it before reading it",
            condition="DELTA_READ_TABLE_WITHOUT_COLUMNS",
            parameters={"tableName": analysed.table},
        )
    for name in more:
        if analysed.schema.get(name) is not None:
            raise InvalidArgumentError(f"the table {analysed.table} has a column {name} of its own")
    found = _of_files(
        spark,
        log,
        analysed,
        schema,
        pinned=snapshot is not None,
        numbered=_Numbered(files, beside, file_number, row_index),
        options=options,
    )
    return column_names.with_void(found, frame_schema(analysed.schema), more)


def _of_files(
    spark: "SparkSession",
    log: "DeltaLog",
    analysed: "Snapshot",
    schema: schemas.StructType,
    *,
    pinned: bool,
    numbered: "_Numbered",
    options: "Mapping[str, str] | None",
) -> "DataFrame":
    """`frame` without void columns, by the route that is chosen."""
    files, beside = numbered.files, numbered.beside
    file_number, row_index = numbered.file_number, numbered.row_index
    route = routes.choose(spark, analysed.table, log.conf)
    if route == "manifest" and analysed.mapping.mode != "id":
        read_errors.remember(analysed.table, analysed.version)
        return manifest.frame(
            spark,
            log,
            routes.scratch_of(spark) or "",
            analysed,
            analysed.files if files is None else files,
            beside=beside,
            file_number=file_number,
            row_index=row_index,
            options=options or {},
        )
    if route != "native":
        newest = not (pinned or beside.fields or file_number or row_index)
        return arrow.frame(
            spark,
            log,
            schema,
            snapshot=analysed,
            newest=newest,
            files=files,
            beside=beside,
            file_number=file_number,
            row_index=row_index,
        )
    source = Pinned(analysed) if pinned else Newest(log, analysed, spark.sparkContext.applicationId)
    settings = hadoop_settings.reaching(spark, log.table, log.conf) or {}
    given = {**settings, **(options or {})}
    if not deletion_vectors.may_have(analysed) and (files is None or not deletion_vectors.any_has_vector(files)):
        return _native(spark, source, numbered, options=given, log=log)
    vectors = Vectors(spark, log)
    if large_log.wanted(spark, analysed):
        large = large_log.too_large(spark, log, analysed)
    else:
        large = deletion_vectors.too_large(analysed)
    joined = {one: number for number, one in enumerate(dict.fromkeys(deletion_vectors.ids(large))) if one is not None}
    taken = {*columns_of(analysed), *(f.name for f in beside.fields), file_number or "", row_index or ""}
    hidden = Hidden(vectors, taken, joined)
    gone = deletion_vectors.rows_to_join(spark, vectors, large, hidden) if joined else None
    return _native(spark, source, numbered, options=given, hidden=hidden, gone=gone, log=log)


def columns_of(snapshot: "Snapshot") -> frozenset[str]:
    """What a table's columns are called, by its users and in its data files."""
    mapping = snapshot.mapping
    return frozenset((*mapping.logical.names, *mapping.physical.names))


def for_conditions(spark: "SparkSession", snapshot: "Snapshot") -> "DataFrame":
    """A frame over a version to resolve and plan conditions on (`split_condition`). It can't be executed everywhere.

    It is of the native route whatever that of the table's reads: Spark plans conditions there as nowhere else, and
    touches no file for it.
    """
    found = _native(spark, Pinned(snapshot), _Numbered(), options={})
    return column_names.with_void(found, frame_schema(snapshot.schema))


def refresh_cached(spark: "SparkSession", log: "DeltaLog") -> None:
    """Have Spark read anew what it has cached of the table by the native route."""
    if hadoop_settings.reaching(spark, log.table, log.conf) is not None:
        spark.catalog.refreshByPath(log.table)


@dataclass(frozen=True)
class _Numbered:
    """The arguments of `frame` of the same names."""

    files: "pa.Table | None" = None
    beside: Beside = NOTHING
    file_number: str | None = None
    row_index: str | None = None


def _native(
    spark: "SparkSession",
    source: Pinned | Newest,
    numbered: _Numbered,
    *,
    options: "Mapping[str, str]",
    hidden: Hidden | None = None,
    gone: "DataFrame | None" = None,
    log: "DeltaLog | None" = None,
) -> "DataFrame":
    gateway = Gateway.of(spark)
    beside, file_number, row_index = numbered.beside, numbered.file_number, numbered.row_index
    mapping = column_names.with_extra(source.analysed.mapping, beside.stored)
    index = FileIndex(
        gateway, spark, source, files=numbered.files, beside=beside, file_number=file_number, hidden=hidden, log=log
    )
    full = gateway.schema(schemas.to_json(index.schema))
    by_id = column_names.BY_ID if mapping.mode == "id" else {}
    found = gateway.frame(spark, gateway.relation(spark, index, index.partition_schema, full, {**options, **by_id}))
    more = [name for name in (*(f.name for f in beside.told_fields), file_number, row_index) if name is not None]
    if hidden is not None or row_index is not None:
        place = found.metadataColumn("_metadata")["row_index"]
        if row_index is not None:
            found = found.withColumn(row_index, place)
            place = found[row_index]
        if hidden is not None:
            found = deletion_vectors.live(found, hidden, gone, place)
    if mapping.active:
        return column_names.renamed(found, index.schema, read_schema(mapping.logical), more)
    if hidden is not None:
        return found.drop(*(f.name for f in hidden.fields))
    return found
