"""The routes by which a write creates its data files in the table.

- `local`: Spark writes into a hidden staging directory of the table, and the driver renames the files.
- `hadoop`: the same by Spark's Hadoop client, if renames are cheap (HDFS, ABFS); if a rename is a copy (S3 by s3a),
  Spark writes directly into a new directory of the table.
- `remote`: on Spark Connect, where the storage isn't a local disk: the server's Spark writes into a new directory of
  the table, and this process reads the footers.
- `arrow`: Python workers write the files by pyarrow and fsspec, into such a directory. It needs no JVM file system, but
  is 3 to 4 times as slow.

`spark.tablelog.write.route` forces `native` (`local` or `hadoop`) or `arrow`.
"""

from typing import TYPE_CHECKING

from ....errors import UnsupportedEnvironmentError, UnsupportedFeatureError
from ....logstore.common import schemes
from ....logstore.common.uri import scheme_of, shown
from ....logstore.data_files import DataFiles
from ....settings.declarations import WRITE_ROUTE
from ...jvm.connection import settings as session_settings
from ...jvm.connection.sessions import is_classic
from ...storage import hadoop_settings
from .write_route import WriteRoute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ....core.deltalog import DeltaLog

__all__ = ["WriteRoute", "choose"]


def choose(spark: "SparkSession", log: "DeltaLog", below: str = "", *, nested_ids: bool = False) -> WriteRoute:
    """The fastest route that the session and the storage support, or the forced one; for files below `below`.

    `nested_ids`: the elements of arrays and maps have field IDs, which only `arrow` writes: Spark's Parquet writer
    has none for them. Raises UnsupportedEnvironmentError if the storage can't be accessed.
    """
    scheme = scheme_of(log.table)
    if nested_ids:
        if not is_classic(spark):
            raise UnsupportedFeatureError(
                f"{shown(log.table)} has arrays or maps and icebergCompatV2, which requires ids for their elements in "
                "the files, and the Spark of a Spark Connect server can't write them: write it in a session with a "
                "driver of its own",
                ("icebergCompatV2",),
            )
        from .arrow import ArrowRoute

        return ArrowRoute(DataFiles.of(log.table, log.conf, log.storage_options), below)
    if not is_classic(spark):
        return _of_server(log, below)
    forced = session_settings.of(spark, WRITE_ROUTE)
    if forced != "arrow":
        if scheme == "file":
            from .local import LocalRoute

            return LocalRoute(log.table, below)
        settings = hadoop_settings.reaching(spark, log.table, log.conf)
        if settings is not None:
            from .hadoop import HadoopRoute

            return HadoopRoute(spark, log.table, settings, renames=schemes.about(scheme).renames, below=below)
        if forced == "native":
            raise UnsupportedEnvironmentError(
                f"{WRITE_ROUTE.key} is native, but Spark's JVM has no file system for {shown(log.table)}: put its jar "
                "on Spark's class path, or unset the key"
            )
    from .arrow import ArrowRoute

    return ArrowRoute(DataFiles.of(log.table, log.conf, log.storage_options), below)


def _of_server(log: "DeltaLog", below: str) -> WriteRoute:
    if scheme_of(log.table) == "file":
        from .local import LocalRoute

        return LocalRoute(log.table, below)
    from .remote import RemoteRoute

    return RemoteRoute(DataFiles.of(log.table, log.conf, log.storage_options), below)
