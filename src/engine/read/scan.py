"""Creates a DataFrame over a table, or over some of its files.

See `routes` for the ways in which Spark can read the files.
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
from .extra_columns import NO_EXTRA_COLUMNS, ExtraColumns
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
    extra: ExtraColumns = NO_EXTRA_COLUMNS,
    file_number: str | None = None,
    row_index: str | None = None,
    options: "Mapping[str, str] | None" = None,
) -> "DataFrame":
    """The rows of a table, in the order of its schema's columns.

    `snapshot` pins a version. Without it, each execution reads the newest version (`SchemaChangedError` if the schema
    changed incompatibly); on routes other than `native`, the frame keeps the version that was the newest when it was
    created. `files` is an explicit subset, rows of `snapshot.files` or `.prune`; it needs `snapshot`. The columns of
    `extra` follow the table's columns. `file_number` is the name of an extra column with the index of the record's file
    in `files` (else in `snapshot.files`); it costs nothing to read. `row_index` is the name of another, the last one:
    the record's index in its data file, from 0, with deleted records counted (bigint). `options` are options of Spark
    and Hadoop for reading Parquet files.

    An execution is whatever plans the frame: `count`, `show`, a write, or any action on a frame derived from it. A
    second `collect` on the same DataFrame object reuses the plan of the first, including its files.
    """
    if snapshot is None and (files is not None or file_number is not None):
        raise InvalidArgumentError("files and file_number need the snapshot to which they belong")
    analysed = snapshot if snapshot is not None else log.snapshot()
    more = [*(f.name for f in extra.fields), *(name for name in (file_number, row_index) if name is not None)]
    schema = read_schema(analysed.schema)
    if not len(schema):
        raise InvalidArgumentError(
            f"the table {analysed.table} has no columns yet: write to it before reading it",
            condition="DELTA_READ_TABLE_WITHOUT_COLUMNS",
            parameters={"tableName": analysed.table},
        )
    for name in more:
        if analysed.schema.get(name) is not None:
            raise InvalidArgumentError(f"the table {analysed.table} already has a column {name}")
    rows = _of_files(
        spark,
        log,
        analysed,
        schema,
        pinned=snapshot is not None,
        numbered=_Numbered(files, extra, file_number, row_index),
        options=options,
    )
    return column_names.with_void(rows, frame_schema(analysed.schema), more)


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
    """`frame` without void columns, by the selected route."""
    files, extra = numbered.files, numbered.extra
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
            extra=extra,
            file_number=file_number,
            row_index=row_index,
            options=options or {},
        )
    if route != "native":
        newest = not (pinned or extra.fields or file_number or row_index)
        return arrow.frame(
            spark,
            log,
            schema,
            snapshot=analysed,
            newest=newest,
            files=files,
            extra=extra,
            file_number=file_number,
            row_index=row_index,
        )
    source = Pinned(analysed) if pinned else Newest(log, analysed, spark.sparkContext.applicationId)
    settings = hadoop_settings.reaching(spark, log.table, log.conf) or {}
    read_options = {**settings, **(options or {})}
    if not deletion_vectors.may_have(analysed) and (files is None or not deletion_vectors.any_has_vector(files)):
        return _native(spark, source, numbered, options=read_options, log=log)
    vectors = Vectors(spark, log)
    if large_log.wanted(spark, analysed):
        large = large_log.too_large(spark, log, analysed)
    else:
        large = deletion_vectors.too_large(analysed)
    joined = {one: number for number, one in enumerate(dict.fromkeys(deletion_vectors.ids(large))) if one is not None}
    taken = {*columns_of(analysed), *(f.name for f in extra.fields), file_number or "", row_index or ""}
    hidden = Hidden(vectors, taken, joined)
    gone = deletion_vectors.rows_to_join(spark, vectors, large, hidden) if joined else None
    return _native(spark, source, numbered, options=read_options, hidden=hidden, gone=gone, log=log)


def columns_of(snapshot: "Snapshot") -> frozenset[str]:
    """The logical and physical names of a table's columns."""
    mapping = snapshot.mapping
    return frozenset((*mapping.logical.names, *mapping.physical.names))


def for_conditions(spark: "SparkSession", snapshot: "Snapshot") -> "DataFrame":
    """A frame over a version to resolve and plan conditions on (`split_condition`). It may not be executable.

    It always uses the native route, where Spark plans conditions completely, and accesses no file.
    """
    rows = _native(spark, Pinned(snapshot), _Numbered(), options={})
    return column_names.with_void(rows, frame_schema(snapshot.schema))


def refresh_cached(spark: "SparkSession", log: "DeltaLog") -> None:
    """Make Spark reload the table's cached data, which the native route reads."""
    if hadoop_settings.reaching(spark, log.table, log.conf) is not None:
        spark.catalog.refreshByPath(log.table)


@dataclass(frozen=True)
class _Numbered:
    """The arguments of `frame` with the same names."""

    files: "pa.Table | None" = None
    extra: ExtraColumns = NO_EXTRA_COLUMNS
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
    extra, file_number, row_index = numbered.extra, numbered.file_number, numbered.row_index
    mapping = column_names.with_extra(source.analysed.mapping, extra.stored)
    index = FileIndex(
        gateway, spark, source, files=numbered.files, extra=extra, file_number=file_number, hidden=hidden, log=log
    )
    full = gateway.schema(schemas.to_json(index.schema))
    by_id = column_names.BY_ID if mapping.mode == "id" else {}
    rows = gateway.frame(spark, gateway.relation(spark, index, index.partition_schema, full, {**options, **by_id}))
    more = [name for name in (*(f.name for f in extra.per_file_fields), file_number, row_index) if name is not None]
    if hidden is not None or row_index is not None:
        place = rows.metadataColumn("_metadata")["row_index"]
        if row_index is not None:
            rows = rows.withColumn(row_index, place)
            place = rows[row_index]
        if hidden is not None:
            rows = deletion_vectors.live(rows, hidden, gone, place)
    if mapping.active:
        return column_names.renamed(rows, index.schema, read_schema(mapping.logical), more)
    if hidden is not None:
        return rows.drop(*(f.name for f in hidden.fields))
    return rows
