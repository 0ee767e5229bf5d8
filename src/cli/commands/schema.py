"""`tablelog schema`: the columns of a table."""

import json
from typing import TYPE_CHECKING, Any

import click

from ..output import Column, Output
from ..parameters import Command, Location, at_option, on_table, snapshot_at, writes_output

if TYPE_CHECKING:
    from ...core.protocol.schema import StructField, StructType

_COLUMNS = (
    Column("column", style="cyan", wraps=True),
    Column("type", wraps=True),
    Column("null", style="dim"),
    Column("partition", style="yellow"),
    Column("comment", wraps=True),
)


@click.command(
    cls=Command,
    examples=("tablelog schema ./events", "tablelog schema ./events --at 3 --json | jq -r '.columns[].name'"),
)
@on_table
@at_option
@writes_output
def command(location: Location, at: str | None, output: Output) -> None:
    """Show the columns of TABLE: names, types, which may be null, and which are partition columns."""
    from ...core.protocol.schema import to_json

    snapshot = snapshot_at(location.log(), at)
    columns = [document(f, snapshot.partition_columns) for f in snapshot.schema]
    if output.as_json:
        output.json({"version": snapshot.version, "columns": columns, "schema": json.loads(to_json(snapshot.schema))})
        return
    output.table(_COLUMNS, _rows(snapshot.schema, snapshot.partition_columns), limit=max(len(columns) * 50, 1))


def document(f: "StructField", partition_columns: tuple[str, ...]) -> dict[str, Any]:
    """A column as JSON."""
    from ...core.protocol.schema import type_text

    return {
        "name": f.name,
        "type": type_text(f.data_type),
        "nullable": f.nullable,
        "partition": f.name in partition_columns,
        "comment": f.metadata.get("comment"),
    }


def _rows(schema: "StructType", partition_columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [
        (
            column["name"],
            column["type"],
            "" if column["nullable"] else "not null",
            "partition" if column["partition"] else "",
            str(column["comment"] or ""),
        )
        for column in (document(f, partition_columns) for f in schema)
    ]
