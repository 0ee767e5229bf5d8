"""The manifests of one version after another: added files get a new manifest, removed files a rewritten one.

A manifest that no commit changes is shared by all versions that have it.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from . import avro_files
from .storage import MetadataDirectory

MOST_ENTRIES: Final = 5_000
"""The number of files in a manifest: removing a file writes its manifest again, which takes some 0.3 ms for each."""

MOST_MANIFESTS: Final = 100
"""Manifests with fewer files than `MOST_ENTRIES` are merged when there are more than this, as in Iceberg's writers."""

_CODEC: Final = "deflate"


@dataclass(frozen=True, slots=True)
class Counts:
    """The files and rows of a version, from its manifests."""

    files: int
    rows: int


def counts_of(manifests: Sequence[ManifestFile]) -> Counts:
    """The live files and rows of these manifests."""
    return Counts(
        sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in manifests),
        sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in manifests),
    )


@dataclass(slots=True)
class SnapshotWriter:
    """Writes the manifests and the manifest list of one snapshot. `written` are the locations of its new files."""

    directory: MetadataDirectory
    schema: Schema
    specs: Mapping[int, PartitionSpec]
    snapshot_id: int
    sequence_number: int
    written: list[str] = field(default_factory=list)
    _token: str = field(default_factory=lambda: str(uuid.uuid4()))

    def added(self, files: Sequence[DataFile], spec_id: int) -> list[ManifestFile]:
        """New manifests with these files."""
        entries = [
            ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=file)
            for file in files
        ]
        return self._in_pieces(entries, spec_id)

    def without(self, manifests: Sequence[ManifestFile], removed: Collection[str]) -> list[ManifestFile]:
        """The manifests without the files at these locations, and merged if there are too many.

        Otherwise only manifests that contain one of the files are written again.
        """
        merging = sum(map(_is_small, manifests)) > MOST_MANIFESTS
        waiting = set(removed)
        result: list[ManifestFile] = []
        merged: dict[int, list[ManifestEntry]] = {}
        for manifest in manifests:  # the newest ones come first: young files are removed more often than old ones
            small = merging and _is_small(manifest)
            entries = self._entries(manifest) if waiting or small else []
            gone = {entry.data_file.file_path for entry in entries} & waiting
            if not (gone or small):
                result.append(manifest)
                continue
            waiting -= gone
            kept = [self._kept_or_deleted(entry, gone) for entry in entries]
            if small:
                merged.setdefault(manifest.partition_spec_id, []).extend(kept)
            else:
                result += self._in_pieces(kept, manifest.partition_spec_id)
        for spec_id, entries in merged.items():
            result += self._in_pieces(entries, spec_id)
        return result

    def _kept_or_deleted(self, entry: ManifestEntry, gone: Collection[str]) -> ManifestEntry:
        deleted = entry.data_file.file_path in gone
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if deleted else ManifestEntryStatus.EXISTING,
            snapshot_id=self.snapshot_id if deleted else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def write_list(self, manifests: Sequence[ManifestFile], parent: int | None) -> str:
        """Write the manifest list, without manifests that have no file any more; return its location."""
        location = f"{self.directory.location}/snap-{self.snapshot_id}-{self._token}.avro"
        output = self.directory.new_output(location)
        with write_manifest_list(2, output, self.snapshot_id, parent, self.sequence_number, _CODEC) as writer:
            if manifests:
                writer.add_manifests(list(manifests))
        self.written.append(location)
        return location

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        entries = avro_files.live_entries(self.directory.read(manifest.manifest_path), manifest)
        if len(entries) != counts_of([manifest]).files:
            raise avro_files.DamagedAvroError(f"{manifest.manifest_path} hasn't as many files as its list says")
        return entries

    def _in_pieces(self, entries: Sequence[ManifestEntry], spec_id: int) -> list[ManifestFile]:
        pieces = [entries[i : i + MOST_ENTRIES] for i in range(0, len(entries), MOST_ENTRIES)]
        return [self._write(piece, spec_id) for piece in pieces]

    def _write(self, entries: Sequence[ManifestEntry], spec_id: int) -> ManifestFile:
        location = f"{self.directory.location}/{self._token}-m{len(self.written)}.avro"
        output = self.directory.new_output(location)
        with write_manifest(2, self.specs[spec_id], self.schema, output, self.snapshot_id, _CODEC) as writer:
            for entry in entries:
                writer.add_entry(entry)
        self.written.append(location)
        return writer.to_manifest_file()


def _is_small(manifest: ManifestFile) -> bool:
    return counts_of([manifest]).files < MOST_ENTRIES


def manifests_in(directory: MetadataDirectory, manifest_list: str) -> list[ManifestFile]:
    """The manifests in a manifest list that have a live file."""
    manifests = avro_files.manifest_list(directory.read(manifest_list))
    return [manifest for manifest in manifests if counts_of([manifest]).files]
