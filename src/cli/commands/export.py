"""`tablelog export`: the files of a version for programs that know nothing of Delta."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ... import local_file
from ...errors import UnsupportedFeatureError
from .. import text
from ..output import Output
from ..parameters import Command, Location, at_option, on_table, snapshot_at, writes_output
from ..progress import Advance, output_is_file, progress_bar

if TYPE_CHECKING:
    from ...core.table.snapshot import Snapshot

_BLOCK = 10_000


@click.command(
    cls=Command,
    examples=(
        "tablelog export ./events > files.txt",
        "tablelog export s3://bucket/events --at 7 --output files.txt",
        "tablelog export s3://bucket/events --manifest   # for Presto, Athena and Hive",
    ),
)
@on_table
@at_option
@click.option("--output", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write the list to FILE.")
@click.option("--manifest", "as_manifest", is_flag=True, help="Write symlink manifests into the table's directory.")
@click.option(
    "--ignore-vectors", is_flag=True, help="List files whose deleted rows only readers of Delta can leave out."
)
@writes_output
def command(
    location: Location,
    at: str | None,
    target: Path | None,
    as_manifest: bool,
    ignore_vectors: bool,
    output: Output,
) -> None:
    """Write the absolute locations of the data files of TABLE, one in a line.

    A reader of plain Parquet files reads the table from such a list. It would return deleted rows of a table with
    deletion vectors, so this is an error unless --ignore-vectors is given. With --manifest, the list of each partition
    is written to _symlink_format_manifest.
    """
    from ...core.table import manifest

    if target is not None:
        local_file.check(target)
    log = location.log()
    if as_manifest:
        if at is not None or target is not None:
            raise click.UsageError("--manifest is for the newest version, and can't be combined with --at or --output")
        from ...core.txn import manifests

        snapshot = log.snapshot()
        manifest.check(snapshot)
        written = sorted(manifests.write(log, snapshot))
        names = [manifest.uri(log.table, directory) for directory in written]
        if output.as_json:
            output.json({"table": text.shown(log.table), "version": snapshot.version, "manifests": names})
        else:
            for name in names:
                output.line(text.shown(name))
        return
    snapshot = snapshot_at(log, at)
    vectors = snapshot.files.column("deletionVector")
    if not ignore_vectors and vectors.null_count < len(vectors):
        raise UnsupportedFeatureError(
            f"{text.shown(log.table)} has deletion vectors, which readers of plain files ignore: they would return "
            "deleted rows. Rewrite the files (REORG TABLE ... APPLY (PURGE)), or give --ignore-vectors",
            ("deletionVectors",),
        )
    with progress_bar(enabled=target is not None or output_is_file()) as advance:
        locations = _locations(snapshot, advance)
        if output.as_json:
            head = {"table": text.shown(log.table), "version": snapshot.version, "numFiles": snapshot.num_files}
            output.json_rows(head, "files", locations)
            return
        lines = (f"{_line(place, for_people=target is None and output.is_terminal)}\n" for place in locations)
        if target is None:
            sys.stdout.writelines(lines)
        else:
            local_file.write(target, lines)


def _line(place: str, *, for_people: bool) -> str:
    """A location as it is, for programs; on a terminal without control characters."""
    if for_people:
        return text.safe(place)
    if "\n" in place or "\r" in place:
        raise UnsupportedFeatureError(
            f"the location {place!r} has a line feed: a list with one location in a line can't have it. Use --json",
            ("line feeds in paths",),
        )
    return place


def _locations(snapshot: "Snapshot", advance: Advance) -> Iterator[str]:
    """The location of each file, decoded as programs expect it: a local path, or a URL."""
    from ...core.protocol import paths

    column = snapshot.files.column("path")
    for start in range(0, len(column), _BLOCK):
        advance("writing locations", start, len(column))
        for path in column.slice(start, _BLOCK).to_pylist():
            yield paths.absolute(snapshot.table, path)
    advance("writing locations", len(column), len(column))
