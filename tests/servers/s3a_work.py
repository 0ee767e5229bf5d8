"""`python -m servers.s3a_work JARS`: the whole work of a table on a published MinIO, in a session with these jars."""

import os
import sys

from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route
from tablelog.spark import enable

from . import MinIO


def main(jars: str) -> None:
    server = MinIO.of_environment()
    assert server is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    quiet = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    hadoop = {f"spark.hadoop.{key}": value for key, value in server.conf.items()}
    for key, value in {**quiet, **hadoop, **by_route("native"), "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    enable(spark)
    for step in STEPS.values():
        step(spark, server.url("a table"), server.conf)
    # Nobody else is named for s3:, so that s3a serves it.
    STEPS["by tasks"](spark, server.url("a table").replace("s3a:", "s3:", 1), server.conf)
    spark.stop()
    print("all done: " + ", ".join(STEPS))


if __name__ == "__main__":
    main(sys.argv[1])
