"""VACUUM without Spark: deletes the files in a table's directory that no version within the retention period needs.

Two commits record the run: VACUUM START and VACUUM END.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from ...errors import ConcurrentWriteException, DeltaConcurrentModificationException, InvalidArgumentError
from ...logstore.common import schemes
from ...logstore.common.uri import scheme_of
from ...progress import stage
from ..protocol import deletion_vectors, paths
from ..protocol.actions import Metadata, RemoveFile
from ..table.checked_pieces import check_base
from ..txn.operation import Operation
from . import unneeded_files
from .table_files import THREADS, TableFiles, counted, in_threads
from .unneeded_files import Directory, Needed, Removable

if TYPE_CHECKING:
    from ..deltalog import DeltaLog
    from ..table.snapshot import Snapshot

logger = logging.getLogger(__name__)

Mode: TypeAlias = Literal["FULL", "LITE"]

STAGING_PREFIX = "_tablelog_staging-"
"""The names of directories that a write uses before its commit."""
LAST_VACUUM = "_last_vacuum_info"
_UP_TO = "latestCommitVersionOutsideOfRetentionWindow"
_COMMIT_ATTEMPTS = 5
_DELETED_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of VACUUM: the deletable files and directories, relative to the table, and the number deleted."""

    files: tuple[str, ...]
    directories: tuple[str, ...]
    size_in_bytes: int
    removed: int


@dataclass(frozen=True, slots=True)
class Window:
    """The start of the retention period in milliseconds since the epoch, and the retention settings that apply."""

    before_ms: int
    asked_ms: int | None
    default_ms: int
    checked: bool


def window_of(log: "DeltaLog", snapshot: "Snapshot", hours: float | None, *, checked: bool) -> Window:
    """The retention period; InvalidArgumentError for a negative one, or one that is too short and is `checked`."""
    default = snapshot.properties.deleted_file_retention_ms
    kept = unneeded_files.retention_ms(hours, default, checked=checked, table=log.table)
    return Window(log.clock.now_ms() - kept, None if hours is None else kept, default, checked)


def vacuum(
    log: "DeltaLog",
    snapshot: "Snapshot",
    files: TableFiles,
    window: Window,
    *,
    mode: Mode = "FULL",
    inventory: Callable[[Callable[[str], bool]], Iterable[Directory]] | None = None,
    dry_run: bool = False,
    logged: bool | None = None,
    threads: int | None = None,
    user_metadata: str | None = None,
) -> Vacuumed:
    """Delete the files that no version within the retention period needs.

    Args:
        log: The table's log.
        snapshot: The newest version, whose protocol the caller may write.
        files: The table's directory.
        window: The retention period.
        mode: LITE takes the candidates from the log, not from a listing.
        inventory: Gets a function that tells which names are ignored, and replaces the listing.
        dry_run: Only return the files.
        logged: Whether to commit the start and the end; `None`: if concurrent commits to this log are safe.
        threads: The number of concurrent requests that delete files.
        user_metadata: For the commits.

    Raises:
        InvalidArgumentError: The mode isn't valid, or the log doesn't suffice for LITE.
        StorageError: The storage failed.
    """
    if mode not in ("FULL", "LITE"):
        raise InvalidArgumentError(f"the mode of VACUUM needs to be FULL or LITE, not {mode!r}")
    check_base(log.reader, snapshot)
    needed, version = unneeded_files.needed_by(log, snapshot, window.before_ms, files.same_place)
    hidden = partial(
        unneeded_files.is_hidden,
        partition_columns=_partition_columns(snapshot),
        iceberg="iceberg" in snapshot.metadata.configuration.get("delta.universalFormat.enabledFormats", ""),
    )
    if inventory is not None:
        unneeded = removable(files, inventory(hidden), needed, window.before_ms)
    elif mode == "LITE":
        unneeded = _told_by_log(log, snapshot, files, needed, version)
    else:
        unneeded = removable(files, counted(files.walk(hidden), needed.num_live), needed, window.before_ms)
    if dry_run:
        return _vacuumed(unneeded, 0)
    tell = is_logged(log) if logged is None else logged
    if tell:
        _commit_marker(log, _start(window, unneeded), user_metadata)
    try:
        removed = _deleted(log, snapshot, files, needed, unneeded, threads)
        removed += files.remove_directories(unneeded.empty)
    except BaseException:
        if tell:
            try:
                _commit_marker(log, Operation("VACUUM END", {"status": "FAILED"}), user_metadata)
            except Exception as error:  # the error of the deletion is the one to report
                logger.warning("%s: the end of the failed VACUUM isn't in the log: %s", log.table, error)
        raise
    if tell:
        metrics = {"numDeletedFiles": removed, "numVacuumedDirectories": unneeded.directories_seen}
        _commit_marker(log, Operation("VACUUM END", {"status": "COMPLETED"}, metrics), user_metadata)
    if inventory is None and version is not None:
        _note(log, version)
    logger.info("%s: VACUUM removed %d files and directories, %d bytes", log.table, removed, unneeded.size_in_bytes)
    return _vacuumed(unneeded, removed)


def _deleted(
    log: "DeltaLog", snapshot: "Snapshot", files: TableFiles, needed: Needed, unneeded: Removable, threads: int | None
) -> int:
    """Delete the files of `unneeded`, without those that commits since `snapshot` need; returns how many existed.

    Raises ConcurrentWriteException if the table was replaced by another one.
    """
    known, removed, candidates = snapshot, 0, unneeded.files
    unneeded.files = []
    for start in range(0, len(candidates), _DELETED_AT_ONCE):
        stage("deleting files", start, len(candidates))
        newest = log.snapshot()
        replaced = newest.metadata.id != known.metadata.id and not _is_replacement(log, known, newest)
        if replaced or newest.version < known.version:
            raise ConcurrentWriteException(
                f"{log.table}: another table was created here while VACUUM ran, so its files would be deleted; "
                f"{removed} files were deleted before. Run VACUUM again",
                table=log.table,
            )
        if newest.version > known.version:  # a concurrent RESTORE may have added files again
            needed.add_newer(newest, known)
            known = newest
        chosen = [file for file in candidates[start : start + _DELETED_AT_ONCE] if file[0] not in needed]
        removed += files.delete([name for name, _ in chosen], threads=threads)
        unneeded.files += chosen
    return removed


def _is_replacement(log: "DeltaLog", known: "Snapshot", newest: "Snapshot") -> bool:
    """Whether a commit since `known` gave the table its new id, as REPLACE does: its older versions are still there."""
    commits = log.reader.list(known.version + 1).commits
    return any(
        isinstance(action, Metadata) and action.id == newest.metadata.id
        for version in sorted(commits)
        for actions in log.reader.batches(version, commits[version])  # a REPLACE may be too large for memory
        for action in actions
    )


def is_logged(log: "DeltaLog") -> bool:
    """Whether VACUUM commits its start and end by default: if concurrent commits to this log are safe."""
    return schemes.about(scheme_of(log.table)).vacuum_is_logged or log.store.exclusion == "global"


def _vacuumed(unneeded: Removable, removed: int) -> Vacuumed:
    return Vacuumed(tuple(name for name, _ in unneeded.files), tuple(unneeded.empty), unneeded.size_in_bytes, removed)


def removable(files: TableFiles, directories: Iterable[Directory], needed: Needed, before_ms: int) -> Removable:
    """The deletable files of a listing, including staging directories that crashed writes left."""
    links = 0
    staging: list[str] = []

    def seen() -> Iterator[Directory]:
        nonlocal links
        for directory in directories:
            links += directory.other
            if not directory.name:
                staging.extend(name for name in directory.hidden if name.startswith(STAGING_PREFIX))
            yield directory

    unneeded = unneeded_files.removable(seen(), needed, before_ms)
    if links:
        logger.warning("VACUUM skips %d links and the files behind them", links)
        kept = files.behind_links(needed)
        unneeded.files = [file for file in unneeded.files if file[0] not in kept]
    for name in staging:
        leftover = unneeded_files.abandoned(list(files.walk(lambda _: False, name)), before_ms)
        unneeded.files.extend(leftover.files)
        unneeded.empty.extend(leftover.empty)
    return unneeded


# --- LITE ------------------------------------------------------------------------------------------------------------


def _told_by_log(
    log: "DeltaLog", snapshot: "Snapshot", files: TableFiles, needed: Needed, version: int | None
) -> Removable:
    """The files that commits up to `version` removed since the last VACUUM, and their change data files.

    A path that may mean another file, or a file of another table, is left to FULL.
    """
    earliest, done = min(log.reader.list(0).commits, default=0), _last(log)
    if earliest != 0 and (done is None or done < earliest):
        raise InvalidArgumentError(
            f"{log.table}: VACUUM LITE can't find all deletable files, because the log before version {earliest} was "
            "deleted and no earlier VACUUM covered it. Run VACUUM FULL",
            condition="DELTA_CANNOT_VACUUM_LITE",
        )
    sizes: dict[str, int] = {}
    if version is not None:
        for action in unneeded_files.gone_since(log, 0 if done is None else done + 1, version):
            name = paths.own_name(log.table, action.path)
            if name is not None:
                sizes[name] = action.size or 0
            vector = action.deletion_vector if isinstance(action, RemoveFile) else None
            if vector is not None and vector.storage_type != "i":
                name = paths.own_name(log.table, deletion_vectors.path_of(vector))
                if name is not None:
                    sizes[name] = vector.size_in_bytes
    unneeded = {name: size for name, size in sizes.items() if name not in needed}
    others = _other_tables(files, unneeded, _partition_columns(snapshot))
    kept = files.behind_links(needed) if unneeded else set()
    found = [(name, size) for name, size in unneeded.items() if name not in kept and not name.startswith(others)]
    return Removable(found, [], 1)


def _partition_columns(snapshot: "Snapshot") -> set[str]:
    """The partition columns by each of their names."""
    return {*snapshot.partition_columns, *snapshot.mapping.physical_partition_columns}


def _other_tables(files: TableFiles, names: Iterable[str], partition_columns: Iterable[str]) -> tuple[str, ...]:
    """The directories of these files that have a log of their own. Those of partitions and of changes have none."""
    own = (*(f"{paths.hive_escape(column)}=" for column in partition_columns), "_change_data")
    directories: set[str] = set()
    for name in names:
        parts = name.split("/")[:-1]
        outside = next((i for i, part in enumerate(parts) if not part.startswith(own)), len(parts))
        directories.update("/".join(parts[: end + 1]) for end in range(outside, len(parts)))

    def has_log(directory: str) -> bool:
        log = f"{directory}/{paths.LOG_DIRECTORY}"
        return next(iter(files.walk(lambda _: False, log)), None) is not None

    chosen = sorted(directories)
    answers = in_threads(has_log, chosen, THREADS)
    return tuple(f"{directory}/" for directory, found in zip(chosen, answers, strict=True) if found)


def _last(log: "DeltaLog") -> int | None:
    """The version up to which an earlier VACUUM deleted files; `None` if it isn't recorded."""
    try:
        version = json.loads(log.store.read(f"{log.log_path}/{LAST_VACUUM}")).get(_UP_TO)
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    return version if isinstance(version, int) else None


def _note(log: "DeltaLog", version: int) -> None:
    """Record the version for VACUUM LITE; if this fails, the next VACUUM LITE has to scan more, or to run as FULL."""
    try:
        log.store.write(f"{log.log_path}/{LAST_VACUUM}", f'{{"{_UP_TO}":{version}}}\n'.encode(), overwrite=True)
    except Exception as error:
        logger.warning("%s: %s wasn't written: %s", log.table, LAST_VACUUM, error)


# --- the commits VACUUM START and VACUUM END -------------------------------------------------------------------------


def _start(window: Window, unneeded: Removable) -> Operation:
    parameters: dict[str, object] = {
        "retentionCheckEnabled": window.checked,
        "defaultRetentionMillis": window.default_ms,
    }
    if window.asked_ms is not None:
        parameters["specifiedRetentionMillis"] = window.asked_ms
    metrics = {"numFilesToDelete": len(unneeded), "sizeOfDataToDelete": unneeded.size_in_bytes}
    return Operation("VACUUM START", parameters, metrics)


def _commit_marker(log: "DeltaLog", operation: Operation, user_metadata: str | None) -> None:
    """Make an empty commit with the operation; retry after concurrent commits."""
    for attempt in range(1, _COMMIT_ATTEMPTS + 1):
        try:
            log.transaction().commit([], operation, user_metadata=user_metadata)
            return
        except DeltaConcurrentModificationException:
            if attempt == _COMMIT_ATTEMPTS:
                raise
