"""The table properties that tablelog knows: key, default, parser and valid values of each.

An existing property of a table is parsed only when it is used, so that an invalid value of an unused one is harmless.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ....errors import InvalidArgumentError
from .parsers import any_text, boolean, column_list, formats, integer, interval_ms, one_of, parquet_version

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."

_INTERVAL_HELP = "needs to be an interval such as '2 weeks' or 'interval 12 hours'; months and years are not accepted"
_TRUE_HELP = "needs to be a boolean"
_OWN = "is set by the table itself"
_FOREIGN = "belongs to a feature that tablelog doesn't have"


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
_isolation = one_of("Serializable", "WriteSerializable")
_INVALID: dict[Callable[[str], Any], str] = {
    interval_ms: "DELTA_INVALID_INTERVAL",
    _isolation: "DELTA_INVALID_ISOLATION_LEVEL",
}


def _bool(name: str, default: str | None = "false", alternate: str | None = None) -> Property:
    return Property(name, default, boolean, _TRUE_HELP, alternate=alternate)


def _interval(name: str, default: str | None) -> Property:
    return Property(name, default, interval_ms, _INTERVAL_HELP)


_LONG = integer(None, 2**63 - 1)
_CODECS = ("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "brotli")

PROPERTIES: Final[dict[str, Property]] = {
    p.name.lower(): p
    for p in (
        Property("minReaderVersion", None, integer(1, 3), "needs to be one of 1, 2, 3"),
        Property("minWriterVersion", None, integer(1, 7), "needs to be one of 1 to 7"),
        _bool("ignoreProtocolDefaults"),
        _bool("appendOnly"),
        Property("checkpointInterval", "10", integer(1), "needs to be a positive integer"),
        Property("checkpointPolicy", "classic", one_of("classic", "v2"), "needs to be classic or v2"),
        _bool("checkpoint.writeStatsAsJson", "true"),
        _bool("checkpoint.writeStatsAsStruct", "true"),
        _interval("checkpointRetentionDuration", "interval 2 days"),
        Property("logCompactionInterval", "5", integer(1), "needs to be a positive integer"),
        _interval("logRetentionDuration", "interval 30 days"),
        _bool("enableExpiredLogCleanup", "true"),
        _bool("enableFullRetentionRollback", "true"),
        _interval("deletedFileRetentionDuration", "interval 1 week"),
        _interval("sampleRetentionDuration", "interval 7 days"),
        _interval("setTransactionRetentionDuration", None),
        _interval("dropFeatureTruncateHistory.retentionDuration", "interval 24 hours"),
        Property("dataSkippingNumIndexedCols", "32", integer(-1), "needs to be -1 or larger"),
        Property("dataSkippingStatsColumns", None, column_list, "needs to be a comma-separated list of columns"),
        Property("dataSkippingStringPrefixLength", None, integer(0), "needs to be 0 or larger"),
        _bool("enableChangeDataFeed", alternate="enableChangeDataCapture"),
        _bool("enableChangeDataCapture"),
        Property("columnMapping.mode", "none", one_of("none", "id", "name"), "needs to be none, id or name"),
        Property("columnMapping.maxColumnId", "0", _LONG, _OWN, editable=False),
        _bool("enableDeletionVectors"),
        _bool("enableRowTracking"),
        _bool("rowTrackingSuspended"),
        Property("rowTracking.materializedRowIdColumnName", None, any_text, _OWN, editable=False),
        Property("rowTracking.materializedRowCommitVersionColumnName", None, any_text, _OWN, editable=False),
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
        Property("autoOptimize.autoCompact", None, one_of("true", "auto", "false"), "needs to be true, auto or false"),
        _bool("randomizeFilePrefixes"),
        Property("randomPrefixLength", "2", integer(1), "needs to be greater than 0"),
        _bool("compatibility.symlinkFormatManifest.enabled"),
        Property(
            "universalFormat.enabledFormats", "", formats, "needs to be a list of iceberg and hudi"
        ),
        _bool("universalFormat.iceberg.atomicConversion.supported"),
        _bool("enableIcebergCompatV1", None),
        _bool("enableIcebergCompatV2", None),
        _bool("enableIcebergCompatV3", None),
        _bool("castIcebergTimeType"),
        _bool("ignoreIcebergBucketPartition"),
        Property("parquet.format.version", "1.0.0", parquet_version, "needs to be 1.0.0 or 2.x.y"),
        Property("parquet.compression.codec", None, one_of(*_CODECS), f"needs to be one of {', '.join(_CODECS)}"),
        _bool("enableVariantShredding"),
        Property("requireCheckpointProtectionBeforeVersion", "0", integer(0, 2**63 - 1), "needs to be 0 or larger"),
        _bool("enableMaterializePartitionColumnsFeature", None),
        _bool("writePartitionColumnsToParquet", None),
        Property("coordinatedCommits.commitCoordinator-preview", None, any_text, _FOREIGN, foreign=True),
        Property("coordinatedCommits.commitCoordinatorConf-preview", None, any_text, _FOREIGN, foreign=True),
        Property("coordinatedCommits.tableConf-preview", None, any_text, _FOREIGN, foreign=True),
        Property("redirectReaderWriter-preview", None, any_text, _FOREIGN, foreign=True),
        Property("redirectWriterOnly-preview", None, any_text, _FOREIGN, foreign=True),
    )
}  # fmt: skip


def get(configuration: Mapping[str, str], name: str) -> Any:
    """The typed value of the property `delta.<name>`; `InvalidArgumentError` names the key of a bad value."""
    return PROPERTIES[name.lower()].of(configuration)
