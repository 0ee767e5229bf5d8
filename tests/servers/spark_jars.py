"""The jars with which Spark reaches S3 itself (s3a), and commits to it without copying: 700 MB."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import install

_JARS = (
    ("org.apache.hadoop", "hadoop-aws", "3.5.0"),
    ("software.amazon.awssdk", "bundle", "2.35.4"),
    ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    # The committers. Their own releases for Spark 4.2 and 4.3 aren't published; this one runs under both.
    ("org.apache.spark", "spark-hadoop-cloud_2.13", "4.1.1"),
)


def spark_jars() -> list[Path]:
    """The jars for Spark's setting `spark.jars`, installed where they weren't. Raises CannotInstallError."""
    with ThreadPoolExecutor(len(_JARS)) as pool:
        return list(pool.map(lambda coordinates: install.maven_jar(*coordinates), _JARS))
