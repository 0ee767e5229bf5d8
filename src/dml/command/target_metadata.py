"""Computes the table metadata that a write commits, before any row is written."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.protocol import schema
from ...core.protocol.actions import Metadata
from ...core.protocol.rules import Rules
from ...core.protocol.schema import StructType
from ...core.schema_evolution import merging
from ...engine.sql.column_references import check_unused
from ...errors import InvalidArgumentError, SchemaMismatchError
from .command import Command


def partition_names(partition_by: Sequence[str], columns: StructType) -> tuple[str, ...]:
    """The partition columns, spelled as in the schema. Names are matched case-insensitively, as in Delta."""
    names: list[str] = []
    for name in partition_by:
        matches = [field.name for field in columns if field.name.lower() == name.lower()]
        if not matches:
            raise InvalidArgumentError(
                f"The partition column {name!r} is not among the columns {list(columns.names)}.",
                condition="DELTA_PARTITION_COLUMN_NOT_FOUND",
                parameters={"columnName": name, "schemaMap": ", ".join(columns.names)},
            )
        if len(matches) > 1:
            raise InvalidArgumentError(
                f"The partition column {name!r} is ambiguous: {matches}.",
                condition="DELTA_AMBIGUOUS_PARTITION_COLUMN",
                parameters={"column": name, "colMatches": ", ".join(matches)},
            )
        names.append(matches[0])
    return tuple(names)


def new_table(
    columns: StructType,
    partition_by: Sequence[str],
    configuration: Mapping[str, str],
    *,
    comment: str | None,
    created_time: int,
    table: str,
) -> Metadata:
    """The metadata of a new table. `created_time` is in milliseconds since the epoch."""
    if not columns.fields:
        raise SchemaMismatchError(
            f"A frame with no columns can't become a Delta table ({table}).", condition="DELTA_EMPTY_DATA"
        )
    return Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema.to_json(columns),
        partition_columns=partition_names(partition_by, columns),
        configuration=dict(configuration),
        description=comment,
        created_time=created_time,
    )


def replaced(metadata: Metadata, columns: StructType, partition_by: Sequence[str]) -> Metadata:
    """The metadata after an overwrite with overwriteSchema: schema and partitioning are those of the data."""
    return replace(
        metadata, schema_string=schema.to_json(columns), partition_columns=partition_names(partition_by, columns)
    )


def evolved(command: Command, data: StructType) -> Metadata:
    """The metadata after schema evolution (mergeSchema) by data with this schema: see `merging.merged`.

    Raises InvalidArgumentError if a generated column or a constraint depends on a column whose type would change.
    """
    txn = command.txn
    changed = merging.merged(txn.metadata, data, protocol=txn.protocol, conf=command.log.conf)
    if changed is not txn.metadata:
        rules = Rules.of(txn.protocol, txn.metadata)
        before, after = (schema.parse_schema(metadata.schema_string) for metadata in (txn.metadata, changed))
        for column, old, new in merging.retyped(before, after):
            if old != schema.VOID:
                check_unused(command.spark, rules, column, f"made {schema.type_text(new)}")
    return changed


def check_partitioning(metadata: Metadata, partition_by: Sequence[str], table: str, *, overwriting: bool) -> None:
    """Raise SchemaMismatchError if `partition_by` is not empty and differs from the partitioning of the table."""
    if not partition_by:
        return
    if [name.lower() for name in partition_by] != [name.lower() for name in metadata.partition_columns]:
        hint = "" if not overwriting else " To change the partitioning, overwrite with overwriteSchema=true."
        raise SchemaMismatchError(
            f"The partition columns {list(partition_by)} differ from those of the table {table}, "
            f"{list(metadata.partition_columns)}.{hint}"
        )
