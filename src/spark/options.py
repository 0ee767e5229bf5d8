"""The options of Delta's reader and writer, parsed and checked in one place; keys are case-insensitive.

An option that means nothing to Delta is logged once, as Delta does; one that Delta has and tablelog doesn't yet is
refused by name where leaving it out would change the result, and logged where only the files' layout depends on it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.protocol import properties
from ..dml.change.write import WriteRequest
from ..dml.command.command import CommitOptions
from ..errors import InvalidArgumentError, UnsupportedFeatureError
from ..settings import honoured
from ..settings.spark_own import PARQUET_OPTIONS, PARQUET_TIMESTAMPS, PARTITION_OVERWRITE_MODE
from .log_once import log_once

_STREAM_ONLY = (
    "maxFilesPerTrigger maxBytesPerTrigger excludeRegex ignoreFileDeletion ignoreChanges ignoreDeletes "
    "skipChangeCommits failOnDataLoss startingVersion startingTimestamp endingVersion endingTimestamp "
    "schemaTrackingLocation schemaLocation streamingSourceTrackingId allowSourceColumnRename "
    "allowSourceColumnDrop allowSourceColumnTypeChange queryName checkpointLocation"
).split()
_READ = ("versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData", "readRowIds", "path")
_WRITE = (
    "mergeSchema overwriteSchema replaceWhere replaceOn replaceUsing targetAlias partitionOverwriteMode dataChange "
    "userMetadata txnAppId txnVersion optimizeWrite maxRecordsPerFile compression writePartitionColumns "
    "useNullIntolerantEqualityWithDPO path comment"
).split()
_KNOWN = frozenset(name.lower() for name in (*_STREAM_ONLY, *_READ, *_WRITE))
_PASSED_ON = ("delta.", "parquet.", PARQUET_OPTIONS, "fs.", "dfs.")
_MODES = {
    "append": "Append",
    "overwrite": "Overwrite",
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "default": "ErrorIfExists",
    "ignore": "Ignore",
}


class Options:
    """A case-insensitive view of the options as the user spelled them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._spelled = {key.lower(): (key, value) for key, value in options.items()}

    def get(self, name: str) -> str | None:
        entry = self._spelled.get(name.lower())
        return None if entry is None else entry[1]

    def boolean(self, name: str) -> bool | None:
        """True or False, None where the option isn't set; anything else is an error."""
        value = self.get(name)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            raise InvalidArgumentError(
                f"Invalid value '{value}' for option '{name}', must be 'true' or 'false'.",
                condition="DELTA_ILLEGAL_OPTION",
                parameters={"input": value, "name": name, "explain": "must be 'true' or 'false'"},
            )
        return value.lower() == "true"

    def starting_with(self, *prefixes: str) -> dict[str, str]:
        """Options under any of the prefixes, spelled as the user did."""
        return {key: value for low, (key, value) in self._spelled.items() if low.startswith(prefixes)}

    def log_unknown(self) -> None:
        """Tell, once, of each option that neither Delta nor tablelog knows."""
        for low, (key, _) in self._spelled.items():
            if low not in _KNOWN and not low.startswith(_PASSED_ON):
                log_once(f"option {low}", "The option %r means nothing to a Delta table and has no effect.", key)


@dataclass(frozen=True)
class ChangeRange:
    """Of which versions the changes are asked for: each end a version, or a timestamp as it was given."""

    start: int | str
    end: int | str | None


@dataclass(frozen=True)
class ReadOptions:
    """What a batch reader asks for: at most one of `version`, `timestamp` (the text as it was given) and `changes`.

    `row_ids`: the rows' ids and commit versions as well.
    """

    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None
    row_ids: bool = False
    file_system: Mapping[str, str] = field(default_factory=dict)


def read_options(options: Options) -> ReadOptions:
    """Check a batch reader's options."""
    options.log_unknown()
    version, timestamp = options.get("versionAsOf"), options.get("timestampAsOf")
    changed = None
    if options.boolean("readChangeFeed") or options.boolean("readChangeData"):
        if version is not None or timestamp is not None:
            raise InvalidArgumentError(
                "A change data feed is read from startingVersion (or startingTimestamp) to endingVersion (or "
                "endingTimestamp): leave out versionAsOf and timestampAsOf.",
                condition="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
            )
        start = _end_of_changes(options, "starting")
        if start is None:
            raise InvalidArgumentError(
                "No startingVersion or startingTimestamp provided for CDC read: say from where on the changes are "
                "read.",
                condition="DELTA_NO_START_FOR_CDC_READ",
            )
        if options.boolean("readRowIds"):
            raise InvalidArgumentError(
                "readRowIds has no meaning for a change data feed: change files hold no row ids."
            )
        changed = ChangeRange(start, _end_of_changes(options, "ending"))
    if version is not None and timestamp is not None:
        raise InvalidArgumentError(
            "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel, not both.",
            condition="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    return ReadOptions(
        version=None if version is None else _version("versionAsOf", version),
        timestamp=timestamp,
        changes=changed,
        row_ids=bool(options.boolean("readRowIds")),
        file_system=options.starting_with("fs.", "dfs."),
    )


def _end_of_changes(options: Options, which: str) -> int | str | None:
    version, timestamp = options.get(f"{which}Version"), options.get(f"{which}Timestamp")
    if version is not None and timestamp is not None:
        raise InvalidArgumentError(
            f"Multiple {which} arguments provided for CDC read. Please provide one of either {which}Timestamp or "
            f"{which}Version.",
            condition="DELTA_MULTIPLE_CDC_BOUNDARY",
            parameters={"startingOrEnding": which},
        )
    return timestamp if version is None else _version(f"{which}Version", version)


def _version(option: str, text: str) -> int:
    if not re.fullmatch(r"\s*\+?\d{1,18}\s*", text):
        raise InvalidArgumentError(
            f"{option} needs to be a version, an integer from 0 on, not '{text}'.",
            condition="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE" if option == "versionAsOf" else "DELTA_VERSION_INVALID",
            parameters={"timeTravelKey": option, "version": text},
        )
    return int(text)


def mode_name(mode: str) -> str:
    """Spark's name of a save mode: Append, Overwrite, ErrorIfExists or Ignore."""
    name = _MODES.get(mode.lower())
    if name is None:
        raise InvalidArgumentError(f"Unknown save mode '{mode}': append, overwrite, error, errorifexists or ignore.")
    return name


def write_request(
    options: Options,
    conf: Mapping[str, str],
    *,
    mode: str,
    partition_by: tuple[str, ...] = (),
    cluster_by: tuple[str, ...] = (),
) -> WriteRequest:
    """Check a batch writer's options; what they leave open comes from the session's configuration `conf`."""
    options.log_unknown()
    _refuse_unbuilt(options)
    merge_schema = options.boolean("mergeSchema")
    if merge_schema is None:
        merge_schema = honoured.AUTO_MERGE.of(conf)
    return WriteRequest(
        mode=mode_name(mode),
        partition_by=partition_by,
        cluster_by=cluster_by,
        table_properties=properties.validate(options.starting_with("delta."), allow_arbitrary=_arbitrary(conf)),
        comment=options.get("comment"),
        merge_schema=merge_schema,
        overwrite_schema=bool(options.boolean("overwriteSchema")),
        replace_where=options.get("replaceWhere"),
        dynamic_partitions=_dynamic(options, conf),
        data_change=options.boolean("dataChange") is not False,
        commit=commit_options(options, conf),
        file_options=_file_options(options),
    )


def commit_options(options: Options, conf: Mapping[str, str]) -> CommitOptions:
    """What a write's options, or else the session, say of its commit."""
    user_metadata = options.get("userMetadata") or honoured.USER_METADATA.of(conf)
    return CommitOptions(user_metadata, _transaction(options, conf))


def _transaction(options: Options, conf: Mapping[str, str]) -> tuple[str, int] | None:
    """(application, version) of an idempotent write, from the options or else from the session."""
    app_id, version, where = options.get("txnAppId"), options.get("txnVersion"), "txnAppId and txnVersion"
    if app_id is None and version is None:
        app_id, version = honoured.TXN_APP_ID.of(conf), honoured.TXN_VERSION.of(conf)
        where = f"{honoured.TXN_APP_ID.key} and {honoured.TXN_VERSION.key}"
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        raise InvalidArgumentError(
            f"An idempotent write needs both {where}, or neither.",
            condition="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            parameters={"reason": "txnAppId and txnVersion belong together"},
        )
    if not re.fullmatch(r"\d{1,18}", version):
        raise InvalidArgumentError(
            f"Invalid value '{version}' for option 'txnVersion', must be an integer from 0 on.",
            condition="DELTA_ILLEGAL_OPTION",
            parameters={"input": version, "name": "txnVersion", "explain": "must be an integer from 0 on"},
        )
    return app_id, int(version)


def _dynamic(options: Options, conf: Mapping[str, str]) -> bool:
    explicit = options.get("partitionOverwriteMode")
    mode = PARTITION_OVERWRITE_MODE
    value = explicit if explicit is not None else conf.get(mode.key, mode.default)
    if value.lower() not in ("static", "dynamic"):
        raise InvalidArgumentError(
            f"Invalid value '{value}' for option 'partitionOverwriteMode', must be 'STATIC' or 'DYNAMIC'.",
            condition="DELTA_ILLEGAL_OPTION",
            parameters={"input": value, "name": "partitionOverwriteMode", "explain": "must be 'STATIC' or 'DYNAMIC'"},
        )
    dynamic = value.lower() == "dynamic"
    if dynamic and not honoured.DYNAMIC_OVERWRITE.of(conf):
        raise InvalidArgumentError(
            f"Dynamic partition overwrite is asked for, but {honoured.DYNAMIC_OVERWRITE.key} is false.",
            condition="DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
        )
    if dynamic and options.get("replaceWhere") is not None:
        if explicit is not None:
            raise InvalidArgumentError(
                "replaceWhere and partitionOverwriteMode=dynamic can't both be set as options.",
                condition="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        return False  # what is set on the query wins over what is set in the session
    return dynamic


def _file_options(options: Options) -> dict[str, str]:
    """What says how data files are made; checked by `engine.write.writer`."""
    for key in options.starting_with("parquet.", PARQUET_OPTIONS):
        if key.lower() not in ("parquet.writer.version", PARQUET_TIMESTAMPS.key.lower()):
            log_once(f"option {key.lower()}", "The option %r has no effect on a Delta table.", key)
    timestamps = options.get(PARQUET_TIMESTAMPS.key)
    if timestamps is not None and timestamps.upper() != "TIMESTAMP_MICROS":
        raise UnsupportedFeatureError(
            f"{PARQUET_TIMESTAMPS.key}={timestamps} is not supported: a Delta table's timestamps are "
            "written as TIMESTAMP_MICROS, for which files have statistics."
        )
    options.boolean("optimizeWrite")
    names = ("maxRecordsPerFile", "compression", "parquet.writer.version", "optimizeWrite")
    return {name: value for name in names if (value := options.get(name)) is not None}


def _arbitrary(conf: Mapping[str, str]) -> bool:
    return honoured.ALLOW_ARBITRARY_PROPERTIES.of(conf)


def _refuse_unbuilt(options: Options) -> None:
    for name in ("replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO"):
        if options.get(name) is not None:
            raise UnsupportedFeatureError(f"The option {name} comes with a later version of tablelog.", (name,))
    if options.boolean("writePartitionColumns"):
        raise UnsupportedFeatureError(
            "The option writePartitionColumns comes with a later version of tablelog.", ("writePartitionColumns",)
        )
