"""`tablelog files`: the data files of a version."""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from ...units import size
from .. import text
from ..output import Column, Output
from ..parameters import Command, Location, at_option, limit_option, on_table, snapshot_at, writes_output

if TYPE_CHECKING:
    import pyarrow as pa

    from ...core.table.snapshot import Snapshot

_BLOCK = 2_000
_PLAIN = (
    Column("path", wraps=True),
    Column("size", right=True),
    Column("rows", right=True),
    Column("deleted", right=True, style="red"),
    Column("modified (UTC)", style="dim"),
    Column("partition", style="yellow", wraps=True),
)
_BOUNDS = Column("min … max", style="cyan", wraps=True)
_SORTS = ("path", "size", "rows", "modified")


@click.command(
    cls=Command,
    examples=(
        "tablelog files ./events --where 'day >= 2024-05-01' --stats",
        "tablelog files s3://bucket/events --sort size --limit 10",
        "tablelog files ./events --smaller-than 1000000 --json | jq -r '.files[].path'",
    ),
)
@on_table
@at_option
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Only files that may have rows with COLUMN OPERATOR VALUE, by their statistics; may be repeated.",
)
@click.option("--smaller-than", type=click.IntRange(min=0), metavar="BYTES", help="Only files below this size.")
@click.option("--larger-than", type=click.IntRange(min=0), metavar="BYTES", help="Only files above this size.")
@click.option("--with-deletion-vectors", is_flag=True, help="Only files some of whose rows are deleted by a vector.")
@click.option("--stats", is_flag=True, help="Show the smallest and the largest value of each column.")
@click.option(
    "--sort", type=click.Choice(_SORTS), default="path", show_default=True, help="The largest first, but paths from A."
)
@limit_option
@writes_output
def command(
    location: Location,
    at: str | None,
    where: Sequence[str],
    smaller_than: int | None,
    larger_than: int | None,
    with_deletion_vectors: bool,
    stats: bool,
    sort: str,
    limit: int | None,
    output: Output,
) -> None:
    """List the data files of TABLE, with sizes, rows, partition values and statistics.

    With --where it shows which files a query would read.
    """
    snapshot = snapshot_at(location.log(), at)
    rows = selected(snapshot, where, smaller_than, larger_than, with_vectors=with_deletion_vectors)
    rows = _sorted(snapshot, rows, sort)
    total, bytes_ = len(rows), _size(snapshot, rows)
    shown = rows if limit is None else rows[:limit]
    documents = (document for document in _documents(snapshot, shown, with_stats=stats))
    if output.as_json:
        head = {
            "table": text.shown(snapshot.table),
            "version": snapshot.version,
            "numFiles": total,
            "sizeInBytes": bytes_,
        }
        output.json_rows(head, "files", documents)
        return
    columns = [c for c in _PLAIN if _is_used(snapshot, c.name)]
    output.table(
        [*columns, _BOUNDS] if stats else columns,
        (_row(document, columns, with_stats=stats) for document in documents),
        limit=limit,
        total=total,
    )
    if output.is_terminal:
        of = snapshot.num_files
        share = f" of {text.count(of)}" if total != of else ""
        output.line(f"{text.count(total)}{share} files of version {snapshot.version}, {size(bytes_)}", "dim")


def selected(
    snapshot: "Snapshot", where: Sequence[str], smaller: int | None, larger: int | None, *, with_vectors: bool
) -> "pa.Array":
    """The indices in `snapshot.files` of the files that all filters keep."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..conditions import parse

    files = snapshot.files
    masks: list[Any] = []
    if where:
        masks.append(snapshot.prune_mask(parse(where, snapshot.schema), time_zone="UTC"))
    if smaller is not None:
        masks.append(pc.less(files.column("size"), smaller))
    if larger is not None:
        masks.append(pc.greater(files.column("size"), larger))
    if with_vectors:
        masks.append(pc.is_valid(pc.struct_field(files.column("deletionVector"), "storageType")))
    rows = pa.array(range(files.num_rows), pa.int64())
    for mask in masks:
        kept = pc.indices_nonzero(mask).cast(pa.int64())
        rows = rows.filter(pc.is_in(rows, value_set=kept))
    return rows


def _sorted(snapshot: "Snapshot", rows: "pa.Array", sort: str) -> "pa.Array":
    import pyarrow.compute as pc

    files = snapshot.files
    values = {"path": "path", "size": "size", "modified": "modificationTime"}
    column = snapshot.num_records() if sort == "rows" else files.column(values[sort])
    order = pc.sort_indices(column.take(rows), sort_keys=[("", "ascending" if sort == "path" else "descending")])
    return rows.take(order)


def _size(snapshot: "Snapshot", rows: "pa.Array") -> int:
    from ...core.log.columns import exact_sum

    return exact_sum(snapshot.files.column("size").take(rows))


def _is_used(snapshot: "Snapshot", column: str) -> bool:
    if column == "deleted":
        vectors = snapshot.files.column("deletionVector")
        return bool(vectors.null_count < len(vectors))
    return column != "partition" or bool(snapshot.partition_columns)


def _documents(snapshot: "Snapshot", rows: "pa.Array", *, with_stats: bool) -> Iterator[dict[str, Any]]:
    """The files as JSON, some at a time."""
    from ...core.protocol import paths

    records = snapshot.num_records()
    names = {snapshot.mapping.to_physical((name,))[0]: name for name in snapshot.partition_columns}
    for start in range(0, len(rows), _BLOCK):
        block = rows.slice(start, _BLOCK)
        counts = records.take(block).to_pylist()
        for add, rows_in_file in zip(_adds(snapshot, block, with_stats=with_stats), counts, strict=True):
            vector = add.deletion_vector
            document: dict[str, Any] = {
                "path": paths.decode(add.path),
                "size": add.size,
                "numRecords": rows_in_file,
                "numDeletedRecords": 0 if vector is None else vector.cardinality,
                "modificationTime": text.iso(add.modification_time),
                "partitionValues": {names.get(name, name): value for name, value in add.partition_values.items()},
            }
            if add.base_row_id is not None:
                document["baseRowId"] = add.base_row_id
            if with_stats:
                document["stats"] = _statistics(snapshot, add.stats)
            yield document


def _adds(snapshot: "Snapshot", rows: "pa.Array", *, with_stats: bool) -> list[Any]:
    from ...core.log.columns import adds_of

    return snapshot.add_files(rows) if with_stats else adds_of(snapshot.files.take(rows))


def _statistics(snapshot: "Snapshot", stats: str | None) -> dict[str, Any] | None:
    """The statistics of a file, with the logical names of its columns."""
    if stats is None:
        return None
    try:
        # NaN and Infinity are no JSON: as text, as Spark writes them.
        parsed = json.loads(stats, parse_constant=str, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    if not snapshot.mapping.active:
        return parsed
    return {name: _logical(snapshot, value, ()) if isinstance(value, dict) else value for name, value in parsed.items()}


def _finite(text: str) -> float | str:
    return number if isfinite(number := float(text)) else text


def _logical(snapshot: "Snapshot", values: dict[str, Any], below: tuple[str, ...]) -> dict[str, Any]:
    return {
        snapshot.mapping.to_logical((*below, name))[-1]: (
            _logical(snapshot, value, (*below, name)) if isinstance(value, dict) else value
        )
        for name, value in values.items()
    }


def _row(document: dict[str, Any], columns: Sequence[Column], *, with_stats: bool) -> tuple[str, ...]:
    values = {
        "path": document["path"],
        "size": size(document["size"]),
        "rows": text.count(document["numRecords"]),
        "deleted": text.count(document["numDeletedRecords"]) if document["numDeletedRecords"] else "",
        "modified (UTC)": (document["modificationTime"] or "unknown").replace("T", " ")[:19],
        "partition": ", ".join(f"{name}={value}" for name, value in document["partitionValues"].items()),
    }
    cells = tuple(values[column.name] for column in columns)
    return (*cells, bounds(document["stats"] or {})) if with_stats else cells


def bounds(stats: dict[str, Any]) -> str:
    """The smallest and the largest value of each column in one text."""
    least, most = stats.get("minValues"), stats.get("maxValues")
    if not isinstance(least, dict) or not isinstance(most, dict):
        return ""
    return ", ".join(f"{name}: {value} … {most.get(name, '?')}" for name, value in least.items())
