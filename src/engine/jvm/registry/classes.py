"""Names of Spark's classes that the engine compares with or passes to the JVM, and the class name of an object."""

from typing import Any

EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
"""The package of Catalyst's expressions."""
ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
"""The package of the analyzer and of unresolved plans and expressions."""
INTERNAL_ROW = "org.apache.spark.sql.catalyst.InternalRow"
PARTITION_DIRECTORY = "org.apache.spark.sql.execution.datasources.PartitionDirectory"
FILE_INDEX = "org.apache.spark.sql.execution.datasources.FileIndex"
"""The interface that `read.file_index.FileIndex` implements in part."""
FILE_INDEX_CLASS = "DeltaFileIndex"
"""The class of tablelog that implements the whole interface."""
V2_TABLE = "org.apache.spark.sql.connector.catalog.Table"
"""The interface that `inserts.InsertTarget` implements."""
TRUNCATABLE_TABLE = "org.apache.spark.sql.connector.catalog.TruncatableTable"
"""The interface that `table_catalog.DescribedTable` implements."""
COMMIT_PROTOCOL = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
CLOUD_COMMIT_PROTOCOL = "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol"
"""In the module spark-hadoop-cloud, which an installation of Spark may not have."""
CLOUD_PARQUET_COMMITTER = "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"


def class_name(value: Any) -> str:
    """The name of the class of a JVM object, without its package: the kind of a node of a plan."""
    return str(value.getClass().getSimpleName())
