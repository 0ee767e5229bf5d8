"""Credentials that only the driver has, or only the executors: an error says who lacks access, and nothing is left."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from servers import MinIO
from support.table_work import Work, by_route, settings
from tablelog.errors import StorageAccessError

from .conftest import class_path

SETTINGS = {
    "spark.executorEnv.AWS_EC2_METADATA_DISABLED": "true",
    "spark.task.maxFailures": "1",
}
KEYS = ("fs.s3a.access.key", "fs.s3a.secret.key")


@pytest.fixture
def work(spark: SparkSession, minio: MinIO) -> Iterator[Work]:
    """A table of two files, and a session without keys."""
    table = Work(spark, minio.url(), minio.conf, by_job=True)
    with settings(spark, {**minio.conf, **by_route("arrow")}):
        table.write(table.frame(0, 4))
    with settings(spark, {key: value for key, value in minio.conf.items() if key not in KEYS}):
        yield table


def with_keys(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys in the environment of the driver's Python. Its JVM and the executors have no such variables."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", minio.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", minio.secret_key)


def test_only_the_driver_has_keys(
    spark: SparkSession, minio: MinIO, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_keys(minio, monkeypatch)
    before = work.files()
    with settings(spark, by_route("arrow")):
        with pytest.raises(StorageAccessError, match="executors have no access there, and the driver has") as caught:
            work.write(work.frame(4, 8))
        assert "\n" not in str(caught.value)
        with pytest.raises(StorageAccessError, match="executors have no access there, and the driver has"):
            work.read().collect()
    assert work.log.snapshot().version == 0
    assert work.files() == before


def test_the_jvm_of_executors_has_no_keys(
    spark: SparkSession, minio: MinIO, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not class_path():
        pytest.skip("the jars of s3a can't be installed")
    with_keys(minio, monkeypatch)
    system = spark._jvm.java.lang.System  # where the driver's JVM finds keys, and executors don't
    system.setProperty("aws.accessKeyId", minio.access_key)
    system.setProperty("aws.secretAccessKey", minio.secret_key)
    provider = "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
    before = work.files()
    try:
        with settings(spark, {**by_route("native"), "fs.s3a.aws.credentials.provider": provider}):
            with pytest.raises(
                StorageAccessError, match="executors have no access there, and the driver has"
            ) as caught:
                work.write(work.frame(4, 8))
            print(caught.value)
            with pytest.raises(StorageAccessError, match="executors have no access there, and the driver has"):
                work.read().collect()
    finally:
        system.clearProperty("aws.accessKeyId")
        system.clearProperty("aws.secretAccessKey")
    assert work.log.snapshot().version == 0
    assert work.files() == before


def test_only_executors_have_keys(spark: SparkSession, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    before = work.files()
    for command in (lambda: work.write(work.frame(4, 8)), lambda: work.read().collect(), work.delta.delete):
        with settings(spark, by_route("arrow")), pytest.raises(StorageAccessError) as caught:
            command()
        assert "\n" not in str(caught.value)
    assert work.files() == before
