"""The options of `readStream`, validated."""

import re
from collections.abc import Callable
from typing import Literal

from pyspark.sql import SparkSession

from ...core.streaming.commits import CommitRules
from ...core.streaming.limits import ReadLimits
from ...core.streaming.source import StreamOptions
from ...core.table.changes import Bound
from ...engine.jvm import streams
from ...engine.jvm.connection import java_errors, settings
from ...errors import InvalidArgumentError
from ...settings.declarations import CHANGE_FEED_OUT_OF_RANGE
from ..options import Options, illegal_option
from ..row_ids import no_change_feed
from ..time_travel import timestamp_ms

_MOST_FILES = (1 << 31) - 1  # Spark's limit is an integer of the JVM
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def stream_options(spark: SparkSession, options: Options) -> StreamOptions:
    """Validate the options of a stream.

    Raises:
        InvalidArgumentError: A value isn't valid, or two options exclude each other.
    """
    options.log_unknown()
    options.boolean("withEventTimeOrder")
    if options.get("versionAsOf") is not None or options.get("timestampAsOf") is not None:
        raise InvalidArgumentError(
            "A stream can't use versionAsOf or timestampAsOf: set startingVersion or startingTimestamp.",
            condition="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
        )
    for name in ("endingVersion", "endingTimestamp"):
        if options.get(name) is not None:
            raise InvalidArgumentError(f"The option {name} is for batch reads: a stream has no use for it.")
    changes = bool(options.boolean("readChangeFeed") or options.boolean("readChangeData"))
    if options.boolean("readRowIds") and changes:
        raise no_change_feed()
    ignores_files = bool(options.boolean("ignoreFileDeletion"))
    return StreamOptions(
        start=_start(spark, options),
        limits=ReadLimits(_files(options), _bytes(options)),
        rules=CommitRules(
            ignore_deletes=bool(options.boolean("ignoreDeletes")) or ignores_files,
            ignore_changes=bool(options.boolean("ignoreChanges")) or ignores_files,
            skip_change_commits=bool(options.boolean("skipChangeCommits")),
            exclude=_excluded(spark, options),
            changes=changes,
        ),
        fail_on_data_loss=options.boolean("failOnDataLoss") is not False,
        lenient=settings.of(spark, CHANGE_FEED_OUT_OF_RANGE),
    )


def _start(spark: SparkSession, options: Options) -> Bound | Literal["latest"] | None:
    version, timestamp = options.get("startingVersion"), options.get("startingTimestamp")
    if version is not None and timestamp is not None:
        raise InvalidArgumentError(
            "Please either provide 'startingVersion' or 'startingTimestamp', not both.",
            condition="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            parameters={"version": "startingVersion", "timestamp": "startingTimestamp"},
        )
    if timestamp is not None:
        return Bound(timestamp_ms=timestamp_ms(spark, timestamp))
    if version is None:
        return None
    if version.strip().lower() == "latest":
        return "latest"
    if not re.fullmatch(r"\s*\d{1,18}\s*", version):
        raise _invalid(options, "startingVersion", "must be greater than or equal to zero, or 'latest'")
    return Bound(version=int(version))


def _files(options: Options) -> int | None:
    value = options.get("maxFilesPerTrigger")
    if value is None:
        return None
    if not re.fullmatch(r"\s*\d{1,18}\s*", value) or not int(value):
        raise _invalid(options, "maxFilesPerTrigger", "must be a positive integer")
    return min(int(value), _MOST_FILES)


def _bytes(options: Options) -> int | None:
    value = options.get("maxBytesPerTrigger")
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,15})\s*([kmgtp]?)b?\s*", value.lower())
    if match is None or not int(match[1]):
        raise _invalid(options, "maxBytesPerTrigger", "must be a size configuration such as '10g'")
    return int(match[1]) * _UNITS[match[2]]


def _excluded(spark: SparkSession, options: Options) -> Callable[[str], bool] | None:
    text = options.get("excludeRegex")
    try:
        return None if text is None else streams.java_pattern(spark, text)
    except java_errors.thrown_by_java():
        raise _invalid(options, "excludeRegex", "must be a regular expression of Java") from None


def _invalid(options: Options, name: str, explain: str) -> InvalidArgumentError:
    return illegal_option(name, str(options.get(name)), explain)
