"""`tablelog log`: the actions of one version, or the difference of two."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from ...errors import TablelogError, VersionNotFoundError
from ...units import size
from .. import text
from ..output import ON_TERMINAL, Column, Output
from ..parameters import Command, Location, limit_option, on_table, version_of, writes_output

if TYPE_CHECKING:
    from ...core.deltalog import DeltaLog
    from ...core.table.difference import Change, Difference, FileGroup
    from ...core.table.snapshot import Snapshot

_ACTIONS = (
    Column("action", style="bold"),
    Column("what", wraps=True),
    Column("size", right=True),
    Column("rows", right=True),
)
_CHANGES = (Column("", style="bold"), Column("name"), Column("before", wraps=True), Column("after", wraps=True))
_FILES = (Column("", style="bold"), Column("path", wraps=True), Column("size", right=True))


@click.command(
    cls=Command,
    examples=(
        "tablelog log ./events                   # the newest version",
        "tablelog log ./events 7",
        "tablelog log ./events 3 7               # what changed from version 3 to 7",
        "tablelog log ./events 2026-11-01 7 --json",
    ),
)
@on_table
@click.argument("version", required=False)
@click.argument("other", required=False)
@limit_option
@writes_output
def command(location: Location, version: str | None, other: str | None, limit: int | None, output: Output) -> None:
    """Show the actions of one version of TABLE, or the difference between VERSION and OTHER.

    Both are version numbers or times. The difference has the files, the rows, the columns, the properties and the
    features that OTHER has and VERSION hasn't, and the reverse.
    """
    log = location.log()
    if other is not None:
        assert version is not None
        then, now = log.snapshot(version_of(log, version)), log.snapshot(version_of(log, other))
        _write_difference(then, now, limit, output)
        return
    number = log.snapshot().version if version is None else version_of(log, version)
    from ...core.protocol.codec import to_json

    # A commit may have millions of actions: they are written as they are read.
    read = log.reader.each_action(number)
    try:
        begun = chain(list(islice(read, 1)), read)  # an error of the first read comes before any output
    except VersionNotFoundError as error:
        raise _absent(log, number) from error
    actions: Iterable[dict[str, Any]] = (json.loads(to_json(action)) for action in begun)
    if output.as_json:
        head = {"table": text.shown(log.table), "version": number}
        output.json_rows(head, "actions", islice(actions, limit))
        return
    total = None
    if output.is_terminal:
        counts, actions = _counted(actions, ON_TERMINAL if limit is None else limit)
        output.line(f"version {number}: " + ", ".join(f"{many} {name}" for name, many in counts.items()), "bold")
        total = counts.total()
    output.table(_ACTIONS, map(_row, actions), limit=limit, total=total)


def _absent(log: "DeltaLog", version: int) -> TablelogError:
    """The error for a version without a commit in the log: it is outside of the log's range, or missing in it."""
    from ...core.log.segment import missing_commit

    listing = log.reader.list(0)
    versions = sorted(listing.commits)
    if versions and versions[0] < version < versions[-1]:
        return missing_commit(log.table, listing, version, version)
    present = f"{versions[0]} to {versions[-1]}" if versions else "none"
    return VersionNotFoundError(
        f"version {version} of {text.shown(log.table)} isn't in the log; the versions that are: {present}"
    )


def _counted(actions: Iterable[dict[str, Any]], most: int) -> tuple[Counter[str], list[dict[str, Any]]]:
    """The number of actions of each kind, and the first ones."""
    counts: Counter[str] = Counter()
    first: list[dict[str, Any]] = []
    for action in actions:
        counts.update(action.keys())
        if len(first) < most:
            first.append(action)
    return counts, first


def _row(action: dict[str, Any]) -> tuple[str, ...]:
    ((name, fields),) = action.items()
    if name in ("add", "remove", "cdc"):
        return name, fields["path"], size(fields.get("size")), _rows(fields.get("stats"))
    hidden = {"schemaString"}
    shown = {key: value for key, value in fields.items() if key not in hidden and value not in (None, {}, [])}
    return name, json.dumps(shown, ensure_ascii=False), "", ""


def _rows(stats: str | None) -> str:
    from ...core.protocol.record_count import num_records

    return text.count(num_records(stats)) if stats else ""


# --- the difference of two versions -------------------------------------------------------------------------------


def _write_difference(then: "Snapshot", now: "Snapshot", limit: int | None, output: Output) -> None:
    from ...core.table.difference import difference

    found = difference(then, now)
    if output.as_json:
        output.json(document(then, now, found, limit))
        return
    output.line(f"from version {then.version} to version {now.version}", "bold")
    if found.is_empty:
        output.line("no difference")
        return
    output.facts(
        {
            "files": f"+{found.added.num_files:,}  -{found.removed.num_files:,}",
            "bytes": f"+{size(found.added.size_in_bytes)}  -{size(found.removed.size_in_bytes)}",
            "rows in these files": f"+{text.count(found.added.num_records)}  -{text.count(found.removed.num_records)}",
        }
    )
    for title, changes in _parts(found):
        if changes:
            output.heading(title)
            output.table(_CHANGES, map(_change, changes), limit=limit, total=len(changes))
    if found.added.num_files or found.removed.num_files:
        output.heading("files")
        files = [*_files(then, found.removed, "-"), *_files(now, found.added, "+")]
        output.table(_FILES, files, limit=limit, total=len(files))


def _parts(found: "Difference") -> Iterator[tuple[str, Sequence["Change"]]]:
    yield "columns", found.columns
    yield "partitioning", () if found.partitioning is None else (found.partitioning,)
    yield "properties", found.properties
    yield "features", found.features


def _change(change: "Change") -> tuple[str, ...]:
    sign = "+" if change.before is None else "-" if change.after is None else "~"
    return sign, change.name, change.before or "", change.after or ""


def _files(snapshot: "Snapshot", group: "FileGroup", sign: str) -> list[tuple[str, str, str]]:
    from ...core.protocol import paths

    files = snapshot.files.take(group.indices)
    rows = zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True)
    return [(sign, paths.decode(path), size(bytes_)) for path, bytes_ in rows]


def document(then: "Snapshot", now: "Snapshot", found: "Difference", limit: int | None) -> dict[str, Any]:
    """The difference as JSON, with at most `limit` items in each list."""

    def group(snapshot: "Snapshot", files: "FileGroup") -> dict[str, Any]:
        return {
            "numFiles": files.num_files,
            "sizeInBytes": files.size_in_bytes,
            "numRecords": files.num_records,
            "paths": snapshot.files.column("path").take(files.indices[:limit]).to_pylist(),
        }

    def changes(items: Sequence["Change"]) -> list[dict[str, Any]]:
        return [{"name": item.name, "before": item.before, "after": item.after} for item in items[:limit]]

    return {
        "table": text.shown(now.table),
        "from": then.version,
        "to": now.version,
        "added": group(now, found.added),
        "removed": group(then, found.removed),
        "columns": changes(found.columns),
        "properties": changes(found.properties),
        "features": changes(found.features),
        "partitioning": None if found.partitioning is None else changes([found.partitioning])[0],
    }
