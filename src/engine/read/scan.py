"""Creates a DataFrame over a table, or over some of its files.

See `routes` for the ways in which Spark can read the files.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...errors import InvalidArgumentError
from ..jvm import catalyst, plans
from ..jvm.connection.frames import analyzed
from ..jvm.connection.gateway import Gateway
from ..jvm.connection.sessions import is_classic
from ..jvm.types import frame_schema, read_schema, spark_type
from ..sql import column_names
from ..storage import hadoop_settings
from . import routes
from .conditions import (
    Condition,
    candidates,
    exact_partitions,
    only_partitions,
    partition_mask,
    planned,
    printed_conjuncts,
    split_condition,
)
from .extra_columns import NO_EXTRA_COLUMNS, ExtraColumns
from .routes import arrow, listed, manifest, native
from .scan_spec import ScanSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

__all__ = [
    "Alias",
    "Condition",
    "candidates",
    "columns_of",
    "exact_partitions",
    "for_conditions",
    "frame",
    "only_partitions",
    "partition_mask",
    "planned",
    "printed_conjuncts",
    "refresh_cached",
    "split_condition",
    "without_pushdown",
]

Alias: TypeAlias = str | Sequence[str]
"""The name of a table in expressions: an alias, or the parts of its full name, of which the last ones are enough."""


EVERY_ROW: "Mapping[str, str]" = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Options of a read that raises an error for a damaged or missing file, also in a session whose settings let Spark skip
it: a command that writes the rows again would lose those of the file."""


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
    spec = ScanSpec(
        snapshot if snapshot is not None else log.snapshot(),
        pinned=snapshot is not None,
        files=files,
        extra=extra,
        file_number=file_number,
        row_index=row_index,
        options=options or {},
    )
    columns, table = spec.snapshot.schema, spec.snapshot.table
    if not len(read_schema(columns)):
        raise InvalidArgumentError(
            f"the table {table} has no columns yet: write to it before reading it",
            condition="DELTA_READ_TABLE_WITHOUT_COLUMNS",
            parameters={"tableName": table},
        )
    for name in spec.added_names:
        if columns.get(name) is not None:
            raise InvalidArgumentError(f"the table {table} already has a column {name}")
    route = routes.choose(spark, table, log.conf)
    if route == "manifest" and spec.snapshot.mapping.mode == "id":
        route = "arrow"
    rows = _FRAME_OF[route](spark, log, spec)
    return column_names.with_void(rows, frame_schema(columns), spec.added_names)


_FRAME_OF = {"native": native.frame, "manifest": manifest.frame, "listed": listed.frame, "arrow": arrow.frame}


def without_pushdown(rows: "DataFrame") -> "DataFrame":
    """The same rows, whose later filters Spark evaluates itself and doesn't push down to Parquet.

    Pushed filters may skip rows that match: Parquet's dictionary filter tells -0.0 from 0.0, and a footer of another
    writer may leave NaN out. A command that writes the other rows again would lose these. Spark pushes no filter
    through one that isn't deterministic; its optimizer doesn't know that this one is true for each row.
    """
    from pyspark.sql import functions

    return rows.where(functions.monotonically_increasing_id() >= 0)


def columns_of(snapshot: "Snapshot") -> frozenset[str]:
    """The logical and physical names of a table's columns."""
    return column_names.all_names(snapshot.mapping)


def for_conditions(spark: "SparkSession", snapshot: "Snapshot", alias: Alias | None = None) -> "DataFrame":
    """A frame over a version to resolve and plan conditions on (`split_condition`). It may not be executable.

    `alias` is the table's name in the conditions. The frame always uses the native route, where Spark plans conditions
    completely, and accesses no file. On Spark Connect, it is an empty frame.
    """
    if not is_classic(spark):
        empty = spark.createDataFrame([], spark_type(frame_schema(snapshot.schema)))
        return empty.alias(alias) if isinstance(alias, str) else empty
    rows = column_names.with_void(native.for_conditions(spark, snapshot), frame_schema(snapshot.schema))
    if not alias:
        return rows
    if isinstance(alias, str):
        return rows.alias(alias)
    return plans.frame_of(spark, catalyst.aliased(Gateway.of(spark), alias, analyzed(rows)))


def refresh_cached(spark: "SparkSession", log: "DeltaLog") -> None:
    """Make Spark reload the table's cached data, which the native route reads."""
    if is_classic(spark) and hadoop_settings.reaching(spark, log.table, log.conf) is not None:
        spark.catalog.refreshByPath(log.table)
