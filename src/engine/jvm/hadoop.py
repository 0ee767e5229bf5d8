"""Access to Hadoop in the JVM: its file systems, its settings, and the schema of a Parquet file."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from .builders import string_map
from .connection.gateway import Gateway, JavaObject
from .connection.java_errors import thrown_by_java
from .connection.sessions import hadoop_configuration, session_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def has_file_system(spark: "SparkSession", uri: str, settings: Mapping[str, str] | None = None) -> bool:
    """Whether the JVM has a file system class for the scheme of `uri`. `settings`: additional Hadoop settings."""
    configuration = hadoop_configuration(spark)
    for key, value in (settings or {}).items():
        configuration.set(key, value)
    file_system = Gateway.of(spark).jvm.org.apache.hadoop.fs.FileSystem
    try:
        file_system.getFileSystemClass(uri.partition(":")[0].lower(), configuration)
    except thrown_by_java():
        return False
    return True


def hadoop_properties(spark: "SparkSession", prefix: str) -> dict[str, str]:
    """The session's Hadoop properties whose keys start with `prefix`, except Hadoop's defaults.

    The returned keys don't have the prefix.
    """
    gateway = Gateway.of(spark)
    properties = hadoop_configuration(spark).getPropsWithPrefix(prefix)
    properties.entrySet().removeAll(_defaults(gateway).getPropsWithPrefix(prefix).entrySet())
    return string_map(gateway.scala_map(properties))


@lru_cache(maxsize=4)
def _defaults(gateway: Gateway) -> JavaObject:
    defaults = gateway.jvm.org.apache.hadoop.conf.Configuration(False)
    for name in ("core-default.xml", "hdfs-default.xml"):
        defaults.addResource(name)
    return defaults


def parquet_schema(spark: "SparkSession", uri: str) -> str:
    """The Spark schema of a Parquet file as JSON, from its footer. The driver reads it, without a Spark job."""
    gateway, state = Gateway.of(spark), session_state(spark)
    path, hadoop = gateway.path(uri), gateway.jvm.org.apache.parquet.hadoop
    reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(path, state.newHadoopConf()))
    try:
        footer = hadoop.Footer(path, reader.getFooter())
    finally:
        reader.close()
    parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
    converter = parquet.ParquetToSparkSchemaConverter(state.conf())
    return str(parquet.ParquetFileFormat.readSchemaFromFooter(footer, converter).json())
