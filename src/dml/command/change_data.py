"""Change data files of commands: the rows that a command deletes, updates or inserts.

If a version has change data files, a reader of the change data feed reads only those (PROTOCOL.md, "Change Data
Files", "Add CDC File"). A command that only adds or removes whole files writes no change data files.
"""

from pyspark.sql import DataFrame, functions

from ...core.protocol import features, schema
from ...core.protocol.actions import AddCDCFile
from ...core.protocol.change_data import CHANGE_TYPE, DIRECTORY, INSERT
from ...core.protocol.properties import TableProperties
from ...engine.jvm.types import spark_type
from ...engine.sql.column_names import plain
from ...engine.write import writer
from .command import Command

__all__ = ["CHANGE_TYPE", "shaped", "wanted", "write", "write_inserted"]

_FIELD = schema.StructField(CHANGE_TYPE, schema.STRING)


def wanted(command: Command) -> bool:
    """Whether the change data feed is enabled after the commit (`delta.enableChangeDataFeed`)."""
    enabled = TableProperties.of(command.txn.metadata).enable_change_data_feed
    return enabled and "changeDataFeed" in features.supported(command.txn.protocol)


def write(command: Command, frame: DataFrame) -> list[AddCDCFile]:
    """Write change data files and return their actions; an empty list if there are no rows.

    `frame` has the table's columns, matched by name, and `_change_type`: insert, delete, update_preimage or
    update_postimage. Missing columns are written as null; columns that the table doesn't have are dropped.
    """
    txn = command.txn
    written = command.keep(
        writer.write_files(
            shaped(command, frame),
            command.log,
            metadata=txn.metadata,
            protocol=txn.protocol,
            extra=(_FIELD,),
            below=DIRECTORY,
        )
    )
    return [AddCDCFile(add.path, add.partition_values, add.size) for add in written.adds]


def shaped(command: Command, frame: DataFrame) -> DataFrame:
    """`frame` with exactly the columns of a change data file, in their order."""
    columns = plain(schema.parse_schema(command.txn.metadata.schema_string))
    return frame.to(spark_type(schema.StructType((*columns.fields, _FIELD))))


def write_inserted(
    command: Command, frame: DataFrame, options: writer.WriteOptions
) -> tuple[writer.Written, list[AddCDCFile]]:
    """Write new rows, prepared by `rows.fitted`, both as data files and as change data.

    The same files serve both purposes. The protocol allows this if a file holds only inserted rows.
    """
    txn = command.txn
    inserted = frame.withColumn(CHANGE_TYPE, functions.lit(INSERT))
    written = command.keep(
        writer.write_files(
            inserted, command.log, metadata=txn.metadata, protocol=txn.protocol, options=options, extra=(_FIELD,)
        )
    )
    return written, [AddCDCFile(add.path, add.partition_values, add.size) for add in written.adds]
