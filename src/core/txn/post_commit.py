"""What follows a commit and can't undo it: the handle's newer snapshot, the checksum, the checkpoint, the cleanup."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...settings.honoured import COMPACTED_LOG_WRITES, WRITE_CHECKSUM
from ..log import checksum
from ..protocol.actions import Action, CommitInfo
from ..protocol.paths import crc_name
from . import manifests
from .conflict import Winner

if TYPE_CHECKING:
    from ..table.snapshot import Snapshot
    from ..upkeep.checkpoint_writer import SidecarWriter
    from .writable_log import WritableLog

logger = logging.getLogger(__name__)


def after_commit(
    log: "WritableLog",
    read: "Snapshot | None",
    *,
    winners: Sequence[Winner],
    version: int,
    info: CommitInfo,
    actions: Sequence[Action],
    sidecar_writer: "SidecarWriter | None" = None,
) -> None:
    """Do what follows the commit of `info` and `actions` as `version`.

    `winners` are the commits between `read`, the snapshot of the transaction (`None` for a new table), and this one.
    Each step that fails is logged as a warning, for the commit stands.
    """
    try:
        rows = [*((winner.version, winner.actions) for winner in winners), (version, (info, *actions))]
        snapshot = log.committed(read, rows)
    except Exception:
        _warn(log, version, "this handle couldn't take note of it, and will read it again")
        return
    for step in (
        _Step("its checksum wasn't written", lambda: _write_checksum(log, snapshot, info)),
        _Step(
            "its symlink manifests weren't written: GENERATE symlink_format_manifest writes them anew",
            lambda: manifests.after(log, read, snapshot, actions),
        ),
        _Step(
            "its checkpoint wasn't written, or isn't pointed at: reading the table takes longer until the next one is",
            lambda: _write_checkpoint(log, snapshot, sidecar_writer),
        ),
        _Step(
            "the expired part of its log wasn't removed: the next checkpoint will try again",
            lambda: _clean_up(log, snapshot),
        ),
        _Step(
            "its log wasn't compacted: reading the table takes longer until the next checkpoint",
            lambda: _compact(log, snapshot),
        ),
    ):
        try:
            step.run()
        except Exception:
            _warn(log, version, step.failure)


class _Step(NamedTuple):
    """One thing that a commit may be followed by: what to say where it fails, and what decides and does it."""

    failure: str
    run: Callable[[], object]


def _checkpoint_is_due(snapshot: "Snapshot") -> bool:
    return snapshot.version > 0 and snapshot.version % snapshot.properties.checkpoint_interval == 0


def _write_checkpoint(log: "WritableLog", snapshot: "Snapshot", sidecar_writer: "SidecarWriter | None") -> None:
    if _checkpoint_is_due(snapshot):
        log.write_checkpoint(snapshot, sidecar_writer)


def _clean_up(log: "WritableLog", snapshot: "Snapshot") -> None:
    if _checkpoint_is_due(snapshot) and snapshot.properties.enable_expired_log_cleanup:
        log.clean_up_after(snapshot)


def _compact(log: "WritableLog", snapshot: "Snapshot") -> None:
    if not _checkpoint_is_due(snapshot) and COMPACTED_LOG_WRITES.of(log.conf):
        log.compact_after(snapshot)


def _write_checksum(log: "WritableLog", snapshot: "Snapshot", info: CommitInfo) -> None:
    """Write `<version>.crc` where the totals are known at no cost (PROTOCOL.md, "Version Checksum File").

    Unless the session forbids it.
    """
    if not WRITE_CHECKSUM.of(log.conf):
        return
    totals = snapshot.totals()
    if totals is None:
        return
    told = checksum.of(
        snapshot,
        totals,
        txn_id=info.txn_id,
        in_commit_timestamp=info.in_commit_timestamp,
        most_files=checksum.most_files(log.conf),
    )
    data = checksum.serialise(told)
    try:
        log.store.write(f"{log.log_path}/{crc_name(snapshot.version)}", data)
    except FileExistsError:
        # Never overwritten; a reader may have written it by now, or a lost reply was asked again.
        logger.info("%s: version %d has a checksum already", log.table, snapshot.version)


def _warn(log: "WritableLog", version: int, what: str) -> None:
    logger.warning("%s: version %d was committed, but %s", log.table, version, what, exc_info=True)
