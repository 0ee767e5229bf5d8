"""The small table of `support.commands` on a store: a copy of the local one, on which the same commands run."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from support.commands import LOG, source_of
from support.spark_tables import Table
from tablelog.core.deltalog import DeltaLog
from tablelog.logstore.data_files import DataFiles


class StoredTable(Table):
    """A table at a URL, reached by `conf`."""

    def __init__(self, spark: SparkSession, url: str, conf: Mapping[str, str]) -> None:
        self.spark = spark
        self.path = url
        self.conf = conf

    def beside(self, name: str) -> "StoredTable":
        return StoredTable(self.spark, f"{self.path.rpartition('/')[0]}/{name}", self.conf)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.path, conf=self.conf)

    @property
    def version(self) -> int:
        return self.log.snapshot().version

    def data_files(self) -> set[str]:
        return {name for name in self._files.list("") if not name.startswith(f"{LOG}/")}

    def copy(self, table: Table) -> None:
        """Get the files of a local table, the log's too."""
        for path in sorted(table.root.rglob("*")):
            if path.is_file():
                self._files.write(path.relative_to(table.root).as_posix(), path.read_bytes())

    @property
    def _files(self) -> DataFiles:
        return DataFiles.of(self.path, self.conf, {})


def stored_copy(base: Table, place: Any) -> StoredTable:
    """A copy of the table on a server, and beside it one of its source for clones."""
    table = StoredTable(base.spark, place.url(), place.conf)
    table.copy(base)
    table.beside("source").copy(source_of(base))
    return table
