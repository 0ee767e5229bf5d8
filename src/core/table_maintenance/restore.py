"""RESTORE without Spark: what a commit must change so that an older version is the newest one again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import MissingDataFileError
from ..protocol import deletion_vectors, features, schema
from ..protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol
from ..protocol.schema import IDENTITY_PREFIX, StructType
from ..table import clustering
from ..table.difference import differing_files
from ..txn.operation import Operation
from .table_files import TableFiles

if TYPE_CHECKING:
    from ..log.replay import Totals
    from ..table.snapshot import Snapshot
    from ..txn.transaction import Transaction

_MOST_SHOWN = 100
_HIGH_WATER_MARK = f"{IDENTITY_PREFIX}highWaterMark"
_STEP = f"{IDENTITY_PREFIX}step"


@dataclass(frozen=True, slots=True)
class Restoration:
    """The change from one version back to an older one. `metadata` and `protocol` are `None` if they don't change."""

    added: tuple[AddFile, ...]
    removed: tuple[AddFile, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    domains: tuple[DomainMetadata, ...]
    metrics: Mapping[str, int]

    @property
    def needed(self) -> list[str]:
        """The paths in the log of the files that must exist."""
        vectors = (add.deletion_vector for add in self.added)
        places = {deletion_vectors.path_of(one) for one in vectors if one is not None and one.storage_type != "i"}
        return [*(add.path for add in self.added), *sorted(places)]

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
        return Operation("RESTORE", parameters, self.metrics, replaces_table=True, lowers_protocol=downgrade)


def restoration(then: "Snapshot", now: "Snapshot", *, downgrade: bool, totals: "Totals | None" = None) -> Restoration:
    """The change from `now` back to `then`.

    Args:
        then: The version to restore. It and `now` may lack files that are the same in both.
        now: The newest version.
        downgrade: Whether the protocol may go back too.
        totals: The totals of the version to restore; `None`: of `then`.

    Returns:
        The change, with the metrics by Delta's names.
    """
    back, gone = differing_files(then, now)
    added = tuple(replace(add, data_change=True) for add in then.add_files(back))
    removed = tuple(now.add_files(gone))
    metadata = restored_metadata(then.metadata, now.metadata)
    protocol = restored_protocol(then.protocol, now.protocol, downgrade=downgrade)
    metrics = {
        "numRestoredFiles": len(added),
        "restoredFilesSize": sum(add.size for add in added),
        "numRemovedFiles": len(removed),
        "removedFilesSize": sum(add.size for add in removed),
        "numOfFilesAfterRestore": then.num_files if totals is None else totals.num_files,
        "tableSizeAfterRestore": then.size_in_bytes if totals is None else totals.size_in_bytes,
    }
    return Restoration(
        added,
        removed,
        None if metadata == now.metadata else metadata,
        None if protocol == now.protocol else protocol,
        tuple(_domains(then, now)),
        metrics,
    )


def check_there(table: str, files: TableFiles, needed: list[str], version: int, advice: str) -> None:
    """Raise MissingDataFileError if files of the version don't exist; `advice` says what else to do."""
    missing = files.absent(needed)
    if missing:
        more = f" and {len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""
        raise MissingDataFileError(
            f"{table} can't be restored to version {version}: {len(missing)} of its files no longer exist, removed "
            f"by VACUUM or by hand: {', '.join(missing[:_MOST_SHOWN])}{more}. Restore a later version{advice}",
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
    for f in then.fields:
        newer = now.get(f.name, case_sensitive=True)
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
