"""ALTER TABLE ADD, RENAME, DROP and ALTER COLUMN: changes only the log, not the data files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession, functions

from ...core.deltalog import DeltaLog
from ...core.protocol import schema as schemas
from ...core.protocol.actions import Metadata
from ...core.protocol.rules import MARK, Rules
from ...core.protocol.schema import ArrayType, Column, MapType, StructField, StructType
from ...core.schema_evolution import changes
from ...core.schema_evolution.changes import ColumnChange, NewColumn
from ...core.schema_evolution.columns import resolved, type_at
from ...core.schema_evolution.replacing import columns_replaced
from ...core.table import clustering
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ...engine.read import scan
from ...engine.sql.column_references import check_default, check_unused, concerns
from ...errors import InvalidArgumentError
from ..command.command import PLAIN, Command, CommitOptions, command_scope, reports_table


@reports_table
def add_columns(
    spark: SparkSession, log: DeltaLog, columns: Sequence[NewColumn], *, options: CommitOptions = PLAIN
) -> Committed:
    """ALTER TABLE ADD COLUMNS: add columns one after the other at their positions; existing rows have nulls in them.

    Raises InvalidArgumentError, SchemaMismatchError and MetadataChangedException.
    """
    if not columns:
        raise InvalidArgumentError(f"There is no column to add to {log.table}.")
    command = Command.on(spark, log, options)
    logged = [
        {"column": _logged_column(new.name, new.field)}
        | ({} if new.position is None else {"position": str(new.position)})
        for new in columns
    ]
    return _commit(command, changes.added(command.txn.metadata, columns), Operation("ADD COLUMNS", {"columns": logged}))


@reports_table
def rename_column(
    spark: SparkSession, log: DeltaLog, column: Column, new_name: str, *, options: CommitOptions = PLAIN
) -> Committed:
    """ALTER TABLE RENAME COLUMN; requires column mapping. Raises as `add_columns` does."""
    command = Command.on(spark, log, options)
    changed = changes.renamed(command.txn.metadata, column, new_name)
    _check_unused(command, column, "renamed")
    parameters = {"oldColumnPath": _dotted(column), "newColumnPath": _dotted((*column[:-1], new_name))}
    return _commit(command, changed, Operation("RENAME COLUMN", parameters))


@reports_table
def drop_columns(
    spark: SparkSession, log: DeltaLog, columns: Sequence[Column], *, options: CommitOptions = PLAIN
) -> Committed:
    """ALTER TABLE DROP COLUMNS; requires column mapping. The data stays in the files, but is no longer read.

    Raises as `add_columns` does.
    """
    if not columns:
        raise InvalidArgumentError(f"There is no column to drop from {log.table}.")
    command = Command.on(spark, log, options)
    changed = command.txn.metadata
    clustered = clustering.columns_of(command.snapshot.domain_metadata) or ()
    for column in columns:
        changed = changes.dropped(changed, column)
        exact, _ = resolved(command.snapshot.schema, column)
        if any(concerns(command.snapshot.mapping.to_physical(exact), frozenset({path})) for path in clustered):
            raise InvalidArgumentError(
                f"The column {schemas.dotted(exact)} can't be dropped: {log.table} is clustered by it.",
                condition="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
                parameters={"columnList": schemas.dotted(exact)},
            )
        _check_unused(command, column, "dropped")
    return _commit(command, changed, Operation("DROP COLUMNS", {"columns": [_dotted(column) for column in columns]}))


@reports_table
def alter_column(
    spark: SparkSession, log: DeltaLog, change: ColumnChange, *, options: CommitOptions = PLAIN
) -> Committed:
    """ALTER TABLE ALTER COLUMN: change type, nullability, comment, default value or position.

    Raises as `add_columns` does, and UnsupportedFeatureError if the table lacks the feature that the change requires.
    """
    return alter_columns(spark, log, [change], options=options)


@reports_table
def alter_columns(
    spark: SparkSession, log: DeltaLog, column_changes: Sequence[ColumnChange], *, options: CommitOptions = PLAIN
) -> Committed:
    """`alter_column` for several columns, by one commit."""
    command = Command.on(spark, log, options)
    changed, logged = command.txn.metadata, []
    for change in column_changes:
        previous = changed
        changed = changes.altered(previous, command.txn.protocol, change)
        logged.append(_altered(command, change, previous, changed))
    if len(logged) == 1:
        return _commit(command, changed, Operation("CHANGE COLUMN", logged[0]))
    return _commit(command, changed, Operation("CHANGE COLUMNS", {"columns": [entry["column"] for entry in logged]}))


def _altered(command: Command, change: ColumnChange, old: Metadata, new: Metadata) -> dict[str, Any]:
    """Check one change of a column, and return its parameters for `commitInfo`."""
    before, after = schemas.parse_schema(old.schema_string), schemas.parse_schema(new.schema_string)
    exact, field = resolved(after, change.column)
    was = resolved(before, change.column)[1]
    collated = field is not None and was is not None and schemas.has_other_collations(was, field)
    if collated or type_at(before, exact) != type_at(after, exact):
        _check_unused(command, change.column, "given another type")
    logged_field = _inside(after, exact) if field is None else _before_its_record(field, was)
    if change.default:
        check_default(command.spark, logged_field, change.default)
    parameters: dict[str, Any] = {"column": _logged_column(exact, logged_field)}
    if change.position is not None:
        parameters["position"] = str(change.position)
    return parameters


@reports_table
def replace_columns(
    spark: SparkSession, log: DeltaLog, columns: StructType, *, options: CommitOptions = PLAIN
) -> Committed:
    """ALTER TABLE REPLACE COLUMNS: reorder columns, add columns, and change comments and types; drops no column.

    Raises as `add_columns` does.
    """
    command = Command.on(spark, log, options)
    old = command.txn.metadata
    changed = columns_replaced(old, command.txn.protocol, columns)
    before, after = schemas.parse_schema(old.schema_string), schemas.parse_schema(changed.schema_string)
    for field in before:
        known = after.get(field.name)
        if known is not None and (known.data_type != field.data_type or schemas.has_other_collations(field, known)):
            _check_unused(command, (field.name,), "given another type")
    logged = [_logged_column((f.name,), f) for f in columns]
    return _commit(command, changed, Operation("REPLACE COLUMNS", {"columns": logged}))


def sync_identity(spark: SparkSession, log: DeltaLog, column: Column, *, options: CommitOptions = PLAIN) -> Committed:
    """SYNC IDENTITY: raise the high-water mark of an identity column to the last value in the table.

    One job reads the column. As in Delta, there is a commit also if the mark doesn't change. Raises
    InvalidArgumentError for another column, and MetadataChangedException.
    """
    with command_scope(spark, "CHANGE COLUMN", log.table):
        command = Command.on(spark, log, options)
        exact, struct_field = resolved(command.snapshot.schema, column)
        identity = Rules.of(command.txn.protocol, command.txn.metadata).identity.get(exact[0])
        if identity is None or struct_field is None or len(exact) > 1:
            raise InvalidArgumentError(
                f"{schemas.dotted(exact)} is no identity column of {log.table}: SYNC IDENTITY needs one.",
                condition="DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            )
        command.txn.read_whole_table()
        last = functions.max if identity.step > 0 else functions.min
        row = (
            scan.frame(spark, log, snapshot=command.snapshot, options=scan.EVERY_ROW)
            .select(last(schemas.dotted(exact)))
            .first()
        )
        furthest = None if row is None else row[0]
        mark = None if furthest is None else identity.moved(furthest)
        if mark is not None:
            struct_field = replace(struct_field, metadata={**struct_field.metadata, MARK: mark})
        fields = tuple(struct_field if field.name == struct_field.name else field for field in command.snapshot.schema)
        metadata = replace(command.txn.metadata, schema_string=schemas.to_json(StructType(fields)))
        return _commit(command, metadata, Operation("CHANGE COLUMN", {"column": _logged_column(exact, struct_field)}))


def _commit(command: Command, metadata: Metadata, operation: Operation) -> Committed:
    with command_scope(command.spark, operation.name, command.log.table):
        command.txn.set_metadata(metadata)
        return command.commit([], operation)


def _check_unused(command: Command, column: Column, action: str) -> None:
    check_unused(command.spark, Rules.of(command.txn.protocol, command.txn.metadata), column, action)


def _inside(schema: StructType, at: Column) -> StructField:
    """The element, key or value of an array or a map, as a field."""
    above, inside = type_at(schema, at[:-1]), type_at(schema, at)
    if isinstance(above, ArrayType):
        return StructField(at[-1], inside, above.contains_null)
    return StructField(at[-1], inside, isinstance(above, MapType) and at[-1] == "value" and above.value_contains_null)


def _before_its_record(field: StructField, old: StructField | None) -> StructField:
    """The changed column without the record of this type change, which Delta leaves out of `commitInfo`."""
    kept = {key: value for key, value in field.metadata.items() if key != schemas.TYPE_CHANGES_KEY}
    if old is not None and schemas.TYPE_CHANGES_KEY in old.metadata:
        kept[schemas.TYPE_CHANGES_KEY] = old.metadata[schemas.TYPE_CHANGES_KEY]
    return replace(field, metadata=kept)


def _logged_column(name: Column, field: StructField) -> Mapping[str, Any]:
    """A column as JSON, in Delta's format of `commitInfo`."""
    json = schemas.type_json(field.data_type)
    kind = json if isinstance(json, str) else json["type"]
    return {"name": _dotted(name), "type": kind, "nullable": field.nullable, "metadata": dict(field.metadata)}


def _dotted(name: Column) -> str:
    return ".".join(f"`{part}`" if "." in part else part for part in name)
