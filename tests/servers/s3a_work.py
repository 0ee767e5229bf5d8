"""`python -m servers.s3a_work JARS`: the whole work of a table on a published MinIO, in a session with these jars."""

import os
import sys

from support.sessions import session_builder
from support.table_work import STEPS, by_route
from tablelog.spark import enable

from . import MinIO


def main(jars: str) -> None:
    server = MinIO.of_environment()
    assert server is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    hadoop = {f"spark.hadoop.{key}": value for key, value in server.conf.items()}
    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "4", **hadoop, **by_route("native")}
    spark = session_builder("local[2]", settings).getOrCreate()
    enable(spark)
    for step in STEPS.values():
        step(spark, server.url("a table"), server.conf)
    # Nobody else is named for s3:, so that s3a serves it.
    STEPS["by tasks"](spark, server.url("a table").replace("s3a:", "s3:", 1), server.conf)
    spark.stop()
    print("all done: " + ", ".join(STEPS))


if __name__ == "__main__":
    main(sys.argv[1])
