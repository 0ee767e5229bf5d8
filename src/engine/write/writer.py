"""Rows become data files of a table, with the `add` actions that a commit will name them by.

Spark writes them, in the way that the table's storage allows (`placement`), and their statistics come from their
footers. A frame that surely is small is collected as Arrow, and the driver writes it. Nothing is visible to a reader
before the commit. After a failure nothing is left.
"""

import logging
import random
import string
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.deltalog import DeltaLog
from ...core.protocol import iceberg_compat, partition_values, paths, properties
from ...core.protocol.actions import AddFile, Metadata, Protocol
from ...core.protocol.column_mapping import ColumnMapping
from ...core.protocol.schema import BINARY, STRING, StructField
from ...errors import ConstraintViolationError
from ...settings.honoured import OPTIMIZE_WRITE, OPTIMIZE_WRITE_BIN_SIZE
from ..jvm import interrupts, plans, settings
from ..jvm.messages import chain
from ..sql.column_names import columns_written, renamed, with_extra
from ..sql.conform import without_void
from ..sql.violations import translated
from . import routes as placement
from .routes import Placement
from .routes import driver as small_frame
from .routes.job import DataFile, Job, WriteOptions
from .routes.spark_writer import needs_hex_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

__all__ = ["WriteOptions", "Written", "write_files"]


@dataclass(frozen=True, slots=True)
class Written:
    """Files that lie in a table and that no commit names yet. `bytes` is their size, `rows` what they hold."""

    adds: list[AddFile]
    rows: int
    bytes: int
    placement: Placement

    @property
    def names(self) -> list[str]:
        """What the files are called in the table, not encoded."""
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

    `df` has the columns of `metadata`'s schema, in its order, with its types and without its void columns, as
    `conform.conform` gives it, and behind them `extra`, which files hold and the table hasn't. `metadata` and
    `protocol` are those of the commit; `data_change` goes into the `add` actions; the files come to lie below the
    directory `below`. Raises ConstraintViolationError for a row that the table can't hold, InvalidArgumentError for
    columns that no file can hold, UnsupportedEnvironmentError on Spark Connect or where nothing reaches the storage,
    and the `StorageError` group. PROTOCOL.md, "Add File", "Per-file Statistics".
    """
    options = options or WriteOptions()
    mapping = with_extra(ColumnMapping.of(protocol, metadata), extra)
    if mapping.active:
        df = renamed(df, without_void(mapping.logical), columns_written(mapping))
    materialised = iceberg_compat.materialises(protocol, metadata)
    job = Job.of(df, log.table, metadata, mapping, options, extra, materialised=materialised)
    below = below or _random_prefix(metadata)
    with translated(job.table, mapping.logical):
        done = None
        try:
            done = _write(df, log, metadata, job, below)
        except Exception as error:
            if any(partition_values.NO_TEXT in str(one) for one in chain(error)):
                raise ConstraintViolationError(_no_text(job)) from error
            if not needs_hex_names(error):
                raise
        files, place = done or _write(df, log, metadata, replace(job, hex_names=True), below)
    adds = [one.add(job.partition_columns, data_change) for one in files]
    return Written(adds, sum(one.rows for one in files), sum(one.size for one in files), place)


def _write(
    df: "DataFrame", log: DeltaLog, metadata: Metadata, job: Job, below: str
) -> tuple[list[DataFile], Placement]:
    """The files, which have taken their places in the table; after an error none is left."""
    place = placement.choose(df.sparkSession, log, below)
    with _cleared(df.sparkSession, place):
        files = _write_small(df, job, place) if job.options.small_frames else None
        if files is None:
            files = place.write(_balanced(df, job, metadata), job)
        _check_nulls(files, job.mapping, job.table)
        place.publish([one.name for one in files], durable=job.options.durable)
    return files, place


def _no_text(job: Job) -> str:
    named = zip(job.mapping.partition_columns, job.partition_types, strict=True)
    names = " or ".join(name for name, data_type in named if data_type in (STRING, BINARY))
    return (
        f"{job.table}: {partition_values.NO_TEXT}: one of the partition column {names}. Partition by another column, "
        "for example its hexadecimal form; nothing was written"
    )


def _random_prefix(metadata: Metadata) -> str:
    """A directory for the files of one write, where the table wants them spread over the storage's key space."""
    known = properties.TableProperties.of(metadata)
    if not known.randomize_file_prefixes:
        return ""
    return "".join(random.choices(string.ascii_letters + string.digits, k=known.random_prefix_length))


def _balanced(df: "DataFrame", job: Job, metadata: Metadata) -> "DataFrame":
    """`df` shuffled where the write, else the session, else the table wants few and large files (optimizeWrite)."""
    spark, known = df.sparkSession, metadata.configuration
    wanted = job.options.balanced
    if wanted is None:
        wanted = settings.of(spark, OPTIMIZE_WRITE)
    if wanted is None:
        wanted = properties.get(known, "autoOptimize.optimizeWrite")
    if wanted is None:
        wanted = properties.get(known, "autoOptimize")
    if not wanted:
        return df
    return plans.rebalanced(df, job.partition_columns, settings.of(spark, OPTIMIZE_WRITE_BIN_SIZE))


@contextmanager
def _cleared(spark: "SparkSession", place: Placement) -> Iterator[None]:
    """In the end nothing is left but what was published; after an interrupt the Spark jobs inside have ended before."""
    handled = sys.exc_info()[1]
    with interrupts.tagged(spark, "tablelog-write") as tag:
        try:
            yield
        except BaseException as error:
            interrupted = interrupts.is_behind(error, handled)
            try:  # what went wrong before is what the user needs to know
                if interrupted:
                    interrupts.stop(spark, tag)
                else:
                    interrupts.settle(spark, tag)  # a task that runs on would write to a place that is cleared
                place.clear()
            except Exception as left:
                logger.warning("a write's own files are left for VACUUM to remove: %s", left)
            if interrupted:
                raise KeyboardInterrupt from error
            raise
        place.clear()


def _write_small(df: "DataFrame", job: Job, place: Placement) -> list[DataFile] | None:
    """The files of a frame that surely is small; `None` when it isn't, or when Spark's writer is needed for it."""
    if job.codec not in small_frame.CODECS or job.options.parquet_version or not small_frame.is_exact(job.schema):
        return None
    bounded = plans.bounded(df)
    if bounded is None:
        return None
    batches = plans.collected(bounded)
    count = sum(len(batch) for batch in batches)
    if count > plans.MAX_ROWS or 0 < job.max_records < count:
        return None
    return small_frame.write(
        batches,
        job.schema,
        job.data_schema,
        job.partition_columns,
        place,
        [(leaf.column, leaf.field) for leaf in job.leaves],
        codec=job.codec,
        prefix=job.prefix,
        spark_version=df.sparkSession.version,
    )


def _check_nulls(files: Sequence[DataFile], mapping: ColumnMapping, table: str) -> None:
    """ConstraintViolationError for a null, which an empty text has become, in a partition column that is NOT NULL."""
    for i, name in enumerate(mapping.partition_columns):
        declared = mapping.logical.get(name, case_sensitive=True)
        if declared is not None and not declared.nullable and any(file.partition[i] is None for file in files):
            raise ConstraintViolationError(
                f"{table}: the partition column {name} is NOT NULL, and the data has a null or an empty text there "
                "(which is a null in a partition column); nothing was written",
                condition="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                parameters={"columnName": name},
            )
