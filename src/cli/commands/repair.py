"""`tablelog repair`: repairs what `tablelog check` finds, as far as the log itself says how."""

from typing import TYPE_CHECKING, Any

import click

from ...errors import CorruptLogError
from .. import exit_codes, text
from ..confirmation import confirmed
from ..output import Output
from ..parameters import Command, Location, on_table, writes_output
from ..progress import command_bar

if TYPE_CHECKING:
    from ...core.table_maintenance.repair import Plan

_DOES = {
    "delete-compaction": "delete the log compaction",
    "delete-checksum": "delete the version checksum",
    "delete-checkpoint": "delete the checkpoint",
    "remove-missing-files": "commit the removal of missing data files",
    "write-checkpoint": "write a checkpoint and _last_checkpoint",
    "write-checksum": "write the version checksum",
}
_MOST_FILES = 10


@click.command(
    cls=Command,
    examples=(
        "tablelog repair ./events               # show what would be done, then ask",
        "tablelog repair ./events --yes",
        "tablelog repair s3://bucket/events --json | jq .steps",
    ),
)
@on_table
@click.option("--yes", is_flag=True, help="Do the repairs without asking.")
@writes_output
def command(location: Location, yes: bool, output: Output) -> int:
    """Repair the log of TABLE, and take data files that don't exist out of it.

    It always shows first what it would do. It deletes checkpoints, log compactions and checksums that contradict the
    commits, writes them again, and commits the removal of data files that are missing. It never changes a commit: a
    damaged one must be restored from a copy. Without --yes and without a terminal it is a dry run. Exit code 1: there
    is something left to repair.
    """
    from ...core.protocol.features import check_writable
    from ...core.table_maintenance import repair, table_files
    from ...core.table_maintenance.check import missing_files

    log, append_only = location.log(), False
    with command_bar("repair", log.table, enabled=not output.as_json):
        health = log.health()
        try:
            snapshot = log.snapshot()
            check_writable(snapshot.protocol, snapshot.metadata, log.table)
            append_only = snapshot.properties.append_only
            missing = missing_files(log, snapshot, table_files.of_table(log))
        except CorruptLogError:  # health has the reason
            missing = []
    plan = repair.plan(health, missing, append_only=append_only)
    if not output.as_json:
        _write_plan(text.shown(log.table), plan, output)
    done: list[str] = []
    apply = bool(plan.steps) and confirmed("Do this?", output, yes=yes)
    for step in plan.steps if apply else ():
        handle = location.log()  # the repairs before this one changed the log
        done.append(repair.apply(handle, step, table_files.of_table(handle)))
        if not output.as_json:
            output.line(f"done: {done[-1]}", "green")
    if output.as_json:
        output.json(document(text.shown(log.table), plan, done if apply else None))
    elif plan.steps and not apply:
        output.line("nothing was changed: this was a dry run; --yes does it", "yellow")
    return exit_codes.PROBLEMS if plan.unrepairable or (plan.steps and not apply) else exit_codes.OK


def document(table: str, plan: "Plan", done: list[str] | None) -> dict[str, Any]:
    """The plan, and what was done, as JSON; `done` is `None` for a dry run."""
    return {
        "table": table,
        "applied": done is not None,
        "steps": [
            {
                "kind": step.kind,
                "files": list(step.files),
                "reason": step.reason,
                "done": None if done is None else done[number],
            }
            for number, step in enumerate(plan.steps)
        ],
        "unrepairable": [{"kind": p.kind, "files": list(p.files), "message": p.message} for p in plan.unrepairable],
        "leftToCleanup": [{"kind": p.kind, "files": list(p.files), "message": p.message} for p in plan.left_to_cleanup],
    }


def _write_plan(table: str, plan: "Plan", output: Output) -> None:
    output.line(table, "bold")
    for number, step in enumerate(plan.steps, 1):
        output.line(f"{number}. {_DOES[step.kind]}", "cyan")
        for name in step.files[:_MOST_FILES]:
            output.line(f"     {name}")
        if len(step.files) > _MOST_FILES:
            output.line(f"     … and {len(step.files) - _MOST_FILES:,} more")
        output.line(f"     because: {step.reason}", "dim")
    for problem in plan.unrepairable:
        output.line(f"can't be repaired: {problem.message}", "red")
    for problem in plan.left_to_cleanup:
        output.line(f"left to the next cleanup of the log: {problem.message}", "dim")
    if not plan.steps and not plan.unrepairable:
        output.line("nothing to repair", "green")
