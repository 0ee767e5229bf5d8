"""Cleanup of expired log files: removes what no reader of a retained version needs (PROTOCOL.md, "Metadata Cleanup").

Everything before one checkpoint is removed. This is the newest checkpoint that is older than the retention, by all
relevant times. It is read completely before anything is removed, because it then replaces the removed files. Versions
from that checkpoint on are retained and don't change, including their timestamps.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...errors import CorruptLogError
from ...logstore.base import FileStatus, LogStore
from ..log.checkpoint import checkpoint_alone
from ..log.checkpoint_file import ReplacedError
from ..log.reader import LogReader
from ..log.segment import Checkpoint, Listing, name_of, parse_listing
from ..protocol.actions import Action, CheckpointMetadata
from ..protocol.features import supported
from ..protocol.paths import SIDECAR_DIRECTORY, checkpoint_name, decode, listing_name, parse_log_name
from ..table.checked_pieces import checked_pieces, of_checkpoint
from ..table.snapshot import Snapshot
from ..table.version_times import file_times, monotonic

_log = logging.getLogger(__name__)

DAY_MS = 86_400_000
_YOUNGEST_MS = 300_000
"""Files younger than this are never removed: a transaction relies on a version that it listed a minute ago."""
_STAGING = ".tmp"
"""The directory in which the DynamoDB store writes the data of a commit before it has its final name."""
_THREADS = 8


@dataclass(frozen=True, slots=True)
class CleanUp:
    """The removed files, and the first version that remains in the log; `None`: nothing was removed."""

    first_version: int | None = None
    removed: tuple[str, ...] = ()


# --- the decision -----------------------------------------------------------------------------------------------------


def cut_off(now_ms: int, retention_ms: int, truncate_to_ms: int = DAY_MS) -> int:
    """The time before which a log has expired, in milliseconds: now minus retention, rounded down to a day (UTC)."""
    return min((now_ms - retention_ms) // truncate_to_ms * truncate_to_ms, now_ms - _YOUNGEST_MS)


def oldest_files(statuses: Iterable[FileStatus], cutoff_ms: int) -> list[FileStatus]:
    """The files at the start of a listing, up to the first commit whose file hasn't expired.

    Later commits haven't expired either, because times ascend. The rest of the listing isn't read.
    """
    oldest = []
    for status in statuses:
        file = parse_log_name(name_of(status))
        if file is not None and file.kind == "commit" and status.modification_time_ms > cutoff_ms:
            break
        oldest.append(status)
    return oldest


def boundaries(listing: Listing, cutoff_ms: int) -> list[Checkpoint]:
    """The checkpoints before which everything may be removed, newest first, the preferred one of a version first.

    Their version and all versions before were committed at or before the cutoff. The time must be the file's own: a
    time that was raised above an earlier commit's would fall back once that is removed (see `version_times.monotonic`).
    """
    raw = file_times(listing, 0, listing.newest or 0)
    eligible = {v for (v, time), (_, lifted) in zip(raw, monotonic(raw), strict=True) if time == lifted <= cutoff_ms}
    return [checkpoint for checkpoint in reversed(listing.checkpoints) if checkpoint.version in eligible]


def expired(statuses: Iterable[FileStatus], boundary: int) -> list[FileStatus]:
    """The files that the checkpoint of version `boundary` replaces, in the order of versions.

    The commit of the boundary itself remains, because no checkpoint has its `commitInfo`. Compactions that start at it
    or before can't be used any more. Files with unknown names aren't removed.
    """
    files = []
    for status in statuses:
        file = parse_log_name(name_of(status))
        if file is None:
            continue
        last_needed = boundary + 1 if file.kind == "compacted" else boundary
        if (file.version if file.first is None else file.first) < last_needed:
            files.append(status)
    return files


def unreferenced(sidecars: Iterable[FileStatus], referenced: Collection[str], now_ms: int) -> list[FileStatus]:
    """The sidecars that no checkpoint refers to or will refer to: they were older than a day at the last midnight."""
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
    """Remove the expired files of a table's log.

    It costs one listing if nothing has expired. It uses the second exception of `checkpointProtection`: no checkpoint
    of an old version is written, and none at or after the boundary is removed.

    Args:
        store: The store of the log.
        log_path: URI of the log directory.
        snapshot: The newest version.
        reader: Reads the log.
        now_ms: The current time in milliseconds since the epoch.
        in_commit_timestamp: The in-commit timestamp of a version, `None` if the table didn't have them then: a version
            expires when both this and its file's time have expired.
        retention_ms: Replaces `delta.logRetentionDuration`, in milliseconds.
        truncate_to_ms: The cut-off time is rounded down to a multiple of this.

    Returns:
        The removed files.
    """
    retention = snapshot.properties.log_retention_ms if retention_ms is None else retention_ms
    cutoff = cut_off(now_ms, retention, truncate_to_ms)
    old = oldest_files(store.list_from(f"{log_path}/{listing_name(0)}"), cutoff)
    listing = parse_listing(old)
    for boundary in boundaries(listing, cutoff):
        files = expired(old, boundary.version)
        if not files:
            return CleanUp()
        timestamp = in_commit_timestamp(boundary.version)
        if timestamp is not None and timestamp > cutoff:
            continue
        if _is_sound(store, log_path, snapshot.table, boundary, reader):
            break
    else:
        return CleanUp()
    newer = reader.list(boundary.version)
    if "v2Checkpoint" in supported(snapshot.protocol):
        _write_classic_name(store, log_path, snapshot, newer)
    removed = _remove(store, files)
    # A checkpoint with a classic name may have sidecars too, and so may an old one of a table without the feature.
    removed_checkpoints = [file for name in removed if (file := parse_log_name(name)) and file.kind == "checkpoint"]
    if removed_checkpoints and (
        "v2Checkpoint" in supported(snapshot.protocol) or any(file.uuid for file in removed_checkpoints)
    ):
        removed += _remove(store, _lost_sidecars(store, log_path, snapshot.table, newer, now_ms))
    removed += _remove(store, _lost_staging(store, log_path, boundary.version, now_ms))
    _log.info("%s: %d expired files of the log were removed", snapshot.table, len(removed))
    return CleanUp(boundary.version, tuple(removed))


def _is_sound(store: LogStore, log_path: str, table: str, checkpoint: Checkpoint, reader: LogReader) -> bool:
    """Whether the checkpoint can replace all files before it: reads it completely and compares it with its `.crc`."""
    try:
        state = checkpoint_alone(store, log_path, table, checkpoint)
        whole = of_checkpoint(table, state, reader.checksum(checkpoint.checksum))
        for _piece in checked_pieces(whole):
            pass
        for _piece in whole.tombstone_pieces():
            pass
    except (CorruptLogError, ReplacedError) as error:
        _log.warning("%s: nothing is removed for the checkpoint %s: %s", table, checkpoint.names[0], error)
        return False
    return True


def _remove(store: LogStore, files: Sequence[FileStatus]) -> list[str]:
    """Remove the files, the first one before the others: a log without its first commit starts at a checkpoint."""
    for status in files[:1]:
        store.delete(status.path)
    if len(files) > 1:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(store.delete, (status.path for status in files[1:])))
    return [name_of(status) for status in files]


def _write_classic_name(store: LogStore, log_path: str, snapshot: Snapshot, newer: Listing) -> None:
    """Write the newest V2 checkpoint under a classic name too, for readers that don't support V2.

    They then get an error about the feature; otherwise they would see a log without a start.
    """
    from .checkpoint_parquet import top_level
    from .checkpoint_rows import layout

    newest = newer.checkpoints[-1]
    if newest.uuid is None:
        return
    try:
        state = checkpoint_alone(store, log_path, snapshot.table, newest)
        if not state.sidecars:
            return  # the checkpoint itself contains the files: a copy would be as large
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
            sidecars_ = checkpoint_alone(store, log_path, table, checkpoint).sidecars
            referenced.update(decode(sidecar.path).rpartition("/")[2] for sidecar in sidecars_)
    except FileNotFoundError:
        return []
    except (CorruptLogError, ReplacedError) as error:
        _log.warning("%s: no sidecar is removed, because a checkpoint that may use it can't be read: %s", table, error)
        return []
    return unreferenced(sidecars, referenced, now_ms)


def _lost_staging(store: LogStore, log_path: str, boundary: int, now_ms: int) -> list[FileStatus]:
    """Staged data of commits before the boundary: it was moved to its final name, or never will be."""
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
