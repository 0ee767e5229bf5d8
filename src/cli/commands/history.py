"""`tablelog history`: the commits of a table."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from .. import text
from ..output import Column, Output
from ..parameters import Command, Location, limit_option, on_table, writes_output

if TYPE_CHECKING:
    from ...core.table.history import HistoryEntry

_COLUMNS = (
    Column("version", right=True, style="cyan"),
    Column("time (UTC)"),
    Column("operation", style="bold"),
    Column("details", wraps=True),
    Column("result", wraps=True),
    Column("writer", style="dim"),
)
_MOST_DETAILS = 120
# Metrics of the operations, in the order in which they are shown, with the words for them.
_ROWS = (
    ("numOutputRows", "written"),
    ("num_added_rows", "written"),
    ("num_deleted_rows", "deleted"),
    ("numDeletedRows", "deleted"),
    ("numUpdatedRows", "updated"),
    ("numTargetRowsInserted", "inserted"),
    ("numTargetRowsUpdated", "updated"),
    ("numTargetRowsDeleted", "deleted"),
)
_FILES = (
    (
        (
            "numFiles",
            "numAddedFiles",
            "numTargetFilesAdded",
            "numRestoredFiles",
            "numConvertedFiles",
            "num_added_files",
        ),
        "+",
    ),
    (("numRemovedFiles", "numTargetFilesRemoved", "num_removed_files"), "-"),
)


@click.command(
    cls=Command,
    examples=(
        "tablelog history s3://bucket/events --limit 5",
        "tablelog history ./events --json | jq '.history[0].operation'",
    ),
)
@on_table
@limit_option
@writes_output
def command(location: Location, limit: int | None, output: Output) -> None:
    """Show the commits of TABLE, newest first.

    It reads one file of the log for each commit. The keys of the JSON are the columns of DESCRIBE HISTORY.
    """
    from ..output import ON_TERMINAL

    log = location.log()
    most = ON_TERMINAL if limit is None and output.is_terminal else limit
    entries = log.history(most)
    if output.as_json:
        output.json_rows({"table": text.shown(log.table)}, "history", map(document, entries))
        return
    # One more row than was read stands for the older commits, so that the terminal says that there are some.
    older = entries[-1].version if entries else 0
    output.table(_COLUMNS, map(row, entries), limit=most, total=len(entries) + (older if limit is None else 0))


def document(entry: "HistoryEntry") -> dict[str, Any]:
    """A commit with the names of DESCRIBE HISTORY."""
    info = entry.commit_info
    return {
        "version": entry.version,
        "timestamp": text.iso(entry.timestamp_ms),
        "userId": info and info.user_id,
        "userName": info and info.user_name,
        "operation": info and info.operation,
        "operationParameters": info and info.operation_parameters,
        "readVersion": info and info.read_version,
        "isolationLevel": info and info.isolation_level,
        "isBlindAppend": info and info.is_blind_append,
        "operationMetrics": info and info.operation_metrics,
        "userMetadata": info and info.user_metadata,
        "engineInfo": info and info.engine_info,
    }


def row(entry: "HistoryEntry") -> tuple[str, ...]:
    """A commit for people."""
    info = entry.commit_info
    return (
        str(entry.version),
        text.time(entry.timestamp_ms),
        (info and info.operation) or "unknown",
        _details((info and info.operation_parameters) or {}),
        result((info and info.operation_metrics) or {}),
        ((info and (info.user_name or info.engine_info)) or "")[:40],
    )


def _details(parameters: Mapping[str, Any]) -> str:
    shown = [
        f"{name}={_plain(value)}" for name, value in parameters.items() if value not in (None, "", "[]", "{}", [], {})
    ]
    joined = ", ".join(shown)
    return joined if len(joined) <= _MOST_DETAILS else f"{joined[: _MOST_DETAILS - 1]}…"


def _plain(value: Any) -> str:
    """A value of a parameter; a list of names that Delta writes as JSON text becomes names."""
    if isinstance(value, str) and value.startswith("["):
        try:
            names = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return ", ".join(names)
    return str(value)


def result(metrics: Mapping[str, Any]) -> str:
    """The rows and files of a commit in a few words; "" if its writer recorded neither."""
    numbers = {name: int(value) for name, value in metrics.items() if str(value).isdecimal() and len(str(value)) < 20}
    words = [f"{numbers[name]:,} {verb}" for name, verb in _ROWS if numbers.get(name)]
    for names, sign in _FILES:
        files = sum(numbers.get(name, 0) for name in names)
        if files:
            words.append(f"{sign}{text.count(files, 'file')}")
    return ", ".join(words)
