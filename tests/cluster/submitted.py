"""What `spark-submit --py-files <wheel> submitted.py DIRECTORY` runs: tablelog is in the wheel only."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import tablelog

assert ".whl" in tablelog.__file__, tablelog.__file__

from submitted_parts import check_planned_by_executors, warnings_kept  # noqa: E402

from tablelog.cli import main as command  # noqa: E402
from tablelog.settings.declarations import READ_ROUTE, WRITE_ROUTE  # noqa: E402
from tablelog.spark import DeltaTable, enable  # noqa: E402


def main(directory: Path) -> None:
    warnings = warnings_kept()
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
    path = str(directory / "native")
    check_planned_by_executors(spark, path, 4)
    assert not warnings, warnings
    spark.stop()
    assert command(["report", path, "--output", str(directory / "report.html")]) == 0
    assert (directory / "report.html").stat().st_size > 10_000
    print("all done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
