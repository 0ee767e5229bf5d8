"""Where a write puts its data files, and how they come to their place in the table.

- `local`: Spark writes into a hidden staging directory of the table, and the driver renames the files.
- `hadoop`: the same by Spark's Hadoop client, where a rename is cheap (HDFS, ABFS); where it is a copy (S3 by s3a),
  Spark writes below a directory that is the write's own and stays.
- `arrow`: Python workers write the files by pyarrow and fsspec, below such a directory. It needs no file system of the
  JVM; rows that pass through Python cost 3 to 4 times as much.

`spark.tablelog.write.route` forces `native` (what the JVM can do) or `arrow`.
"""

from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError, UnsupportedEnvironmentError
from ....logstore.common import schemes
from ....logstore.common.uri import scheme_of, shown
from ...jvm.sessions import is_classic
from ...storage import hadoop_settings
from .placement import Placement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ....core.deltalog import DeltaLog

__all__ = ["ROUTE_KEY", "Placement", "choose"]

ROUTE_KEY = "spark.tablelog.write.route"
_ROUTES = ("auto", "native", "arrow")


def choose(spark: "SparkSession", log: "DeltaLog", below: str = "") -> Placement:
    """The fastest that the session and the storage allow, or the one forced; for files below the directory `below`.

    Raises UnsupportedEnvironmentError on Spark Connect, or where nothing reaches the storage.
    """
    forced = spark.conf.get(ROUTE_KEY, "auto") or "auto"
    if forced not in _ROUTES:
        raise InvalidArgumentError(f"{ROUTE_KEY} is {forced!r}: it can be {', '.join(_ROUTES)}")
    if not is_classic(spark):
        raise UnsupportedEnvironmentError("writing needs a classic Spark session: Spark Connect has no JVM gateway")
    scheme = scheme_of(log.table)
    if forced != "arrow":
        if scheme == "file":
            from .local import LocalPlacement

            return LocalPlacement(log.table, below)
        settings = hadoop_settings.reaching(spark, log.table, log.conf)
        if settings is not None:
            from .hadoop import HadoopPlacement

            return HadoopPlacement(spark, log.table, settings, renames=schemes.about(scheme).renames, below=below)
        if forced == "native":
            raise UnsupportedEnvironmentError(
                f"{ROUTE_KEY} is native, but Spark's JVM has no file system for {shown(log.table)}: put its jar on "
                "Spark's class path, or unset the key"
            )
    from ....logstore.data_files import DataFiles
    from .arrow import ArrowPlacement

    return ArrowPlacement(DataFiles.of(log.table, log.conf, log.storage_options), below)
