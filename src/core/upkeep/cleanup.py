"""Cleanup of expired logs: what no reader of a retained version needs (PROTOCOL.md, "Metadata Cleanup").

Everything before one checkpoint goes. It is the newest that is older than the retention, by every clock that counts,
and it has been read whole before anything is removed: what it stands for can't be had any more afterwards. A version
is retained that is at or after that checkpoint, and it stays as it is, its timestamp included.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...errors import CorruptLogError, MissingCommitError
from ...logstore.base import FileStatus, LogStore
from ..log.checkpoint import CheckpointState
from ..log.checkpoint_file import ReplacedError
from ..log.reader import LogReader
from ..log.replay import CommitOverlay
from ..log.segment import Checkpoint, Listing, name_of, parse_listing
from ..protocol.actions import Action, CheckpointMetadata
from ..protocol.features import supported
from ..protocol.paths import SIDECAR_DIRECTORY, checkpoint_name, decode, listing_name, parse_log_name
from ..table.history import file_times, monotonic
from ..table.snapshot import Snapshot

_log = logging.getLogger(__name__)

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
_YOUNGEST_MS = 300_000
"""Never removed, whatever the retention: a transaction relies on a version that it listed a minute ago."""
_STAGING = ".tmp"
"""Where the DynamoDB store has the bytes of a commit before it has its name."""
_THREADS = 8


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What was removed, by name, and the version that the log begins with now; `None`: nothing was to be removed."""

    first_version: int | None = None
    removed: tuple[str, ...] = ()


# --- the decision -----------------------------------------------------------------------------------------------------


def cut_off(now_ms: int, retention_ms: int, truncate_to_ms: int = DAY_MS) -> int:
    """Until when a log has expired, in milliseconds: the retention before now, back to the last full day (UTC)."""
    return min((now_ms - retention_ms) // truncate_to_ms * truncate_to_ms, now_ms - _YOUNGEST_MS)


def oldest_files(statuses: Iterable[FileStatus], cutoff_ms: int) -> list[FileStatus]:
    """The files at the beginning of a listing, up to the first commit that hasn't expired by its file's time.

    No later commit has: times count as rising. As the listing is an iterator, the rest of it costs nothing.
    """
    found = []
    for status in statuses:
        file = parse_log_name(name_of(status))
        if file is not None and file.kind == "commit" and status.modification_time_ms > cutoff_ms:
            break
        found.append(status)
    return found


def boundaries(listing: Listing, cutoff_ms: int) -> list[Checkpoint]:
    """The checkpoints before which all may be removed, newest first, the better of one version before the others.

    Their version was committed no later than the cutoff and so were all before. Its time must be that of its own file:
    one that was lifted above an earlier commit's time would sink back once that is gone (see `history.monotonic`).
    """
    raw = file_times(listing, 0, listing.newest or 0)
    fit = {v for (v, time), (_, lifted) in zip(raw, monotonic(raw), strict=True) if time == lifted <= cutoff_ms}
    return [checkpoint for checkpoint in reversed(listing.checkpoints) if checkpoint.version in fit]


def expired(statuses: Iterable[FileStatus], boundary: int) -> list[FileStatus]:
    """The files that the checkpoint of version `boundary` makes superfluous, in the order of versions.

    The commit of the boundary itself stays: no checkpoint holds its `commitInfo`. Compactions that begin at it or
    before can't be used any more; names that the protocol doesn't know are nobody's to remove.
    """
    found = []
    for status in statuses:
        file = parse_log_name(name_of(status))
        if file is None:
            continue
        last_needed = boundary + 1 if file.kind == "compacted" else boundary
        if (file.version if file.first is None else file.first) < last_needed:
            found.append(status)
    return found


def unreferenced(sidecars: Iterable[FileStatus], referenced: Collection[str], now_ms: int) -> list[FileStatus]:
    """The sidecars that no checkpoint names and none that is being written now will: older than a day at midnight."""
    oldest = now_ms // DAY_MS * DAY_MS - DAY_MS
    return [s for s in sidecars if name_of(s) not in referenced and s.modification_time_ms < oldest]


# --- the act ----------------------------------------------------------------------------------------------------------


def clean_up(
    store: LogStore,
    log_path: str,
    snapshot: Snapshot,
    reader: LogReader,
    now_ms: int,
    *,
    in_commit_timestamp: Callable[[int], int | None],
    retention_ms: int | None = None,
    truncate_to_ms: int = DAY_MS,
) -> CleanUp:
    """Remove what has expired of the log of a table, whose newest version `snapshot` is.

    `in_commit_timestamp` gives that of a version, `None` where the table didn't have them yet: a version expires when
    both it and the file's time are past. `retention_ms` takes the place of `delta.logRetentionDuration`. One list
    where nothing has expired. Of `checkpointProtection` the second exception holds: no checkpoint is made of an old
    version, and none at or after the boundary is removed.
    """
    retention = snapshot.properties.log_retention_ms if retention_ms is None else retention_ms
    cutoff = cut_off(now_ms, retention, truncate_to_ms)
    old = oldest_files(store.list_from(f"{log_path}/{listing_name(0)}"), cutoff)
    listing = parse_listing(old)
    for boundary in boundaries(listing, cutoff):
        files = expired(old, boundary.version)
        if not files:
            return CleanUp()
        told = in_commit_timestamp(boundary.version)
        if told is not None and told > cutoff:
            continue
        if _is_sound(store, log_path, snapshot.table, boundary, listing, reader):
            break
    else:
        return CleanUp()
    newer = reader.list(boundary.version)
    if "v2Checkpoint" in supported(snapshot.protocol):
        _tell_old_readers(store, log_path, snapshot, newer)
    removed = _remove(store, files)
    # A classic name may stand for sidecars too, and a table may have had them before its protocol was lowered.
    gone = [file for name in removed if (file := parse_log_name(name)) and file.kind == "checkpoint"]
    if gone and ("v2Checkpoint" in supported(snapshot.protocol) or any(file.uuid for file in gone)):
        removed += _remove(store, _lost_sidecars(store, log_path, snapshot.table, newer, now_ms))
    removed += _remove(store, _lost_staging(store, log_path, boundary.version, now_ms))
    _log.info("%s: %d expired files of the log were removed", snapshot.table, len(removed))
    return CleanUp(boundary.version, tuple(removed))


def _is_sound(
    store: LogStore, log_path: str, table: str, checkpoint: Checkpoint, listing: Listing, reader: LogReader
) -> bool:
    """Whether the checkpoint can stand for all before it: it is read whole, and compared with its version's `.crc`."""
    try:
        state = opened(store, log_path, table, checkpoint)
        told = reader.checksum(listing.checksums.get(checkpoint.version))
        whole = Snapshot(
            table,
            state.version,
            state.header,
            CommitOverlay(table),
            state,
            timestamp=lambda _: 0,
            checksum=told,
            fatal=True,
        )
        _ = whole.files, whole.tombstones
    except (CorruptLogError, ReplacedError) as error:
        _log.warning("%s: nothing is removed for the checkpoint %s: %s", table, checkpoint.names[0], error)
        return False
    return True


def opened(store: LogStore, log_path: str, table: str, checkpoint: Checkpoint) -> CheckpointState:
    """The state in a checkpoint, and in nothing else: damage that is found late is an error too."""

    def nothing_else(names: tuple[str, ...]) -> Snapshot:
        raise MissingCommitError(f"nothing else than {names[0]} of {table} is asked")

    return CheckpointState(store, log_path, table, checkpoint, nothing_else)


def _remove(store: LogStore, files: Sequence[FileStatus]) -> list[str]:
    """Remove the files, the first one before all others: a log without its first commit begins at a checkpoint."""
    for status in files[:1]:
        store.delete(status.path)
    if len(files) > 1:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(store.delete, (status.path for status in files[1:])))
    return [name_of(status) for status in files]


def _tell_old_readers(store: LogStore, log_path: str, snapshot: Snapshot, newer: Listing) -> None:
    """Give the newest V2 checkpoint its classic name as well, by which a reader that doesn't know them finds out why.

    Without the commits it would else see a log with no beginning.
    """
    from .checkpoint_rows import layout
    from .checkpoint_writer import top_level

    newest = newer.checkpoints[-1]
    if newest.uuid is None:
        return
    try:
        state = opened(store, log_path, snapshot.table, newest)
        if not state.sidecars:
            return  # its files are in it: a copy would be as large
        header = state.header
        assert header.protocol is not None
        assert header.metadata is not None
        actions: list[Action] = [CheckpointMetadata(newest.version), header.protocol, header.metadata]
        actions += [*header.transactions.values(), *header.domains.values(), *state.sidecars]
        store.write(f"{log_path}/{checkpoint_name(newest.version)}", top_level(actions, layout(snapshot).type))
    except FileExistsError:
        pass
    except (CorruptLogError, ReplacedError) as error:
        _log.warning("%s: the checkpoint %s can't be read: %s", snapshot.table, newest.names[0], error)


def _lost_sidecars(store: LogStore, log_path: str, table: str, newer: Listing, now_ms: int) -> list[FileStatus]:
    referenced: set[str] = set()
    try:
        sidecars = list(store.list_from(f"{log_path}/{SIDECAR_DIRECTORY}/0"))
        for checkpoint in newer.checkpoints if sidecars else ():
            found = opened(store, log_path, table, checkpoint).sidecars
            referenced.update(decode(sidecar.path).rpartition("/")[2] for sidecar in found)
    except FileNotFoundError:
        return []
    except (CorruptLogError, ReplacedError) as error:
        _log.warning("%s: no sidecar is removed, for a checkpoint that may name it can't be read: %s", table, error)
        return []
    return unreferenced(sidecars, referenced, now_ms)


def _lost_staging(store: LogStore, log_path: str, boundary: int, now_ms: int) -> list[FileStatus]:
    """Staged bytes of commits before the boundary: those have their own name by now, or never will."""
    try:
        staged = list(store.list_from(f"{log_path}/{_STAGING}/0"))
    except FileNotFoundError:
        return []
    return [
        status
        for status in staged
        if (file := parse_log_name(name_of(status).rpartition(".")[0])) is not None
        and file.version < boundary
        and status.modification_time_ms < now_ms - DAY_MS
    ]
