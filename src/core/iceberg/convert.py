"""Brings Iceberg's metadata of a table up to a version of the log: one snapshot for each commit.

The steps only add files; then one new metadata file, whose number no other writer has used, refers to them. A writer
that loses that number starts again from the winner's metadata, which may already have the version.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

from ...errors import ConcurrentWriteException, TablelogError, VersionNotFoundError
from ..protocol.actions import Action, AddFile, Metadata, RemoveFile
from ..table.changed_files import Commit
from ..table.changes import read_commits
from . import metadata as steps
from .avro_files import DamagedAvroError
from .data_files import data_files, location_of
from .manifests import Counts, SnapshotWriter, counts_of, manifests_in
from .storage import MetadataDirectory, metadata_name

if TYPE_CHECKING:
    from ...logstore.base import LogStore
    from ..table.readable_log import ReadableLog
    from ..table.snapshot import Snapshot

_TRIES: Final = 20
_MOST_COMMITS: Final = 100
"""A table that is more commits behind gets only the newest version."""

_ANEW: Final = "%s: Iceberg's metadata %s: it is written anew"

logger = logging.getLogger(__name__)


def convert(
    log: "ReadableLog", store: "LogStore", snapshot: "Snapshot", known: Mapping[int, Sequence[Action]] | None = None
) -> None:
    """Write Iceberg's metadata for a version, and for the versions between it and the newest one that has metadata.

    Args:
        log: The table's log.
        store: The store of the log, which also stores the metadata.
        snapshot: The version.
        known: The actions of commits that the caller has.

    Raises:
        CorruptLogError: The log or the metadata is damaged.
        ConcurrentWriteException: Other writers created the next metadata at each try.
    """
    directory = MetadataDirectory(store, log.table)
    taken = 0
    for _ in range(_TRIES):
        newest, previous = directory.current()
        number = max(newest, taken)  # a number whose writer ended before its file existed is left out
        if previous is not None and previous.table_uuid != steps.uuid_of(snapshot.metadata):
            previous = None  # of a table that was here before
        if previous is not None and steps.version_of(previous) >= snapshot.version:
            return
        conversion = _Conversion(directory, log, snapshot)
        try:
            result, expired, kept = conversion.next_after(previous, newest, known or {})
        except BaseException:
            directory.delete_all(conversion.written)
            raise
        # From here on, an error doesn't tell whether the new metadata exists: its files stay.
        if directory.publish(number + 1, result):
            directory.write_hint(number + 1)
            _remove_expired(directory, expired, kept)
            directory.delete_all([metadata_name(number - steps.MOST_LOGGED)] if number > steps.MOST_LOGGED else [])
            return
        directory.delete_all(conversion.written)
        taken = number + 1
    raise ConcurrentWriteException(f"{log.table}: other writers created Iceberg's metadata at each of {_TRIES} tries")


class _Conversion:
    """One try. `written` are the locations of the files that it created."""

    def __init__(self, directory: MetadataDirectory, log: "ReadableLog", snapshot: "Snapshot") -> None:
        self.written: list[str] = []
        self._directory = directory
        self._log = log
        self._snapshot = snapshot

    def next_after(
        self, previous: TableMetadataV2 | None, number: int, known: Mapping[int, Sequence[Action]]
    ) -> "tuple[TableMetadataV2, list[IcebergSnapshot], IcebergSnapshot | None]":
        """The next metadata without its expired snapshots, these, and the oldest one that stays.

        `number` is that of `previous`. If `previous` is damaged, the next metadata has no history.
        """
        if previous is not None:
            try:
                result = self._after_all(previous, known)
                earlier = {f"{self._directory.location}/{metadata_name(number)}": previous.last_updated_ms}
                return self._without_expired(steps.with_log(result, earlier))
            except (TablelogError, OSError):
                raise
            except Exception as error:  # pyiceberg raises errors of many classes for damaged metadata
                logger.warning(_ANEW, self._log.table, f"is damaged ({type(error).__name__}: {error})")
        return self._without_expired(self._whole(None))

    def _without_expired(
        self, result: TableMetadataV2
    ) -> "tuple[TableMetadataV2, list[IcebergSnapshot], IcebergSnapshot | None]":
        oldest = self._snapshot.timestamp_ms - self._snapshot.properties.log_retention_ms
        return steps.without_snapshots(result, oldest)

    def _after_all(self, previous: TableMetadataV2, known: Mapping[int, Sequence[Action]]) -> TableMetadataV2:
        """The metadata after the commits that it lacks, or with one snapshot of all files if that isn't possible."""
        if previous.current_snapshot() is not None:
            commits = self._commits(steps.version_of(previous), known)
            if commits is not None:
                try:
                    result = previous
                    for commit in commits:
                        result = self._after(result, commit)
                    if self._agrees(result):
                        return result
                    reason = "has other files than the log"
                except FileNotFoundError as error:
                    reason = f"is damaged ({error})"
                logger.warning(_ANEW, self._log.table, reason)
        return self._whole(previous)

    def _commits(self, done: int, known: Mapping[int, Sequence[Action]]) -> list[Commit] | None:
        """The commits after the version `done`; `None` if they can't be applied one by one."""
        newest = self._snapshot.version
        if done < 0 or newest - done > _MOST_COMMITS:
            return None
        if done == newest - 1 and newest in known:
            return [Commit(newest, self._snapshot.timestamp_ms, known[newest])]
        try:
            commits = read_commits(self._log, self._snapshot, done + 1, newest)
        except VersionNotFoundError:
            return None
        # A schema that isn't the newest one would need the protocol of its version.
        return None if any(isinstance(a, Metadata) for each in commits for a in each.actions) else commits

    def _after(self, previous: TableMetadataV2, commit: Commit) -> TableMetadataV2:
        """The metadata with the snapshot of one more commit."""
        adds = [action for action in commit.actions if isinstance(action, AddFile)]
        removed = {location_of(self._log.table, a.path) for a in commit.actions if isinstance(a, RemoveFile)}
        # Without a change of data, an `add` may replace that of the same file, for example to add statistics.
        removed |= {location_of(self._log.table, add.path) for add in adds if not add.data_change}
        return self._with(previous, commit, adds, removed, steps.operation_of(commit.actions))

    def _whole(self, previous: TableMetadataV2 | None) -> TableMetadataV2:
        """The metadata with one snapshot that has all files of the version."""
        base = previous or steps.empty(self._snapshot.metadata, self._directory.table_location)
        commit = Commit(self._snapshot.version, self._snapshot.timestamp_ms, ())
        return self._with(base, commit, self._snapshot.add_files(), None, Operation.OVERWRITE)

    def _with(
        self,
        previous: TableMetadataV2,
        commit: Commit,
        adds: Sequence[AddFile],
        removed: set[str] | None,
        operation: Operation,
    ) -> TableMetadataV2:
        """One more snapshot: without the files `removed` (`None`: without all earlier ones), with the files `adds`."""
        changed = steps.with_table(previous, self._snapshot.metadata, self._snapshot.mapping)
        writer = SnapshotWriter(
            self._directory,
            changed.schema(),
            changed.specs(),
            steps.snapshot_id_of(self._snapshot.metadata, commit.version, previous),
            changed.last_sequence_number + 1,
            self.written,
        )
        parent = previous.current_snapshot()
        # Another partitioning comes with a new content of the table, and the schema may lack the old one's columns.
        anew = parent is None or removed is None or changed.default_spec_id != previous.default_spec_id
        earlier = [] if anew or parent is None else manifests_in(self._directory, parent.manifest_list)
        kept = writer.without(earlier, removed or ())
        files = data_files(self._log.table, self._snapshot.mapping, adds, changed.default_spec_id)
        manifests = [*writer.added(files, changed.default_spec_id), *kept]
        added = Counts(len(files), sum(file.record_count for file in files))
        parent_id = None if parent is None else parent.snapshot_id
        values = {
            "snapshot-id": writer.snapshot_id,
            "parent-snapshot-id": parent_id,
            "sequence-number": writer.sequence_number,
            "timestamp-ms": max(commit.timestamp_ms, previous.last_updated_ms + 1),
            "manifest-list": writer.write_list(manifests, parent_id),
            "summary": steps.summary_of(operation, commit.version, manifests, counts_of(earlier), added),
            "schema-id": changed.current_schema_id,
        }
        snapshot = IcebergSnapshot.model_validate(values)
        return steps.with_snapshot(changed, snapshot, commit.version)

    def _agrees(self, result: TableMetadataV2) -> bool:
        """Whether the newest snapshot has as many files as the version, if that is known without a request."""
        totals = self._snapshot.totals()
        current = result.current_snapshot()
        if totals is None or current is None or current.summary is None:
            return True
        return str(totals.num_files) == current.summary["total-data-files"]


def _remove_expired(
    directory: MetadataDirectory, expired: Sequence[IcebergSnapshot], oldest: IcebergSnapshot | None
) -> None:
    """Delete the files of expired snapshots that no other snapshot has.

    A manifest is in consecutive snapshots, so one that the oldest kept snapshot doesn't have is in no later one. Where
    a manifest list can't be read, the files stay.
    """
    needed = None if oldest is None else _manifest_paths(directory, oldest)
    if needed is None:
        return
    for snapshot in expired:
        names = _manifest_paths(directory, snapshot)
        if names is not None:
            directory.delete_all([*(names - needed), snapshot.manifest_list])


def _manifest_paths(directory: MetadataDirectory, snapshot: IcebergSnapshot) -> set[str] | None:
    """The locations of a snapshot's manifests; None if its list is missing or damaged."""
    try:
        return {manifest.manifest_path for manifest in manifests_in(directory, snapshot.manifest_list)}
    except (FileNotFoundError, DamagedAvroError):
        return None
