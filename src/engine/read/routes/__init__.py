"""The ways in which Spark can read a table's files, and the choice between them.

- `native`: a `FileIndex` in Python inside Spark's own scan. The one to have: it needs a classic session, and a file
  system of the JVM for the table's storage.
- `manifest`: the list of files in a scratch directory, in the form that Spark's streaming sink leaves. Spark's own
  scan too, with no JVM gateway, so for Spark Connect; it needs a directory that this process can write and Spark can
  read (`spark.tablelog.read.scratch`). Partition values come by a join, so that they prune nothing. A table whose
  columns are found by field ids (column mapping by id) goes by Arrow instead.
- `arrow`: Python workers read the files by pyarrow, through Spark's public Python data source. It needs neither
  gateway nor JVM file system; rows that pass through Python cost 3 to 4 times as much. tablelog must be installed
  where Spark's driver runs, pyarrow and the storage's fsspec package on the executors. Files are skipped where
  `spark.sql.python.filterPushdown.enabled` makes Spark offer its filters. It has no `_metadata` column.

A native frame sees the newest version at each execution. Spark asks the other two for their files but once, so that
such a frame stays at the version that was the newest when it was made.

`spark.tablelog.read.route` forces one of them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, cast, get_args

from ....errors import InvalidArgumentError, UnsupportedEnvironmentError
from ...jvm.sessions import is_classic
from ...storage import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Route = Literal["native", "manifest", "arrow"]

ROUTE_KEY = "spark.tablelog.read.route"
SCRATCH_KEY = "spark.tablelog.read.scratch"


def scratch_of(spark: "SparkSession") -> str | None:
    """The directory that both this process and Spark can use, where one is configured."""
    found = spark.conf.get(SCRATCH_KEY, "")
    return found or None


def choose(spark: "SparkSession", table: str, conf: Mapping[str, str]) -> Route:
    """The route for a table (a root URI): the fastest that the session and the storage allow, or the one forced.

    `conf` is that of the table's handle.
    """
    forced = spark.conf.get(ROUTE_KEY, "auto") or "auto"
    if forced != "auto":
        if forced not in get_args(Route):
            raise InvalidArgumentError(f"{ROUTE_KEY} is {forced!r}: it can be auto, {', '.join(get_args(Route))}")
        if forced == "native" and not is_classic(spark):
            raise UnsupportedEnvironmentError(
                f"{ROUTE_KEY} is native, but a Spark Connect session has no JVM gateway: unset it"
            )
        if forced == "manifest" and scratch_of(spark) is None:
            raise InvalidArgumentError(
                f"{ROUTE_KEY} is manifest: set {SCRATCH_KEY} to a directory that this process and Spark share"
            )
        return cast(Route, forced)
    if is_classic(spark):
        return "arrow" if hadoop_settings.reaching(spark, table, conf) is None else "native"
    return "arrow" if scratch_of(spark) is None else "manifest"
