"""Selects the files that an overwrite removes: all files, the written partitions, or the rows of replaceWhere."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions

from ...core.protocol import partition_values, schema
from ...core.protocol.actions import AddFile
from ...core.skipping import predicates
from ...core.skipping.predicates import Predicate
from ...core.table.snapshot import Snapshot
from ...engine.jvm.connection import settings
from ...engine.read import scan
from ...engine.sql import checks, conform
from ...engine.sql.char_columns import with_lengths
from ...errors import InvalidArgumentError
from ...settings.declarations import REPLACE_WHERE_CHECK, REPLACE_WHERE_DATA_COLUMNS
from ..command.command import Command
from ..command.removal import Removal
from ..command.whole_files import remove_partitions


def condition(command: Command, text: str, column: Column | None = None) -> scan.Condition:
    """The replaceWhere condition, resolved against the current version of the table; `column` is what `text` prints."""
    frame = scan.for_conditions(command.spark, command.snapshot)
    split = scan.split_condition(frame, text if column is None else column, command.snapshot.mapping)
    if split.data is not None and not REPLACE_WHERE_DATA_COLUMNS.of(command.log.conf):
        raise InvalidArgumentError(
            f"replaceWhere '{text}' names columns that {command.log.table} is not partitioned by, "
            f"and {REPLACE_WHERE_DATA_COLUMNS.key} is false.",
            condition="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            parameters={"columnName": text, "columnList": ", ".join(command.snapshot.partition_columns)},
        )
    return split


def partitions(command: Command, adds: Sequence[AddFile], *, data_change: bool = True) -> Removal:
    """Dynamic partition overwrite: remove the files of all partitions in `adds`; null partition values count too."""
    if not adds:
        return Removal()
    predicate = partition_predicate(command.snapshot, adds, settings.time_zone(command.spark))
    return remove_partitions(command, predicate, data_change=data_change)


def partition_predicate(snapshot: Snapshot, adds: Sequence[AddFile], time_zone: str) -> Predicate:
    """The predicate "the row is in a partition of one of these files"; values are compared typed, not as text."""
    names, physical = snapshot.partition_columns, snapshot.mapping.physical_partition_columns
    tuples = list(dict.fromkeys(tuple(add.partition_values[name] for name in physical) for add in adds))
    columns = []
    for i, name in enumerate(names):
        field = snapshot.schema.get(name)
        assert field is not None
        assert isinstance(field.data_type, schema.PrimitiveType)
        texts = pa.array([values[i] for values in tuples], pa.string())
        columns.append(partition_values.typed(texts, field.data_type, time_zone=time_zone))
    if len(names) == 1 and columns[0].null_count == 0:
        return predicates.In((names[0],), tuple(columns[0]))
    return predicates.Or(
        tuple(
            predicates.all_of(
                predicates.Compare("<=>", (name,), column[row]) if column[row].is_valid else predicates.IsNull((name,))
                for name, column in zip(names, columns, strict=True)
            )
            for row in range(len(tuples))
        )
    )


def checked(command: Command, frame: DataFrame, condition: str, column: Column | None = None) -> DataFrame:
    """The frame with a check that fails the job at a row for which the condition isn't TRUE, unless it is disabled."""
    if not REPLACE_WHERE_CHECK.of(command.log.conf):
        return frame
    metadata = command.txn.metadata
    columns = schema.parse_schema(metadata.schema_string)
    frame = conform.without_empty(frame, columns, metadata.partition_columns)
    message = (
        f"the data does not conform to replaceWhere '{condition}': the condition is not TRUE for a row of the data; "
        "nothing was written"
    )
    mismatch = "DELTA_REPLACE_WHERE_MISMATCH", {"replaceWhere": condition, "message": message}
    test = functions.expr(condition) if column is None else column
    return with_lengths(frame, columns, lambda frame: checks.checked(frame, test, message, broken=mismatch))
