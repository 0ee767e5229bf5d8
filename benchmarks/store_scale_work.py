"""The commands of `benchmarks.store_scale`, one engine a process: `python -m benchmarks.store_scale_work ENGINE`.

`STORE_SCALE` has the endpoint and Hadoop's keys as JSON. Each method does one command on the table at a URL and returns
what it found, which shows that it did the work.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.worker import serve

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

_GIVEN = json.loads(os.environ["STORE_SCALE"])
_RETENTION = "spark.databricks.delta.retentionDurationCheck.enabled"


class SparkEngine:
    """tablelog or delta-spark in a Spark session."""

    def __init__(self, engine: str) -> None:
        from benchmarks.spark_work import DELTA, session

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {f"spark.hadoop.{key}": value for key, value in _GIVEN["conf"].items()}
        settings |= {_RETENTION: "false", "spark.databricks.delta.vacuum.parallelDelete.enabled": "true"}
        # Delta's VACUUM lists with this many tasks, by default 10,000 of them, each of which does nothing here.
        settings |= {"spark.driver.memory": "2g", "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16"}
        if engine != "tablelog":
            from servers.spark_jars import spark_jars

            settings["spark.jars"] = ",".join(map(str, spark_jars()))
        if engine == "delta-spark":
            settings |= DELTA
        self.spark = session(settings)
        if engine == "delta-spark":
            from delta.tables import DeltaTable
        else:
            from tablelog.spark import DeltaTable, enable

            enable(self.spark)
        self.table: Any = DeltaTable

    def open(self, url: str) -> int:
        row = self.table.forPath(self.spark, url).detail().first()
        return int(row["numFiles"])

    def append(self, url: str) -> int:
        rows = self.spark.range(0, 10, 1, 1).selectExpr("id", "id / 7.0D v", "cast(1 as int) p")
        rows.write.format("delta").mode("append").save(url)
        return 10

    def delete_partition(self, url: str) -> None:
        self.table.forPath(self.spark, url).delete("p = 3")

    def delete_rows(self, url: str) -> None:
        self.table.forPath(self.spark, url).delete("p = 4 AND id = 17")

    def optimize(self, url: str) -> str:
        done = self.table.forPath(self.spark, url).optimize().where("p = 5").executeCompaction().first()
        return str(done["metrics"]["numFilesRemoved"])

    def vacuum_dry(self, url: str) -> int:
        return int(self.spark.sql(f"VACUUM delta.`{url}` RETAIN 0 HOURS DRY RUN").count())

    def vacuum(self, url: str) -> None:
        self.table.forPath(self.spark, url).vacuum(0)


class DeltaRs:
    """delta-rs, with its conditional put."""

    def __init__(self) -> None:
        conf = _GIVEN["conf"]
        self._options = {
            "AWS_ENDPOINT_URL": _GIVEN["endpoint"],
            "AWS_ACCESS_KEY_ID": conf["fs.s3a.access.key"],
            "AWS_SECRET_ACCESS_KEY": conf["fs.s3a.secret.key"],
            "AWS_REGION": conf["fs.s3a.endpoint.region"],
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }

    def _table(self, url: str) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(url, storage_options=self._options)

    def open(self, url: str) -> int:
        return len(self._table(url).file_uris())

    def append(self, url: str) -> int:
        import pyarrow as pa
        from deltalake import write_deltalake

        rows = {"id": list(range(10)), "v": [id_ / 7 for id_ in range(10)], "p": pa.array([1] * 10, pa.int32())}
        write_deltalake(url, pa.table(rows), mode="append", storage_options=self._options)
        return 10

    def delete_partition(self, url: str) -> int:
        return int(self._table(url).delete("p = 3")["num_removed_files"])

    def delete_rows(self, url: str) -> int:
        return int(self._table(url).delete("p = 4 AND id = 17")["num_deleted_rows"])

    def optimize(self, url: str) -> int:
        return int(self._table(url).optimize.compact(partition_filters=[("p", "=", "5")])["numFilesRemoved"])

    def vacuum_dry(self, url: str) -> int:
        return len(self._table(url).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True))

    def vacuum(self, url: str) -> int:
        return len(self._table(url).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True))


def make() -> Any:
    """The engine that the command line names."""
    return DeltaRs() if sys.argv[1] == "delta-rs" else SparkEngine(sys.argv[1])


if __name__ == "__main__":
    serve(make)
