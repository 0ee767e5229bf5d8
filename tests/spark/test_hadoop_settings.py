"""Hadoop's settings reach a table's handle, from wherever a user of Spark writes them."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from tablelog.engine.storage import hadoop_settings
from tablelog.logstore import MemoryLogStore
from tablelog.spark import conf as settings
from tablelog.spark.conf import delta_log, session_conf


class ShelfStore(MemoryLogStore):
    """A store of a user, with settings of its own."""

    configuration_prefixes = ("shelf.",)


def test_what_is_set_in_the_session_reaches_the_handle(spark: SparkSession, conf: Callable[[str, str], None]) -> None:
    conf("fs.s3a.bucket.b.endpoint", "http://127.0.0.1:1")
    conf("spark.hadoop.dfs.replication", "1")
    conf("spark.sql.shuffle.partitions", "4")
    handle = delta_log("/t", session_conf(spark), {"fs.s3a.access.key": "of the read"})
    assert handle.conf["fs.s3a.bucket.b.endpoint"] == "http://127.0.0.1:1"
    assert handle.conf["spark.hadoop.dfs.replication"] == "1"
    assert handle.conf["fs.s3a.access.key"] == "of the read"
    assert "spark.sql.shuffle.partitions" not in handle.conf


def test_what_is_set_in_hadoops_configuration_counts_for_its_storage(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.endpoint", "http://127.0.0.1:2")
    try:
        found = delta_log("s3a://bucket/t", session_conf(spark, "s3a://bucket/t")).conf
        assert found["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:2"
        # Hadoop's own defaults are nobody's settings: what reads the keys has its own.
        assert "spark.hadoop.fs.s3a.aws.credentials.provider" not in found
        for path in ("/t", "gs://bucket/t"):
            assert "spark.hadoop.fs.s3a.endpoint" not in session_conf(spark, path)
    finally:
        hadoop.unset("fs.s3a.endpoint")


def test_what_a_store_reads_reaches_it(spark: SparkSession, conf: Callable[[str, str], None]) -> None:
    """Each store declares the keys that it reads, also one of a user."""
    conf("spark.hadoop.io.delta.storage.S3DynamoDBLogStore.ddb.tableName", "commits")
    conf("spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore")
    conf("spark.delta.logStore.shelf.impl", f"{__name__}.ShelfStore")
    conf("shelf.root", "/shelf")
    key = "spark.hadoop.io.delta.storage.S3DynamoDBLogStore.ddb.tableName"
    assert delta_log("s3a://bucket/t", session_conf(spark, "s3a://bucket/t")).conf[key] == "commits"
    assert delta_log("shelf://a/t", session_conf(spark, "shelf://a/t")).conf["shelf.root"] == "/shelf"
    assert "shelf.root" not in delta_log("/t", session_conf(spark)).conf


def test_what_belongs_to_one_read_goes_on_to_spark(spark: SparkSession) -> None:
    own = {"fs.x.y": "1", "dfs.z": "2", "spark.hadoop.fs.v": "3", "spark.delta.w": "4"}
    assert hadoop_settings.reaching(spark, "hdfs://host/t", own) == {"fs.x.y": "1", "dfs.z": "2"}
    assert hadoop_settings.reaching(spark, "nosuch://host/t", own) is None
    # A class of its own for a scheme may come with the read as well.
    named = {"fs.nosuch.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
    assert hadoop_settings.reaching(spark, "nosuch://host/t", named) == named


def test_s3_is_for_s3a_to_serve_where_nobody_else_is_named(
    spark: SparkSession, conf: Callable[[str, str], None]
) -> None:
    assert hadoop_settings.reaching(spark, "s3://bucket/t", {}) is None  # there is no s3a without its jar
    conf("fs.s3.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    assert hadoop_settings.reaching(spark, "s3://bucket/t", {}) == {}


def test_settings_that_change_leave_few_handles_of_a_path() -> None:
    """Credentials that change every hour are other settings, and each handle may hold the files of a table."""
    made = [settings.delta_log("/no/table", {"spark.hadoop.fs.s3a.secret.key": str(number)}) for number in range(100)]
    assert len([key for key in settings._handles if key[0] == "/no/table"]) == settings._KEPT_OF_A_PATH
    assert settings.delta_log("/no/table", {"spark.hadoop.fs.s3a.secret.key": "99"}) is made[-1]
    assert settings.delta_log("/no/table", {"spark.hadoop.fs.s3a.secret.key": "0"}) is not made[0]
    settings.forget("/no/table")
