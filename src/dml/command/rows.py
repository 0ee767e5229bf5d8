"""Writes rows to a table: new rows, which are checked against the table's rules, and unchanged rows, which are not."""

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame

from ...core.protocol import iceberg_compat, schema
from ...core.protocol.rules import NO_RULES, Rules
from ...engine.jvm.types import has_void, table_schema
from ...engine.read import row_ids
from ...engine.sql import conform
from ...engine.sql.fill import ALONE, Turn
from ...engine.write import writer
from ...errors import InvalidArgumentError
from ...progress import stage
from .command import Command


def fitted(command: Command, frame: DataFrame, *, turn: Turn = ALONE, extra_columns: Sequence[str] = ()) -> DataFrame:
    """Align `frame` with the schema after the commit, followed by the columns `command.carried` and `extra_columns`.

    `extra_columns` are bigint columns of the caller. Missing generated columns are computed, missing identity columns
    are generated, other missing columns get their default value or null. For changed rows, the frame has the existing
    values of identity columns and lacks the generated columns that the user didn't set (`generated`). If one commit
    has several frames with new rows, each needs its own `turn`, and none may be coalesced afterwards. The job that
    reads the result fails for a row that violates a rule of the table.
    Raises SchemaMismatchError and ConstraintViolationError.
    """
    rules = rules_of(command)
    present = {name.lower() for name in frame.columns}
    command.numbered.update(name for name in rules.identity if name.lower() not in present)
    return _conformed(command, frame, rules, turn, extra_columns)


def rules_of(command: Command) -> Rules:
    """The rules of the table after the commit: constraints, generated, identity and default columns."""
    return Rules.of(command.txn.protocol, command.txn.metadata)


def generated(command: Command, columns: Iterable[str] = ()) -> list[str]:
    """The generated columns, without those that the user has set (`columns`)."""
    assigned = {name.lower() for name in columns}
    return [name for name in rules_of(command).generated if name.lower() not in assigned]


def check_inserted(command: Command, columns: Iterable[str]) -> None:
    """Raise InvalidArgumentError if new rows have values for an identity column that is GENERATED ALWAYS."""
    identity = {name.lower(): (name, column) for name, column in rules_of(command).identity.items()}
    for name in columns:
        identity_column = identity.get(name.lower())
        if identity_column is not None and not identity_column[1].explicit:
            raise InvalidArgumentError(
                f"{command.log.table}: the column {identity_column[0]} is GENERATED ALWAYS AS IDENTITY, so values for "
                "it can't be inserted: leave the column out",
                condition="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                parameters={"colName": identity_column[0]},
            )


def check_updated(command: Command, columns: Iterable[str]) -> None:
    """Raise InvalidArgumentError if a command updates an identity column of existing rows."""
    identity = {name.lower(): name for name in rules_of(command).identity}
    for name in columns:
        if (known := identity.get(name.lower())) is not None:
            raise InvalidArgumentError(
                f"{command.log.table}: the identity column {known} can't be updated",
                condition="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                parameters={"colName": known},
            )


def write_new(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write new or changed rows; `frame` is a result of `fitted`."""
    return _write(command, frame, options, data_change)


def write_kept(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write unchanged rows of the table; `frame` is a result of `Command.rows`. Rules are not checked again."""
    if command.txn.metadata.schema_string != command.snapshot.metadata.schema_string:  # the same commit adds columns
        frame = _conformed(command, frame, NO_RULES)
    return _write(command, without_void(command, frame), options, data_change)


def without_void(command: Command, frame: DataFrame) -> DataFrame:
    """The frame as data files store it: without void columns and fields."""
    if not has_void(table_schema(frame.schema)):
        return frame
    return _conformed(command, frame, NO_RULES)


def _conformed(
    command: Command, frame: DataFrame, rules: Rules, turn: Turn = ALONE, extra_columns: Sequence[str] = ()
) -> DataFrame:
    columns = schema.parse_schema(command.txn.metadata.schema_string)
    carried = [name for name in command.carried if name in frame.columns]  # missing if all rows are new
    return conform.conform(
        frame,
        columns,
        table=command.log.table,
        rules=rules,
        carried=[*carried, *extra_columns],
        partition_columns=_recorded_partition_columns(command, rules),
        turn=turn,
    )


def _recorded_partition_columns(command: Command, rules: Rules) -> Sequence[str]:
    """The partition columns, if their values are read before they are in the log: by rules, or from the files.

    Otherwise none: Spark would sort the rows by a recomputed partition column.
    """
    protocol, metadata = command.txn.protocol, command.txn.metadata
    seen = rules.checks or rules.generated or iceberg_compat.materialises(protocol, metadata)
    return metadata.partition_columns if seen else ()


def _write(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None, data_change: bool
) -> writer.Written:
    txn = command.txn
    stage("writing data files")
    carried = row_ids.fields(tuple(name for name in command.carried if name in frame.columns))
    return command.keep(
        writer.write_files(
            frame,
            command.log,
            metadata=txn.metadata,
            protocol=txn.protocol,
            options=options,
            data_change=data_change,
            extra=carried,
        )
    )
