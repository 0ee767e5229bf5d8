"""Repairs of a table: what `plan` proposes from what was found, and what `apply` does.

Nothing is invented: a repair removes what contradicts the commits, writes again what follows from them, or takes files
that don't exist out of the table by a commit. A damaged or missing commit can't be repaired: restore it from a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..log import checksum
from ..log_maintenance.problems import Problem
from ..protocol.actions import CommitInfo
from ..protocol.paths import crc_name, parse_log_name
from ..txn.operation import Operation
from .table_files import TableFiles

if TYPE_CHECKING:
    from ..deltalog import DeltaLog
    from ..log_maintenance.problems import LogHealth

Kind: TypeAlias = Literal[
    "delete-compaction",
    "delete-checksum",
    "delete-checkpoint",
    "remove-missing-files",
    "write-checkpoint",
    "write-checksum",
]

_COMPACTIONS = ("compaction-damaged", "compaction-wrong")
_CHECKSUMS = ("checksum-damaged", "checksum-wrong")
_IN_DOUBT = ("checkpoint-too-new", "checkpoints-differ", "checksum-contradicts", "checksum-too-new")
"""Problems after which it isn't known what the table has: no checkpoint is written that would decide it."""
_LEFT_TO_CLEANUP = ("commits-unused", "checkpoint-incomplete", "sidecars-unused")


@dataclass(frozen=True, slots=True)
class Step:
    """One repair: the files that it deletes, writes, or takes out of the table, and why."""

    kind: Kind
    files: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The repairs in the order in which they are done, and the problems that remain."""

    steps: tuple[Step, ...]
    unrepairable: tuple["Problem", ...]
    left_to_cleanup: tuple["Problem", ...]


def plan(health: "LogHealth", missing: Sequence[str], *, append_only: bool = False) -> Plan:
    """Decide the repairs. It reads and writes nothing.

    Args:
        health: The state of the log.
        missing: The paths in the log of live files that don't exist.
        append_only: Whether the table lets nobody remove rows (`delta.appendOnly`).

    Returns:
        The plan.
    """
    steps: list[Step] = []
    remaining: list[Problem] = []
    writes_checkpoint: list[str] = []
    newest_checksum = crc_name(health.newest)
    for problem in health.problems:
        if problem.kind in _COMPACTIONS:
            steps.append(Step("delete-compaction", problem.files, problem.message))
        elif problem.kind in _CHECKSUMS:
            steps.append(Step("delete-checksum", problem.files, problem.message))
        elif problem.kind == "checkpoint-wrong" or (
            problem.kind == "checkpoint-damaged" and _is_readable(health, problem.files)
        ):
            steps.append(Step("delete-checkpoint", problem.files, problem.message))
            writes_checkpoint.append("a new one replaces it")
        elif problem.kind == "hint-wrong":
            writes_checkpoint.append(problem.message)
        elif problem.kind not in _LEFT_TO_CLEANUP:
            remaining.append(problem)
    if missing and append_only:
        remaining.append(
            Problem(
                "error",
                "files-missing",
                tuple(missing),
                f"{len(missing)} data files don't exist, and the table is append-only. Restore them from a copy, or "
                "unset delta.appendOnly and repair again: their rows are lost then",
            )
        )
    elif missing:
        reason = "these data files don't exist, and their rows are lost: without them the table can be read again"
        steps.append(Step("remove-missing-files", tuple(missing), reason))
    certain = not any(problem.kind in _IN_DOUBT for problem in remaining)
    if certain and writes_checkpoint and health.readable and health.readable[-1][1] == health.newest:
        steps.append(Step("write-checkpoint", ("_last_checkpoint",), writes_checkpoint[-1]))
    deleted = {name for step in steps if step.kind == "delete-checksum" for name in step.files}
    if newest_checksum in deleted and not any(step.kind == "remove-missing-files" for step in steps):
        steps.append(Step("write-checksum", (newest_checksum,), "it is computed from the log"))
    order: list[Kind] = ["delete-compaction", "delete-checksum", "delete-checkpoint", "remove-missing-files"]
    steps.sort(key=lambda step: order.index(step.kind) if step.kind in order else len(order))
    left = tuple(problem for problem in health.problems if problem.kind in _LEFT_TO_CLEANUP)
    return Plan(tuple(steps), tuple(remaining), left)


def _is_readable(health: "LogHealth", names: Sequence[str]) -> bool:
    """Whether the version of a damaged checkpoint can be read without it, so that nothing needs its remains."""
    file = parse_log_name(names[0])
    return file is not None and any(first <= file.version <= last for first, last in health.readable)


def apply(log: "DeltaLog", step: Step, files: TableFiles) -> str:
    """Do one repair.

    Args:
        log: A handle on the table that was opened after the repairs before this one.
        step: The repair.
        files: The table's directory.

    Returns:
        What was done, in a few words.

    Raises:
        DeltaConcurrentModificationException: Another writer changed the same files.
        StorageError: The store failed.
        UnsupportedFeatureError: The table needs a feature that tablelog can't write.
    """
    if step.kind == "remove-missing-files":
        return _remove_missing(log, step.files, files)
    if step.kind == "write-checkpoint":
        return f"wrote the checkpoint of version {log.checkpoint().version}"
    if step.kind == "write-checksum":
        return _write_checksum(log)
    if not any(one.kind == step.kind and one.files == step.files for one in plan(log.health(), ()).steps):
        return f"another program has repaired it: kept {', '.join(step.files)}"
    for name in step.files:
        log.store.delete(f"{log.log_path}/{name}")
    return f"deleted {', '.join(step.files)}"


def _remove_missing(log: "DeltaLog", paths_in_log: Sequence[str], files: TableFiles) -> str:
    """Commit the removal of the files that still don't exist."""
    transaction = log.transaction()
    snapshot = log.snapshot()
    absent = set(files.absent(paths_in_log))
    names = snapshot.files.column("path").to_pylist()
    gone = snapshot.add_files([row for row, name in enumerate(names) if name in absent])
    if not gone:
        return "all files exist again"
    now = log.clock.now_ms()
    metrics = {"numRemovedFiles": len(gone), "removedFilesSize": sum(add.size for add in gone)}
    committed = transaction.commit([add.remove(now) for add in gone], Operation("FSCK", {"dryRun": False}, metrics))
    many = f"{len(gone)} file{'' if len(gone) == 1 else 's'}"
    return f"took {many} out of the table by version {committed.version}"


def _write_checksum(log: "DeltaLog") -> str:
    """Write the checksum of the newest version from its replayed state."""
    snapshot = log.snapshot()
    _ = snapshot.files
    totals = snapshot.totals()
    assert totals is not None  # the files were read
    info = log.reader.commit_info(snapshot.version) or CommitInfo()
    content = checksum.of(
        snapshot,
        totals,
        txn_id=info.txn_id,
        in_commit_timestamp=info.in_commit_timestamp,
        most_files=checksum.most_files(log.conf),
    )
    name = crc_name(snapshot.version)
    try:
        log.store.write(f"{log.log_path}/{name}", checksum.serialise(content))
    except FileExistsError:
        return f"another writer wrote {name}"
    return f"wrote {name}"
