"""The requests of each command on S3, of the log and of the data files, are those of the formulas in docs/stores.md.

Each command runs on tables of two sizes, so that what each file, commit or page costs is tested too, not only one sum.
The data files are read and written by Python workers (the Arrow route); the log is the same on every route.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from support.table_work import by_route, settings
from tablelog.conformance.harness.proxy import Proxy
from tablelog.core.deltalog import DeltaLog
from tablelog.spark import DeltaTable

from .request_counts import RequestCounts

SIZES = pytest.mark.parametrize("f", [2, 5])
Formula = Mapping[str, int]


class Counted:
    """Tables behind a proxy that counts."""

    def __init__(self, spark: SparkSession, server: Any, proxy: Proxy, counts: RequestCounts) -> None:
        self.spark, self.server, self.counts = spark, server, counts
        self.conf = {**server.conf, "fs.s3a.endpoint": proxy.url}

    def table(self, f: int, commits: int = 0) -> DeltaTable:
        """A table of `f` files, one in each partition p (id = p), and `commits` commits after the first."""
        self.url = self.server.url()
        rows = self.spark.range(0, f, 1, f).selectExpr("id", "id p", "id * 1.5 x")
        rows.write.format("delta").partitionBy("p").option("delta.checkpointInterval", "1000").save(self.url)
        table = DeltaTable.forPath(self.spark, self.url)
        for number in range(commits):
            table.setProperties({"number": str(number)})
        self.counts.taken()
        return table

    def log(self) -> DeltaLog:
        """A handle that has read nothing yet."""
        return DeltaLog.for_path(self.url, conf=self.conf)

    def cost(self, work: Any) -> Counter[str]:
        self.counts.taken()
        work()
        return self.counts.taken()


@pytest.fixture
def counted(spark: SparkSession, minio: Any) -> Iterator[Counted]:
    counts = RequestCounts()
    with Proxy(minio.endpoint, counts) as proxy:
        made = Counted(spark, minio, proxy, counts)
        with settings(spark, {**made.conf, **by_route("arrow")}):
            made.table(1)  # the probe of the bucket
            yield made


def test_print(counted: Counted, tmp_path: Path) -> None:
    for f in (2, 5):
        t = counted.table(f, f); print(f, "open", counted.cost(lambda: counted.log().snapshot().files))
        log = counted.log(); s = log.snapshot(); s.files
        print(f, "refresh", counted.cost(log.snapshot))
        print(f, "checkpoint", counted.cost(log.checkpoint))
        print(f, "open after checkpoint", counted.cost(lambda: counted.log().snapshot().files))
        print(f, "history", counted.cost(lambda: counted.log().history()))
        print(f, "history f-1", counted.cost(lambda: counted.log().history(f - 1)))
        print(f, "history sql", counted.cost(lambda: t.history().collect()))
        rows = counted.spark.createDataFrame([(100 + i, i, 1.5) for i in range(f)], "id long, p long, x double")
        print(f, "append driver", counted.cost(lambda: rows.write.format("delta").mode("append").save(counted.url)))
        t = counted.table(f)
        rows = counted.spark.range(100, 100+f, 1, f).selectExpr("id", "id p", "id * 1.5 x")
        print(f, "append job", counted.cost(lambda: rows.write.format("delta").mode("append").save(counted.url)))
        t = counted.table(f)
        print(f, "delete part", counted.cost(lambda: t.delete("p >= 1")))
        t = counted.table(f)
        print(f, "delete all rows cond", counted.cost(lambda: t.delete("x > 1000 or id >= 1")))
        t = counted.table(f)
        print(f, "update", counted.cost(lambda: t.update("x >= 0", {"x": "x + 1"})))
        t = counted.table(f)
        print(f, "merge", counted.cost(lambda: t.alias("t").merge(counted.spark.range(0, f).alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": "t.x + 1"}).execute()))
        t = counted.table(f)
        counted.spark.range(0, f, 1, f).selectExpr("id", "id p", "id * 1.5 x").write.format("delta").mode("append").save(counted.url)
        print(f, "optimize 2f->f", counted.cost(lambda: t.optimize().executeCompaction()))
        print(f, "restore", counted.cost(lambda: t.restoreToVersion(0)))
        with settings(counted.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            print(f, "vacuum dry", counted.cost(lambda: counted.spark.sql(f"VACUUM delta.`{counted.url}` RETAIN 0 HOURS DRY RUN").collect()))
            print(f, "vacuum", counted.cost(lambda: t.vacuum(0)))
        print(f, "read", counted.cost(lambda: counted.spark.read.format("delta").load(counted.url).collect()))
        src = counted.url
        target = counted.server.url()
        def stream():
            q = counted.spark.readStream.format("delta").load(src).writeStream.format("delta").option("checkpointLocation", str(tmp_path / f"c{f}")).trigger(availableNow=True).start(target)
            q.awaitTermination()
        print(f, "stream first", counted.cost(stream))
        counted.spark.range(0, f, 1, f).selectExpr("id", "id p", "id * 1.5 x").write.format("delta").mode("append").save(src)
        print(f, "stream second", counted.cost(stream))
