"""Transfers Hadoop settings between Spark's session and a table's handle."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...logstore.common import schemes
from ...logstore.common.uri import scheme_of
from ...settings.spark_own import HADOOP
from ..jvm.connection.sessions import is_classic
from ..jvm.hadoop import hadoop_properties, has_file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAIN = ("fs.", "dfs.")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def reaching(spark: "SparkSession", table: str, conf: Mapping[str, str]) -> dict[str, str] | None:
    """The Hadoop settings with which the JVM can access a table; `None` if it has no file system for the table.

    They are the keys of `conf` for one read or write (`fs.*` and `dfs.*`; Spark already has those of the session), and
    s3a as the implementation of `s3:` and `s3n:` if none is configured.
    """
    own = {key: value for key, value in conf.items() if key.startswith(_PLAIN)}
    scheme = scheme_of(table)
    if scheme == "file":
        return own
    if has_file_system(spark, table, own):
        return own
    if scheme in ("s3", "s3n"):
        own[f"fs.{scheme}.impl"] = _S3A
        if has_file_system(spark, table, own):
            return own
    return None


def of_hadoop(spark: "SparkSession", path: str) -> dict[str, str]:
    """The settings in Spark's Hadoop configuration for the kind of storage of `path`, with `spark.hadoop.` prefix.

    These are values from core-site.xml and similar files, or set on the configuration itself, that differ from
    Hadoop's defaults. Empty for a local path, without a JVM call.
    """
    prefixes = schemes.about(scheme_of(path)).hadoop_keys
    if not prefixes or not is_classic(spark):
        return {}
    settings: dict[str, str] = {}
    for prefix in prefixes:
        for key, value in hadoop_properties(spark, prefix).items():
            settings[f"{HADOOP.prefix}{prefix}{key}"] = value
    return settings
