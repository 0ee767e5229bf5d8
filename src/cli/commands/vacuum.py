"""`tablelog vacuum`: deletes the files that no version within the retention period needs."""

from typing import Any

import click

from ...units import size
from .. import exit_codes, text
from ..confirmation import confirmed
from ..output import Column, Output
from ..parameters import Command, Location, limit_option, on_table, writes_output
from ..progress import command_bar

_COLUMNS = (Column("file or directory", wraps=True),)


@click.command(
    cls=Command,
    examples=(
        "tablelog vacuum ./events                       # show what would be deleted, then ask",
        "tablelog vacuum s3://bucket/events --yes",
        "tablelog vacuum ./events --retain-hours 24 --no-retention-check --yes",
    ),
)
@on_table
@click.option(
    "--retain-hours",
    type=float,
    metavar="HOURS",
    help="Keep files of versions of the last HOURS (default: the table's).",
)
@click.option(
    "--retention-check/--no-retention-check",
    default=True,
    help="Whether to refuse a retention below the table's, which running readers and writers may need.",
)
@click.option("--lite", is_flag=True, help="Take the files from the log, without listing the directory.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@limit_option
@writes_output
def command(
    location: Location,
    retain_hours: float | None,
    retention_check: bool,
    lite: bool,
    yes: bool,
    limit: int | None,
    output: Output,
) -> int:
    """Delete files below TABLE that no version within the retention period needs.

    It always shows first what it would delete. Without --yes and without a terminal it is a dry run. Versions older
    than the retention period can't be read afterwards. It needs no Spark.
    """
    from ...core.protocol import features
    from ...core.table_maintenance import table_files
    from ...core.table_maintenance.vacuum import Mode, vacuum, window_of
    from ...settings.declarations import RETENTION_CHECK

    log = location.log()
    snapshot = log.snapshot()
    features.check_writable(snapshot.protocol, snapshot.metadata, log.table)
    files = table_files.of_table(log)
    checked = retention_check and RETENTION_CHECK.of(log.conf)
    window = window_of(log, snapshot, retain_hours, checked=checked)
    mode: Mode = "LITE" if lite else "FULL"
    with command_bar("VACUUM", log.table, enabled=not output.as_json):
        planned = vacuum(log, snapshot, files, window, mode=mode, dry_run=True)
    names = (*planned.files, *planned.directories)
    if not output.as_json:
        output.table(_COLUMNS, ((name,) for name in names), limit=limit, total=len(names))
        many = f"{text.count(len(planned.files), 'file')}, {size(planned.size_in_bytes)}"
        output.line(f"{many}, older than {text.time(window.before_ms)} UTC", "bold")
    apply = bool(names) and confirmed("Delete them?", output, yes=yes)
    removed = None
    if apply:
        with command_bar("VACUUM", log.table, enabled=not output.as_json):
            removed = vacuum(log, snapshot, files, window, mode=mode)
    document: dict[str, Any] = {
        "table": text.shown(log.table),
        "applied": removed is not None,
        "before": text.iso(window.before_ms),
        "numFiles": len(planned.files),
        "sizeInBytes": planned.size_in_bytes,
        "numDeleted": 0 if removed is None else removed.removed,
        "files": list(planned.files[:limit]),
        "directories": list(planned.directories[:limit]),
    }
    if output.as_json:
        output.json(document)
    elif removed is not None:
        output.line(f"deleted {text.count(removed.removed, 'file or directory', 'files and directories')}", "green")
    elif names:
        output.line("nothing was deleted: this was a dry run; --yes deletes them", "yellow")
    return exit_codes.OK
