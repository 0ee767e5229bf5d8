"""`tablelog cat`: the rows of a table."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ...errors import InvalidArgumentError
from .. import text
from ..column_names import found, listed
from ..output import ON_TERMINAL, Column, Output
from ..parameters import Command, Location, at_option, limit_option, on_table, snapshot_at, writes_output
from ..progress import Advance, counted, output_is_file, progress_bar
from ..values import as_json, as_text, python_values

if TYPE_CHECKING:
    from ...core.protocol.schema import StructType


@click.command(
    cls=Command,
    examples=(
        "tablelog cat ./events --limit 5",
        "tablelog cat s3://bucket/events --columns id,user --where 'day = 2024-05-01'",
        "tablelog cat ./events --at 3 --json | jq '.rows[0]'",
    ),
)
@on_table
@at_option
@click.option("--columns", metavar="NAME,...", help="Only these columns, in this order.")
@click.option(
    "--where", multiple=True, metavar="CONDITION", help="Only rows with COLUMN OPERATOR VALUE; may be repeated."
)
@limit_option
@writes_output
def command(
    location: Location, at: str | None, columns: str | None, where: Sequence[str], limit: int | None, output: Output
) -> None:
    """Show rows of TABLE.

    It reads the Parquet files itself, one batch at a time, and only those that may have rows for --where.
    """
    import pyarrow.compute as pc

    from ...core.skipping.predicates import columns as columns_of
    from ...core.table_maintenance.rows import batches
    from ..conditions import parse
    from ..filters import matching

    log = location.log()
    snapshot = snapshot_at(log, at)
    names = _chosen(snapshot.schema, columns)
    predicate = parse(where, snapshot.schema)
    needed = [*names, *sorted({column[0] for column in columns_of(predicate)} - {*names})]
    indices = snapshot.prune_mask(predicate, time_zone="UTC") if where else None
    files = range(snapshot.files.num_rows) if indices is None else pc.indices_nonzero(indices).to_pylist()

    def rows(advance: Advance) -> Iterator[tuple[Any, ...]]:
        for batch in batches(log, snapshot, counted(files, "reading data files", advance), needed):
            kept = matching(batch, predicate) if where else batch
            values = [python_values(kept.column(at_)) for at_ in range(len(names))]
            yield from zip(*values, strict=True)

    types = {f.name: f.data_type for f in snapshot.schema}
    shown = [Column(name, right=bool(getattr(types[name], "is_numeric", False)), wraps=True) for name in names]
    if output.is_terminal:
        most = limit or ON_TERMINAL
        with progress_bar() as advance:  # it ends before the first row is shown
            first = [tuple(map(as_text, row)) for row in islice(rows(advance), most + 1)]
        output.table(shown, first, limit=most)
        return
    with progress_bar(enabled=output_is_file()) as advance:
        if output.as_json:
            head = {"table": text.shown(log.table), "version": snapshot.version, "columns": list(names)}
            documents = (dict(zip(names, map(as_json, row), strict=True)) for row in rows(advance))
            output.json_rows(head, "rows", islice(documents, limit))
        else:
            output.table(shown, (tuple(map(as_text, row)) for row in rows(advance)), limit=limit)


def _chosen(schema: "StructType", columns: str | None) -> tuple[str, ...]:
    """The exact names of the columns that the user asks for."""
    if columns is None:
        return schema.names
    chosen: list[str] = []
    for name in listed(columns, "--columns"):
        column, _ = found(name, schema, "--columns")
        if len(column) > 1:
            raise InvalidArgumentError(f"--columns: {name!r} is a field inside a column; name the whole column")
        chosen += column
    return tuple(dict.fromkeys(chosen))
