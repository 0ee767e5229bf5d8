"""VACUUM: deletes the files in a table's directory that no version within the retention period needs.

It runs on the driver, which lists the directory and reads the log. Only an inventory that is a DataFrame starts a
Spark job. `core.table_maintenance.vacuum` does the work; this module takes the settings of the session.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...core.deltalog import DeltaLog
from ...core.protocol import features, paths
from ...core.table_maintenance import vacuum as core_vacuum
from ...core.table_maintenance.unneeded_files import Directory, ListedFile
from ...core.table_maintenance.vacuum import Mode, Vacuumed, removable
from ...engine.jvm.connection import settings
from ...engine.storage import table_files
from ...errors import InvalidArgumentError
from ...settings import declarations
from ...settings.spark_own import SHUFFLE_PARTITIONS
from ..command.command import PLAIN, CommitOptions, command_scope

__all__ = ["Mode", "Vacuumed", "removable", "vacuum"]

_INVENTORY = ("path", "length", "isDir", "modificationTime")
_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")
_MOST_THREADS = 64


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
        snapshot = log.snapshot()
        features.check_writable(snapshot.protocol, snapshot.metadata, log.table)
        checked = settings.of(spark, declarations.RETENTION_CHECK)
        window = core_vacuum.window_of(log, snapshot, retention_hours, checked=checked)
        if mode is None:
            mode = "LITE" if settings.of(spark, declarations.VACUUM_LITE) else "FULL"
        return core_vacuum.vacuum(
            log,
            snapshot,
            table_files.choose(spark, log),
            window,
            mode=mode,
            inventory=None if inventory is None else partial(_of_inventory, log, inventory),
            dry_run=dry_run,
            logged=settings.of(spark, declarations.VACUUM_LOGGED),
            threads=_threads(spark),
            user_metadata=options.user_metadata,
        )


def _of_inventory(log: DeltaLog, inventory: DataFrame, hidden: Callable[[str], bool]) -> Iterator[Directory]:
    """The directories of an inventory, whose paths are absolute and spelled as by the table's storage.

    What isn't the name of one file below the table, and a file without a time, is left out, and so kept.
    """
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
    passed: dict[str, set[str]] = {}
    newest: dict[str, ListedFile] = {}
    table = inventory.where(~F.col("isDir")).select("path", "length", "modificationTime").toArrow()
    for text, size, modified in zip(*(column.to_pylist() for column in table.columns), strict=True):
        path = _AUTHORITY.sub("", text)
        name = path[len(root) :]
        parts = name.split("/")
        if not path.startswith(root) or {"", ".", ".."}.intersection(parts):
            continue
        at = next((at for at, part in enumerate(parts) if hidden(part)), None)
        if at is not None:
            passed.setdefault("/".join(parts[:at]), set()).add(parts[at])
            continue
        known = newest.get(name)
        if modified is None:
            continue
        if known is None or known.modified_ms < modified:
            newest[name] = ListedFile(name.rpartition("/")[2], size, modified)
    for name, file in newest.items():
        groups.setdefault(name.rpartition("/")[0], []).append(file)
    for name in groups | passed:
        yield Directory(name, groups.get(name, []), hidden=sorted(passed.get(name, ())))


def _threads(spark: SparkSession) -> int | None:
    if not settings.of(spark, declarations.VACUUM_PARALLEL):
        return None
    wanted = settings.of(spark, declarations.VACUUM_PARALLELISM)
    if wanted is None:
        wanted = settings.in_force(spark, SHUFFLE_PARTITIONS)
    return min(max(wanted, 1), _MOST_THREADS)
