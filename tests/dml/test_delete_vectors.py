"""DELETE by deletion vectors, and where files have some: what is deleted already stays so, and is counted but once."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.protocol import deletion_vectors as vectors
from tablelog.core.protocol.actions import AddFile, DeletionVectorDescriptor
from tablelog.core.protocol.deletion_vectors import DeletedRows
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.engine.read import vector_cache
from tablelog.engine.write import deletion_vector_writer
from tablelog.errors import CorruptLogError
from tablelog.spark.conf import forget


@pytest.fixture
def table(spark: SparkSession, tmp_path) -> Table:
    """ids 0 to 29 in three files of ten, each with its even rows deleted by a vector."""
    found = Table(spark, tmp_path / "table")
    log = DeltaLog.for_path(found.path)
    for start in (0, 10, 20):
        frame = spark.range(start, start + 10, 1, 1).selectExpr("id", "id div 10 p")
        frame.write.format("delta").mode("append").partitionBy("p").option("delta.enableDeletionVectors", "true").save(
            found.path
        )
    data, [(offset, size)] = vectors.file_of([DeletedRows.of(range(0, 10, 2))])
    told = DeletionVectorDescriptor("u", vectors.relative(UUID(int=3)), size, 5, offset)
    (tmp_path / "table" / vectors.path_of(told)).write_bytes(data)
    adds = log.snapshot().add_files()
    changed = [action for add in adds for action in (add.remove(1), replace(add, deletion_vector=told))]
    log.transaction().commit(changed, Operation("DELETE"))
    return found


def ids(table: Table) -> list[int]:
    return sorted(row.id for row in table.read().select("id").collect())


def files(table: Table) -> list[AddFile]:
    return DeltaLog.for_path(table.path).snapshot().add_files()


def metrics(table: Table) -> dict[str, int]:
    return {key: int(value) for key, value in table.info()["operationMetrics"].items()}


def test_by_data(table: Table) -> None:
    assert ids(table) == list(range(1, 30, 2))
    table.delta.delete("id between 3 and 14")
    assert ids(table) == [1, *range(15, 30, 2)]
    counted = metrics(table)
    assert (counted["numDeletedRows"], counted["numCopiedRows"]) == (6, 0)
    assert (counted["numRemovedFiles"], counted["numAddedFiles"], counted["numAddedBytes"]) == (0, 0, 0)
    names = ("numDeletionVectorsAdded", "numDeletionVectorsUpdated", "numDeletionVectorsRemoved")
    assert [counted[name] for name in names] == [2, 2, 2]  # Delta counts a vector that is replaced as both
    adds = [action["add"] for action in table.actions() if "add" in action]
    removes = [action["remove"] for action in table.actions() if "remove" in action]
    assert {add["path"] for add in adds} == {remove["path"] for remove in removes}
    assert [add["deletionVector"]["cardinality"] for add in adds] == [9, 7]
    assert len({add["deletionVector"]["pathOrInlineDv"] for add in adds}) == 1
    assert all(remove["deletionVector"]["cardinality"] == 5 for remove in removes)
    assert [json.loads(add["stats"])["tightBounds"] for add in adds] == [False, False]


def test_without_vectors_of_its_own(table: Table, conf: Any) -> None:
    conf("spark.databricks.delta.delete.deletionVectors.persistent", "false")
    table.delta.delete("id between 3 and 14")
    assert ids(table) == [1, *range(15, 30, 2)]
    counted = metrics(table)
    assert (counted["numDeletedRows"], counted["numCopiedRows"]) == (6, 4)
    assert (counted["numRemovedFiles"], counted["numAddedFiles"], counted["numDeletionVectorsRemoved"]) == (2, 2, 2)
    removes = [action["remove"] for action in table.actions() if "remove" in action]
    assert all(remove["deletionVector"]["cardinality"] == 5 for remove in removes)
    assert sum(file.deletion_vector is not None for file in files(table)) == 1


def test_a_first_vector_and_the_last_row(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nulls, three-valued logic, no statistics, rows found as bitmaps, the vectors read back from their file."""
    table = Table(spark, tmp_path / "table")
    rows = spark.range(0, 100_000, 1, 1).selectExpr("id", "if(id % 2 = 0, null, id) v")
    table.write(
        rows,
        **{"delta.enableDeletionVectors": "true", "delta.dataSkippingNumIndexedCols": "0"},
        maxRecordsPerFile=50_000,
    )
    table.delta.delete("v % 3 = 0 or id = 99999")
    stay = [i for i in range(100_000) if not (i % 2 and i % 3 == 0) and i != 99_999]
    vector_cache.SHARED.clear()
    assert ids(table) == stay
    assert sorted(file.deletion_vector.cardinality for file in files(table)) == [8333, 8334]
    monkeypatch.setattr(deletion_vector_writer, "MOST_COLLECTED", 0)
    table.delta.delete("id >= 40000 and id % 7 < 6 or id > 70000")
    stay = [i for i in stay if i < 40_000 or (i % 7 == 6 and i <= 70_000)]
    vector_cache.SHARED.clear()
    assert ids(table) == stay
    assert metrics(table)["numDeletionVectorsUpdated"] == 2
    table.delta.delete("id >= 50000 and rpad('x', 2, 'y') = 'xy'")
    counted = metrics(table)
    assert (counted["numRemovedFiles"], counted["numDeletionVectorsRemoved"]) == (1, 1)
    assert [file.path for file in files(table)] == [a["add"]["path"] for a in table.actions(0) if "add" in a][:1]
    assert ids(table) == [i for i in stay if i < 50_000]
    vectors_written = [path for path in table.data_files() if path.endswith(".bin")]
    assert len(vectors_written) == 2


def test_rows_as_bitmaps_are_those_collected_one_by_one(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows at the ends of a bitmap and of its bytes, and twice; a few rows have a few bytes."""
    dice = random.Random(7)
    ends = [edge + step for edge in (0, 8, 32_768, 65_536, 1 << 31, 1 << 40) for step in (-1, 0, 1) if edge + step >= 0]
    rows = [(0, row) for row in ends] + [(1, dice.randrange(200_000)) for _ in range(500)] + [(2, 77), (2, 77)]
    rows += [(file, 32_768 * file + 17) for file in range(3, 50)]
    frame = spark.createDataFrame(rows, "file int, row bigint")
    expected = {file: sorted({row for of, row in rows if of == file}) for file in range(50)}
    sizes = []
    collected = deletion_vector_writer.plans.collected

    def noted(of: Any) -> Any:
        batches = collected(of)
        sizes.append(sum(batch.nbytes for batch in batches))
        return batches

    monkeypatch.setattr(deletion_vector_writer.plans, "collected", noted)
    single = deletion_vector_writer.by_file(frame, len(rows))
    bitmaps = deletion_vector_writer.by_file(frame, None)
    assert [
        {file: rows.indexes().to_pylist() for file, rows in found.items()} == expected for found in (single, bitmaps)
    ] == [True, True]
    deletion_vector_writer.by_file(frame.where("file > 2"), None)
    assert sizes[-1] < 47 * 64


def told_otherwise(table: Table, stats: str | None) -> None:
    """Have the log say something else of the one file of its first commit."""
    log = table.root / "_delta_log"
    lines = table.actions(0)
    for line in lines:
        if "add" in line:
            line["add"].pop("stats")
            line["add"] |= {} if stats is None else {"stats": stats}
    (log / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for crc in log.glob("*.crc"):
        crc.unlink()
    forget()


def test_files_with_no_or_wrong_statistics(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "bare")
    table.write(spark.range(10).coalesce(1), **{"delta.enableDeletionVectors": "true"})
    told_otherwise(table, '{"numRecords":4}')
    with pytest.raises(CorruptLogError, match=r"a deleted row with the index 8, but"):
        table.delta.delete("id = 8")
    assert not any(name.endswith(".bin") for name in table.data_files())
    told_otherwise(table, None)
    table.delta.delete("id = 8")
    table.delta.update("id < 2", {"id": "id + 20"})
    assert ids(table) == [*range(2, 8), 9, 20, 21]
    assert {json.loads(file.stats or "")["numRecords"] for file in files(table)} == {10, 2}
    table.delta.delete("id between 2 and 9")
    assert ids(table) == [20, 21]
    assert len(files(table)) == 1


def test_a_delete_that_fails_leaves_no_vector(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.data_files()

    def fail(self: Transaction, *args: object, **kwargs: object) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(Transaction, "commit", fail)
    with pytest.raises(OSError, match="on fire"):
        table.delta.delete("id between 3 and 14")
    assert table.data_files() == before


def test_what_is_left_of_a_file_goes_with_it(table: Table) -> None:
    table.delta.delete("id < 10 and id % 2 = 1")
    assert ids(table) == list(range(11, 30, 2))
    counted = metrics(table)
    assert (counted["numDeletedRows"], counted["numRemovedFiles"], counted["numAddedFiles"]) == (5, 1, 0)


def test_rows_that_are_deleted_already_do_not_match(table: Table) -> None:
    before = DeltaLog.for_path(table.path).snapshot().version
    table.delta.delete("id % 2 = 0 and id >= 0")
    assert DeltaLog.for_path(table.path).snapshot().version == before


def test_whole_partitions_and_all(table: Table) -> None:
    table.delta.delete("p = 1")
    assert metrics(table)["numDeletedRows"] == 5
    table.delta.delete()
    assert metrics(table)["numDeletedRows"] == 10
    assert ids(table) == []


def test_a_table_written_back_into_itself(spark: SparkSession, table: Table) -> None:
    frame = table.read().where("id > 5")
    frame.write.format("delta").mode("overwrite").save(table.path)
    assert ids(table) == list(range(7, 30, 2))
    assert all(file.deletion_vector is None for file in files(table))
    spark.range(100, 101).selectExpr("id", "7L p").write.format("delta").mode("append").save(table.path)
    assert ids(table) == [*range(7, 30, 2), 100]
