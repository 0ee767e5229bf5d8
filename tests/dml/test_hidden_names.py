"""A user's columns may have any name: also those that commands and scans give to columns of their own."""

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tablelog
from support.spark_tables import Table
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH

_NAME = re.compile(r"__tablelog_\w*")
SOURCE = Path(tablelog.__file__).parent
IN_SOURCE = sorted({name for path in SOURCE.rglob("*.py") for name in _NAME.findall(path.read_text(encoding="utf-8"))})
# Names that are made of others, and short ones of the steps in between.
MADE = ["__tablelog_curve_key_0_0", "__tablelog_curve_group", "_metadata", "by_p"]
MADE += ["file", "row", "vector", "value", "n", "most", "k0", "c0", "a0", "bucket", "bits", "col", "element"]
INDEXED = {"delta.dataSkippingNumIndexedCols": "-1"}
SPACED = ["SET v", "SET v_", "SET st.a"]


def test_the_names_are_found() -> None:
    assert {"__tablelog_file", "__tablelog_clause", "__tablelog_deleted", "__tablelog_base_row_id"} <= set(IN_SOURCE)


def rows(spark: SparkSession, names: list[str], start: int, end: int) -> DataFrame:
    """`id`, `v`, a struct and a partition column, and a column for each name: its place plus 100 times the id."""
    more = [(F.col("id") * 100 + i).alias(name) for i, name in enumerate(names)]
    named = [F.struct(F.col("id").alias("a")).alias("st"), (F.col("id") * 10).alias("v")]
    return spark.range(start, end).select("id", *named, *more, (F.col("id") % 2).alias("p"))


def in_other_case(names: list[str]) -> list[str]:
    return [name.upper() if i % 2 else name for i, name in enumerate(names)]


def ids_of(table: Table, names: list[str]) -> list[int]:
    """The ids of the rows, each of which has to have in all other columns what it was written with."""
    found = []
    for row in table.read().collect():
        assert [row[name] for name in names] == [row["id"] * 100 + i for i in range(len(names))]
        assert row["st"]["a"] == row["id"]
        assert row["p"] == row["id"] % 2
        found.append(row["id"])
    return sorted(found)


def run_commands(table: Table, spark: SparkSession, names: list[str]) -> None:
    """Each command on rows 0 to 11, in four files."""
    for start in (0, 6):
        table.write(rows(spark, names, start, start + 6).coalesce(1))
    first, last = (f"`{name}`" for name in (names[0], names[-1]))
    assert ids_of(table, names) == list(range(12))
    table.delta.delete(f"id = 3 and {first} = 300")
    table.delta.update(f"id = 4 and {last} > 400", {"v": f"v + {first}"})
    source = rows(spark, names, 5, 14).where("id < 7 or id > 11").withColumn("v", F.lit(-1))
    for frame in (source, source.repartition(2)):
        (
            table.delta.alias("t")
            .merge(frame.alias("s"), f"t.id = s.id and t.{first} <= s.{first}")
            .whenMatchedDelete(f"s.id = 6 and s.{last} > 600")
            .whenMatchedUpdateAll(f"t.{last} = s.{last}")
            .whenNotMatchedInsertAll("s.id <> 6")
            .whenNotMatchedBySourceUpdate(f"t.{first} = 0", {"v": f"t.v - 7 - t.{first}"})
            .execute()
        )
    at = table.version
    table.delta.optimize().executeCompaction()
    table.delta.optimize().executeZOrderBy(first, last)
    assert table.version > at + 1
    assert ids_of(table, names) == [0, 1, 2, 4, 5, *range(7, 14)]
    values = {number: v for number, v in table.rows("id", "v") if v != number * 10}
    assert values == {0: -14, 4: 440, 5: -1, 12: -1, 13: -1}
    only = rows(spark, names, 20, 22).where("id = 20")
    table.write(only, mode="overwrite", replaceWhere=f"id >= 13 and {first} > 0 and p >= 0")
    assert ids_of(table, names) == [0, 1, 2, 4, 5, *range(7, 13), 20]


@pytest.mark.slow
def test_files_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    names = in_other_case([*IN_SOURCE, *MADE])
    table = Table(spark, tmp_path / "table")
    table.write(rows(spark, names, 0, 0), by=("p",), **INDEXED, **{"delta.enableDeletionVectors": "false"})
    run_commands(table, spark, names)


@pytest.mark.slow
def test_vectors_changes_and_row_ids(spark: SparkSession, tmp_path: Path, conf) -> None:
    names = in_other_case([*reversed(IN_SOURCE), *SPACED, *MADE])
    table = Table(spark, tmp_path / "table")
    features = ("DeletionVectors", "ChangeDataFeed", "RowTracking")
    properties = INDEXED | {f"delta.enable{name}": "true" for name in features}
    table.write(rows(spark, names, 0, 0), by=("p",), **properties, **{"delta.columnMapping.mode": "name"})
    run_commands(table, spark, names)
    changes = table.read(readChangeFeed="true", startingVersion=1)
    assert changes.where("_change_type = 'update_postimage' and id = 4").count() == 1
    table.delta.delete("id = 20")
    conf(READ_SCRATCH.key, str(tmp_path / "scratch"))
    for route in ("manifest", "arrow"):
        conf(READ_ROUTE.key, route)
        assert ids_of(table, names) == [0, 1, 2, 4, 5, *range(7, 13)]


def test_names_that_only_the_files_have_still(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "table")
    before = ["__tablelog_file", "__tablelog_row", "__tablelog_deleted", "__tablelog_clause"]
    table.write(rows(spark, before, 0, 6).coalesce(1), by=("p",), **{"delta.enableDeletionVectors": "true"})
    table.delta.setProperties({"delta.columnMapping.mode": "name"})
    for name in before:
        table.delta.renameColumn(name, f"x{name}")
    table.delta.delete("id = 1")
    table.delta.update("id = 2", {"v": "0"})
    names = [f"x{name}" for name in before]
    source = rows(spark, names, 3, 7).alias("s")
    table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedDelete(
        "s.id = 3"
    ).whenNotMatchedInsertAll().execute()
    assert ids_of(table, names) == [0, 2, 4, 5, 6]


def test_partition_columns_that_files_hold_too(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(spark, tmp_path / "table")
    frame = spark.range(40_000).select("id", (F.col("id") % 2).alias("p"), (F.col("id") + 5).alias("by_p"))
    table.write(frame, by=("p",), **{"delta.enableMaterializePartitionColumnsFeature": "true"})
    assert table.read().where("by_p = id + 5 and p = id % 2").count() == 40_000
