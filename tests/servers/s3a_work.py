"""`python -m servers.s3a_work JARS [STEP ...]`: the work of a table on a published MinIO, by a session with these jars.

Without a step it is the whole work.
"""

import os
import sys

from support.sessions import session_builder
from support.table_work import STEPS, by_route
from tablelog.spark import enable

from . import MinIO


def main(jars: str, *steps: str) -> None:
    server = MinIO.of_environment()
    assert server is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    hadoop = {f"spark.hadoop.{key}": value for key, value in server.conf.items()}
    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "4", **hadoop, **by_route("native")}
    spark = session_builder("local[2]", settings).getOrCreate()
    enable(spark)
    for step in steps or STEPS:
        STEPS[step](spark, server.url("a table"), server.conf)
    if not steps:  # nobody else is named for s3:, so that s3a serves it
        STEPS["by tasks"](spark, server.url("a table").replace("s3a:", "s3:", 1), server.conf)
    spark.stop()
    print("all done: " + ", ".join(steps or STEPS))


if __name__ == "__main__":
    main(*sys.argv[1:])
