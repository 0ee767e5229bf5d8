"""What depends on the session's time zone, on ANSI mode and on `caseSensitive`."""

import datetime as dt
import os
from typing import Any

import pytest
from pyspark.errors import PySparkException

from matrix.cells import CONNECT, KOLKATA, NEW_YORK, UTC, Cell
from support.spark_tables import Table
from tablelog.errors import SchemaMismatchError, UnsupportedEnvironmentError
from tablelog.spark.conf import forget

# Local times of 2024-03-10, when clocks in New York go forward at 02:00, in UTC as the log has them.
BEFORE, AFTER = "timestamp'2024-03-10 01:30:00'", "timestamp'2024-03-10 08:30:00.25'"
IN_LOG = {
    UTC: ("2024-03-10T01:30:00.000000Z", "2024-03-10T08:30:00.250000Z"),
    NEW_YORK: ("2024-03-10T06:30:00.000000Z", "2024-03-10T12:30:00.250000Z"),
    KOLKATA: ("2024-03-09T20:00:00.000000Z", "2024-03-10T03:00:00.250000Z"),
}
IN_TOKYO = {
    UTC: ["2024-03-10 10:30:00", "2024-03-10 17:30:00.25"],
    NEW_YORK: ["2024-03-10 15:30:00", "2024-03-10 21:30:00.25"],
    KOLKATA: ["2024-03-10 05:00:00", "2024-03-10 12:00:00.25"],
}
# Versions are committed 0, 10 and 20 hours after midnight in UTC. What is the newest at 15:00 in each zone?
AT_THREE = {UTC: [0, 1], NEW_YORK: [0, 1, 2], KOLKATA: [0]}

HIGHEST = 2147483647


def test_timestamps_as_partitions(spark: Any, table: Table, cell: Cell, conf: Any) -> None:
    table.write(spark.sql(f"select 1 id, {BEFORE} t union all select 2, {AFTER}"), by=("t",))
    values = sorted(a["add"]["partitionValues"]["t"] for a in table.actions() if "add" in a)
    assert tuple(values) == IN_LOG[cell.zone]
    assert table.read().where(f"t = {AFTER}").select("id").collect() == [(2,)]
    assert table.read().where("t < '2024-03-10 02:00:00'").select("id").collect() == [(1,)]
    shown = [row.s for row in table.read().selectExpr("id", "string(t) s").orderBy("id").collect()]
    assert shown == ["2024-03-10 01:30:00", "2024-03-10 08:30:00.25"]
    conf("spark.sql.session.timeZone", "Asia/Tokyo")
    shown = [row.s for row in table.read().selectExpr("id", "string(t) s").orderBy("id").collect()]
    assert shown == IN_TOKYO[cell.zone]
    conf("spark.sql.session.timeZone", cell.zone)
    table.delta.update(f"t = {BEFORE}", {"t": "t + interval '1' hour"})
    table.delta.delete(f"t = {AFTER}")
    rows = table.read().selectExpr("id", "unix_seconds(t) s").collect()
    first = dt.datetime.strptime(IN_LOG[cell.zone][0], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    assert rows == [(1, first + 3600)]


def test_time_travel_by_local_time(spark: Any, table: Table, cell: Cell) -> None:
    midnight = dt.datetime(2024, 1, 15, tzinfo=dt.UTC).timestamp()
    for number in range(4):
        table.write(spark.range(number, number + 1))
        at = midnight + number * 10 * 3600
        os.utime(table.root / "_delta_log" / f"{number:020}.json", (at, at))
    forget()
    assert table.rows(timestampAsOf="2024-01-15 15:00:00") == AT_THREE[cell.zone]
    assert table.rows(timestampAsOf="2024-01-15T15:00:00Z") == [0, 1]
    load = spark.read.format("delta").load(f"{table.path}@20240115150000000")
    assert sorted(row.id for row in load.collect()) == AT_THREE[cell.zone]


def test_casts_and_arithmetic(spark: Any, table: Table, cell: Cell) -> None:
    table.write(spark.sql(f"select * from values (1, '10'), (2, 'two'), ({HIGHEST}, '30') v(n, text)"))
    if cell.ansi:
        for fails in (
            lambda: table.delta.update(set={"n": "cast(text as int)"}),
            lambda: table.delta.delete("cast(text as int) = 30"),
            lambda: table.delta.delete("n + 1 < 0"),
        ):
            with pytest.raises(PySparkException, match=r"CAST_INVALID_INPUT|ARITHMETIC_OVERFLOW"):
                fails()
        assert table.version == 0
        table.delta.update(set={"n": "try_cast(text as int)"})
    else:
        table.delta.delete("n + 1 < 0")
        assert table.rows("n") == [1, 2]
        table.delta.update(set={"n": "cast(text as int)"})
        table.delta.delete("cast(text as int) is null and n is null")
        assert table.rows("n", "text") == [(10, "10")]


def test_assignments_are_checked_without_ansi_too(spark: Any, table: Table, cell: Cell) -> None:
    table.write(spark.sql("select 1 n, 'a' text"))
    with pytest.raises(PySparkException):
        table.delta.update(set={"n": "'no number'"})
    with pytest.raises(PySparkException):
        table.delta.update(set={"n": "3000000000"})
    with pytest.raises(PySparkException):
        table.write(spark.sql("select 3000000000 n, 'b' text"))
    table.write(spark.sql("select 3L n, 'b' text"))
    if cell.mode == CONNECT and not cell.ansi:
        with pytest.raises(UnsupportedEnvironmentError, match="cast the column yourself"):
            table.delta.update("n = 1", {"n": "'12'"})
        table.delta.update("n = 1", {"n": "cast('12' as int)"})
    else:
        table.delta.update("n = 1", {"n": "'12'"})
    assert table.rows() == [(3, "b"), (12, "a")]


def test_case_of_column_names(spark: Any, table: Table, cell: Cell) -> None:
    table.write(spark.sql("select 1 id, 'a' Name, struct(1 as Inner) s"))
    merged = table.delta.alias("t").merge(spark.sql("select 1 ID, 'b' NAME").alias("s"), "t.ID = s.ID")
    uses = [
        lambda: table.read().select("ID").collect(),
        lambda: table.write(spark.sql("select 2 ID, 'b' NAME, struct(2 as inner) S")),
        lambda: table.delta.update("id = 1", {"NAME": "'c'"}),
        lambda: table.delta.update("id = 1", {"s.INNER": "3"}),
        lambda: table.delta.delete("NAME = 'zzz'"),
        lambda: merged.whenMatchedUpdate(set={"name": "s.name"}).execute(),
    ]
    accepted = []
    for number, use in enumerate(uses):
        try:
            use()
        except (PySparkException, SchemaMismatchError):
            continue
        accepted.append(number)
    assert accepted == ([] if cell.case_sensitive else list(range(len(uses))))
    expected = [(1, "a", (1,))] if cell.case_sensitive else [(1, "b", (3,)), (2, "b", (2,))]
    assert table.rows() == expected
    assert table.read().columns == ["id", "Name", "s"]


def test_columns_whose_names_differ_only_in_case(spark: Any, table: Table, cell: Cell) -> None:
    """Delta has no such tables, whatever the session says."""
    with pytest.raises(SchemaMismatchError, match="twice"):
        table.write(spark.range(1).selectExpr("id", "id as ID"))
    assert not table.root.exists()
    table.write(spark.range(1))
    with pytest.raises(SchemaMismatchError, match="twice"):
        table.write(spark.range(1).selectExpr("id", "2L as ID"), mergeSchema="true")
    assert table.version == 0
