"""The settings of Spark's sessions in tests, and an archive of classes with which their JVMs start in half the time.

`python -m support.sessions` makes the archive for the environment that runs it; it takes a minute, once.
"""

import subprocess
import sys
from collections.abc import Mapping
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from support.java import ARCHIVE, java_options

# What makes a session delta-spark's.
DELTA_SPARK = {
    "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def session_builder(master: str, settings: Mapping[str, str], *, more_java_options: str = "") -> SparkSession.Builder:
    """A builder with the settings that all tests share, and with `settings`, which win."""
    shared = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{java_options()} {more_java_options}".strip(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master(master).appName("tablelog-tests")
    for key, value in {**shared, **settings}.items():
        builder = builder.config(key, value)
    return builder


def _make_archive() -> None:
    """Do what most tests do in a JVM that writes the classes it loaded to the archive when it ends."""
    ARCHIVE.unlink(missing_ok=True)
    with TemporaryDirectory() as scratch:
        spark = session_builder(
            "local[2]",
            {"spark.sql.warehouse.dir": f"{scratch}/warehouse"},
            more_java_options=f"-XX:ArchiveClassesAtExit={ARCHIVE}",
        ).getOrCreate()
        rows = spark.range(10).selectExpr("id", "cast(id as string) name", "id % 2 part")
        rows.write.partitionBy("part").parquet(f"{scratch}/rows")
        read = spark.read.parquet(f"{scratch}/rows")
        read.createOrReplaceTempView("rows")
        read.join(rows, "id", "full_outer").where("id > 3").count()
        spark.sql("SELECT part, count(*), collect_list(struct(*)) FROM rows GROUP BY part ORDER BY 1").collect()
        gateway = spark.sparkContext._gateway
        spark.stop()
        jvm: subprocess.Popen[bytes] = gateway.proc
        assert jvm.stdin is not None
        jvm.stdin.close()  # what tells the JVM to end
        jvm.wait(120)
    if not ARCHIVE.exists():
        print("Java made no class archive; the tests run without it, and take longer", file=sys.stderr)


if __name__ == "__main__":
    _make_archive()
