"""The two designs of reading on Spark Connect: `python -m benchmarks.connect_designs`, with a server on loopback.

- files: the client plans with the log and gives Spark the Parquet files (what tablelog does, decision 72);
- source: a Python data source plans at the server, and its workers read the files with pyarrow.

Prints the median of the seconds of each query by each of them, and by Spark from the same Parquet files without a log.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

_ROWS = 8_000_000
_ROUNDS = 5

_QUERIES: dict[str, Callable[["DataFrame"], "DataFrame"]] = {
    "count": lambda df: df.selectExpr("count(*)"),
    "sum of one column": lambda df: df.selectExpr("sum(value)"),
    "1 % of the rows": lambda df: df.where("id < 80000").selectExpr("sum(value)", "max(name)"),
    "all columns": lambda df: df.selectExpr("max(id)", "max(key)", "sum(value)", "max(name)"),
}


class TableSource(DataSource):
    """The files of a table's newest version, one in each partition."""

    @classmethod
    def name(cls) -> str:
        return "table_by_python"

    def schema(self) -> str:
        return "id bigint, key int, value double, name string"

    def reader(self, schema: Any) -> "TableReader":
        return TableReader(self.options["path"])


class TableReader(DataSourceReader):
    """Reads whole files: this API tells a reader neither the columns of a query nor, by default, its filters."""

    def __init__(self, path: str) -> None:
        self.path = path

    def partitions(self) -> list[InputPartition]:
        from tablelog.core.deltalog import DeltaLog

        files = DeltaLog.for_path(self.path).snapshot().add_files()
        return [InputPartition(f"{self.path}/{file.path}") for file in files]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(partition.value) as file:
            for batch in file.iter_batches():  # Spark expects columns that are all nullable
                yield pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names)


def _seconds(query: Callable[[], "DataFrame"]) -> float:
    def once() -> float:
        began = time.perf_counter()
        query().collect()
        return time.perf_counter() - began

    once()
    return statistics.median(once() for _ in range(_ROUNDS))


def main() -> None:
    from pyspark.sql import SparkSession

    from support import connect_server
    from tablelog.spark import enable

    with tempfile.TemporaryDirectory() as directory, connect_server.running(Path(directory)) as address:
        spark = SparkSession.builder.remote(address).getOrCreate()
        spark.dataSource.register(TableSource)
        enable(spark)
        path = f"{directory}/table"
        columns = "id", "int(id % 1000) key", "rand(1) value", "concat('name ', id % 5000) name"
        spark.range(0, _ROWS, 1, 16).selectExpr(*columns).write.format("delta").save(path)
        for name, query in _QUERIES.items():
            times = {
                "files": _seconds(lambda query=query: query(spark.read.format("delta").load(path))),
                "source": _seconds(lambda query=query: query(spark.read.format("table_by_python").load(path))),
                "Parquet": _seconds(lambda query=query: query(spark.read.parquet(f"{path}/*.parquet"))),
            }
            print(name + ":", ", ".join(f"{design} {value:.2f} s" for design, value in times.items()), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
