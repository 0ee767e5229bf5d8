"""What `spark-submit --archives environment.tar.gz#environment archived.py DIRECTORY` runs.

The Python of the executors is in the archive of venv-pack, by a relative path; the driver has its own.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession
from submitted_parts import check_planned_by_executors, warnings_kept

from tablelog.core import DeltaLog
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, WRITE_ROUTE
from tablelog.spark import enable


def places(_: Iterator[int]) -> Iterator[tuple[str, str]]:
    """The Python of an executor, and its tablelog."""
    import sys

    import tablelog

    yield sys.executable, str(tablelog.__file__)


def by_route(spark: SparkSession, route: str, path: str) -> list[int]:
    spark.conf.set(READ_ROUTE.key, route)
    spark.conf.set(WRITE_ROUTE.key, route)
    spark.range(0, 8, 1, 2).repartition(2).write.format("delta").save(path)
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


def main(directory: Path) -> None:
    warnings = warnings_kept()
    spark = enable(SparkSession.builder.getOrCreate())
    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(places).collect()
    assert all("environment/bin/python" in program for program, _ in found), found
    assert all("/environment/lib/" in package for _, package in found), found

    native = str(directory / "native")
    assert by_route(spark, "native", native) == list(range(8))
    check_planned_by_executors(spark, native, 3)
    spark.conf.unset(LOG_DRIVER_BYTES.key)

    assert not Path("environment").exists()  # in client mode, the driver's working directory doesn't have the archive
    told = ""
    try:
        by_route(spark, "arrow", str(directory / "arrow"))
    except UnsupportedEnvironmentError as error:
        told = str(error)
    assert "Spark can't start ./environment/bin/python" in told, told
    assert "\n" not in told
    assert DeltaLog.for_path(str(directory / "arrow")).snapshot().num_files == 2  # executors wrote them by Arrow

    shutil.unpack_archive("environment.tar.gz", "environment", filter="tar")
    assert by_route(spark, "arrow", str(directory / "arrow again")) == list(range(8))
    assert not warnings, warnings
    spark.stop()
    print("all done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
