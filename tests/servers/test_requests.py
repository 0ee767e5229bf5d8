"""The requests of each command on S3, of the log and of the data files, are those of the formulas in docs/stores.md.

Each command runs on tables of two sizes, so that what each file, commit or page costs is tested too, not only one sum.
The data files are read and written by Python workers (the Arrow route); the log is the same on every route.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from support.table_work import by_route, settings
from tablelog.conformance.harness.proxy import Proxy
from tablelog.spark import DeltaTable

from .programs import run_program
from .request_counts import RequestCounts
from .stream_requests import BATCHES

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

    def append(self, f: int) -> None:
        """One more row in each of `f` partitions, by one commit of `f` files that the driver writes."""
        rows = [(100 + number, number, 1.5) for number in range(f)]
        frame = self.spark.createDataFrame(rows, "id long, p long, x double")
        frame.write.format("delta").mode("append").save(self.url)

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


@SIZES
def test_an_append_writes_its_files_and_two_of_the_log(counted: Counted, f: int) -> None:
    counted.table(f)
    assert counted.cost(lambda: counted.append(f)) == {"log LIST": 1, "log PUT": 2, "data PUT": f}


@SIZES
def test_a_delete_of_partitions_touches_only_the_log(counted: Counted, f: int) -> None:
    table = counted.table(f)
    assert counted.cost(lambda: table.delete("p >= 1")) == {"log LIST": 1, "log PUT": 2}


@SIZES
def test_an_update_reads_each_file_twice_and_writes_it_once(counted: Counted, f: int) -> None:
    table = counted.table(f)
    expected = {"log LIST": 1, "log PUT": 2, "data GET": 2 * f, "data PUT": f, "data LIST": 1}
    assert counted.cost(lambda: table.update("x >= 0", {"x": "x + 1"})) == expected
    expected = {"log LIST": 2, "log GET": 2, "log PUT": 2, "data HEAD": f}
    assert counted.cost(lambda: table.restoreToVersion(0)) == expected


@SIZES
def test_a_merge_costs_what_an_update_does(counted: Counted, f: int) -> None:
    table = counted.table(f)
    source = counted.spark.createDataFrame([(number,) for number in range(f)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": "t.x + 1"})
    expected = {"log LIST": 1, "log PUT": 2, "data GET": 2 * f, "data PUT": f, "data LIST": 1}
    assert counted.cost(merge.execute) == expected


@SIZES
def test_optimize_reads_each_file_once(counted: Counted, f: int) -> None:
    table = counted.table(1)
    for _ in range(f - 1):
        counted.append(1)
    expected = {"log LIST": 1, "log PUT": 2, "data GET": f, "data PUT": 1, "data LIST": 1}
    assert counted.cost(lambda: table.optimize().executeCompaction()) == expected


@SIZES
def test_a_read_is_a_request_for_each_file(counted: Counted, f: int) -> None:
    table = counted.table(f)
    assert counted.cost(lambda: table.toDF().collect()) == {"log LIST": 1, "data GET": f}


@pytest.mark.timeout(600)
def test_batches_of_streams(minio: Any, tmp_path: Path, jars: str) -> None:
    """From a table of `b` commits of a file each, one file in a batch: no more with more batches. And into a table."""
    found = json.loads(run_program(minio, tmp_path, "servers.stream_requests", jars, str(tmp_path)))
    assert found["source"] == [[b, {"log LIST": 6}] for b in BATCHES]
    assert found["sink"] == [[b, {"log LIST": b, "log PUT": 2 * b}] for b in BATCHES]
