"""Tables on MinIO behind a proxy that counts the requests of a command."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from support.table_work import by_route, settings
from tablelog.conformance.harness.proxy import Proxy
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable

from .request_counts import RequestCounts

SIZES = pytest.mark.parametrize("f", [2, 4])


class Counted:
    """Tables behind a proxy that counts."""

    warm: ClassVar[bool] = False

    def __init__(self, spark: SparkSession, server: Any, proxy: Proxy, counts: RequestCounts) -> None:
        self.spark, self.server, self.counts = spark, server, counts
        self.conf = {**server.conf, "fs.s3a.endpoint": proxy.url}

    def table(self, f: int) -> DeltaTable:
        """A table of `f` files, one in each partition p (id = p), by one commit."""
        self.url = self.server.url()
        rows = self.spark.range(0, f, 1, f).selectExpr("id", "id p", "id * 1.5 x")
        rows.write.format("delta").partitionBy("p").option("delta.checkpointInterval", "1000").save(self.url)
        return DeltaTable.forPath(self.spark, self.url)

    def table_of_two(self, f: int, **properties: str) -> DeltaTable:
        """A table of `f` files, one in each partition p, of two rows each: (p, p, 0) and (100 + p, p, 1.5)."""
        self.url = self.server.url()
        self.write(f, "errorifexists", both=True, **{"delta.checkpointInterval": "1000", **properties})
        return DeltaTable.forPath(self.spark, self.url)

    def write(self, f: int, mode: str, *, both: bool = False, **options: str) -> None:
        """A row in each of `f` partitions, or both, by one commit of `f` files that the driver writes."""
        rows = [(100 * k + p, p, 1.5 * k) for p in range(f) for k in range(0 if both else 1, 2)]
        frame = self.spark.createDataFrame(rows, "id long, p long, x double")
        frame.write.format("delta").partitionBy("p").mode(mode).options(**options).save(self.url)

    def append(self, f: int) -> None:
        self.write(f, "append")

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.url, conf=self.conf)

    def cost(self, work: Callable[[], object]) -> Counter[str]:
        self.counts.taken()
        work()
        return self.counts.taken()


@pytest.fixture
def counted(spark: SparkSession, minio: Any) -> Iterator[Counted]:
    counts = RequestCounts()
    with Proxy(minio.endpoint, counts) as proxy:
        made = Counted(spark, minio, proxy, counts)
        with settings(spark, {**made.conf, **by_route("arrow")}):
            if not Counted.warm:  # the probe of the bucket, and one listing more by the first command that reads rows
                made.table(1).update("x >= 0", {"x": "x + 1"})
                Counted.warm = True
            yield made
