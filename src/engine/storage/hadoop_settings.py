"""Hadoop's settings on their way between Spark's session and a table's handle."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...logstore.common import schemes
from ...logstore.common.uri import scheme_of
from ..jvm.hadoop import hadoop_properties, has_file_system
from ..jvm.sessions import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAIN = ("fs.", "dfs.")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def reaching(spark: "SparkSession", table: str, conf: Mapping[str, str]) -> dict[str, str] | None:
    """What Spark needs to be told to reach a table by a file system of its JVM; `None` where it has none.

    Those are the keys of `conf` that belong to one read or write (`fs.*` and `dfs.*`; what is set in the session
    Spark knows), and that `s3:` and `s3n:` are s3a's to serve where nobody else is named for them.
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
    """What is set in Spark's Hadoop configuration for the kind of storage of `path`, under `spark.hadoop.` keys.

    That is what stands in core-site.xml and its like, or was set on the configuration itself, as far as it differs
    from Hadoop's own defaults. Empty for a local path, with no call.
    """
    prefixes = schemes.about(scheme_of(path)).hadoop_keys
    if not prefixes or not is_classic(spark):
        return {}
    found: dict[str, str] = {}
    for prefix in prefixes:
        for key, value in hadoop_properties(spark, prefix).items():
            found[f"spark.hadoop.{prefix}{key}"] = value
    return found
