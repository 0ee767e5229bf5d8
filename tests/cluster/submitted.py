"""What `spark-submit --py-files <wheel> submitted.py DIRECTORY` runs: tablelog is in the wheel only."""

import logging
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import tablelog

assert ".whl" in tablelog.__file__, tablelog.__file__

from tablelog.cli import main as command  # noqa: E402
from tablelog.core import DeltaLog  # noqa: E402
from tablelog.core.log import checkpoint  # noqa: E402
from tablelog.settings.declarations import LOG_DRIVER_BYTES, READ_ROUTE, SNAPSHOT_PARTITIONS, WRITE_ROUTE  # noqa: E402
from tablelog.spark import DeltaTable, conf, enable  # noqa: E402

warnings: list[str] = []


class Kept(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warnings.append(record.getMessage())


def main(directory: Path) -> None:
    logging.getLogger("tablelog").addHandler(Kept(logging.WARNING))
    spark = enable(SparkSession.builder.getOrCreate())
    for route in ("native", "arrow"):
        spark.conf.set(READ_ROUTE.key, route)
        spark.conf.set(WRITE_ROUTE.key, route)
        path = str(directory / route)
        spark.range(0, 8, 1, 2).repartition(2).write.format("delta").save(path)
        DeltaTable.forPath(spark, path).delete("id = 3")
        spark.sql(f"UPDATE delta.`{path}` SET id = id + 100 WHERE id = 4")
        ids = sorted(row.id for row in spark.read.format("delta").load(path).collect())
        assert ids == [0, 1, 2, 5, 6, 7, 104], ids
    spark.conf.unset(READ_ROUTE.key)
    checkpoint._AT_ONCE = 0
    path = str(directory / "native")
    DeltaLog.for_path(path).checkpoint()
    conf.forget()
    spark.conf.set(LOG_DRIVER_BYTES.key, "0")
    spark.conf.set(SNAPSHOT_PARTITIONS.key, "2")
    assert spark.read.format("delta").load(path).where("id >= 5").count() == 4
    base = conf.delta_log(path, conf.session_conf(spark, path)).snapshot().base
    assert base is not None
    assert not base.loaded, "executors should have planned the query"
    assert not warnings, warnings
    spark.stop()
    assert command(["report", path, "--output", str(directory / "report.html")]) == 0
    assert (directory / "report.html").stat().st_size > 10_000
    print("all done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
