"""Checks which files outside of a table's directory the session may read (docs/decisions/0050)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ...core.protocol import external_paths
from ...errors import UntrustedTableError
from ...logstore.common.uri import scheme_of, shown
from ...settings.declarations import EXTERNAL_PATHS
from ..jvm.connection import settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def check_files(spark: "SparkSession", table: str, version: int | None, files: "pa.Table") -> None:
    """`check` for rows of `Snapshot.files`; fast, because nearly all paths are relative and inside the table."""
    policy, column = _policy(spark), files.column("path")
    if policy == "sameStore":
        check(spark, table, version, external_paths.one_of_each_store(column))
    elif policy == "refuse":
        of_links = scheme_of(table) == "file"  # any local file may be a link
        check(spark, table, version, column.to_pylist() if of_links else external_paths.odd(column))


def check(spark: "SparkSession", table: str, version: int | None, in_log: Iterable[str]) -> None:
    """Raise UntrustedTableError if a path in the log is outside of the table and the session doesn't allow it."""
    policy = _policy(spark)
    refused_path, key = external_paths.refused(table, in_log, policy), EXTERNAL_PATHS.key
    if refused_path is not None:
        where = table if version is None else f"version {version} of {table}"
        raise UntrustedTableError(
            f"{where} has a file outside of the table, {external_paths.shown(shown(refused_path))}, and {key} is "
            f"{policy}: it wasn't read. A shallow clone, or a table of other writers, may have such files. If you "
            f"trust the table, set {key} to {'sameStore or allow' if policy == 'refuse' else 'allow'}; else remove "
            "the file from the table",
            table=table,
            version=version,
            path=shown(refused_path),
        )


def _policy(spark: "SparkSession") -> external_paths.Policy:
    return cast(external_paths.Policy, settings.of(spark, EXTERNAL_PATHS))
