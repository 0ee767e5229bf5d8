"""The properties of one version of a table as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..actions import Metadata
from ..schema import Column
from .declarations import PROPERTIES


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
        columns: tuple[Column, ...] | None = self._get("dataSkippingStatsColumns")
        return columns

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
        duration_ms: int | None = self._get("setTransactionRetentionDuration")
        return duration_ms

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
        version: int | None = self._get("inCommitTimestampEnablementVersion")
        return version

    @property
    def in_commit_timestamp_enablement_timestamp(self) -> int | None:
        timestamp_ms: int | None = self._get("inCommitTimestampEnablementTimestamp")
        return timestamp_ms

    @property
    def randomize_file_prefixes(self) -> bool:
        return bool(self._get("randomizeFilePrefixes"))

    @property
    def random_prefix_length(self) -> int:
        return int(self._get("randomPrefixLength"))

    @property
    def parquet_compression_codec(self) -> str | None:
        codec: str | None = self._get("parquet.compression.codec")
        return codec
