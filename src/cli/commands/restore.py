"""`tablelog restore`: makes an older version the newest one again."""

from functools import partial

import click

from ...errors import AppendOnlyTableError
from ...units import size
from .. import exit_codes, text
from ..confirmation import confirmed
from ..output import Output
from ..parameters import Command, Location, on_table, version_of, writes_output
from ..progress import command_bar


@click.command(
    cls=Command,
    examples=(
        "tablelog restore ./events 7             # show what would change, then ask",
        "tablelog restore ./events '2026-11-23 10:00:00' --yes",
    ),
)
@on_table
@click.argument("version")
@click.option("--yes", is_flag=True, help="Restore without asking.")
@writes_output
def command(location: Location, version: str, yes: bool, output: Output) -> int:
    """Restore VERSION of TABLE by a new commit. VERSION is a number or a time.

    It shows first what would change. No version is lost: the restored one is a new version, and this can be undone in
    the same way. Features of the protocol stay. Without --yes and without a terminal it is a dry run.
    """
    from ...core.protocol import features
    from ...core.table_maintenance import table_files
    from ...core.table_maintenance.data_files import check_allowed
    from ...core.table_maintenance.restore import check_there, restoration, restored_in_pieces

    log = location.log()
    transaction = log.transaction()
    now = log.snapshot() if transaction.snapshot is None else transaction.snapshot
    features.check_writable(now.protocol, now.metadata, log.table)
    number = version_of(log, version)
    then = now if number == now.version else log.snapshot(number)
    at_ms = log.clock.now_ms()
    bulk = None if then is now else restored_in_pieces(then, now, at_ms, downgrade=False)
    change = restoration(then, now, downgrade=False, bulk=bulk)
    if change.removes_files and now.properties.append_only:
        raise AppendOnlyTableError(
            f"{text.shown(log.table)} is append-only: its rows can't be deleted. To allow this, set delta.appendOnly "
            "to false"
        )
    with command_bar("RESTORE", log.table, enabled=not output.as_json):
        check_there(log.table, table_files.of_table(log), change, number, partial(check_allowed, log))
    metrics = change.metrics
    if not output.as_json:
        output.line(f"{text.shown(log.table)}: from version {now.version} back to version {number}", "bold")
        output.facts(
            {
                "files added again": f"{metrics['numRestoredFiles']:,}, {size(metrics['restoredFilesSize'])}",
                "files removed": f"{metrics['numRemovedFiles']:,}, {size(metrics['removedFilesSize'])}",
                "schema and properties": "unchanged" if change.metadata is None else "those of the older version",
            }
        )
    committed = None
    if then is not now and confirmed("Restore it?", output, yes=yes):
        transaction.read_whole_table()
        change.stage(transaction)
        named_by_number = version.strip().lstrip("vV").isdecimal()
        operation = change.operation(
            number if named_by_number else None, None if named_by_number else version, downgrade=False
        )
        committed = transaction.commit(change.actions(at_ms), operation, bulk=change.bulk).version
    if output.as_json:
        document = {"table": text.shown(log.table), "from": now.version, "restored": number}
        output.json({**document, "applied": committed is not None, "version": committed, **metrics})
    elif committed is not None:
        output.line(f"committed as version {committed}", "green")
    elif then is now:
        output.line("it is the newest version already: nothing to do", "green")
    else:
        output.line("nothing was changed: this was a dry run; --yes restores it", "yellow")
    return exit_codes.OK
