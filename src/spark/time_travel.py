"""Time travel of readers: by option, or by `path@v1` and `path@yyyyMMddHHmmssSSS`."""

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ..errors import InvalidArgumentError

_AT = re.compile(r"(?P<path>.*)@(?:[vV](?P<version>\d{1,18})|(?P<timestamp>\d{17}))", re.DOTALL)


@dataclass(frozen=True)
class AtPath:
    """A path that ends with a version or a timestamp, which is text that Spark can cast."""

    path: str
    version: int | None
    timestamp: str | None


def split_at(path: str) -> AtPath | None:
    """Parse `path@v1` or `path@yyyyMMddHHmmssSSS`; None if the path has no such suffix."""
    match = _AT.fullmatch(path)
    if match is None:
        return None
    if match["version"] is not None:
        return AtPath(match["path"], int(match["version"]), None)
    digits = match["timestamp"]
    date = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return AtPath(match["path"], None, f"{date} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}")


def timestamp_ms(spark: SparkSession, text: str) -> int:
    """A timestamp as Spark parses it, in the session's time zone, in milliseconds since the epoch."""
    row = spark.sql("SELECT unix_millis(try_cast(:text AS TIMESTAMP)) AS ms", args={"text": text}).first()
    if row is None or row.ms is None:
        raise InvalidArgumentError(
            f"The provided timestamp ('{text}') cannot be converted to a valid timestamp.",
            condition="DELTA_TIMESTAMP_INVALID",
            parameters={"expr": text},
        )
    return int(row.ms)
