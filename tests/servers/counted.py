"""Tables on MinIO behind a proxy that counts requests, for the tests of the formulas in docs/stores.md.

Each command runs on tables of two sizes, so that what each file, commit or page costs is tested too, not only one sum.
The data files are read and written by Python workers (the Arrow route); the log is the same on every route.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.table_work import by_route, settings
from tablelog.conformance.harness.proxy import Proxy
from tablelog.core import DeltaLog
from tablelog.engine.read import vector_cache
from tablelog.spark import DeltaTable

from .request_counts import RequestCounts

SIZES = pytest.mark.parametrize("f", [2, 4])
COMMIT = {"log LIST": 1, "log PUT": 2}
"""A look for new commits, a commit and its checksum."""
VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}


class Counted:
    """Tables behind a proxy that counts."""

    warm: ClassVar[bool] = False

    def __init__(self, spark: SparkSession, server: Any, proxy: Proxy, counts: RequestCounts) -> None:
        self.spark, self.server, self.counts = spark, server, counts
        self.conf = {**server.conf, "fs.s3a.endpoint": proxy.url}

    def table(self, f: int, **properties: str) -> DeltaTable:
        """A table of `f` files, one in each partition p (id = p), by one commit."""
        self.url = self.server.url()
        rows = self.spark.range(0, f, 1, f).selectExpr("id", "id p", "id * 1.5 x")
        writer = rows.write.format("delta").partitionBy("p").option("delta.checkpointInterval", "1000")
        writer.options(**properties).save(self.url)
        return DeltaTable.forPath(self.spark, self.url)

    def of_two_halves(self, f: int, **properties: str) -> DeltaTable:
        """`table`, and by a second commit `f` files of two rows each: `SECOND` is true for one of the two."""
        table = self.table(f, **properties)
        self.append(f, of=2)
        return table

    def of_commits(self, c: int, **properties: str) -> DeltaTable:
        """A table of `c` commits of one file each."""
        table = self.table(1, **properties)
        for _ in range(c - 1):
            self.append(1)
        return table

    def rows(self, f: int, *, of: int = 1) -> DataFrame:
        """`of` rows in each of `f` partitions, which the driver writes: one file in each."""
        rows = [(100 + number + 1000 * i, number, 1.5) for number in range(f) for i in range(of)]
        return self.spark.createDataFrame(rows, "id long, p long, x double")

    def append(self, f: int, *, of: int = 1) -> None:
        """More rows in each of `f` partitions, by one commit of `f` files that the driver writes."""
        self.rows(f, of=of).write.format("delta").mode("append").save(self.url)

    def sql(self, statement: str) -> DataFrame:
        """A statement on the table; `{t}` is its name."""
        return self.spark.sql(statement.format(t=f"delta.`{self.url}`"))

    @property
    def log(self) -> DeltaLog:
        """A handle that has read nothing yet."""
        return DeltaLog.for_path(self.url, conf=self.conf)

    def cost(self, work: Callable[[], object]) -> Counter[str]:
        self.counts.taken()
        work()
        return self.counts.taken()

    @staticmethod
    def forget_vectors() -> None:
        """Forget the deletion vectors that this process wrote or read."""
        vector_cache.SHARED.clear()


SECOND = "id >= 1100"
"""Half of the rows of each file of the second commit of `Counted.of_two_halves`."""


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
