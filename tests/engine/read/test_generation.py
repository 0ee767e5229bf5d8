"""Partitions that a condition on another column rules out, by the expressions that generate the partition columns."""

import logging
from typing import Any

import pytest

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.skipping.generation import Generated
from tablelog.engine.sql import generation
from tablelog.spark import DeltaTable

COLUMNS = {
    "p_date": ("date", "date(ts)", "date", ("ts",)),
    "p_to_date": ("date", "to_date(ts)", "date", ("ts",)),
    "p_of_day": ("date", "cast(d as date)", "date", ("d",)),
    "p_year": ("int", "year(ts)", "year", ("ts",)),
    "p_month": ("int", "month(d)", "month", ("d",)),
    "p_day": ("int", "day(n)", "day", ("n",)),
    "p_hour": ("int", "hour(ts)", "hour", ("ts",)),
    "p_format": ("string", "date_format(ts, 'yyyy-MM-dd-HH')", "format", ("ts",)),
    "p_format_d": ("string", "date_format(d, 'yyyy-MM')", "format", ("d",)),
    "p_prefix": ("string", "substring(s, 1, 2)", "prefix", ("s",)),
    "p_inside": ("string", "substr(in.s, 3, 2)", "substring", ("in", "s")),
    "p_trunc": ("date", "trunc(d, 'MONTH')", "trunc", ("d",)),
    "p_cut": ("timestamp", "date_trunc('DD', ts)", "trunc", ("ts",)),
    "p_same": ("string", "in.s", "same", ("in", "s")),
    # not known
    "p_none": ("string", "date_format(ts, 'MM-yyyy')", None, ()),
    "p_other": ("string", "concat(s, 'x')", None, ()),
    "p_hour_n": ("string", "date_format(n, 'yyyy-MM-dd-HH')", None, ()),
}


def test_what_is_known_of_generation_expressions(table: Table) -> None:
    made = DeltaTable.create(table.spark).location(table.path).addColumn("ts", "timestamp").addColumn("d", "date")
    made = made.addColumn("n", "timestamp_ntz").addColumn("s", "string").addColumn("in", "struct<s: string>")
    for name, (data_type, sql, _, _) in COLUMNS.items():
        made = made.addColumn(name, data_type, generatedAlwaysAs=sql)
    made.partitionedBy(*COLUMNS).execute()
    found = generation.partition_columns(table.spark, DeltaLog.for_path(table.path).snapshot())
    assert {one.column[0]: (one.part, one.of) for one in found} == {
        name: (part, of) for name, (_, _, part, of) in COLUMNS.items() if part is not None
    }
    by_name = {one.column[0]: one for one in found}
    assert (by_name["p_trunc"].unit, by_name["p_cut"].unit, by_name["p_prefix"].length) == ("month", "day", 2)
    assert (by_name["p_inside"].first, by_name["p_inside"].length) == (3, 2)
    assert isinstance(found[0], Generated)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_files_are_left_out(table: Table, conf: Any, caplog: pytest.LogCaptureFixture, mode: str) -> None:
    conf("spark.databricks.delta.stats.skipping", "false")
    made = DeltaTable.create(table.spark).location(table.path).addColumn("id", "bigint").addColumn("ts", "timestamp")
    made = made.addColumn("day", "date", generatedAlwaysAs="date(ts)").partitionedBy("day")
    made.property("delta.columnMapping.mode", mode).execute()
    ts = "timestamp'2024-01-01 12:00:00' + make_dt_interval(cast(id as int)) ts"
    table.write(table.spark.range(10).selectExpr("id", ts))

    def ids_and_files(condition: str) -> tuple[list[int], int]:
        with caplog.at_level(logging.DEBUG, "tablelog.engine.read.file_index"):
            caplog.clear()
            found = sorted(row.id for row in table.read().where(condition).select("id").collect())
        told = [record.getMessage() for record in caplog.records if "files to read" in record.getMessage()]
        return found, max(int(text.split(": ")[1].split()[0]) for text in told)

    assert ids_and_files("ts > '2024-01-08 12:00:00'") == ([8, 9], 4)  # of whatever zone: a day more, perhaps
    assert ids_and_files("ts = '2024-01-05 12:00:00' or ts < '2024-01-01 13:00'") == ([0, 4], 5)
    conf("spark.databricks.delta.generatedColumn.partitionFilterOptimization.enabled", "false")
    assert ids_and_files("ts > '2024-01-08 12:00:00'") == ([8, 9], 10)
