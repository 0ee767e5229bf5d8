"""Symlink manifests: lists of a table's files for engines that read Hive tables by SymlinkTextInputFormat.

`_symlink_format_manifest/<partition directory>/manifest` names the files of one partition, a line each; of a table
with no partition columns there is one, right below. Presto, Trino, Athena and Hive read the files that it names.
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
    """Whether the manifests are to follow each commit."""
    return metadata.configuration.get(PROPERTY, "false").strip().lower() == "true"


def check_metadata(metadata: Metadata, table: str) -> None:
    """InvalidArgumentError for properties that ask for manifests and for what readers of them would not see."""
    if enabled(metadata) and TableProperties.of(metadata).enable_deletion_vectors:
        raise InvalidArgumentError(
            f"{table}: {PROPERTY} and delta.enableDeletionVectors exclude each other, for readers of a manifest don't "
            "see deletion vectors: set one of them only",
            condition="DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
            parameters={"table": table},
        )


def check(snapshot: "Snapshot") -> None:
    """UnsupportedFeatureError for a table that a reader of plain Parquet files would misread."""
    vectors = snapshot.files.column("deletionVector")
    if vectors.null_count < len(vectors):
        raise UnsupportedFeatureError(
            f"{snapshot.table} has deletion vectors, which readers of a symlink manifest don't see: they would show "
            "deleted rows. Rewrite the files first (REORG), with delta.enableDeletionVectors unset",
            ("deletionVectors",),
            condition="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
        )
    if snapshot.mapping.active:
        raise UnsupportedFeatureError(
            f"{snapshot.table} maps its columns (delta.columnMapping.mode): its files have other names for them than "
            "those that readers of a symlink manifest look for",
            ("columnMapping",),
            condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )


class ManifestLayout:
    """Where the manifest of a file of one version of a table lies, as the directory's name below `DIRECTORY`."""

    def __init__(self, snapshot: "Snapshot") -> None:
        self._columns = snapshot.partition_columns
        columns = parse_schema(snapshot.metadata.schema_string)
        self._times = {
            name
            for name in self._columns
            if (f := columns.get(name, case_sensitive=True)) is not None and f.data_type in (TIMESTAMP, TIMESTAMP_NTZ)
        }
        self._known: dict[tuple[str | None, ...], str] = {}

    def of(self, values: Mapping[str, str | None]) -> str:
        """The directory of a file by its partition values; "" in a table with no partition columns."""
        key = tuple(values.get(name) for name in self._columns)
        if key not in self._known:
            texts = {name: self._hive(name, value) for name, value in zip(self._columns, key, strict=True)}
            self._known[key] = paths.partition_directory(self._columns, texts)
        return self._known[key]

    def _hive(self, name: str, value: str | None) -> str | None:
        """A value as Hive spells it: a timestamp with a space and no zone, in UTC."""
        if value is None or name not in self._times:
            return value
        try:
            return timestamp_text(parse_timestamp(value, None))
        except ValueError:
            return value


def contents(snapshot: "Snapshot", only: Collection[str] | None = None) -> dict[str, bytes]:
    """The text of each manifest by its directory: of all partitions, or of `only` those (one with no file is left out).

    The one of a table with no partition columns is there even if it is empty.
    """
    layout = ManifestLayout(snapshot)
    files = snapshot.files
    lines: dict[str, list[str]] = {} if snapshot.partition_columns else {"": []}
    for path, values in zip(files.column("path").to_pylist(), files.column("partitionValues").to_pylist(), strict=True):
        directory = layout.of(dict(values))
        if only is None or directory in only:
            lines.setdefault(directory, []).append(_place(snapshot.table, path))
    return {directory: "".join(f"{line}\n" for line in sorted(found)).encode() for directory, found in lines.items()}


def _place(table: str, path: str) -> str:
    """Where a file lies, as Hadoop prints a path: nothing is encoded."""
    place = paths.absolute(table, path)
    return f"file:{place}" if place.startswith("/") else place


def touched(snapshot: "Snapshot", actions: Iterable[object]) -> set[str] | None:
    """The directories of manifests that a commit changes; `None`: it doesn't tell, so it may be all."""
    layout = ManifestLayout(snapshot)
    found: set[str] = set()
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            if action.partition_values is None or action.partition_values.keys() != set(snapshot.partition_columns):
                return None
            found.add(layout.of(action.partition_values))
    return found


def uri(table: str, directory: str) -> str:
    """Where the manifest of a directory lies."""
    name = f"{DIRECTORY}/{directory}/{_NAME}" if directory else f"{DIRECTORY}/{_NAME}"
    return paths.absolute_uri(table, paths.encode(name))
