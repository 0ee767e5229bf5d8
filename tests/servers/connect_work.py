"""`python -m servers.connect_work SCRATCH MASTER [JARS]`: a table's work by a Spark Connect server with this master.

The table is on the published server, MinIO or HDFS, else in the directory SCRATCH. The client and the server's Python
reach MinIO by the SDK, and Spark by s3a, whose jars are JARS.
"""

import os
import sys
from pathlib import Path
from typing import Any

from support import connect_server
from tablelog.spark import DeltaTable, enable

from . import HDFS, MinIO


def work(spark: Any, path: str) -> None:
    """Write, change, stream and vacuum a table and its copy."""
    options = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    rows = spark.range(6).selectExpr("id", "'p=' || id % 2 p")
    rows.write.format("delta").partitionBy("p").options(**options).save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 3")
    table.update("id = 0", {"p": "'p=2'"})
    assert ids(spark, path, versionAsOf=0) == [0, 1, 2, 3, 4, 5]
    assert ids(spark, path, versionAsOf=2) == [0, 1, 2, 4, 5]
    changes = spark.read.format("delta").options(readChangeFeed="true", startingVersion=1).load(path)
    told = {row[0]: row[1] for row in changes.groupBy("_change_type").count().collect()}
    assert told == {"delete": 1, "update_preimage": 1, "update_postimage": 1}
    source = spark.range(4, 8).selectExpr("id", "'new' p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    assert ids(spark, path) == [0, 1, 2, 4, 5, 6, 7]

    copy = f"{path} copied"
    for more in (8, 9):
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(path)
        writer = stream.writeStream.format("delta").option("checkpointLocation", f"{path} checkpoint")
        query = writer.partitionBy("p").trigger(availableNow=True).start(copy)
        query.awaitTermination()
        assert query.exception() is None, query.exception()
        assert ids(spark, copy) == ids(spark, path)
        spark.range(more, more + 1).selectExpr("id", "'more' p").write.format("delta").mode("append").save(path)
    assert DeltaTable.forPath(spark, copy).history().count() > 1
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.vacuum(0)
    assert ids(spark, path) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def ids(spark: Any, path: str, **options: Any) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").options(**options).load(path).select("id").collect())


def main(scratch: str, master: str, jars: str = "") -> None:
    from pyspark.sql import SparkSession

    server = MinIO.of_environment() or HDFS.of_environment()
    url = f"{scratch}/a table"
    conf = {"spark.jars": jars, "spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "1g"}
    if server is not None:
        url = server.url("a table")
        # For the Python of the client, of the server and of the executors: Hadoop's settings aren't for them.
        os.environ.update(server.environment)
        conf |= {f"spark.executorEnv.{name}": value for name, value in server.environment.items()}
        conf |= {f"spark.hadoop.{key}": value for key, value in server.conf.items()}
    with connect_server.running(Path(scratch), conf, master=master) as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        try:
            work(enable(spark), url)
        finally:
            spark.stop()  # while there is a server: at its end, the client tries for minutes to tell it
    print("all done")


if __name__ == "__main__":
    main(*sys.argv[1:])
