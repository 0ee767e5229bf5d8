"""Writing and reading by path: modes, old versions, partitions, every type, the routes through Python workers."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from connect.reading import by_core
from matrix.cells import CLASSIC
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.errors import SchemaMismatchError, VersionNotFoundError

TYPES = """
    select 1Y i1, -2S i2, 3 i4, 4L i8, float(1.5) f4, 2.5D f8, 3.25BD dec, 'x' txt, X'0102' bin, true flag,
    date'2024-02-29' day, timestamp'2024-02-29 12:34:56.789012' ts, timestamp_ntz'2024-02-29 12:34:56.789012' ntz,
    array(1, null) arr, map('k', struct(1.5D as v)) mp, struct('a' as a, array(struct(1 as r)) as b) st
    union all select null, null, null, null, float('nan'), double('-infinity'), null, '', X'', false,
    date'0001-01-01', timestamp'1600-01-01 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', null, null, null
"""
AS_TEXT = [
    (
        "1|-2|3|4|1.5|2.5|3.25|x|0102|true|2024-02-29|2024-02-29 12:34:56.789012|2024-02-29 12:34:56.789012|"
        "[1, null]|{k -> {1.5}}|{a, [{1}]}"
    ),
    ("-|-|-|-|NaN|-Infinity|-|||false|0001-01-01|1600-01-01 00:00:00|9999-12-31 23:59:59.999999|-|-|-"),
]


def as_text(frame: Any) -> list[str]:
    """Each row as Spark spells its values in the session's time zone, nulls as `-`."""
    columns = ", ".join(
        f"coalesce({f'hex({name})' if name == 'bin' else f'string({name})'}, '-')" for name in frame.columns
    )
    return [row.row for row in frame.selectExpr("*", f"concat_ws('|', {columns}) row").orderBy("flag").collect()][::-1]


def test_modes_and_versions(spark: Any, table: Table) -> None:
    table.write(spark.range(2).selectExpr("id", "concat('n', id) name"), "error")
    table.write(spark.sql("select 'n2' name, 2L id"))  # by name
    table.write(spark.sql("select 7L id, 'seven' name"), "overwrite")
    table.write(spark.sql("select 8L id, 'eight' name, 1.5D more"), mergeSchema="true")
    assert table.rows("id", "name", "more") == [(7, "seven", None), (8, "eight", 1.5)]
    assert table.rows(versionAsOf=0) == [(0, "n0"), (1, "n1")]
    assert table.rows(versionAsOf=1) == [(0, "n0"), (1, "n1"), (2, "n2")]
    assert [tuple(row) for row in spark.read.format("delta").load(table.path + "@v2").collect()] == [(7, "seven")]
    history = table.delta.history().select("version", "operation").collect()
    assert [tuple(row) for row in history] == [(3, "WRITE"), (2, "WRITE"), (1, "WRITE"), (0, "WRITE")]
    with pytest.raises(VersionNotFoundError, match="0 to 3"):
        table.read(versionAsOf=4)
    with pytest.raises(AnalysisException):
        table.write(spark.range(1), "error")
    with pytest.raises(SchemaMismatchError, match="unknown"):
        table.write(spark.sql("select 1L id, 2 unknown"))
    assert table.version == 3
    table.delta.restoreToVersion(1)
    assert table.rows("id") == [0, 1, 2]


def test_replacing_parts(spark: Any, table: Table) -> None:
    rows = "select id, id % 3 p, 'old' v from range(6)"
    table.write(spark.sql(rows), by=("p",))
    table.write(spark.sql("select 10L id, 1L p, 'new' v"), "overwrite", replaceWhere="p = 1")
    table.write(spark.sql("select 11L id, 2L p, 'new' v"), "overwrite", partitionOverwriteMode="dynamic")
    assert table.rows() == [(0, 0, "old"), (3, 0, "old"), (10, 1, "new"), (11, 2, "new")]
    assert table.version == 2


def test_every_type(spark: Any, table: Table) -> None:
    table.write(spark.sql(TYPES), **{"delta.feature.timestampNtz": "supported"})
    assert as_text(table.read()) == AS_TEXT
    assert_same_rows(table.read().toArrow(), by_core(table.path))


def test_files_of_other_partitions_are_not_read(spark: Any, table: Table) -> None:
    days = "select id, date'2024-05-01' + int(id % 3) day, concat('p', id % 3) p from range(9)"
    table.write(spark.sql(days), by=("day", "p"))
    for name in table.data_files():
        if "2024-05-02" not in name:
            (table.root / name).write_bytes(b"no Parquet file")
    assert sorted(row.id for row in table.read().where("day = '2024-05-02'").collect()) == [1, 4, 7]
    assert sorted(row.id for row in table.read().where("p = 'p1' and id > 3").collect()) == [4, 7]
    with pytest.raises(PySparkException):
        table.read().collect()


@pytest.mark.only(CLASSIC)
def test_files_are_skipped_by_their_statistics(spark: Any, table: Table) -> None:
    for first in (0, 10, 20):
        table.write(spark.range(first, first + 5).selectExpr("id", "concat('n', id) name").coalesce(1))
    kept = {a["add"]["path"] for a in table.actions(1) if "add" in a}
    for name in table.data_files() - kept:
        (table.root / name).unlink()
    assert sorted(row.name for row in table.read().where("id between 10 and 12").collect()) == ["n10", "n11", "n12"]


@pytest.mark.only(CLASSIC)
def test_python_workers_write_and_read(spark: Any, table: Table, conf: Any) -> None:
    conf("spark.tablelog.write.route", "arrow")
    conf("spark.tablelog.read.route", "arrow")
    table.write(spark.sql(TYPES).repartition(2), by=("i4",), **{"delta.feature.timestampNtz": "supported"})
    names = spark.sql(TYPES).columns
    assert as_text(table.read().select(*names)) == AS_TEXT
    conf("spark.tablelog.read.route", "native")
    assert as_text(table.read().select(*names)) == AS_TEXT
    assert table.read().where("i4 = 3").count() == 1


@pytest.mark.only(CLASSIC)
def test_executors_plan_a_large_log(spark: Any, table: Table, conf: Any) -> None:
    table.write(spark.range(40).selectExpr("id", "id % 8 p"), by=("p",), **{"delta.checkpointInterval": "1"})
    table.write(spark.range(40, 80).selectExpr("id", "id % 8 p"))
    conf("spark.tablelog.log.driverBytes", "0")
    conf("spark.databricks.delta.snapshotPartitions", "2")
    from tablelog.spark.conf import forget

    forget()
    assert sorted(row.id for row in table.read().where("p = 3 and id >= 32").collect()) == [35, 43, 51, 59, 67, 75]
