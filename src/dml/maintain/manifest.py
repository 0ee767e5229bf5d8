"""GENERATE: writes the symlink manifests of the newest version."""

import logging

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.table import manifest
from ...core.txn import manifests
from ...engine.storage import table_files
from ...errors import InvalidArgumentError
from ..command.command import reports_table

logger = logging.getLogger(__name__)


@reports_table
def generate(spark: SparkSession, log: DeltaLog, mode: str) -> None:
    """Write the manifests of the newest version, and delete those of partitions that no longer exist.

    Raises InvalidArgumentError for a mode other than symlink_format_manifest, UnsupportedFeatureError for a table with
    deletion vectors or column mapping.
    """
    if mode.lower() != manifest.MODE:
        raise InvalidArgumentError(
            f"GENERATE supports only the mode {manifest.MODE}, not {mode!r}",
            condition="DELTA_MODE_NOT_SUPPORTED",
            parameters={"mode": mode, "supportedModes": manifest.MODE},
        )
    snapshot = log.snapshot()
    manifest.check(snapshot)
    written = manifests.write(log, snapshot)
    files = table_files.choose(spark, log)
    kept = {f"{manifest.DIRECTORY}/{directory}" if directory else manifest.DIRECTORY for directory in written}
    # Temporary files of `LogStore` and checksums are hidden files; they are deleted with their directory.
    stale = [
        directory.path_of(file.name)
        for directory in files.walk(lambda name: name.startswith("."), manifest.DIRECTORY)
        if directory.name not in kept
        for file in directory.files
    ]
    files.delete(stale)
    logger.info("%s: wrote %d symlink manifests, removed %d", log.table, len(written), len(stale))
