"""Rows on their way into a table: new ones, which must meet its rules, and such as it has already."""

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
from .command import Command


def fitted(command: Command, frame: DataFrame, *, turn: Turn = ALONE, beside: Sequence[str] = ()) -> DataFrame:
    """`frame` with the columns of the table as it will be after the commit, in its order, `command.carried` behind
    them, and columns of the caller's own, `beside`, which are bigint.

    A generated column that the frame lacks is computed, an identity column numbered, any other one is its default value
    or null. So a frame of changed rows has the identity columns as they were, and leaves out the generated ones that
    the user didn't set (`generated`). Where several frames with new rows go into one commit, each needs a `turn` of its
    own; and none may be coalesced afterwards. The job that reads the result fails for a row that the table can't hold.
    Raises SchemaMismatchError and ConstraintViolationError.
    """
    rules = rules_of(command)
    present = {name.lower() for name in frame.columns}
    command.numbered.update(name for name in rules.identity if name.lower() not in present)
    return _conformed(command, frame, rules, turn, beside)


def rules_of(command: Command) -> Rules:
    """The rules of the table as it will be after the commit."""
    return Rules.of(command.txn.protocol, command.txn.metadata)


def generated(command: Command, given: Iterable[str] = ()) -> list[str]:
    """The generated columns but those that the user has set, `given`."""
    known = {name.lower() for name in given}
    return [name for name in rules_of(command).generated if name.lower() not in known]


def check_inserted(command: Command, given: Iterable[str]) -> None:
    """InvalidArgumentError where new rows bring values of an identity column that is GENERATED ALWAYS."""
    identity = {name.lower(): (name, found) for name, found in rules_of(command).identity.items()}
    for name in given:
        known = identity.get(name.lower())
        if known is not None and not known[1].explicit:
            raise InvalidArgumentError(
                f"{command.log.table}: the column {known[0]} is GENERATED ALWAYS AS IDENTITY, and takes no values from "
                "outside: leave it out",
                condition="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                parameters={"colName": known[0]},
            )


def check_updated(command: Command, given: Iterable[str]) -> None:
    """InvalidArgumentError where a command sets an identity column of rows that are there."""
    identity = {name.lower(): name for name in rules_of(command).identity}
    for name in given:
        if (known := identity.get(name.lower())) is not None:
            raise InvalidArgumentError(
                f"{command.log.table}: the identity column {known} can't be updated",
                condition="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                parameters={"colName": known},
            )


def write_new(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write rows that are new or changed, from a frame that `fitted` made."""
    return _write(command, frame, options, data_change)


def write_kept(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None = None, *, data_change: bool = True
) -> writer.Written:
    """Write rows that the table holds as they are, from a frame of `Command.rows`: they were checked when they came."""
    if command.txn.metadata.schema_string != command.snapshot.metadata.schema_string:  # the same commit adds columns
        frame = _conformed(command, frame, NO_RULES)
    return _write(command, without_void(command, frame), options, data_change)


def without_void(command: Command, frame: DataFrame) -> DataFrame:
    """Rows of the table as files hold them: without void columns and fields."""
    if not has_void(table_schema(frame.schema)):
        return frame
    return _conformed(command, frame, NO_RULES)


def _conformed(
    command: Command, frame: DataFrame, rules: Rules, turn: Turn = ALONE, beside: Sequence[str] = ()
) -> DataFrame:
    columns = schema.parse_schema(command.txn.metadata.schema_string)
    carried = [name for name in command.carried if name in frame.columns]  # new rows alone have none
    return conform.conform(
        frame,
        columns,
        table=command.log.table,
        rules=rules,
        carried=[*carried, *beside],
        partition_columns=_told_of(command, rules),
        turn=turn,
    )


def _told_of(command: Command, rules: Rules) -> Sequence[str]:
    """The partition columns, where what they hold is looked at before the log has it: by rules, or in the files.

    Elsewhere the frame stays as it is, for Spark would sort by a column that is made anew.
    """
    protocol, metadata = command.txn.protocol, command.txn.metadata
    seen = rules.checks or rules.generated or iceberg_compat.materialises(protocol, metadata)
    return metadata.partition_columns if seen else ()


def _write(
    command: Command, frame: DataFrame, options: writer.WriteOptions | None, data_change: bool
) -> writer.Written:
    txn = command.txn
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
