"""The steps after a commit, which can't undo it: the handle's new snapshot, the checksum, the checkpoint, cleanup."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ... import observe
from ...settings.declarations import COMPACTED_LOG_WRITES, CORRUPTION_IS_FATAL, WRITE_CHECKSUM
from ..iceberg import enabled as iceberg_enabled
from ..log import checksum
from ..protocol.actions import Action, CommitInfo
from ..protocol.paths import crc_name
from ..table.checked_pieces import check_base
from ..table.second_reading import doubt
from . import manifests
from .conflict import Winner

if TYPE_CHECKING:
    from ..log.replay import Totals
    from ..log_maintenance.checkpoint_writer import SidecarWriter
    from ..table.snapshot import Snapshot
    from .bulk_actions import BulkActions
    from .writable_log import WritableLog

logger = logging.getLogger(__name__)

_PART_SIZE = 1_000_000
"""The most files in one part of the checkpoint after a removal of all files, unless the session sets it."""
_PART_SIZE_WITH_STATS = 400_000
"""The same if files stay or were added: with statistics, this is a file of some 80 MiB, and readers fetch eight."""
_MOST_ACTIONS = 131_072
"""With more file actions after the last checkpoint a new one is due: each handle has an object for each of them."""
_NO_CHECKSUM = "its checksum wasn't written"


def after_commit(
    log: "WritableLog",
    read: "Snapshot | None",
    *,
    winners: Sequence[Winner],
    version: int,
    info: CommitInfo,
    actions: Sequence[Action],
    sidecar_writer: "SidecarWriter | None" = None,
    bulk: "BulkActions | None" = None,
) -> "Snapshot | None":
    """Do the steps that follow the commit of `info` and `actions` as `version`.

    A step that fails is logged as a warning, because the commit is valid without it.

    Args:
        log: The handle on the table's log.
        read: The snapshot of the transaction, or of an earlier commit of its command (`None` for a new table).
        winners: The commits between `read` and this one.
        version: The version of this commit.
        info: Its commitInfo.
        actions: Its other actions.
        sidecar_writer: Writes the sidecars of a checkpoint; `None`: the core writes them.
        bulk: What the commit does to files beside its actions.

    Returns:
        The snapshot of `version`, if it is in memory.
    """
    if bulk is not None:
        # The actions of a winner that is too large for memory aren't all known here.
        known = all(winner.more is None for winner in winners)
        commits = [*(winner.actions for winner in winners), actions] if known else None
        _after_bulk(log, bulk, commits, version, info)
        return None
    try:
        rows = [*((w.version, w.actions) for w in winners if w.more is None), (version, (info, *actions))]
        if len(rows) <= len(winners):  # one is too large for memory
            log.forget()
            log.snapshot()
            snapshot = log.snapshot(version)
        else:
            snapshot = log.committed(read, rows)
    except Exception:
        _warn(log, version, "this handle couldn't update its snapshot: the next read reads the log again")
        return None
    for step in (
        _Step(_NO_CHECKSUM, lambda: _write_checksum(log, snapshot, info, snapshot.totals())),
        _Step(
            "its symlink manifests weren't written: write them with GENERATE symlink_format_manifest",
            lambda: manifests.after(log, read, snapshot, actions),
        ),
        _Step(
            "Iceberg's metadata doesn't have it: the next commit tries again",
            lambda: _write_iceberg(log, snapshot, rows),
        ),
        _Step(
            "its checkpoint wasn't written, or _last_checkpoint doesn't name it: reading the table takes longer until "
            "the next checkpoint",
            lambda: _write_checkpoint(log, snapshot, sidecar_writer),
        ),
        _Step(
            "expired files of its log weren't removed: the next checkpoint tries again",
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
    return snapshot


def _after_bulk(
    log: "WritableLog", bulk: "BulkActions", commits: Sequence[Sequence[Action]] | None, version: int, info: CommitInfo
) -> None:
    """Write the checkpoint of the version at once: it spares all readers the reading of the commit.

    `commits` are as in `BulkActions.after`; `None`: the version must be read from the log.
    """
    log.forget()
    try:
        time_ms = info.timestamp if info.in_commit_timestamp is None else info.in_commit_timestamp
        written = None if commits is None else bulk.after(commits, version, time_ms or 0)
        if written is None:
            log.snapshot()
            written = log.snapshot(version)
        only_removes = bulk.every_file and not bulk.num_added
        log.write_checkpoint(written, part_size=_PART_SIZE if only_removes else _PART_SIZE_WITH_STATS)
        log.forget()
        snapshot = log.snapshot(version)
    except Exception:
        _warn(
            log,
            version,
            "its checkpoint wasn't written: each reader sorts the whole commit on its local disk until a writer does",
        )
        return
    try:
        _write_checksum(log, snapshot, info, written.totals())
    except Exception:
        _warn(log, version, _NO_CHECKSUM)
    try:
        if snapshot.properties.enable_expired_log_cleanup:
            log.clean_up_after(snapshot)
    except Exception:
        _warn(log, version, "expired files of its log weren't removed: the next checkpoint tries again")


class _Step(NamedTuple):
    """One step after a commit: the warning if it fails, and the function that decides whether to do it and does it."""

    failure: str
    run: Callable[[], object]


def _checkpoint_is_due(snapshot: "Snapshot") -> bool:
    if _lacks_checkpoint(snapshot) or snapshot.tail_actions > _MOST_ACTIONS:
        return True
    return snapshot.version > 0 and snapshot.version % snapshot.properties.checkpoint_interval == 0


def _lacks_checkpoint(snapshot: "Snapshot") -> bool:
    """Whether the log has a large commit and no checkpoint since, which makes each reader sort the commit."""
    return snapshot.base is not None and not snapshot.base.in_log


def _write_checkpoint(log: "WritableLog", snapshot: "Snapshot", sidecar_writer: "SidecarWriter | None") -> None:
    if _lacks_checkpoint(snapshot):
        log.write_checkpoint(snapshot, part_size=_PART_SIZE_WITH_STATS)
        log.forget()  # the next snapshot is read from this checkpoint
    elif _checkpoint_is_due(snapshot):
        if CORRUPTION_IS_FATAL.of(log.conf) and not (snapshot.base is not None and snapshot.base.is_large):
            # A large checkpoint isn't read on the driver for this: VACUUM and the cleanup of the log compare it.
            check_base(log.reader, snapshot, partial(doubt, log.store, log.log_path, log.reader))
        log.write_checkpoint(snapshot, sidecar_writer)


def _clean_up(log: "WritableLog", snapshot: "Snapshot") -> None:
    if _checkpoint_is_due(snapshot) and snapshot.properties.enable_expired_log_cleanup:
        log.clean_up_after(snapshot)


def _compact(log: "WritableLog", snapshot: "Snapshot") -> None:
    if not _checkpoint_is_due(snapshot) and COMPACTED_LOG_WRITES.of(log.conf):
        log.compact_after(snapshot)


def _write_iceberg(log: "WritableLog", snapshot: "Snapshot", rows: Sequence[tuple[int, Sequence[Action]]]) -> None:
    if iceberg_enabled.is_enabled(snapshot.metadata):
        from ..iceberg.convert import convert

        convert(log, log.store, snapshot, dict(rows))


def _write_checksum(log: "WritableLog", snapshot: "Snapshot", info: CommitInfo, totals: "Totals | None") -> None:
    """Write `<version>.crc` if the totals are known (PROTOCOL.md, "Version Checksum File").

    The session can disable it.
    """
    if totals is None or not WRITE_CHECKSUM.of(log.conf):
        return
    version_checksum = checksum.of(
        snapshot,
        totals,
        txn_id=info.txn_id,
        in_commit_timestamp=info.in_commit_timestamp,
        most_files=checksum.most_files(log.conf),
    )
    data = checksum.serialise(version_checksum)
    try:
        log.store.write(f"{log.log_path}/{crc_name(snapshot.version)}", data)
    except FileExistsError:
        # A checksum is never overwritten. A reader may have written it, or a write whose reply was lost was repeated.
        fields = observe.fields(log.table, version=snapshot.version, store=log.store, outcome="exists")
        logger.info("%s: version %d has a checksum already", log.table, snapshot.version, extra=fields)


def _warn(log: "WritableLog", version: int, problem: str) -> None:
    fields = observe.fields(log.table, version=version, store=log.store, outcome="failed")
    logger.warning("%s: version %d was committed, but %s", log.table, version, problem, exc_info=True, extra=fields)
