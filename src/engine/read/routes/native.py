"""The native route: Spark's own scan over a `FileIndex` in Python (see `routes`)."""

from typing import TYPE_CHECKING

from ....core.protocol import schema as schemas
from ...jvm.connection.gateway import Gateway
from ...jvm.types import read_schema
from ...sql import column_names
from ...storage import hadoop_settings
from .. import deletion_vectors, large_log
from ..deletion_vectors import Hidden, Vectors
from ..file_index import FileIndex
from ..pinned_versions import Newest, Pinned
from ..scan_spec import ScanSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from ....core.deltalog import DeltaLog
    from ....core.table.snapshot import Snapshot


def frame(spark: "SparkSession", log: "DeltaLog", spec: ScanSpec) -> "DataFrame":
    """The rows of a scan, without void columns."""
    snapshot, files = spec.snapshot, spec.files
    source = Pinned(snapshot) if spec.pinned else Newest(log, snapshot, spark.sparkContext.applicationId)
    options = {**(hadoop_settings.reaching(spark, log.table, log.conf) or {}), **spec.options}
    if not (deletion_vectors.may_have(snapshot) if files is None else deletion_vectors.any_has_vector(files)):
        return _relation(spark, source, spec, options, log=log)
    vectors = Vectors(spark, log)
    large = None if files is None else deletion_vectors.too_large_of(files, snapshot)
    if large is None and large_log.wanted(spark, snapshot):
        large = large_log.too_large(spark, log, snapshot)
    elif large is None:
        large = deletion_vectors.too_large(snapshot)
    large_ids = [id_ for id_ in dict.fromkeys(deletion_vectors.ids(large)) if id_ is not None]
    joined = {id_: number for number, id_ in enumerate(large_ids)}
    hidden = Hidden(vectors, {*column_names.all_names(snapshot.mapping), *spec.added_names}, joined)
    deleted_rows = deletion_vectors.rows_to_join(spark, vectors, large, hidden) if joined else None
    return _relation(spark, source, spec, options, log=log, hidden=hidden, deleted_rows=deleted_rows)


def for_conditions(spark: "SparkSession", snapshot: "Snapshot") -> "DataFrame":
    """A frame over a version for resolving and planning conditions. It may not be executable; it accesses no file."""
    return _relation(spark, Pinned(snapshot), ScanSpec(snapshot), {})


def _relation(
    spark: "SparkSession",
    source: Pinned | Newest,
    spec: ScanSpec,
    options: "Mapping[str, str]",
    *,
    log: "DeltaLog | None" = None,
    hidden: Hidden | None = None,
    deleted_rows: "DataFrame | None" = None,
) -> "DataFrame":
    """Spark's relation over the files, a filter that removes deleted rows, and a projection to the logical names."""
    gateway = Gateway.of(spark)
    mapping = column_names.with_extra(spec.snapshot.mapping, spec.extra.stored)
    index = FileIndex(gateway, spark, source, spec, hidden=hidden, log=log)
    full = gateway.schema(schemas.to_json(index.schema))
    by_id = column_names.BY_ID if mapping.mode == "id" else {}
    rows = gateway.frame(
        spark, gateway.relation(spark, index.in_jvm(), index.partition_schema, full, {**options, **by_id})
    )
    if hidden is not None or spec.row_index is not None:
        place = rows.metadataColumn("_metadata")["row_index"]
        if spec.row_index is not None:
            rows = rows.withColumn(spec.row_index, place)
            place = rows[spec.row_index]
        if hidden is not None:
            rows = deletion_vectors.live(rows, hidden, deleted_rows, place)
    if mapping.active:
        return column_names.renamed(rows, index.schema, read_schema(mapping.logical), spec.constant_names)
    if hidden is not None:
        return rows.drop(*(f.name for f in hidden.fields))
    return rows
