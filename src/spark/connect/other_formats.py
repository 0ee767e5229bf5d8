"""Prevents Spark from writing other formats into the directory of a Delta table, in sessions of Spark Connect.

The client doesn't see which directories an SQL statement names; `tablelog.spark.sql.other_formats` is the check of
classic sessions.
"""

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from ...core.protocol.paths import LOG_DIRECTORY
from ...settings.declarations import FORMAT_CHECK
from ..conf import session_conf
from ..format_check import locations, refusal
from ..reader import find_table


def check(spark: SparkSession, path: object, options: Mapping[str, object]) -> None:
    """Raise InvalidArgumentError if a writer names a Delta table, a partition directory of one, or its log."""
    for location in locations(path, options):
        conf = session_conf(spark, location)
        if FORMAT_CHECK.of(conf) and find_table(_outside_log(location), conf, {}) is not None:
            raise refusal(location)


def check_table(spark: SparkSession, name: str) -> None:
    """The same check for the directory of a catalog table, which an earlier conversion may have made a Delta table.

    It makes one request. A name that the catalog doesn't have passes.
    """
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return
    details = {row["col_name"]: row["data_type"] for row in rows[_start_of_details(rows) :]}
    if details.get("Provider", "").lower() != "delta":
        check(spark, details.get("Location"), {})


def _start_of_details(rows: list[Row]) -> int:
    """Where the columns of the table end, whose names may be those of details."""
    starts = [i for i, row in enumerate(rows) if row["col_name"] == "# Detailed Table Information"]
    return starts[-1] if starts else len(rows)


def _outside_log(location: str) -> str:
    """The directory of a table for a location in its log; other locations are unchanged."""
    parts = location.split("/")
    return "/".join(parts[: parts.index(LOG_DIRECTORY)]) if LOG_DIRECTORY in parts else location
