"""Keys of the session's configuration that commands look up when they run, checked."""

import re
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def text(spark: "SparkSession", key: str) -> str | None:
    """The value of a key; `None` where it isn't set."""
    found = spark.conf.get(key, None)
    return None if found is None else str(found).strip()


def flag(spark: "SparkSession", key: str) -> bool | None:
    """True or False; `None` where the key isn't set."""
    found = text(spark, key)
    if found is None:
        return None
    if found.lower() not in ("true", "false"):
        raise InvalidArgumentError(f"{key} is {found!r}: it needs to be true or false")
    return found.lower() == "true"


def case_sensitive(spark: "SparkSession") -> bool:
    """Whether names of columns that differ by case alone are different ones."""
    return bool(flag(spark, "spark.sql.caseSensitive"))


def time_zone(spark: "SparkSession") -> str:
    """The session's time zone."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def number(spark: "SparkSession", key: str, default: int) -> int:
    """A whole number from 0 on."""
    found = text(spark, key)
    if found is None:
        return default
    if not re.fullmatch(r"\d{1,18}", found, re.ASCII):
        raise InvalidArgumentError(f"{key} is {found!r}: it needs to be a whole number from 0 on")
    return int(found)


def byte_count(spark: "SparkSession", key: str, default: int) -> int:
    """A number of bytes, written as Spark takes it: 1048576, 512k, 128MB, 1g."""
    found = text(spark, key)
    if found is None:
        return default
    match = re.fullmatch(r"(\d{1,18})\s*([a-z]*)", found.lower(), re.ASCII)
    if match is None or match[2] not in _UNITS:
        raise InvalidArgumentError(f"{key} is {found!r}: it needs to be a number of bytes, such as 134217728 or 128MB")
    return int(match[1]) << _UNITS[match[2]]


def ratio(spark: "SparkSession", key: str, default: float) -> float:
    """A number between 0 and 1."""
    found = text(spark, key)
    try:
        value = default if found is None else float(found)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InvalidArgumentError(f"{key} is {found!r}: it needs to be a number between 0 and 1")
    return value
