"""The work that is timed by SQL, an engine a process: `python -m benchmarks.sql_work tablelog|delta`."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from benchmarks.command_work import CommandWork
from benchmarks.spark_work import seconds
from benchmarks.worker import serve


class SqlWork(CommandWork):
    """One engine in one Spark, by `spark.sql`."""

    def make_tables(self, source: str, directory: str, plain: str) -> list[str]:
        """Delta tables with the rows of the Parquet files in `source`; their data files alone are in `plain` too."""
        names = sorted(file.stem for file in Path(source).glob("*.parquet"))
        for name in names:
            table = Path(directory) / name
            self.spark.read.parquet(f"{source}/{name}.parquet").write.format("delta").save(str(table))
            (Path(plain) / name).mkdir(parents=True)
            for file in table.glob("*.parquet"):
                os.link(file, Path(plain) / name / file.name)
        return names

    def name_tables(self, database: str, format_: str, directory: str, names: list[str]) -> None:
        self.spark.sql(f"CREATE DATABASE {database}")
        for name in names:
            self.spark.sql(f"CREATE TABLE {database}.{name} USING {format_} LOCATION '{directory}/{name}'")

    def query(self, text: str, database: str = "default") -> float:
        self.spark.catalog.setCurrentDatabase(database)
        return seconds(lambda: self.spark.sql(text).collect())

    def point_select(self, path: str, key: int) -> float:
        def work() -> None:
            assert len(self.spark.sql(f"SELECT * FROM delta.`{path}` WHERE id = {key}").collect()) == 1

        return seconds(work)

    def inserts(self, path: str, times: int) -> float:
        """`times` INSERTs of one row, one after another, into one new table."""
        shutil.rmtree(path, ignore_errors=True)
        self.spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, x DOUBLE, s STRING) USING delta")

        def work() -> None:
            for number in range(times):
                self.spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, {number}.5, 'row {number}')")

        taken = seconds(work)
        assert self.spark.sql(f"SELECT count(*) FROM delta.`{path}`").head() == (times,)
        shutil.rmtree(path)
        return taken

    def creates(self, path: str, times: int) -> float:
        """`times` new tables of the catalog, each in a directory of its own."""
        shutil.rmtree(path, ignore_errors=True)
        self.spark.sql(f"CREATE DATABASE created LOCATION '{path}'")

        def work() -> None:
            for number in range(times):
                self.spark.sql(
                    f"CREATE TABLE created.t{number} (id BIGINT NOT NULL, x DOUBLE, s STRING COMMENT 'text', day DATE) "
                    "USING delta PARTITIONED BY (day) TBLPROPERTIES ('delta.appendOnly' = 'true')"
                )

        taken = seconds(work)
        assert self.spark.sql("SHOW TABLES IN created").count() == times
        self.spark.sql("DROP DATABASE created CASCADE")
        shutil.rmtree(path, ignore_errors=True)
        return taken

    def make_versions(self, path: str, versions: int) -> None:
        """A table of so many versions, with a checkpoint each ten; the files that it names are not there."""
        from tablelog.core import AddFile, DeltaLog, Operation

        self.rows(10, 1).write.format("delta").save(path)
        log = DeltaLog.for_path(path)
        for number in range(1, versions):
            add = AddFile(f"{number}.parquet", {}, 1000, 1_700_000_000_000, True, '{"numRecords":10}')
            log.transaction().commit([add], Operation("WRITE", {"mode": "Append", "partitionBy": []}))

    def history(self, path: str, versions: int) -> float:
        def work() -> None:
            assert len(self.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()) == versions

        return seconds(work)

    def make_plain(self) -> None:
        """A table that isn't ours."""
        self.spark.sql("CREATE DATABASE other")
        self.rows(1000, 1).write.saveAsTable("other.plain", format="parquet")

    def statements(self, text: str, times: int, enabled: bool) -> float:
        """`times` times `spark.sql` for a statement that isn't about a Delta table, with ours enabled or without."""

        def work() -> None:
            for _ in range(times):
                self.spark.sql(text)

        with nullcontext() if enabled else self._disabled():
            return seconds(work)

    @contextmanager
    def _disabled(self) -> Iterator[None]:
        from tablelog.spark import disable, enable

        disable(self.spark)
        try:
            yield
        finally:
            enable(self.spark)


if __name__ == "__main__":
    serve(lambda: SqlWork(sys.argv[1]))
