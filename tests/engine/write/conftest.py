"""A table to write to, with what a commit and a reader make of the files."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile, Metadata, Protocol
from tablelog.core.protocol.rules import Rules
from tablelog.core.protocol.schema import StructType, to_json
from tablelog.core.txn.operation import Operation
from tablelog.engine.read import scan
from tablelog.engine.sql import conform
from tablelog.engine.write import writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGING = "_tablelog_staging-"


class Table:
    """A table at a local path, written by `write_files` and committed."""

    def __init__(self, spark: "SparkSession", path: Path) -> None:
        self.spark = spark
        self.path = path
        self.log = DeltaLog.for_path(str(path))

    def metadata(
        self, schema: StructType, partition_by: Sequence[str] = (), properties: Mapping[str, str] | None = None
    ) -> Metadata:
        return Metadata("test", to_json(schema), tuple(partition_by), dict(properties or {}))

    def write(
        self,
        df: "DataFrame",
        *partition_by: str,
        schema: StructType | None = None,
        properties: Mapping[str, str] | None = None,
        options: writer.WriteOptions | None = None,
    ) -> list[AddFile]:
        """Fit, write, commit; the adds. `schema` is the table's, that of the frame when not given."""
        columns = schema or conform.new_table_schema(df)
        metadata = self.metadata(columns, partition_by, properties)
        rules = Rules.of(Protocol(1, 2), metadata)
        fitted = conform.conform(df, columns, table=self.log.table, rules=rules)
        written = writer.write_files(fitted, self.log, metadata=metadata, protocol=Protocol(1, 2), options=options)
        transaction = self.log.transaction()
        if transaction.read_version < 0:
            transaction.set_metadata(metadata)
        transaction.commit(written.adds, Operation("WRITE"))
        return written.adds

    def read(self) -> "DataFrame":
        return scan.frame(self.spark, self.log, snapshot=self.log.snapshot())

    def rows(self) -> list[Any]:
        return sorted(self.read().collect(), key=repr)

    def files(self) -> list[str]:
        """Every file below the table that is not the log's."""
        found = []
        for directory, names, files in os.walk(self.path):
            names[:] = [name for name in names if name != "_delta_log"]
            found += [os.path.relpath(os.path.join(directory, name), self.path) for name in files]
        return sorted(found)

    def staging_left(self) -> list[str]:
        return [name for name in os.listdir(self.path) if name.startswith(STAGING)]


def stats(add: AddFile) -> Any:
    assert add.stats is not None
    return json.loads(add.stats)


@pytest.fixture
def table(spark: "SparkSession", tmp_path: Path) -> Table:
    root = tmp_path / "table"
    root.mkdir()
    return Table(spark, root)


@pytest.fixture
def tables(spark: "SparkSession", tmp_path: Path) -> Callable[[str], Table]:
    """A table by its name; the same name gives the same table."""

    def make(name: str) -> Table:
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        return Table(spark, root)

    return make


NATIVE = writer.WriteOptions(small_frames=False)
SMALL = writer.WriteOptions()
