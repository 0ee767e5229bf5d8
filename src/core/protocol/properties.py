"""Table properties: `delta.*` keys of `metaData.configuration` (PROTOCOL.md, "Table Properties").

An existing property of a table is parsed only when it is used, so that an invalid value of an unused one is harmless. A
property that a user sets is checked at once.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ...settings.declarations import ALLOW_ARBITRARY_PROPERTIES, PROPERTY_DEFAULTS
from .actions import Metadata
from .schema import Column

_log = logging.getLogger(__name__)

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."
_UNIFORM_PREFIX: Final = "delta.universalformat.config."

_UNITS_MS = {
    "week": 7 * 86_400_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_PART = re.compile(r"([+-]?)\s*(\d+)(?:\.(\d{1,9}))?\s+([a-z]+)(?:\s+|$)", re.ASCII)
_INTERVAL_HELP = "needs to be an interval such as '2 weeks' or 'interval 12 hours'; months and years are not accepted"
_TRUE_HELP = "needs to be a boolean"
_OWN = "is set by the table itself"
_FOREIGN = "belongs to a feature that tablelog doesn't have"


def interval_ms(text: str) -> int:
    """Milliseconds of a calendar interval in Delta's forms: `interval 2 days 3 hours`, `1 week`, any case.

    `ValueError` for months and years, which have no fixed length, for a negative sum and for anything else.
    """
    body = text.strip().lower()
    if body == "interval" or body.startswith("interval "):
        body = body[len("interval") :].strip()
    if not body:
        raise ValueError("the interval is empty")
    micros, position = 0, 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None:
            raise ValueError(f"{text!r} is not an interval")
        sign, whole, fraction, name = match.groups()
        unit = name.removesuffix("s")
        if unit in ("month", "year"):
            raise ValueError("months and years have no fixed length")
        if unit not in _UNITS_MS and unit != "microsecond":
            raise ValueError(f"{name!r} is not a unit of time")
        if fraction and unit != "second":
            raise ValueError("only seconds may have a fraction")
        part = int(whole) * (1 if unit == "microsecond" else _UNITS_MS[unit] * 1_000)
        if fraction:
            part += int(fraction.ljust(9, "0")) // 1_000
        micros += -part if sign == "-" else part
        position = match.end()
    if micros < 0:
        raise ValueError("the interval is negative")
    return micros // 1_000


def _boolean(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false"):
        raise ValueError("neither true nor false")
    return folded == "true"


def _integer(low: int | None, high: int = 2**31 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            raise ValueError("not a whole number")
        value = int(text)
        if value > high or (low is not None and value < low):
            raise ValueError("out of range")
        return value

    return parse


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for name in names:
            if text.lower() == name.lower():
                return name
        raise ValueError(f"not one of {', '.join(names)}")

    return parse


def _text(text: str) -> str:
    return text


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if len(set(names)) != len(names) or not set(names) <= {"iceberg", "hudi"}:
        raise ValueError("not a list of iceberg and hudi")
    return names


def _parquet_version(text: str) -> str:
    if not re.fullmatch(r"1\.0\.0|2\.\d+\.\d+", text, re.ASCII):
        raise ValueError("neither 1.0.0 nor 2.x.y")
    return text


def column_list(text: str) -> tuple[Column, ...]:
    """The columns of `delta.dataSkippingStatsColumns`: `a, b.c, ``odd name``.d`. An empty text, which Delta writes when
    all of them were dropped, has no columns. `ValueError` if it isn't a list.
    """
    if not text.strip():
        return ()
    part = r"(?:`(?:[^`]|``)+`|[^\s`.,]+)"
    name = rf"{part}(?:\.{part})*"
    if not re.fullmatch(rf"\s*{name}\s*(?:,\s*{name}\s*)*", text):
        raise ValueError("not a list of column names")
    found: list[Column] = []
    for match in re.finditer(name, text):
        parts = re.findall(part, match[0])
        found.append(tuple(p[1:-1].replace("``", "`") if p.startswith("`") else p for p in parts))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Property:
    """One property: the key without `delta.`, its default (`None`: unset), its parser, and its valid values.

    `editable`: a user may set it. `foreign`: it needs a feature that tablelog lacks, so only its default is valid.
    """

    name: str
    default: str | None
    parse: Callable[[str], Any]
    help: str
    editable: bool = True
    foreign: bool = False
    alternate: str | None = None
    key: str = field(init=False)
    _unset: Any = field(init=False, repr=False)  # parsed once: each commit reads a dozen properties

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"delta.{self.name}")
        object.__setattr__(self, "_unset", None if self.default is None else self.parse(self.default))

    def of(self, configuration: Mapping[str, str]) -> Any:
        """The value in a configuration, else the default; `InvalidArgumentError` names the key."""
        text = configuration.get(self.key)
        if text is not None:
            return self.check(text)
        if self.alternate:
            text = configuration.get(key := f"delta.{self.alternate}")
            if text is not None:
                return self.check(text, key)
        return self._unset

    def check(self, text: str, key: str | None = None) -> Any:
        """The typed value of `text`; `InvalidArgumentError` names the key and the valid values."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise InvalidArgumentError(
                f"the table property {key or self.key} is {text!r} ({error}): it {self.help}",
                condition=_INVALID.get(self.parse, "DELTA_ILLEGAL_OPTION"),
                parameters={"name": key or self.key, "input": text, "explain": self.help},
            ) from None


# The error conditions for invalid values, by parser.
_isolation = _one_of("Serializable", "WriteSerializable")
_INVALID: dict[Callable[[str], Any], str] = {
    interval_ms: "DELTA_INVALID_INTERVAL",
    _isolation: "DELTA_INVALID_ISOLATION_LEVEL",
}


def _bool(name: str, default: str | None = "false", alternate: str | None = None) -> Property:
    return Property(name, default, _boolean, _TRUE_HELP, alternate=alternate)


def _interval(name: str, default: str | None) -> Property:
    return Property(name, default, interval_ms, _INTERVAL_HELP)


_LONG = _integer(None, 2**63 - 1)
_CODECS = ("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "brotli")

PROPERTIES: Final[dict[str, Property]] = {
    p.name.lower(): p
    for p in (
        Property("minReaderVersion", None, _integer(1, 3), "needs to be one of 1, 2, 3"),
        Property("minWriterVersion", None, _integer(1, 7), "needs to be one of 1 to 7"),
        _bool("ignoreProtocolDefaults"),
        _bool("appendOnly"),
        Property("checkpointInterval", "10", _integer(1), "needs to be a positive integer"),
        Property("checkpointPolicy", "classic", _one_of("classic", "v2"), "needs to be classic or v2"),
        _bool("checkpoint.writeStatsAsJson", "true"),
        _bool("checkpoint.writeStatsAsStruct", "true"),
        _interval("checkpointRetentionDuration", "interval 2 days"),
        Property("logCompactionInterval", "5", _integer(1), "needs to be a positive integer"),
        _interval("logRetentionDuration", "interval 30 days"),
        _bool("enableExpiredLogCleanup", "true"),
        _bool("enableFullRetentionRollback", "true"),
        _interval("deletedFileRetentionDuration", "interval 1 week"),
        _interval("sampleRetentionDuration", "interval 7 days"),
        _interval("setTransactionRetentionDuration", None),
        _interval("dropFeatureTruncateHistory.retentionDuration", "interval 24 hours"),
        Property("dataSkippingNumIndexedCols", "32", _integer(-1), "needs to be -1 or larger"),
        Property("dataSkippingStatsColumns", None, column_list, "needs to be a comma-separated list of columns"),
        Property("dataSkippingStringPrefixLength", None, _integer(0), "needs to be 0 or larger"),
        _bool("enableChangeDataFeed", alternate="enableChangeDataCapture"),
        _bool("enableChangeDataCapture"),
        Property("columnMapping.mode", "none", _one_of("none", "id", "name"), "needs to be none, id or name"),
        Property("columnMapping.maxColumnId", "0", _LONG, _OWN, editable=False),
        _bool("enableDeletionVectors"),
        _bool("enableRowTracking"),
        _bool("rowTrackingSuspended"),
        Property("rowTracking.materializedRowIdColumnName", None, _text, _OWN, editable=False),
        Property("rowTracking.materializedRowCommitVersionColumnName", None, _text, _OWN, editable=False),
        Property(
            "isolationLevel",
            "Serializable",
            _isolation,
            "needs to be Serializable or WriteSerializable",
        ),
        _bool("enableTypeWidening"),
        _bool("enableInCommitTimestamps"),
        Property("inCommitTimestampEnablementVersion", None, _LONG, _OWN, editable=False),
        Property("inCommitTimestampEnablementTimestamp", None, _LONG, _OWN, editable=False),
        _bool("autoOptimize", None),
        _bool("autoOptimize.optimizeWrite", None),
        Property("autoOptimize.autoCompact", None, _one_of("true", "auto", "false"), "needs to be true, auto or false"),
        _bool("randomizeFilePrefixes"),
        Property("randomPrefixLength", "2", _integer(1), "needs to be greater than 0"),
        _bool("compatibility.symlinkFormatManifest.enabled"),
        Property(
            "universalFormat.enabledFormats", "", _formats, "needs to be a list of iceberg and hudi", foreign=True
        ),
        _bool("universalFormat.iceberg.atomicConversion.supported"),
        _bool("enableIcebergCompatV1", None),
        _bool("enableIcebergCompatV2", None),
        _bool("enableIcebergCompatV3", None),
        _bool("castIcebergTimeType"),
        _bool("ignoreIcebergBucketPartition"),
        Property("parquet.format.version", "1.0.0", _parquet_version, "needs to be 1.0.0 or 2.x.y"),
        Property("parquet.compression.codec", None, _one_of(*_CODECS), f"needs to be one of {', '.join(_CODECS)}"),
        _bool("enableVariantShredding"),
        Property("requireCheckpointProtectionBeforeVersion", "0", _integer(0, 2**63 - 1), "needs to be 0 or larger"),
        _bool("enableMaterializePartitionColumnsFeature", None),
        _bool("writePartitionColumnsToParquet", None),
        Property("coordinatedCommits.commitCoordinator-preview", None, _text, _FOREIGN, foreign=True),
        Property("coordinatedCommits.commitCoordinatorConf-preview", None, _text, _FOREIGN, foreign=True),
        Property("coordinatedCommits.tableConf-preview", None, _text, _FOREIGN, foreign=True),
        Property("redirectReaderWriter-preview", None, _text, _FOREIGN, foreign=True),
        Property("redirectWriterOnly-preview", None, _text, _FOREIGN, foreign=True),
    )
}  # fmt: skip


def get(configuration: Mapping[str, str], name: str) -> Any:
    """The typed value of the property `delta.<name>`; `InvalidArgumentError` names the key of a bad value."""
    return PROPERTIES[name.lower()].of(configuration)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The properties of one version of a table, typed. Durations are in milliseconds.

    Each is parsed when it is asked for; a bad value is then an `InvalidArgumentError` that names the key.
    """

    configuration: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: Metadata) -> "TableProperties":
        """The properties of a table."""
        return cls(metadata.configuration)

    def _get(self, name: str) -> Any:
        return PROPERTIES[name.lower()].of(self.configuration)

    @property
    def append_only(self) -> bool:
        return bool(self._get("appendOnly"))

    @property
    def checkpoint_interval(self) -> int:
        return int(self._get("checkpointInterval"))

    @property
    def log_compaction_interval(self) -> int:
        """The number of commits in each log compaction that the session writes."""
        return int(self._get("logCompactionInterval"))

    @property
    def checkpoint_policy(self) -> str:
        """`classic` or `v2`."""
        return str(self._get("checkpointPolicy"))

    @property
    def checkpoint_write_stats_as_json(self) -> bool:
        return bool(self._get("checkpoint.writeStatsAsJson"))

    @property
    def checkpoint_write_stats_as_struct(self) -> bool:
        return bool(self._get("checkpoint.writeStatsAsStruct"))

    @property
    def isolation_level(self) -> str:
        """`Serializable` or `WriteSerializable`."""
        return str(self._get("isolationLevel"))

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """The number of leaves with statistics; -1: all."""
        return int(self._get("dataSkippingNumIndexedCols"))

    @property
    def data_skipping_stats_columns(self) -> tuple[Column, ...] | None:
        found: tuple[Column, ...] | None = self._get("dataSkippingStatsColumns")
        return found

    @property
    def data_skipping_string_prefix_length(self) -> int:
        """The maximal length of string bounds, in characters (UTF-16 code units)."""
        length = self._get("dataSkippingStringPrefixLength")
        return 32 if length is None else int(length)

    @property
    def deleted_file_retention_ms(self) -> int:
        return int(self._get("deletedFileRetentionDuration"))

    @property
    def log_retention_ms(self) -> int:
        return int(self._get("logRetentionDuration"))

    @property
    def checkpoint_retention_ms(self) -> int:
        return int(self._get("checkpointRetentionDuration"))

    @property
    def set_transaction_retention_ms(self) -> int | None:
        found: int | None = self._get("setTransactionRetentionDuration")
        return found

    @property
    def enable_expired_log_cleanup(self) -> bool:
        return bool(self._get("enableExpiredLogCleanup"))

    @property
    def enable_change_data_feed(self) -> bool:
        return bool(self._get("enableChangeDataFeed"))

    @property
    def enable_deletion_vectors(self) -> bool:
        return bool(self._get("enableDeletionVectors"))

    @property
    def column_mapping_mode(self) -> str:
        """`none`, `id` or `name`."""
        return str(self._get("columnMapping.mode"))

    @property
    def enable_in_commit_timestamps(self) -> bool:
        return bool(self._get("enableInCommitTimestamps"))

    @property
    def in_commit_timestamp_enablement_version(self) -> int | None:
        found: int | None = self._get("inCommitTimestampEnablementVersion")
        return found

    @property
    def in_commit_timestamp_enablement_timestamp(self) -> int | None:
        found: int | None = self._get("inCommitTimestampEnablementTimestamp")
        return found

    @property
    def randomize_file_prefixes(self) -> bool:
        return bool(self._get("randomizeFilePrefixes"))

    @property
    def random_prefix_length(self) -> int:
        return int(self._get("randomPrefixLength"))

    @property
    def parquet_compression_codec(self) -> str | None:
        found: str | None = self._get("parquet.compression.codec")
        return found


def is_protocol_property(key: str) -> bool:
    """Whether the key requests protocol versions or features, and so is never stored in the metadata."""
    return key.startswith(FEATURE_PREFIX) or key in (
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.ignoreProtocolDefaults",
    )


def without_protocol_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """The part of a requested configuration that is stored in `metaData`."""
    return {key: value for key, value in configuration.items() if not is_protocol_property(key)}


def proper_key(key: str) -> str:
    """A key as it is stored: Delta's properties in canonical case, others unchanged."""
    known = PROPERTIES.get(key.lower().removeprefix("delta.")) if key.lower().startswith("delta.") else None
    return key if known is None else known.key


def editable(key: str) -> bool:
    """Whether a user may set and unset the property."""
    known = PROPERTIES.get(key.lower().removeprefix("delta.")) if key.lower().startswith("delta.") else None
    return known is None or known.editable


def validate(
    configuration: Mapping[str, str], *, allow_arbitrary: bool = False, existing: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The properties that a user sets, with keys in canonical case.

    Keys that don't start with `delta.` are the user's own and don't change. `InvalidArgumentError`, which names the
    key, for an unknown `delta.*` key (unless `allow_arbitrary`), an invalid value, a property that can't be set, or a
    log
    retention that is shorter than that of deleted files. `existing` are the table's other properties.
    """
    result: dict[str, str] = {}
    for key, value in configuration.items():
        folded = key.lower()
        if not folded.startswith("delta.") or folded.startswith(CONSTRAINT_PREFIX):
            result[key] = value
            continue
        if folded.startswith((FEATURE_PREFIX, _UNIFORM_PREFIX)):
            result[folded] = value
            continue
        known = PROPERTIES.get(folded.removeprefix("delta."))
        if known is None:
            if not allow_arbitrary:
                raise InvalidArgumentError(
                    f"{key} is not a table property that this version of tablelog knows: correct it, or set "
                    f"{ALLOW_ARBITRARY_PROPERTIES.key} to true to store it as it is",
                    condition="DELTA_UNKNOWN_CONFIGURATION",
                    parameters={"config": key, "disableCheckConfig": ALLOW_ARBITRARY_PROPERTIES.key},
                )
            _log.warning("storing the table property %s, which this version of tablelog doesn't know", key)
            result[key] = value
            continue
        if not known.editable:
            raise InvalidArgumentError(
                f"the table property {known.key} can't be set: it {known.help}",
                condition="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                parameters={"prop": known.key},
            )
        if known.check(value) and known.foreign:
            raise UnsupportedFeatureError(
                f"the table property {known.key} can't be set to {value!r}: it needs a feature that "
                "tablelog doesn't have",
                (known.name,),
            )
        result[known.key] = value
    retention = {"delta.logRetentionDuration", "delta.deletedFileRetentionDuration"} & result.keys()
    if retention:
        both = {**(existing or {}), **result}
        log_ms, files_ms = get(both, "logRetentionDuration"), get(both, "deletedFileRetentionDuration")
        if log_ms < files_ms:
            raise InvalidArgumentError(
                "delta.logRetentionDuration must be at least delta.deletedFileRetentionDuration "
                f"({log_ms} ms < {files_ms} ms): set both"
            )
    return result


def defaults_from(conf: Mapping[str, str] | None) -> dict[str, str]:
    """The properties that a session sets on every new table (`spark.databricks.delta.properties.defaults.*`).

    Protocol versions and features are handled by `features.protocol_for_new_table`. An unknown property is logged, an
    invalid value raises `InvalidArgumentError`.
    """
    defaults: dict[str, str] = {}
    for full_key, value in (conf or {}).items():
        if not full_key.startswith(PROPERTY_DEFAULTS.prefix):
            continue
        name = full_key.removeprefix(PROPERTY_DEFAULTS.prefix)
        key = f"delta.{name}"
        if is_protocol_property(key):
            continue
        known = PROPERTIES.get(name.lower())
        if known is None:
            _log.warning("%s is ignored: %s is not a table property that tablelog knows", full_key, key)
            continue
        known.check(value, full_key)
        defaults[known.key] = value
    return defaults
