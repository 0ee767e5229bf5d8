"""The routes by which Spark can read a table's files, and the choice between them.

- `native`: a `FileIndex` in Python inside Spark's own scan; the preferred route. It needs a classic session, and a JVM
  file system for the table's storage.
- `manifest`: a list of files in a scratch directory, in the format of Spark's streaming sink. It also uses Spark's own
  scan, but needs no JVM gateway. It needs a directory that this process can write to and Spark can read from
  (`spark.tablelog.read.scratch`). Partition values are joined, so they skip no files. A table with column mapping by ID
  uses the Arrow route instead.
- `listed`: the only route on Spark Connect: the plan has the paths of the files. Where the directories say the
  partition values, Spark skips files by them.
- `arrow`: Python workers read the files by pyarrow, through Spark's public Python data source. It needs neither a
  gateway nor a JVM file system, but is 3 to 4 times as slow. tablelog must be installed on Spark's driver, pyarrow and
  the storage's fsspec package on the executors. It skips files if `spark.sql.python.filterPushdown.enabled` makes
  Spark push filters down. It has no `_metadata` column.

A native frame reads the newest version at each execution. The other routes list the files when the frame is created,
so the frame keeps the version that was the newest at that time.

`spark.tablelog.read.route` forces one of them in a classic session.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast

from ....errors import InvalidArgumentError, UnsupportedEnvironmentError
from ....settings.declarations import READ_ROUTE, READ_SCRATCH
from ...jvm.connection import settings
from ...jvm.connection.sessions import is_classic
from ...storage import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Route = Literal["native", "manifest", "listed", "arrow"]


def scratch_of(spark: "SparkSession") -> str | None:
    """The directory that this process and Spark share, if one is configured."""
    return settings.of(spark, READ_SCRATCH) or None


def choose(spark: "SparkSession", table: str, conf: Mapping[str, str]) -> Route:
    """The fastest route that the session and the storage of the table (a root URI) support, or the forced one.

    `conf` is the configuration of the table's handle.
    """
    forced = settings.of(spark, READ_ROUTE)
    if not is_classic(spark):
        if forced != "auto":
            raise UnsupportedEnvironmentError(
                f"{READ_ROUTE.key} is {forced}, which Spark Connect doesn't have: unset it"
            )
        return "listed"
    if forced != "auto":
        if forced == "manifest" and scratch_of(spark) is None:
            raise InvalidArgumentError(
                f"{READ_ROUTE.key} is manifest: set {READ_SCRATCH.key} to a directory that this process and Spark share"
            )
        return cast(Route, forced)
    return "arrow" if hadoop_settings.reaching(spark, table, conf) is None else "native"
