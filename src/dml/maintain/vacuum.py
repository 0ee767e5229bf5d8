"""VACUUM: deletes the files in a table's directory that no version within the retention period needs.

It runs on the driver, which lists the directory and reads the log. Only an inventory that is a DataFrame starts a
Spark job. Two commits record the run: VACUUM START and VACUUM END.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...core.deltalog import DeltaLog
from ...core.protocol import deletion_vectors, features, paths
from ...core.protocol.actions import RemoveFile
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...core.upkeep import vacuum as vacuum_rules
from ...core.upkeep.vacuum import Directory, ListedFile, Needed, Removable
from ...engine.jvm import settings
from ...engine.storage import table_files
from ...engine.storage.table_files import TableFiles
from ...engine.write.routes.local import STAGING_PREFIX
from ...errors import DeltaConcurrentModificationException, InvalidArgumentError
from ...logstore.common import schemes
from ...logstore.common.uri import scheme_of
from ...settings import declarations
from ...settings.spark_own import SHUFFLE_PARTITIONS
from ..command.command import PLAIN, CommitOptions, command_scope

logger = logging.getLogger(__name__)

Mode = Literal["FULL", "LITE"]

LAST_VACUUM = "_last_vacuum_info"
_UP_TO = "latestCommitVersionOutsideOfRetentionWindow"
_INVENTORY = ("path", "length", "isDir", "modificationTime")
_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")
_MOST_THREADS = 64
_COMMIT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """The result of VACUUM: the deletable files and directories, relative to the table, and the number deleted."""

    files: tuple[str, ...]
    directories: tuple[str, ...]
    size_in_bytes: int
    removed: int


@dataclass(frozen=True, slots=True)
class _Window:
    """The start of the retention period in milliseconds since the epoch, and the retention settings that apply."""

    before_ms: int
    asked_ms: int | None
    default_ms: int
    checked: bool


def vacuum(
    spark: SparkSession,
    log: DeltaLog,
    retention_hours: float | None = None,
    *,
    dry_run: bool = False,
    mode: Mode | None = None,
    inventory: DataFrame | None = None,
    options: CommitOptions = PLAIN,
) -> Vacuumed:
    """Delete the files that no version within the retention period needs; `dry_run`: only return them.

    `retention_hours` defaults to the table's `delta.deletedFileRetentionDuration`. With `mode` LITE, the candidates are
    the files that the log removed since the last VACUUM, not a directory listing (default: the session's setting).
    `inventory` has the columns path, length, isDir and modificationTime and replaces the listing. Raises
    InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError, the `StorageError` group.
    """
    with command_scope(spark, "VACUUM", log.table):
        return _vacuum(spark, log, retention_hours, dry_run, mode, inventory, options)


def _vacuum(
    spark: SparkSession,
    log: DeltaLog,
    retention_hours: float | None,
    dry_run: bool,
    mode: Mode | None,
    inventory: DataFrame | None,
    options: CommitOptions,
) -> Vacuumed:
    snapshot = log.snapshot()
    features.check_writable(snapshot.protocol, snapshot.metadata, log.table)
    window = _window(spark, log, snapshot, retention_hours)
    if mode is None:
        mode = "LITE" if settings.of(spark, declarations.VACUUM_LITE) else "FULL"
    if mode not in ("FULL", "LITE"):
        raise InvalidArgumentError(f"the mode of VACUUM needs to be FULL or LITE, not {mode!r}")
    files = table_files.choose(spark, log)
    needed, version = vacuum_rules.needed_by(log, snapshot, window.before_ms, files.same_place)
    hidden = partial(
        vacuum_rules.is_hidden,
        partition_columns={*snapshot.partition_columns, *snapshot.mapping.physical_partition_columns},
        iceberg="iceberg" in snapshot.metadata.configuration.get("delta.universalFormat.enabledFormats", ""),
    )
    if inventory is not None:
        unneeded = removable(files, _of_inventory(log, inventory, hidden), needed, window.before_ms)
    elif mode == "LITE":
        unneeded = _told_by_log(log, needed, version)
    else:
        unneeded = removable(files, files.walk(hidden), needed, window.before_ms)
    if dry_run:
        return _vacuumed(unneeded, 0)
    tell = _tells(spark, log)
    if tell:
        _commit_marker(log, _start(window, unneeded), options)
    try:
        newest = log.snapshot()
        if newest.version > snapshot.version:  # a concurrent RESTORE may have re-added files
            needed.add_files(newest.files)
            unneeded.files = [file for file in unneeded.files if file[0] not in needed]
        removed = files.delete([name for name, _ in unneeded.files], threads=_threads(spark))
        removed += files.remove_directories(unneeded.empty)
    except BaseException:
        if tell:
            _commit_marker(log, Operation("VACUUM END", {"status": "FAILED"}), options)
        raise
    if tell:
        metrics = {"numDeletedFiles": removed, "numVacuumedDirectories": unneeded.directories_seen}
        _commit_marker(log, Operation("VACUUM END", {"status": "COMPLETED"}, metrics), options)
    if inventory is None and version is not None:
        _note(log, version)
    logger.info("%s: VACUUM removed %d files and directories, %d bytes", log.table, removed, unneeded.size_in_bytes)
    return _vacuumed(unneeded, removed)


def _vacuumed(unneeded: Removable, removed: int) -> Vacuumed:
    return Vacuumed(tuple(name for name, _ in unneeded.files), tuple(unneeded.empty), unneeded.size_in_bytes, removed)


def _window(spark: SparkSession, log: DeltaLog, snapshot: Snapshot, hours: float | None) -> _Window:
    checked = settings.of(spark, declarations.RETENTION_CHECK)
    default = snapshot.properties.deleted_file_retention_ms
    kept = vacuum_rules.retention_ms(hours, default, checked=checked, table=log.table)
    return _Window(log.clock.now_ms() - kept, None if hours is None else kept, default, checked)


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

    unneeded = vacuum_rules.removable(seen(), needed, before_ms)
    if links:
        logger.warning("VACUUM skips %d links and the files behind them", links)
        kept = files.behind_links(needed)
        unneeded.files = [file for file in unneeded.files if file[0] not in kept]
    for name in staging:
        leftover = vacuum_rules.abandoned(list(files.walk(lambda _: False, name)), before_ms)
        unneeded.files.extend(leftover.files)
        unneeded.empty.extend(leftover.empty)
    return unneeded


# --- LITE, and inventories ----------------------------------------------------------------------------------------


def _told_by_log(log: DeltaLog, needed: Needed, version: int | None) -> Removable:
    """The files that commits up to `version` removed since the last VACUUM, and their change data files."""
    earliest, done = min(log.reader.list(0).commits, default=0), _last(log)
    if earliest != 0 and (done is None or done < earliest):
        raise InvalidArgumentError(
            f"{log.table}: VACUUM LITE can't find all deletable files, because the log before version {earliest} was "
            "deleted and no earlier VACUUM covered it. Run VACUUM FULL",
            condition="DELTA_CANNOT_VACUUM_LITE",
        )
    sizes: dict[str, int] = {}
    if version is not None:
        for action in vacuum_rules.gone_since(log, 0 if done is None else done + 1, version):
            for name in vacuum_rules.names_of(log.table, action.path):
                sizes[name] = action.size or 0
            if isinstance(action, RemoveFile) and (vector := action.deletion_vector) and vector.storage_type != "i":
                for name in vacuum_rules.names_of(log.table, deletion_vectors.path_of(vector)):
                    sizes[name] = vector.size_in_bytes
    return Removable([(name, size) for name, size in sizes.items() if name not in needed], [], 1)


def _last(log: DeltaLog) -> int | None:
    """The version up to which an earlier VACUUM deleted files; `None` if it isn't recorded."""
    try:
        version = json.loads(log.store.read(f"{log.log_path}/{LAST_VACUUM}")).get(_UP_TO)
    except (FileNotFoundError, ValueError, AttributeError):
        return None
    return version if isinstance(version, int) else None


def _note(log: DeltaLog, version: int) -> None:
    """Record the version for VACUUM LITE; if this fails, the next VACUUM LITE has to scan more, or to run as FULL."""
    try:
        log.store.write(f"{log.log_path}/{LAST_VACUUM}", f'{{"{_UP_TO}":{version}}}\n'.encode(), overwrite=True)
    except Exception as error:
        logger.warning("%s: %s wasn't written: %s", log.table, LAST_VACUUM, error)


def _of_inventory(log: DeltaLog, inventory: DataFrame, hidden: Callable[[str], bool]) -> Iterator[Directory]:
    """The directories of an inventory, whose paths are absolute and spelled as by the table's storage."""
    missing = [name for name in _INVENTORY if name not in inventory.columns]
    if missing:
        raise InvalidArgumentError(
            f"the inventory for VACUUM lacks {', '.join(missing)}; required are path (string), length (long), isDir "
            "(boolean) and modificationTime (long, milliseconds)",
            condition="DELTA_INVALID_INVENTORY_SCHEMA",
            parameters={"expectedSchema": "path string, length long, isDir boolean, modificationTime long"},
        )
    root = _AUTHORITY.sub("", paths.absolute(log.table, "")).rstrip("/") + "/"
    groups: dict[str, list[ListedFile]] = {"": []}
    newest: dict[str, ListedFile] = {}
    table = inventory.where(~F.col("isDir")).select("path", "length", "modificationTime").toArrow()
    for text, size, modified in zip(*(column.to_pylist() for column in table.columns), strict=True):
        path = _AUTHORITY.sub("", text)
        name = path[len(root) :]
        if not path.startswith(root) or any(hidden(part) for part in name.split("/")):
            continue
        known = newest.get(name)
        if known is None or known.modified_ms < modified:
            newest[name] = ListedFile(name.rpartition("/")[2], size, modified)
    for name, file in newest.items():
        groups.setdefault(name.rpartition("/")[0], []).append(file)
    for name, files in groups.items():
        yield Directory(name, files)


# --- the commits VACUUM START and VACUUM END ----------------------------------------------------------------------


def _start(window: _Window, unneeded: Removable) -> Operation:
    parameters: dict[str, object] = {
        "retentionCheckEnabled": window.checked,
        "defaultRetentionMillis": window.default_ms,
    }
    if window.asked_ms is not None:
        parameters["specifiedRetentionMillis"] = window.asked_ms
    metrics = {"numFilesToDelete": len(unneeded), "sizeOfDataToDelete": unneeded.size_in_bytes}
    return Operation("VACUUM START", parameters, metrics)


def _commit_marker(log: DeltaLog, operation: Operation, options: CommitOptions) -> None:
    """Make an empty commit with the operation; retry after concurrent commits."""
    for attempt in range(1, _COMMIT_ATTEMPTS + 1):
        try:
            log.transaction().commit([], operation, user_metadata=options.user_metadata)
            return
        except DeltaConcurrentModificationException:
            if attempt == _COMMIT_ATTEMPTS:
                raise


def _tells(spark: SparkSession, log: DeltaLog) -> bool:
    """Whether VACUUM commits its start and end: by the session, else if concurrent commits to this log are safe."""
    enabled = settings.of(spark, declarations.VACUUM_LOGGED)
    if enabled is not None:
        return enabled
    return schemes.about(scheme_of(log.table)).vacuum_is_logged or log.store.exclusion == "global"


def _threads(spark: SparkSession) -> int | None:
    if not settings.of(spark, declarations.VACUUM_PARALLEL):
        return None
    wanted = settings.of(spark, declarations.VACUUM_PARALLELISM)
    if wanted is None:
        wanted = settings.in_force(spark, SHUFFLE_PARTITIONS)
    return min(max(wanted, 1), _MOST_THREADS)
