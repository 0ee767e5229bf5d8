"""The actions of the log as values (PROTOCOL.md, "Actions").

Field names are the protocol's in Python's style; `codec` converts them. A path is as in the log (percent-encoded,
relative or absolute); `paths` decodes it. `None` stands for a missing optional field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Format:
    """Encoding of the data files (PROTOCOL.md, "Format Specification")."""

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The `metaData` action (PROTOCOL.md, "Change Metadata"). `created_time` is in milliseconds."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    format: Format = Format()
    name: str | None = None
    description: str | None = None
    created_time: int | None = None


@dataclass(frozen=True, slots=True)
class Protocol:
    """The `protocol` action (PROTOCOL.md, "Protocol Evolution"). Features are `None` if the versions imply them."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """The location of a deletion vector (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """The id that is part of a logical file's key (PROTOCOL.md, "Derived Fields")."""
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"


@dataclass(frozen=True, slots=True)
class AddFile:
    """The `add` action. `size` is in bytes, `modification_time` in milliseconds, `stats` the JSON text."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    @property
    def key(self) -> "FileKey":
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    def remove(self, deletion_timestamp: int, *, data_change: bool = True) -> "RemoveFile":
        """The `remove` of this file, with its extended metadata. `deletion_timestamp` is in milliseconds."""
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            stats=self.stats,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
        )


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """The `remove` action, later a tombstone. `deletion_timestamp` is in milliseconds."""

    path: str
    deletion_timestamp: int | None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @property
    def key(self) -> "FileKey":
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """The `cdc` action (PROTOCOL.md, "Add CDC File")."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The `txn` action (PROTOCOL.md, "Transaction Identifiers"). `last_updated` is in milliseconds."""

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """The `domainMetadata` action (PROTOCOL.md, "Domain Metadata")."""

    domain: str
    configuration: str
    removed: bool


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The `commitInfo` action (PROTOCOL.md, "Commit Provenance Information"), with Delta's fields.

    All fields are optional, because the protocol allows any JSON here. Unknown fields are in `extra`;
    `operation_parameters` has the values as read (Delta writes each one as JSON text).
    """

    timestamp: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    operation_metrics: Mapping[str, Any] | None = None
    user_metadata: str | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    in_commit_timestamp: int | None = None
    user_id: str | None = None
    user_name: str | None = None
    cluster_id: str | None = None
    tags: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """The `checkpointMetadata` action, in V2 checkpoints only."""

    version: int
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The `sidecar` action, in V2 checkpoints only (PROTOCOL.md, "Sidecar File Information")."""

    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str] | None = None


FileKey: TypeAlias = tuple[str, str | None]
"""(path, unique id of the deletion vector): the key of a logical file."""

FileAction: TypeAlias = AddFile | RemoveFile | AddCDCFile
Action: TypeAlias = (
    CommitInfo
    | Protocol
    | Metadata
    | SetTransaction
    | DomainMetadata
    | AddFile
    | RemoveFile
    | AddCDCFile
    | CheckpointMetadata
    | Sidecar
)
"""An action of a commit or a checkpoint: one line of a commit file, or one row of a checkpoint."""
