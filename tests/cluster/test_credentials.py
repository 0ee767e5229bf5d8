"""Credentials that only the driver has, or that it lacks: an error says who lacks access, and nothing is left."""

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


@pytest.mark.skipif(not class_path(), reason="the jars of s3a can't be installed")
def test_only_the_drivers_python_has_keys(
    spark: SparkSession, minio: MinIO, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's write begins on the driver, where Hadoop's client has no keys."""
    with_keys(minio, monkeypatch)
    before = work.files()
    no_client_of_before = {"fs.s3a.impl.disable.cache": "true"}
    with (
        settings(spark, {**by_route("native"), **no_client_of_before}),
        pytest.raises(StorageAccessError, match="Spark's JVM and its Python workers have no access there") as caught,
    ):
        work.write(work.frame(4, 8))
    assert "\n" not in str(caught.value)
    assert work.url in str(caught.value)
    assert work.log.snapshot().version == 0
    assert work.files() == before


def test_the_driver_has_no_keys(spark: SparkSession, minio: MinIO, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    before = work.files()
    spark.conf.set("fs.s3a.endpoint", minio.endpoint.replace("127.0.0.1", "localhost"))  # no client of before
    commands = (
        lambda: work.write(work.frame(4, 8)),
        lambda: work.read().collect(),
        lambda: work.delta.delete("id = 1"),
    )
    for command in commands:
        with settings(spark, by_route("arrow")), pytest.raises(StorageAccessError) as caught:
            command()
        assert "\n" not in str(caught.value)
        assert "Spark's driver has no access there" in str(caught.value)
    assert work.files() == before
