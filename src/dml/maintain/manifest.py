"""GENERATE: the symlink manifests of the newest version, all of them."""

import logging

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.table import manifest
from ...core.txn import manifests
from ...engine.storage import table_files
from ...errors import InvalidArgumentError

logger = logging.getLogger(__name__)


def generate(spark: SparkSession, log: DeltaLog, mode: str) -> None:
    """Write the manifests of the newest version and remove those of partitions that are no more.

    Raises InvalidArgumentError for another mode than symlink_format_manifest, UnsupportedFeatureError for a table with
    deletion vectors or mapped columns.
    """
    if mode.lower() != manifest.MODE:
        raise InvalidArgumentError(
            f"GENERATE has the mode {manifest.MODE} only, not {mode!r}",
            condition="DELTA_MODE_NOT_SUPPORTED",
            parameters={"mode": mode, "supportedModes": manifest.MODE},
        )
    snapshot = log.snapshot()
    manifest.check(snapshot)
    written = manifests.write(log, snapshot)
    files = table_files.choose(spark, log)
    kept = {f"{manifest.DIRECTORY}/{one}" if one else manifest.DIRECTORY for one in written}
    # What `LogStore` writes for a moment beside a manifest, and checksums, are hidden; they go with their directory.
    stale = [
        directory.path_of(file.name)
        for directory in files.walk(lambda name: name.startswith("."), manifest.DIRECTORY)
        if directory.name not in kept
        for file in directory.files
    ]
    files.delete(stale)
    logger.info("%s: wrote %d symlink manifests, removed %d", log.table, len(written), len(stale))
