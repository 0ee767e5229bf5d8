"""One small table and a command of each kind on it, with the rows that it leaves: for tests of races and failures."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from support.spark_tables import Table
from support.table_work import settings
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import deletion_vectors, paths
from tablelog.core.protocol.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
from tablelog.core.protocol.deletion_vectors import DeletedRows
from tablelog.spark import DeltaTable

Row = tuple[int, int]
Rows = tuple[Row, ...]
"""In order."""

LOG = "_delta_log"
ORPHAN = "p=0/abandoned.parquet"
"""A file that VACUUM removes: no commit names it, and it is old."""
AT_FIRST: Rows = ((0, 0), (1, 1), (2, 0), (3, 1))
ROWS: Rows = (*AT_FIRST, (4, 0), (6, 0))
CLONED: Rows = ((100, 0),)
SOURCE: Rows = ((0, 0), (4, 0), (10, 0))
_NEW = {"id": "s.id", "p": "s.p"}
_BY_REWRITING = {"spark.databricks.delta.update.deletionVectors.persistent": "false"}


@dataclass(frozen=True)
class Kind:
    """A command. `like` is its name in the conflict matrix; `writes`: data files, or deletion vectors.

    `patient`: it begins again by itself where it meets a conflict. `describes`: its commit has metadata too.
    """

    run: Callable[[Table], Any]
    leaves: Callable[[Rows], Rows]
    like: str
    writes: bool = True
    patient: bool = False
    describes: bool = False


def values(spark: SparkSession, *rows: Row) -> DataFrame:
    """A frame that costs no Spark job."""
    return spark.sql(f"SELECT col1 id, col2 p FROM VALUES {', '.join(f'({i}L, {p})' for i, p in rows)}")


def made(spark: SparkSession, directory: Path) -> Table:
    """Two files in the partition 0, of which one has a deleted row, and one in the partition 1; three versions."""
    table = Table(spark, directory / "table")
    properties = {"delta.enableDeletionVectors": "true", "delta.feature.checkConstraints": "supported"}
    table.write(values(spark, *AT_FIRST), by=("p",), **properties)
    table.write(values(spark, (4, 0), (6, 0), (8, 0)))
    table.delta.delete("p = 0 and id = 8")
    assert rows_of(table) == ROWS
    (table.root / ORPHAN).write_bytes(b"of a job that died")
    os.utime(table.root / ORPHAN, (0, 0))
    source_of(table).write(values(spark, *CLONED), by=("p",))
    return table


def source_of(table: Table) -> Table:
    """A table that can be cloned onto this one, or onto a copy beside it."""
    return table.beside("source")


def copy_of(table: Table, name: str) -> Table:
    """The table as it is now, at a path of its own beside it."""
    copy = table.beside(name)
    shutil.copytree(table.root, copy.root)
    return copy


# --- the commands -------------------------------------------------------------------------------------------------


def _update(condition: str) -> Callable[[Table], None]:
    def run(table: Table) -> None:
        with settings(table.spark, _BY_REWRITING):
            table.delta.update(condition, {"id": "id + 100"})

    return run


def _merge(table: Table) -> None:
    source = values(table.spark, *SOURCE).alias("s")
    merge = table.delta.alias("t").merge(source, "t.p = s.p AND t.id = s.id")
    merge.whenMatchedUpdate(set={"id": "t.id + 200"}).whenNotMatchedInsert(values=_NEW).execute()


def _insert(table: Table) -> None:
    # By its bounds a file might have the row: otherwise no file is read, and one that goes is no conflict.
    merge = table.delta.alias("t").merge(values(table.spark, (5, 0)).alias("s"), "t.p = s.p AND t.id = s.id")
    merge.whenNotMatchedInsert(values=_NEW).execute()


def _replace(table: Table) -> None:
    made = DeltaTable.replace(table.spark).location(table.path).addColumn("id", "long").addColumn("p", "int")
    made.partitionedBy("p").execute()


def _clone(table: Table) -> None:
    source_of(table).delta.clone(table.path, isShallow=True, replace=True)


def _add_column(table: Table) -> None:
    table.delta.addColumns(f"c{len(table.read().columns)} int")


def _same(rows: Rows) -> Rows:
    return rows


def _with(*new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: tuple(sorted((*rows, *new)))


def _kept(test: Callable[[int, int], bool], *new: Row) -> Callable[[Rows], Rows]:
    return lambda rows: _with(*new)(tuple(row for row in rows if test(*row)))


def _changed(test: Callable[[int, int], bool]) -> Callable[[Rows], Rows]:
    return lambda rows: tuple(sorted((i + 100, p) if test(i, p) else (i, p) for i, p in rows))


def _merged(rows: Rows) -> Rows:
    new = (row for row in SOURCE if row not in rows)
    return tuple(sorted([*((i + 200, p) if (i, p) in SOURCE else (i, p) for i, p in rows), *new]))


KINDS = {
    "append": Kind(lambda t: t.write(values(t.spark, (20, 0))), _with((20, 0)), "append"),
    "overwrite": Kind(
        lambda t: t.write(values(t.spark, (30, 0), (31, 1)), "overwrite"),
        lambda rows: ((30, 0), (31, 1)),
        "overwrite",
    ),
    "dynamic overwrite": Kind(
        lambda t: t.write(values(t.spark, (40, 0)), "overwrite", partitionOverwriteMode="dynamic"),
        _kept(lambda i, p: p != 0, (40, 0)),
        "dynamic",
    ),
    "replaceWhere": Kind(
        lambda t: t.write(values(t.spark, (52, 0)), "overwrite", replaceWhere="p = 0 AND id % 4 = 0"),
        _kept(lambda i, p: p != 0 or i % 4 != 0, (52, 0)),
        "update",
    ),
    "delete": Kind(
        lambda t: t.delta.delete("p = 0 AND id % 4 = 0"), _kept(lambda i, p: p != 0 or i % 4 != 0), "delete"
    ),
    "delete a partition": Kind(lambda t: t.delta.delete("p = 0"), _kept(lambda i, p: p != 0), "wipe", writes=False),
    "update": Kind(_update("p = 0 AND id % 4 = 2"), _changed(lambda i, p: p == 0 and i % 4 == 2), "update"),
    "update elsewhere": Kind(
        _update("p = 1 AND id % 4 = 1"), _changed(lambda i, p: p == 1 and i % 4 == 1), "elsewhere"
    ),
    "merge": Kind(_merge, _merged, "update"),
    "insert-only merge": Kind(_insert, lambda rows: rows if (5, 0) in rows else _with((5, 0))(rows), "merge"),
    "optimize": Kind(lambda t: t.delta.optimize().where("p = 0").executeCompaction(), _same, "optimize"),
    "zorder": Kind(lambda t: t.delta.optimize().where("p = 0").executeZOrderBy("id"), _same, "optimize"),
    "reorg": Kind(lambda t: t.delta.reorg("p = 0"), _same, "optimize"),
    "restore": Kind(lambda t: t.delta.restoreToVersion(0), lambda rows: AT_FIRST, "restore", writes=False),
    "vacuum": Kind(lambda t: t.delta.vacuum(), _same, "vacuum", writes=False, patient=True),
    "set properties": Kind(lambda t: t.delta.setProperties({"mine": "1"}), _same, "describe", writes=False),
    "add a column": Kind(_add_column, _same, "describe", writes=False),
    "replace": Kind(_replace, lambda rows: (), "replace", writes=False),
    "clone": Kind(_clone, lambda rows: CLONED, "replace", writes=False),
    "add a feature": Kind(
        lambda t: t.delta.addFeatureSupport("generatedColumns"), _same, "upgrade", writes=False, describes=True
    ),
    "drop a feature": Kind(
        lambda t: t.delta.dropFeatureSupport("checkConstraints"), _same, "drop", writes=False, patient=True
    ),
}  # fmt: skip


# --- what is there ------------------------------------------------------------------------------------------------


def rows_of(table: Table) -> Rows:
    """The rows of the newest version, by pyarrow and a handle that has seen nothing before."""
    log = DeltaLog.for_path(table.path)
    found: list[Row] = []
    for add in log.snapshot().add_files():
        ids = pq.ParquetFile(paths.absolute(log.table, add.path)).read(["id"]).column("id").to_pylist()
        gone = _deleted(log, add.deletion_vector)
        p = add.partition_values["p"]
        assert p is not None
        found += [(i, int(p)) for at, i in enumerate(ids) if at not in gone]
    return tuple(sorted(found))


def _deleted(log: DeltaLog, vector: DeletionVectorDescriptor | None) -> DeletedRows:
    if vector is None:
        return DeletedRows.of([])
    with open(paths.absolute(log.table, deletion_vectors.path_of(vector)), "rb") as file:
        data = file.read()
    return deletion_vectors.of_file(lambda start, end: data[start:end], [vector])[vector]


def named_files(table: Table) -> set[str]:
    """Every file of the table's own that some commit names, its deletion vectors among them."""
    log = table.log
    found = set()
    for version in range(table.version + 1):
        for action in log.reader.commit(version):
            if isinstance(action, AddFile | RemoveFile | AddCDCFile):
                found.add(action.path)
            if isinstance(action, AddFile | RemoveFile) and (vector := action.deletion_vector) is not None:
                found.add(deletion_vectors.path_of(vector))
    return {paths.decode(path) for path in found if ":" not in path}


def data_files_needed(table: Table) -> set[str]:
    """The files of the newest version, its deletion vectors among them."""
    found = set()
    for add in DeltaLog.for_path(table.path).snapshot().add_files():
        found.add(add.path)
        if add.deletion_vector is not None:
            found.add(deletion_vectors.path_of(add.deletion_vector))
    return {paths.decode(path) for path in found if ":" not in path}


def nothing_is_left_behind(table: Table) -> None:
    """No file of the directory is unknown to the log, but the one that was there before."""
    left = table.data_files() - named_files(table) - {ORPHAN}
    assert not left, sorted(left)
