"""Data files that are no Parquet files, or not those of the table: a typed error that names table, version and file."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

from support.foreign_table import add, data_file, field, foreign_table
from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, UnreadableDataFileError
from tablelog.spark import DeltaTable

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda data: b"x" * len(data),
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "encrypted": lambda data: data[:-4] + b"PARE",
    "bytes flipped": lambda data: data[:4] + bytes(byte ^ 255 for byte in data[4:40]) + data[40:],
}
BAD = "a b.parquet"


def damaged(spark: SparkSession, root: Path, damage: str, **more: Any) -> Table:
    """A table of two files, one of which is damaged."""
    good = data_file(root / "good.parquet", {"id": [9]})
    file = data_file(root / BAD, {"id": ["a", "b"] if damage == "another type" else [1, 2, 3]})
    if damage in DAMAGES:
        (root / BAD).write_bytes(DAMAGES[damage]((root / BAD).read_bytes()))
    return foreign_table(spark, root, [field("id", "long")], good, add("a%20b.parquet", file["add"]["size"]), **more)


def fails(table: Table, run: Callable[[], Any]) -> None:
    with pytest.raises(UnreadableDataFileError) as caught:
        run()
    for part in (BAD, "version 0", table.root.as_uri()):
        assert part in str(caught.value)
    assert (table.version, len(table.data_files())) == (0, 2)


def test_every_route_names_the_file(spark: SparkSession, tmp_path: Path, route: str) -> None:
    for damage in (*DAMAGES, "another type"):
        table = damaged(spark, tmp_path / damage.replace(" ", "-"), damage)
        fails(table, lambda table=table: table.read().collect())


def merge(table: Table) -> Any:
    source = table.spark.sql("select 1L id")
    return table.delta.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete().execute()


COMMANDS: dict[str, Callable[[Table], Any]] = {
    "DELETE": lambda table: table.delta.delete("id = 1"),
    "UPDATE": lambda table: table.delta.update("id = 1", {"id": "id + 1"}),
    "MERGE": merge,
    "OPTIMIZE": lambda table: table.delta.optimize().executeCompaction(),
    "Z-order": lambda table: table.delta.optimize().executeZOrderBy("id"),
    "a constraint": lambda table: table.delta.addConstraint("c", "id > 0"),
    "replaceWhere": lambda table: table.write(table.spark.range(1), "overwrite", replaceWhere="id = 0"),
    "a copy": lambda table: table.write(table.read(), "overwrite"),
}


def test_every_command_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    table = damaged(spark, tmp_path / "table", "truncated", features=["checkConstraints"])
    for command in COMMANDS.values():
        fails(table, lambda command=command: command(table))
    vectors = {"features": ["deletionVectors"], "configuration": {"delta.enableDeletionVectors": "true"}}
    with_vectors = damaged(spark, tmp_path / "vectors", "text", **vectors)
    for name in ("DELETE", "UPDATE", "MERGE"):
        fails(with_vectors, lambda name=name: COMMANDS[name](with_vectors))


def test_convert_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    for damage in ("text", "truncated", "empty", "encrypted"):
        table = damaged(spark, tmp_path / damage, damage)
        shutil.rmtree(table.root / "_delta_log")
        with pytest.raises(InvalidArgumentError, match=f"{BAD} is not a Parquet file"):
            DeltaTable.convertToDelta(spark, f"parquet.`{table.path}`")


@pytest.mark.slow
def test_what_a_user_raises_is_his_own(spark: SparkSession, tmp_path: Path, route: str) -> None:
    """As with Delta: the class and the condition that PySpark has for it, and nothing is committed."""
    table = foreign_table(
        spark, tmp_path / "t", [field("id", "long")], data_file(tmp_path / "t/a.parquet", {"id": [1]})
    )
    for run in (
        lambda: table.read().where("if(id = 1, raise_error('mine'), true)").collect(),
        lambda: table.delta.delete("if(id = 1, raise_error('mine'), true)"),
        lambda: table.delta.update("id = 1", {"id": "raise_error('mine')"}),
    ):
        with pytest.raises(SparkRuntimeException) as caught:
            run()
        assert caught.value.getCondition() == "USER_RAISED_EXCEPTION"
    assert table.version == 0
