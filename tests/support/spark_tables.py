"""One table in a directory of its own, and the few things that a test does with it through Spark."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.paths import decode
from tablelog.spark import DeltaTable


class Table:
    """A path where a test keeps a Delta table."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.root = path
        self.path = str(path)

    def beside(self, name: str) -> "Table":
        """The table of that name in the same directory, which may not exist."""
        return Table(self.spark, self.root.parent / name)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.path)

    def writer(self, frame: DataFrame, mode: str = "append", **options: Any) -> DataFrameWriter:
        return frame.write.format("delta").mode(mode).options(**options)

    def write(self, frame: DataFrame, mode: str = "append", *, by: tuple[str, ...] = (), **options: Any) -> None:
        writer = self.writer(frame, mode, **options)
        (writer.partitionBy(*by) if by else writer).save(self.path)

    def read(self, **options: Any) -> DataFrame:
        return self.spark.read.format("delta").options(**options).load(self.path)

    def rows(self, *columns: str, **options: Any) -> list[Any]:
        """The rows in order, as plain tuples or, of one column, as values."""
        frame = self.read(**options)
        found = [tuple(row) for row in (frame.select(*columns) if columns else frame).collect()]
        return sorted(row[0] if len(row) == 1 else row for row in found)

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path)

    @property
    def version(self) -> int:
        return max(int(path.stem) for path in (self.root / "_delta_log").glob("*.json") if path.stem.isdigit())

    def actions(self, version: int | None = None) -> list[dict[str, Any]]:
        """The lines of a commit, the newest unless a version is given."""
        number = self.version if version is None else version
        text = (self.root / "_delta_log" / f"{number:020}.json").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def info(self, version: int | None = None) -> dict[str, Any]:
        return next(action["commitInfo"] for action in self.actions(version) if "commitInfo" in action)

    def last(self) -> Row:
        row = self.delta.history(1).first()
        assert row is not None
        return row

    def data_files(self) -> set[str]:
        """Every file of the directory but the log, hidden ones included."""
        found = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        return {name for name in found if not name.startswith("_delta_log/")}

    def logged_files(self) -> set[str]:
        """Every file that some commit added."""
        versions = range(self.version + 1)
        return {decode(a["add"]["path"]) for version in versions for a in self.actions(version) if "add" in a}
