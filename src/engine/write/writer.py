"""Writes rows as data files of a table and creates their `add` actions.

Spark writes the files by the route that the table's storage allows (`routes`), and statistics come from their footers.
A frame that is certainly small is collected as Arrow and written by the driver. Readers see nothing before the commit.
On failure, the files are deleted.
"""

import random
import string
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.deltalog import DeltaLog
from ...core.protocol import column_mapping, iceberg_compat, partition_values, paths, properties
from ...core.protocol.actions import AddFile, Metadata, Protocol
from ...core.protocol.column_mapping import ColumnMapping
from ...core.protocol.schema import BINARY, STRING, StructField
from ...errors import ConstraintViolationError
from ...log_once import log_once
from ...settings.declarations import OPTIMIZE_WRITE, OPTIMIZE_WRITE_BIN_SIZE
from ..connect.server_errors import text_of
from ..jvm import interrupts, plans, speculation
from ..jvm.connection import settings
from ..jvm.connection.messages import chain
from ..jvm.connection.sessions import is_classic
from ..sql.column_names import columns_written, has_nested_ids, renamed, with_extra
from ..sql.conform import without_void
from ..sql.violations import translated
from . import cleanup, routes
from .routes import WriteRoute, driver
from .routes.spark_writer import needs_hex_names
from .write_spec import DataFile, WriteOptions, WriteSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WriteOptions", "Written", "write_files"]


@dataclass(frozen=True, slots=True)
class Written:
    """Data files of a table that no commit references yet. `bytes` is their total size, `rows` their row count."""

    adds: list[AddFile]
    rows: int
    bytes: int
    route: WriteRoute

    @property
    def names(self) -> list[str]:
        """The paths of the files relative to the table, not URL-encoded."""
        return [paths.decode(add.path) for add in self.adds]


def write_files(
    df: "DataFrame",
    log: DeltaLog,
    *,
    metadata: Metadata,
    protocol: Protocol,
    options: WriteOptions | None = None,
    data_change: bool = True,
    extra: Sequence[StructField] = (),
    below: str = "",
) -> Written:
    """Write the rows of `df` as data files of the table of `log`; no file for no rows.

    `df` has the columns of `metadata`'s schema, in its order, with its types and without void columns, as
    `conform.conform` returns it; then the columns `extra`, which are in the files but not in the table. `metadata` and
    `protocol` are those of the commit; `data_change` is copied to the `add` actions; the files are created below the
    directory `below`. Raises ConstraintViolationError for a row that violates a rule, InvalidArgumentError for columns
    that Parquet can't store, UnsupportedEnvironmentError if the storage can't be accessed, and the
    `StorageError` group. PROTOCOL.md, "Add File", "Per-file Statistics".
    """
    options = options or WriteOptions()
    ids = iceberg_compat.reserved_ids(metadata.configuration)
    extra = [replace(f, metadata={column_mapping.ID: ids[f.name]}) if f.name in ids else f for f in extra]
    mapping = with_extra(ColumnMapping.of(protocol, metadata), extra)
    if mapping.active:
        df = renamed(df, without_void(mapping.logical), columns_written(mapping))
    materialised = iceberg_compat.materialises(protocol, metadata)
    spec = WriteSpec.of(df, log.table, metadata, mapping, options, extra, materialised=materialised)
    below = below or _random_prefix(metadata)
    with translated(spec.table, mapping.logical):
        result = None
        try:
            result = _write(df, log, metadata, spec, below)
        except Exception as error:
            if any(partition_values.NO_TEXT in text_of(cause) for cause in chain(error)):
                raise ConstraintViolationError(_no_text(spec)) from error
            if not needs_hex_names(error):
                raise
        files, place = result or _write(df, log, metadata, replace(spec, hex_names=True), below)
    tags = iceberg_compat.tags(metadata.configuration)
    adds = [replace(file.add(spec.partition_columns, data_change), tags=tags) for file in files]
    return Written(adds, sum(file.rows for file in files), sum(file.size for file in files), place)


def _write(
    df: "DataFrame", log: DeltaLog, metadata: Metadata, spec: WriteSpec, below: str
) -> tuple[list[DataFile], WriteRoute]:
    """Write and publish the files; after an error, no file is left."""
    nested = bool(iceberg_compat.versions(metadata.configuration)) and has_nested_ids(spec.schema)
    place = routes.choose(df.sparkSession, log, below, nested_ids=nested)
    with _cleared(df.sparkSession, place, log.table) as tag:
        files = _write_small(df, spec, place) if spec.options.small_frames else None
        if files is None:
            files = place.write(_balanced(df, spec, metadata), spec)
            speculation.overtaken(df.sparkSession, tag)  # `publish` deletes the files of these attempts
        _check_nulls(files, spec.mapping, spec.table)
        place.publish([file.name for file in files], durable=spec.options.durable)
    return files, place


def _no_text(spec: WriteSpec) -> str:
    named = zip(spec.mapping.partition_columns, spec.partition_types, strict=True)
    names = " or ".join(name for name, data_type in named if data_type in (STRING, BINARY))
    return (
        f"{spec.table}: {partition_values.NO_TEXT}: one of the partition column {names}. Partition by another column, "
        "for example its hexadecimal form; nothing was written"
    )


def _random_prefix(metadata: Metadata) -> str:
    """A random directory for the files of one write, if the table spreads files over the storage's key space."""
    known = properties.TableProperties.of(metadata)
    if not known.randomize_file_prefixes:
        return ""
    return "".join(random.choices(string.ascii_letters + string.digits, k=known.random_prefix_length))


def _balanced(df: "DataFrame", spec: WriteSpec, metadata: Metadata) -> "DataFrame":
    """`df` shuffled into few large files if the write, else the session, else the table enables optimizeWrite."""
    spark, known = df.sparkSession, metadata.configuration
    wanted = spec.options.balanced
    if wanted is None and is_classic(spark):
        wanted = settings.of(spark, OPTIMIZE_WRITE)
    if wanted is None:
        wanted = properties.get(known, "autoOptimize.optimizeWrite")
    if wanted is None:
        wanted = properties.get(known, "autoOptimize")
    if not wanted:
        return df
    if not is_classic(spark):
        log_once(
            f"optimizeWrite {metadata.id}",
            "optimizeWrite has no effect on Spark Connect: repartition the rows before the write instead",
        )
        return df
    return plans.rebalanced(df, spec.partition_columns, settings.of(spark, OPTIMIZE_WRITE_BIN_SIZE))


@contextmanager
def _cleared(spark: "SparkSession", place: WriteRoute, table: str) -> Iterator[str]:
    """Delete unpublished files at the end; after an error, first wait until the Spark jobs of the write have ended.

    Yields the tag of these jobs.
    """
    handled = sys.exc_info()[1]
    with interrupts.tagged(spark, "tablelog-write") as tag:
        try:
            yield tag
        except BaseException as error:
            interrupted = interrupts.is_behind(error, handled)
            with cleanup.errors_logged(table):
                if interrupted:
                    interrupts.stop(spark, tag)
                else:
                    interrupts.settle(spark, tag)  # a running task would write to a directory that is deleted
                place.clear()
            if interrupted:
                raise KeyboardInterrupt from error
            raise
        place.clear()


def _write_small(df: "DataFrame", spec: WriteSpec, place: WriteRoute) -> list[DataFile] | None:
    """The files of a frame that is certainly small; `None` if it isn't, or if only Spark's writer supports it."""
    if not is_classic(df.sparkSession):
        return None
    if spec.codec not in driver.CODECS or spec.options.parquet_version or not driver.is_exact(spec.schema):
        return None
    bounded = plans.bounded(df)
    if bounded is None:
        return None
    batches = plans.collected(bounded)
    count = sum(len(batch) for batch in batches)
    if count > plans.MAX_ROWS or 0 < spec.max_records < count:
        return None
    return driver.write(
        batches,
        spec.schema,
        spec.data_schema,
        spec.partition_columns,
        place,
        [(leaf.column, leaf.field) for leaf in spec.leaves],
        codec=spec.codec,
        prefix=spec.prefix,
        spark_version=df.sparkSession.version,
    )


def _check_nulls(files: Sequence[DataFile], mapping: ColumnMapping, table: str) -> None:
    """Raise ConstraintViolationError for a null or an empty string in a partition column that is NOT NULL."""
    for i, name in enumerate(mapping.partition_columns):
        declared = mapping.logical.get(name, case_sensitive=True)
        if declared is not None and not declared.nullable and any(file.partition[i] is None for file in files):
            raise ConstraintViolationError(
                f"{table}: the partition column {name} is NOT NULL, and the data has a null or an empty text there "
                "(which is a null in a partition column); nothing was written",
                condition="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                parameters={"columnName": name},
            )
