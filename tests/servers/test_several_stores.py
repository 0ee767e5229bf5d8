"""Tables in several stores in one session: the source of a command in one, its target in another."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from support.table_work import by_route, settings
from tablelog.errors import UntrustedTableError
from tablelog.settings.declarations import EXTERNAL_PATHS
from tablelog.spark import DeltaTable

from . import CannotInstallError, MinIO


class SecondMinIO(MinIO):
    """Another service, with another bucket and other credentials."""

    bucket: ClassVar[str] = "second"
    access_key: ClassVar[str] = "second-user"
    secret_key: ClassVar[str] = "second-secret"

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "MINIO_ROOT_USER": self.access_key, "MINIO_ROOT_PASSWORD": self.secret_key}


@pytest.fixture(scope="module")
def second_minio() -> Iterator[SecondMinIO]:
    try:
        server = SecondMinIO.start()
    except CannotInstallError as error:
        pytest.skip(str(error))
    yield server
    server.stop()


def of_bucket(server: Any) -> dict[str, str]:
    """The server's keys, for its bucket alone."""
    return {key.replace("fs.s3a.", f"fs.s3a.bucket.{server.bucket}.", 1): value for key, value in server.conf.items()}


class Stores:
    """A session that reaches all of `servers`, and URLs on each."""

    def __init__(self, spark: SparkSession, source: str, target: str) -> None:
        self.spark, self.source, self.target = spark, source, target

    def write(self, url: str, start: int, end: int) -> None:
        rows = self.spark.range(start, end, 1, 2).selectExpr("id", "id % 2 p", "id * 10 x")
        rows.write.format("delta").partitionBy("p").mode("append").save(url)

    def rows(self, url: str) -> list[tuple[int, int]]:
        frame = self.spark.read.format("delta").load(url)
        return sorted((row.id, row.x) for row in frame.collect())


PAIRS = [
    ("minio", "azurite"),
    ("azurite", "minio"),
    ("minio", "gcs_server"),
    ("azurite", "gcs_server"),
    ("minio", "local"),
    ("minio", "second_minio"),
]


@pytest.fixture(params=PAIRS, ids="-".join)
def stores(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Stores]:
    conf, urls = by_route("arrow"), []
    for name in request.param:
        if name == "local":
            urls.append(str(tmp_path / "table"))
            continue
        server = request.getfixturevalue(name)
        conf |= of_bucket(server) if isinstance(server, MinIO) else server.conf
        urls.append(server.url())
    with settings(spark, conf):
        yield Stores(spark, *urls)


def test_insert_and_merge_from_another_store(stores: Stores) -> None:
    stores.write(stores.source, 0, 6)
    stores.spark.read.format("delta").load(stores.source).where("id < 4").write.format("delta").save(stores.target)
    assert stores.rows(stores.target) == [(id_, id_ * 10) for id_ in range(4)]
    DeltaTable.forPath(stores.spark, stores.source).update("id >= 2", {"x": "x + 1"})
    source = stores.spark.read.format("delta").load(stores.source)
    target = DeltaTable.forPath(stores.spark, stores.target)
    merge = target.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert stores.rows(stores.target) == [(id_, id_ * 10 + (id_ >= 2)) for id_ in range(6)]
    assert stores.rows(stores.source) == stores.rows(stores.target)


def test_a_stream_from_a_local_table(stores: Stores, tmp_path: Path) -> None:
    local = str(tmp_path / "streamed")
    with settings(stores.spark, by_route("auto")):  # Spark itself reads the source
        for start, end in ((0, 4), (4, 6)):
            stores.write(local, start, end)
            rows = stores.spark.readStream.format("delta").load(local)
            writer = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
            assert writer.trigger(availableNow=True).start(stores.target).awaitTermination(60)
            assert stores.rows(stores.target) == [(id_, id_ * 10) for id_ in range(end)]


def test_a_shallow_clone_reads_the_files_of_the_other_store_and_writes_its_own(stores: Stores) -> None:
    stores.write(stores.source, 0, 6)
    source = DeltaTable.forPath(stores.spark, stores.source)
    with pytest.raises(UntrustedTableError, match=EXTERNAL_PATHS.key):
        source.clone(stores.target, isShallow=True)
    assert not DeltaTable.isDeltaTable(stores.spark, stores.target)
    with settings(stores.spark, {EXTERNAL_PATHS.key: "allow"}):
        clone = source.clone(stores.target, isShallow=True)
        assert stores.rows(stores.target) == [(id_, id_ * 10) for id_ in range(6)]
        clone.update("id = 3", {"x": "99"})
        clone.delete("id = 0")
        assert stores.rows(stores.target) == [(1, 10), (2, 20), (3, 99), (4, 40), (5, 50)]
    assert stores.rows(stores.source) == [(id_, id_ * 10) for id_ in range(6)]
