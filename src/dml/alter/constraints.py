"""ADD CONSTRAINT and DROP CONSTRAINT (PROTOCOL.md, "CHECK Constraints")."""

from dataclasses import replace

from pyspark.sql import SparkSession, functions

from ...core.deltalog import DeltaLog
from ...core.protocol import rules
from ...core.protocol.properties import CONSTRAINT_PREFIX
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ...engine.read import scan
from ...engine.sql import expressions
from ...errors import ConstraintViolationError, InvalidArgumentError
from ...settings.declarations import DROP_CONSTRAINT_IF_EXISTS
from ..command.command import PLAIN, Command, CommitOptions, command_scope

_RESERVED = "__CHAR_VARCHAR_STRING_LENGTH_CHECK__"


def add_constraint(
    spark: SparkSession, log: DeltaLog, name: str, expression: str, *, options: CommitOptions = PLAIN
) -> Committed | None:
    """Add a CHECK constraint: writes then fail for rows for which `expression` isn't TRUE.

    One job checks the existing rows. Returns None if the transaction of `options` was already committed. Raises
    ConstraintViolationError with the number of violating rows; InvalidArgumentError for a name that exists, and for an
    expression that isn't a condition on a single row. Nothing is committed then.
    """
    if not name or name == _RESERVED:
        raise InvalidArgumentError(
            f"{name!r} can't be the name of a constraint",
            condition="DELTA_INVALID_CONSTRAINT_NAME",
            parameters={"name": name},
        )
    with command_scope(spark, "ADD CONSTRAINT", log.table):
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        taken = _find(command, name)
        if taken is not None:
            raise InvalidArgumentError(
                f"{log.table} has the constraint {taken[0]} already, {taken[1]}: drop it first, or use another name",
                condition="DELTA_CONSTRAINT_ALREADY_EXISTS",
                parameters={"constraintName": taken[0], "oldConstraint": taken[1]},
            )
        expressions.check_constraint(spark, command.snapshot.schema, name, expression)
        command.txn.read_whole_table()
        if command.snapshot.num_files:
            kept = functions.expr(expression).eqNullSafe(functions.lit(True))
            every = scan.frame(spark, log, snapshot=command.snapshot, options=scan.EVERY_ROW)
            wrong = scan.without_pushdown(every).where(~kept).count()
            if wrong:
                raise ConstraintViolationError(
                    f"{log.table}: {wrong} rows of the table violate {expression}, so it can't be added as the "
                    f"constraint {name}: correct or delete these rows first",
                    condition="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
                    parameters={"numRows": wrong, "tableName": log.table, "checkConstraint": expression},
                )
        configuration = {**command.snapshot.metadata.configuration, f"{CONSTRAINT_PREFIX}{name.lower()}": expression}
        command.txn.set_metadata(replace(command.snapshot.metadata, configuration=configuration))
        return command.commit([], Operation("ADD CONSTRAINT", {"name": name, "expr": expression}))


def drop_constraint(
    spark: SparkSession, log: DeltaLog, name: str, *, if_exists: bool = False, options: CommitOptions = PLAIN
) -> Committed | None:
    """Drop a CHECK constraint; names are case-insensitive.

    Raises InvalidArgumentError if there is none, unless `if_exists`. As in Delta, dropping a missing constraint is a
    commit too. Returns None if the transaction of `options` was already committed.
    """
    with command_scope(spark, "DROP CONSTRAINT", log.table):
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        constraint = _find(command, name)
        if constraint is None and not if_exists and not DROP_CONSTRAINT_IF_EXISTS.of(log.conf):
            known = ", ".join(sorted(rules.constraints(command.snapshot.metadata))) or "none"
            raise InvalidArgumentError(
                f"{log.table} has no constraint {name!r}; it has {known}",
                condition="DELTA_CONSTRAINT_DOES_NOT_EXIST",
                parameters={
                    "constraintName": name,
                    "tableName": log.table,
                    "config": DROP_CONSTRAINT_IF_EXISTS.key,
                    "confValue": "true",
                },
            )
        parameters = {"name": name, "existed": "false"}
        metadata = command.snapshot.metadata
        if constraint is not None:
            dropped_key = f"{CONSTRAINT_PREFIX}{constraint[0]}".lower()
            kept = {key: value for key, value in metadata.configuration.items() if key.lower() != dropped_key}
            metadata = replace(metadata, configuration=kept)
            parameters = {"name": name, "expr": constraint[1], "existed": "true"}
        command.txn.set_metadata(metadata)
        return command.commit([], Operation("DROP CONSTRAINT", parameters))


def _find(command: Command, name: str) -> tuple[str, str] | None:
    for known, sql in rules.constraints(command.snapshot.metadata).items():
        if known.lower() == name.lower():
            return known, sql
    return None
