"""Parses and validates the options of Delta's reader and writer; keys are case-insensitive.

Unknown options are logged once, as in Delta. Options that Delta supports and tablelog doesn't are errors if ignoring
them would change the result, and are logged if they only affect the layout of files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.protocol import properties
from ..dml.change.write import WriteRequest
from ..dml.command.command import CommitOptions
from ..errors import InvalidArgumentError, UnsupportedFeatureError
from ..log_once import log_once
from ..settings import declarations
from ..settings.spark_own import PARQUET_OPTIONS, PARQUET_TIMESTAMPS, PARTITION_OVERWRITE_MODE
from .row_ids import no_change_feed

_STREAM_ONLY = (
    "maxFilesPerTrigger maxBytesPerTrigger excludeRegex ignoreFileDeletion ignoreChanges ignoreDeletes "
    "skipChangeCommits failOnDataLoss startingVersion startingTimestamp endingVersion endingTimestamp "
    "schemaTrackingLocation schemaLocation streamingSourceTrackingId allowSourceColumnRename "
    "allowSourceColumnDrop allowSourceColumnTypeChange withEventTimeOrder tablelogSource queryName checkpointLocation"
).split()
_READ = ("versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData", "readRowIds", "path")
_WRITE = (
    "mergeSchema overwriteSchema replaceWhere replaceOn replaceUsing targetAlias partitionOverwriteMode dataChange "
    "userMetadata txnAppId txnVersion optimizeWrite maxRecordsPerFile compression writePartitionColumns "
    "useNullIntolerantEqualityWithDPO path comment"
).split()
_OF_COMMIT = ("usermetadata", "txnappid", "txnversion")
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


def illegal_option(name: str, value: str, explain: str) -> InvalidArgumentError:
    """The error for an option that can't have this value; `explain` ends the sentence."""
    return InvalidArgumentError(
        f"Invalid value '{value}' for option '{name}', {explain}.",
        condition="DELTA_ILLEGAL_OPTION",
        parameters={"input": value, "name": name, "explain": explain},
    )


class Options:
    """A case-insensitive view of the options; the user's spelling is kept."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._spelled = {key.lower(): (key, value) for key, value in options.items()}

    def get(self, name: str) -> str | None:
        entry = self._spelled.get(name.lower())
        return None if entry is None else entry[1]

    def boolean(self, name: str) -> bool | None:
        """True or False, or None if the option isn't set. Raises InvalidArgumentError for any other value."""
        value = self.get(name)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            raise illegal_option(name, value, "must be 'true' or 'false'")
        return value.lower() == "true"

    def refuse(self, name: str, reason: str) -> None:
        """Raise InvalidArgumentError if the option is given; `reason` says why it can't be."""
        value = self.get(name)
        if value is not None:
            raise illegal_option(name, value, reason)

    def starting_with(self, *prefixes: str) -> dict[str, str]:
        """The options with one of the prefixes, in the user's spelling."""
        return {key: value for low, (key, value) in self._spelled.items() if low.startswith(prefixes)}

    def log_unknown(self) -> None:
        """Log a warning, once, for each option that neither Delta nor tablelog supports."""
        for low, (key, _) in self._spelled.items():
            if low not in _KNOWN and not low.startswith(_PASSED_ON):
                log_once(f"option {low}", "The option %r is unknown and has no effect on a Delta table.", key)


@dataclass(frozen=True)
class ChangeRange:
    """The range of a change data feed; each end is a version, or the text of a timestamp."""

    start: int | str
    end: int | str | None


@dataclass(frozen=True)
class ReadOptions:
    """The options of a batch read: at most one of `version`, `timestamp` (the user's text) and `changes`.

    `row_ids`: also return row IDs and row commit versions.
    """

    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None
    row_ids: bool = False
    file_system: Mapping[str, str] = field(default_factory=dict)


def read_options(options: Options) -> ReadOptions:
    """Validate the options of a batch read."""
    options.log_unknown()
    version, timestamp = options.get("versionAsOf"), options.get("timestampAsOf")
    changed = None
    if options.boolean("readChangeFeed") or options.boolean("readChangeData"):
        if version is not None or timestamp is not None:
            raise InvalidArgumentError(
                "A change data feed uses startingVersion (or startingTimestamp) and endingVersion (or "
                "endingTimestamp): leave out versionAsOf and timestampAsOf.",
                condition="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
            )
        start = _end_of_changes(options, "starting")
        if start is None:
            raise InvalidArgumentError(
                "No startingVersion or startingTimestamp provided for CDC read: set one of these options.",
                condition="DELTA_NO_START_FOR_CDC_READ",
            )
        if options.boolean("readRowIds"):
            raise no_change_feed()
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
            f"{option} needs to be a version, a non-negative integer, not '{text}'.",
            condition="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE" if option == "versionAsOf" else "DELTA_VERSION_INVALID",
            parameters={"timeTravelKey": option, "version": text},
        )
    return int(text)


def mode_name(mode: str) -> str:
    """Spark's name of a save mode: Append, Overwrite, ErrorIfExists or Ignore."""
    name = _MODES.get(mode.lower())
    if name is None:
        raise InvalidArgumentError(
            f"Unknown save mode '{mode}': use append, overwrite, error, errorifexists or ignore."
        )
    return name


def write_request(
    options: Options,
    conf: Mapping[str, str],
    *,
    mode: str,
    partition_by: tuple[str, ...] = (),
    cluster_by: tuple[str, ...] = (),
) -> WriteRequest:
    """Validate the options of a batch write; `conf`, the session's configuration, has the defaults."""
    options.log_unknown()
    _refuse_unbuilt(options)
    for name in ("versionAsOf", "timestampAsOf"):
        options.refuse(name, "only a read selects a version")
    if mode_name(mode) == "Append":
        options.refuse("replaceWhere", "only a write with the mode overwrite replaces rows")
    merge_schema = options.boolean("mergeSchema")
    if merge_schema is None:
        merge_schema = declarations.AUTO_MERGE.of(conf)
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


def only_of_commit(options: Mapping[str, str], command: str) -> Options:
    """The options of a DELETE, UPDATE or MERGE. Raises InvalidArgumentError for one that isn't about its commit."""
    for name, value in options.items():
        if name.lower() not in _OF_COMMIT:
            raise illegal_option(name, value, f"{command} can only have userMetadata, txnAppId and txnVersion")
    return Options(options)


def commit_options(options: Options, conf: Mapping[str, str]) -> CommitOptions:
    """The commit options from a write's options, else from the session."""
    user_metadata = options.get("userMetadata") or declarations.USER_METADATA.of(conf)
    return CommitOptions(user_metadata, _transaction(options, conf))


def _transaction(options: Options, conf: Mapping[str, str]) -> tuple[str, int] | None:
    """(application ID, version) of an idempotent write, from the options, else from the session."""
    app_id, version, where = options.get("txnAppId"), options.get("txnVersion"), "txnAppId and txnVersion"
    if app_id is None and version is None:
        app_id, version = declarations.TXN_APP_ID.of(conf), declarations.TXN_VERSION.of(conf)
        where = f"{declarations.TXN_APP_ID.key} and {declarations.TXN_VERSION.key}"
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        raise InvalidArgumentError(
            f"An idempotent write needs both {where}, or neither.",
            condition="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            parameters={"reason": "txnAppId and txnVersion belong together"},
        )
    if not re.fullmatch(r"\d{1,18}", version):
        raise illegal_option("txnVersion", version, "must be a non-negative integer")
    return app_id, int(version)


def _dynamic(options: Options, conf: Mapping[str, str]) -> bool:
    explicit = options.get("partitionOverwriteMode")
    mode = PARTITION_OVERWRITE_MODE
    value = explicit if explicit is not None else conf.get(mode.key, mode.default)
    if value.lower() not in ("static", "dynamic"):
        raise illegal_option("partitionOverwriteMode", value, "must be 'STATIC' or 'DYNAMIC'")
    dynamic = value.lower() == "dynamic"
    if dynamic and not declarations.DYNAMIC_OVERWRITE.of(conf):
        raise InvalidArgumentError(
            f"Dynamic partition overwrite is requested, but {declarations.DYNAMIC_OVERWRITE.key} is false.",
            condition="DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
        )
    if dynamic and options.get("replaceWhere") is not None:
        if explicit is not None:
            raise InvalidArgumentError(
                "replaceWhere and partitionOverwriteMode=dynamic can't both be set as options.",
                condition="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        return False  # the option of the query overrides the session's setting
    return dynamic


def _file_options(options: Options) -> dict[str, str]:
    """The options for data files; `engine.write.writer` validates them."""
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
    return declarations.ALLOW_ARBITRARY_PROPERTIES.of(conf)


def _refuse_unbuilt(options: Options) -> None:
    for name in ("replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO"):
        if options.get(name) is not None:
            raise UnsupportedFeatureError(f"The option {name} is not supported yet.", (name,))
    if options.boolean("writePartitionColumns"):
        raise UnsupportedFeatureError(
            "The option writePartitionColumns is not supported yet.", ("writePartitionColumns",)
        )
