"""The setting that says which files outside of a table's directory are read (docs/decisions/0050)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ...core.protocol import external_paths as external
from ...errors import UntrustedTableError
from ...logstore.common.uri import scheme_of, shown
from ...settings.honoured import EXTERNAL_PATHS
from ..jvm import settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def check_files(spark: "SparkSession", table: str, version: int, files: "pa.Table") -> None:
    """`check` for rows of `Snapshot.files`; nearly all lie in the table, which is decided at once."""
    policy, column = _policy(spark), files.column("path")
    if policy == "sameStore":
        check(spark, table, version, external.one_of_each_store(column))
    elif policy == "refuse":
        of_links = scheme_of(table) == "file"  # any of them may be one
        check(spark, table, version, column.to_pylist() if of_links else external.odd(column))


def check(spark: "SparkSession", table: str, version: int | None, in_log: Iterable[str]) -> None:
    """UntrustedTableError where a version has a file, by its path in the log, that the session doesn't read."""
    policy = _policy(spark)
    found, key = external.refused(table, in_log, policy), EXTERNAL_PATHS.key
    if found is not None:
        what = table if version is None else f"version {version} of {table}"
        raise UntrustedTableError(
            f"{what} has a file outside of the table, {external.shown(shown(found))}, and {key} is {policy}: it wasn't "
            "read. A shallow clone, or a table of other writers, may have such files. If you trust the table, set "
            f"{key} to {'sameStore or allow' if policy == 'refuse' else 'allow'}; else remove the file from the table"
        )


def _policy(spark: "SparkSession") -> external.Policy:
    return cast(external.Policy, settings.of(spark, EXTERNAL_PATHS))
