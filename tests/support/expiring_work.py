"""`python -m support.expiring_work ENDPOINT URL`: commands on a table on S3, with the credentials of the environment.

Before each command, the program asks the service for `/now/COMMAND`, so that a fake service knows what comes.
"""

import contextlib
import os
import sys
import urllib.error
import urllib.request

from support.sessions import session_builder
from support.table_work import Work, by_route
from tablelog.spark import enable


def main(endpoint: str, url: str) -> None:
    conf = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }

    def now(command: str) -> None:
        """Tell the service which command comes."""
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"{endpoint}/now/{command}")

    os.environ["PYSPARK_PYTHON"] = sys.executable
    hadoop = {f"spark.hadoop.{key}": value for key, value in conf.items()}
    spark = session_builder("local[2]", {**hadoop, **by_route("arrow")}).getOrCreate()
    enable(spark)
    work = Work(spark, url, conf, by_job=False)
    for start in range(0, 24, 4):
        work.write(work.frame(start, start + 4))
    now("UPDATE")
    work.delta.update("id % 3 = 0", {"id": "id + 100", "x": "(id + 100) * 1.5", "p": "concat('p/ö %', (id + 100) % 2)"})
    now("OPTIMIZE")
    work.delta.optimize().executeCompaction()
    now("end")
    assert work.ids() == sorted(id_ + 100 * (id_ % 3 == 0) for id_ in range(24))
    assert [row.operation for row in work.delta.history(2).collect()] == ["OPTIMIZE", "UPDATE"]
    spark.stop()
    print("all done")


if __name__ == "__main__":
    main(*sys.argv[1:])
