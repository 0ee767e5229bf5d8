"""`python -m servers.stream_requests JARS DIRECTORY`: what batches of streams ask of the log on MinIO.

The last line is JSON: for a source and for a sink, a list of (batches, requests). The other end and the checkpoint of
the query are on the local disk.
"""

import json
import os
import sys
from typing import Any

from support.sessions import session_builder
from support.table_work import by_route
from tablelog.conformance.harness.proxy import Proxy
from tablelog.spark import enable

from . import MinIO
from .request_counts import RequestCounts

BATCHES = (2, 5)


def copied(spark: Any, source: str, sink: str, checkpoint: str) -> int:
    """Copy a table by a stream, one file of the source in each batch; the number of batches."""
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
    writer = reader.load(source).writeStream.format("delta").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start(sink)
    query.awaitTermination()
    return len([progress for progress in query.recentProgress if progress["numInputRows"]])


def main(jars: str, directory: str) -> None:
    server = MinIO.of_environment()
    assert server is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    counts = RequestCounts()
    with Proxy(server.endpoint, counts) as proxy:
        conf = {**server.conf, "fs.s3a.endpoint": proxy.url}
        hadoop = {f"spark.hadoop.{key}": value for key, value in conf.items()}
        settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "4", **hadoop, **by_route("native")}
        spark = session_builder("local[2]", settings).getOrCreate()
        enable(spark)
        found: dict[str, list[tuple[int, dict[str, int]]]] = {"source": [], "sink": []}
        copied(spark, _table(spark, server.url(), 1), server.url(), f"{directory}/warm")
        for batches in BATCHES:
            source, local = _table(spark, server.url(), batches), f"{directory}/copy-{batches}"
            counts.taken()
            done = copied(spark, source, local, f"{local}-checkpoint")
            found["source"].append((done, _log(counts)))
            sink = _table(spark, server.url(), 1)
            counts.taken()
            done = copied(spark, local, sink, f"{local}-checkpoint-2")
            found["sink"].append((done, _log(counts)))
        spark.stop()
    print(json.dumps(found))


def _table(spark: Any, url: str, commits: int) -> str:
    for number in range(commits):
        frame = spark.createDataFrame([(number,)], "id long").coalesce(1)
        frame.write.format("delta").option("delta.checkpointInterval", "1000").mode("append").save(url)
    return url


def _log(counts: RequestCounts) -> dict[str, int]:
    return {kind: count for kind, count in counts.taken().items() if kind.startswith("log ")}


if __name__ == "__main__":
    main(*sys.argv[1:])
