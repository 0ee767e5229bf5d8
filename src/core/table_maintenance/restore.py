"""RESTORE without Spark: what a commit must change so that an older version is the newest one again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import MissingDataFileError
from ...progress import stage
from ..protocol import column_mapping, deletion_vectors, features, schema
from ..protocol.actions import Action, AddFile, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol
from ..protocol.schema import IDENTITY_PREFIX, StructType
from ..table import clustering
from ..table.difference import differing_files
from ..txn.file_replacement import FileReplacement, file_replacement
from ..txn.operation import Operation
from .table_files import TableFiles

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log.replay import Totals
    from ..table.snapshot import Snapshot
    from ..txn.transaction import Transaction

_MOST_SHOWN = 100
_MOST_COUNTED = 100_000
"""After this number of missing files, no more are looked for."""
_AT_ONCE = 1_000
"""The files between two reports of the progress."""
_CHANGED = ("numRestoredFiles", "restoredFilesSize", "numRemovedFiles", "removedFilesSize")
_HIGH_WATER_MARK = f"{IDENTITY_PREFIX}highWaterMark"
_STEP = f"{IDENTITY_PREFIX}step"


@dataclass(frozen=True, slots=True)
class Restoration:
    """The change from one version back to an older one. `metadata` and `protocol` are `None` if they don't change.

    The files of a large table are in `bulk`, not in `added` and `removed`.
    """

    added: tuple[AddFile, ...]
    removed: tuple[AddFile, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    domains: tuple[DomainMetadata, ...]
    metrics: Mapping[str, int]
    bulk: FileReplacement | None = None

    @property
    def removes_files(self) -> bool:
        """Whether files are removed."""
        return bool(self.removed) if self.bulk is None else self.bulk.num_removed > 0

    def needed(self) -> Iterator[list[str]]:
        """The paths in the log of the files that must exist, in pieces."""
        if self.bulk is None:
            yield _needed([add.path for add in self.added], (add.deletion_vector for add in self.added))
            return
        from ..log.columns import deletion_vector_of

        for piece in self.bulk.added_pieces(with_stats=False):
            vectors = piece.column("deletionVector").drop_null().to_pylist()
            yield _needed(piece.column("path").to_pylist(), map(deletion_vector_of, vectors))

    def actions(self, at_ms: int) -> list[Action]:
        """The actions of the commit, beside metadata and protocol; `at_ms` is the time of removal."""
        return [*self.added, *(add.remove(at_ms) for add in self.removed), *self.domains]

    def stage(self, transaction: "Transaction") -> None:
        """Stage the metadata and the protocol."""
        if self.metadata is not None:
            transaction.set_metadata(self.metadata, replaces_table=True)
        if self.protocol is not None:
            transaction.set_protocol(self.protocol)

    def operation(self, version: int | None, timestamp: str | None, *, downgrade: bool) -> Operation:
        """The operation for the history; one of `version` and `timestamp` is the user's."""
        parameters = {"version": version, "timestamp": timestamp}
        return Operation(
            "RESTORE", parameters, self.metrics, replaces_table=True, lowers_protocol=downgrade, readds_files=True
        )


def _needed(files: list[str], vectors: Iterable[DeletionVectorDescriptor | None]) -> list[str]:
    places = {deletion_vectors.path_of(one) for one in vectors if one is not None and one.storage_type != "i"}
    return [*files, *sorted(places)]


def restored_in_pieces(then: "Snapshot", now: "Snapshot", at_ms: int, *, downgrade: bool) -> FileReplacement | None:
    """The files of `then` in place of those of `now`, for large tables; see `file_replacement`.

    `at_ms` is the time of removal.
    """
    metadata = restored_metadata(then.metadata, now.metadata)
    protocol = restored_protocol(then.protocol, now.protocol, downgrade=downgrade)
    return file_replacement(then, now.table, now, protocol, metadata, converted=_as_new_data, removed_at=at_ms)


def _as_new_data(files: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    changed = pa.repeat(pa.scalar(True), files.num_rows)
    return files.set_column(files.column_names.index("dataChange"), "dataChange", changed)


def restoration(
    then: "Snapshot",
    now: "Snapshot",
    *,
    downgrade: bool,
    totals: "Totals | None" = None,
    bulk: FileReplacement | None = None,
) -> Restoration:
    """The change from `now` back to `then`.

    Args:
        then: The version to restore. It and `now` may lack files that are the same in both.
        now: The newest version.
        downgrade: Whether the protocol may go back too.
        totals: The totals of the version to restore; `None`: of `then`.
        bulk: The change of the files, if they are too many for memory.

    Returns:
        The change, with the metrics by Delta's names.
    """
    added: Sequence[AddFile] = ()
    removed: Sequence[AddFile] = ()
    if bulk is None:
        back, gone = differing_files(then, now)
        added = [replace(add, data_change=True) for add in then.add_files(back)]
        removed = now.add_files(gone)
        counts = [len(added), sum(add.size for add in added), len(removed), sum(add.size for add in removed)]
    else:
        totals = bulk.totals
        counts = [bulk.num_added, bulk.added_bytes, bulk.num_removed, bulk.removed_bytes]
    metadata = restored_metadata(then.metadata, now.metadata)
    protocol = restored_protocol(then.protocol, now.protocol, downgrade=downgrade)
    metrics = {
        **dict(zip(_CHANGED, counts, strict=True)),
        "numOfFilesAfterRestore": then.num_files if totals is None else totals.num_files,
        "tableSizeAfterRestore": then.size_in_bytes if totals is None else totals.size_in_bytes,
    }
    return Restoration(
        tuple(added),
        tuple(removed),
        None if metadata == now.metadata else metadata,
        None if protocol == now.protocol else protocol,
        tuple(_domains(then, now)),
        metrics,
        bulk,
    )


def _parts(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _AT_ONCE):
        yield paths[start : start + _AT_ONCE]


def check_there(
    table: str,
    files: TableFiles,
    change: Restoration,
    version: int,
    check_allowed: Callable[[list[str]], None],
    advice: str = "",
) -> None:
    """Raise MissingDataFileError if files that the change adds again don't exist; `advice` says what else to do.

    `check_allowed` gets their paths in the log, in pieces, and refuses those outside of the table.
    """
    missing: list[str] = []
    done, total = 0, change.metrics["numRestoredFiles"]
    for piece in change.needed():
        check_allowed(piece)
        for part in _parts(piece):
            stage("looking for files to restore", min(done, total), total)
            missing += files.absent(part)
            done += len(part)
        if len(missing) >= _MOST_COUNTED:
            break
    stage("looking for files to restore", min(done, total), total)
    missing = list(dict.fromkeys(missing))  # files of two pieces may share a file of deletion vectors
    if missing:
        least = "at least " if len(missing) >= _MOST_COUNTED else ""
        more = f" and {least}{len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""
        raise MissingDataFileError(
            f"{table} can't be restored to version {version}: {least}{len(missing)} of its files no longer exist, "
            f"removed by VACUUM or by hand: {', '.join(missing[:_MOST_SHOWN])}{more}. Restore a later version{advice}",
            version=version,
            path=missing[0],
        )


def restored_metadata(then: Metadata, now: Metadata) -> Metadata:
    """The metadata of the older version, but with the newer high-water marks of identity columns."""
    marks = _later_marks(schema.parse_schema(then.schema_string), schema.parse_schema(now.schema_string))
    return then if marks is None else replace(then, schema_string=schema.to_json(marks))


def _later_marks(then: StructType, now: StructType) -> StructType | None:
    """The schema `then` with the high-water marks of `now` where these are further on; `None` if none is."""
    changed = False
    fields = []
    columns = {column_mapping.physical_name(f): f for f in now.fields}  # a renamed column is the same one
    for f in then.fields:
        newer = columns.get(column_mapping.physical_name(f))
        mark = None if newer is None else newer.metadata.get(_HIGH_WATER_MARK)
        if mark is not None and _STEP in f.metadata:
            known = f.metadata.get(_HIGH_WATER_MARK)
            further = max if int(f.metadata[_STEP]) > 0 else min
            if known is None or further(int(known), int(mark)) != int(known):
                f = replace(f, metadata={**f.metadata, _HIGH_WATER_MARK: mark})
                changed = True
        fields.append(f)
    return StructType(tuple(fields)) if changed else None


def restored_protocol(then: Protocol, now: Protocol, *, downgrade: bool) -> Protocol:
    """The features of both versions, unless a downgrade is allowed: then the protocol of the older version."""
    if downgrade:
        return then
    wanted = features.supported(then) | features.supported(now)
    return now if wanted == features.supported(now) else features.protocol_of(wanted)


def _domains(then: "Snapshot", now: "Snapshot") -> list[DomainMetadata]:
    """The clustering columns of the older version; other domain metadata is kept."""
    old, new = then.domain_metadata.get(clustering.DOMAIN), now.domain_metadata.get(clustering.DOMAIN)
    if new is None and old is None:
        return []
    wanted = old or clustering.domain(())
    return [] if wanted == new else [wanted]
