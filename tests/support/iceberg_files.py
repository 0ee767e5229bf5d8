"""What the Iceberg metadata of a table in a store says: the files of each snapshot, read by pyiceberg."""

from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.snapshots import Snapshot

from tablelog.core.deltalog import DeltaLog
from tablelog.core.iceberg.data_files import location_of
from tablelog.core.iceberg.metadata import VERSION
from tablelog.core.iceberg.storage import MetadataDirectory


def metadata_of(log: DeltaLog) -> TableMetadataV2:
    _, metadata = MetadataDirectory(log.store, log.table).current()
    assert metadata is not None
    return metadata


def snapshots_of(log: DeltaLog) -> dict[int, Snapshot]:
    """The snapshots by version of the log."""
    return {int(str(s.summary[VERSION])): s for s in metadata_of(log).snapshots if s.summary is not None}


def manifests_of(log: DeltaLog, snapshot: Snapshot) -> list[ManifestFile]:
    return snapshot.manifests(MetadataDirectory(log.store, log.table))


def files_of(log: DeltaLog, snapshot: Snapshot) -> list[DataFile]:
    directory = MetadataDirectory(log.store, log.table)
    return [e.data_file for m in manifests_of(log, snapshot) for e in m.fetch_manifest_entry(directory)]


def locations_of(log: DeltaLog, version: int) -> list[str]:
    """The files of a version by its log, as Iceberg has them."""
    return sorted(location_of(log.table, path) for path in log.snapshot(version).files.column("path").to_pylist())
