"""The change data of commands: the rows that one deletes, updates or inserts, in files beside those of the table.

A reader of the change data feed goes by a version's change files alone where it has any (PROTOCOL.md, "Change Data
Files", "Add CDC File"). A command that only adds whole files, or takes whole files out, thus writes none.
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
    """Whether the table as it will be after the commit records its changes (`delta.enableChangeDataFeed`)."""
    enabled = TableProperties.of(command.txn.metadata).enable_change_data_feed
    return enabled and "changeDataFeed" in features.supported(command.txn.protocol)


def write(command: Command, frame: DataFrame) -> list[AddCDCFile]:
    """Write changed rows and give the actions for the commit; none for no rows.

    `frame` has the table's columns, found by name, and `_change_type`: insert, delete, update_preimage or
    update_postimage. A column of the table that it lacks is null, one that the table lacks isn't written.
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
    """Changed rows with the columns that their files have."""
    columns = plain(schema.parse_schema(command.txn.metadata.schema_string))
    return frame.to(spark_type(schema.StructType((*columns.fields, _FIELD))))


def write_inserted(
    command: Command, frame: DataFrame, options: writer.WriteOptions
) -> tuple[writer.Written, list[AddCDCFile]]:
    """Write new rows, from a frame that `rows.fitted` made, for a version that has change files: to the table and, as
    the very same files, to its change data, which the protocol allows where a file holds no other rows.
    """
    txn = command.txn
    told = frame.withColumn(CHANGE_TYPE, functions.lit(INSERT))
    written = command.keep(
        writer.write_files(
            told, command.log, metadata=txn.metadata, protocol=txn.protocol, options=options, extra=(_FIELD,)
        )
    )
    return written, [AddCDCFile(add.path, add.partition_values, add.size) for add in written.adds]
