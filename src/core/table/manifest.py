"""Symlink manifests: lists of a table's files for engines that read Hive tables by SymlinkTextInputFormat.

`_symlink_format_manifest/<partition directory>/manifest` lists the files of one partition, one per line. A table
without partition columns has one manifest, directly in that directory. Presto, Trino, Athena and Hive read the listed
files.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..protocol import paths
from ..protocol.actions import AddFile, Metadata, RemoveFile
from ..protocol.partition_values import parse_timestamp, timestamp_text
from ..protocol.properties import TableProperties
from ..protocol.schema import TIMESTAMP, TIMESTAMP_NTZ, parse_schema

if TYPE_CHECKING:
    from .snapshot import Snapshot

DIRECTORY = "_symlink_format_manifest"
MODE = "symlink_format_manifest"
PROPERTY = "delta.compatibility.symlinkFormatManifest.enabled"
_NAME = "manifest"


def enabled(metadata: Metadata) -> bool:
    """Whether each commit updates the manifests."""
    return metadata.configuration.get(PROPERTY, "false").strip().lower() == "true"


def check_metadata(metadata: Metadata, table: str) -> None:
    """Raise InvalidArgumentError if the properties enable both manifests and deletion vectors."""
    if enabled(metadata) and TableProperties.of(metadata).enable_deletion_vectors:
        raise InvalidArgumentError(
            f"{table}: {PROPERTY} and delta.enableDeletionVectors can't both be set, because readers of a manifest "
            "ignore deletion vectors: set only one of them",
            condition="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
            parameters={"table": table},
        )


def check(snapshot: "Snapshot") -> None:
    """Raise UnsupportedFeatureError for a table that a reader of plain Parquet files would read incorrectly."""
    vectors = snapshot.files.column("deletionVector")
    if vectors.null_count < len(vectors):
        raise UnsupportedFeatureError(
            f"{snapshot.table} has deletion vectors, which readers of a symlink manifest ignore: they would return "
            "deleted rows. Unset delta.enableDeletionVectors and rewrite the files (REORG) first",
            ("deletionVectors",),
            condition="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
        )
    if snapshot.mapping.active:
        raise UnsupportedFeatureError(
            f"{snapshot.table} has column mapping (delta.columnMapping.mode): readers of a symlink manifest look for "
            "logical column names, but its files have physical names",
            ("columnMapping",),
            condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )


class ManifestLayout:
    """The directory of the manifest for each file of a version, as a name below `DIRECTORY`."""

    def __init__(self, snapshot: "Snapshot") -> None:
        self._columns = snapshot.partition_columns
        columns = parse_schema(snapshot.metadata.schema_string)
        self._times = {
            name
            for name in self._columns
            if (field := columns.get(name, case_sensitive=True)) is not None
            and field.data_type in (TIMESTAMP, TIMESTAMP_NTZ)
        }
        self._known: dict[tuple[str | None, ...], str] = {}

    def of(self, values: Mapping[str, str | None]) -> str:
        """The directory for a file with these partition values; "" in a table without partition columns."""
        key = tuple(values.get(name) for name in self._columns)
        if key not in self._known:
            texts = {name: self._hive(name, value) for name, value in zip(self._columns, key, strict=True)}
            self._known[key] = paths.partition_directory(self._columns, texts)
        return self._known[key]

    def _hive(self, name: str, value: str | None) -> str | None:
        """A partition value in Hive's form: a timestamp in UTC, with a space and without a zone."""
        if value is None or name not in self._times:
            return value
        try:
            return timestamp_text(parse_timestamp(value, None))
        except ValueError:
            return value


def contents(snapshot: "Snapshot", only: Collection[str] | None = None) -> dict[str, bytes]:
    """The content of each manifest by directory: of all partitions, or of `only` some.

    A partition without files is left out. A table without partition columns always has its one manifest.
    """
    layout = ManifestLayout(snapshot)
    files = snapshot.files
    lines: dict[str, list[str]] = {} if snapshot.partition_columns else {"": []}
    for path, values in zip(files.column("path").to_pylist(), files.column("partitionValues").to_pylist(), strict=True):
        directory = layout.of(dict(values))
        if only is None or directory in only:
            lines.setdefault(directory, []).append(_place(snapshot.table, path))
    return {directory: "".join(f"{line}\n" for line in sorted(paths_)).encode() for directory, paths_ in lines.items()}


def _place(table: str, path: str) -> str:
    """The location of a file in the form in which Hadoop prints a path, without percent-encoding."""
    location = paths.absolute(table, path)
    return f"file:{location}" if location.startswith("/") else location


def touched(snapshot: "Snapshot", actions: Iterable[object]) -> set[str] | None:
    """The directories of the manifests that a commit changes; `None`: unknown, so it may be all of them."""
    layout = ManifestLayout(snapshot)
    directories: set[str] = set()
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            if action.partition_values is None or action.partition_values.keys() != set(snapshot.partition_columns):
                return None
            directories.add(layout.of(action.partition_values))
    return directories


def uri(table: str, directory: str) -> str:
    """The URI of the manifest of a directory."""
    name = f"{DIRECTORY}/{directory}/{_NAME}" if directory else f"{DIRECTORY}/{_NAME}"
    return paths.absolute_uri(table, paths.encode(name))
