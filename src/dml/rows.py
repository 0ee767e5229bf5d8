"""Rows on their way into a table: new ones, which must meet its rules, and such as it has already."""

from pyspark.sql import DataFrame

from ..core.protocol import schema
from ..engine import conform, writer
from .job import Work


def fitted(work: Work, frame: DataFrame) -> DataFrame:
    """`frame` with the columns of the table as it will be after the commit, in its order and types.

    The job that reads it fails for a row that the table can't hold. Raises SchemaMismatchError and
    ConstraintViolationError.
    """
    return conform.conform(frame, schema.parse_schema(work.txn.metadata.schema_string), table=work.log.table)


def write_new(
    work: Work, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write rows that are new or changed, from a frame that `fitted` made."""
    return _write(work, frame, options, data_change)


def write_kept(
    work: Work, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write rows that the table holds as they are, from a frame of `Work.rows`: they were checked when they came."""
    if work.txn.metadata.schema_string != work.snapshot.metadata.schema_string:  # the same commit adds columns
        frame = fitted(work, frame)
    return _write(work, frame, options, data_change)


def _write(work: Work, frame: DataFrame, options: writer.WriteOptions | None, data_change: bool) -> writer.Written:
    txn = work.txn
    return work.keep(
        writer.write_files(
            frame, work.log, metadata=txn.metadata, protocol=txn.protocol, options=options, data_change=data_change
        )
    )
