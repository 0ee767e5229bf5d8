"""SHALLOW CLONE: a new table that references the data files of another table, without copying them."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.log.columns import deletion_vector_of
from ...core.protocol import column_mapping, deletion_vectors, features, paths, properties
from ...core.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
)
from ...core.table import clustering
from ...core.table.snapshot import Snapshot
from ...core.txn import adopted_files
from ...core.txn.adopted_files import adopted_vector
from ...core.txn.file_replacement import FileReplacement, file_replacement
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed, Transaction
from ...engine.storage import external_files
from ...errors import InvalidArgumentError, TableAlreadyExistsError
from ..command.command import PLAIN, Command, CommitOptions, command_scope

_MATERIALISED = "delta.rowTracking.materialized"


@dataclass(frozen=True, slots=True)
class CloneSource:
    """The source of a clone: a version of a table, and the name that the user gave for the table."""

    snapshot: Snapshot
    name: str


def clone(
    spark: SparkSession,
    source: CloneSource,
    target: DeltaLog,
    *,
    replaces: bool = False,
    overrides: Mapping[str, str] | None = None,
    options: CommitOptions = PLAIN,
) -> Committed:
    """Create a table at `target` with the rows, the schema and the properties of `source`.

    The data files stay in the source table: a VACUUM of that table may delete files that the clone needs. With
    `replaces`, the clone may replace an existing table; `overrides` are properties that differ. Raises
    TableAlreadyExistsError, InvalidArgumentError, AppendOnlyTableError, UnsupportedFeatureError and the conflicts.
    """
    then = source.snapshot
    if then.table == target.table:
        raise InvalidArgumentError(
            f"{target.table} can't be cloned onto itself",
            condition="DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
            parameters={"tableName": target.table},
            table=target.table,
        )
    with command_scope(spark, "CLONE", target.table):
        command = Command(spark, target, target.transaction(), options)
        txn, old = command.txn, command.txn.snapshot
        if old is not None and not replaces:
            raise TableAlreadyExistsError(
                f"There is a Delta table at {target.table}. Use replace=True to replace it by the clone.",
                condition="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
                parameters={"tableId": target.table, "tableLocation": target.table},
            )
        txn.read_whole_table()
        own = dict(overrides or {})
        before = None if old is None else old.metadata
        txn.set_metadata(cloned_metadata(then.metadata, before, own), replaces_table=True)
        modes = {
            column_mapping.mode_of(metadata)
            for metadata in (then.metadata, txn.metadata, before)
            if metadata is not None
        }
        if len(modes) > 1:
            raise InvalidArgumentError(
                f"{target.table}: a clone keeps the {column_mapping.MODE} of its source, but the values "
                f"{' and '.join(sorted(modes))} differ (of the source, the target, a given property, or a default of "
                "the session)"
            )
        supported = None if old is None else old.protocol
        protocol = cloned_protocol(then.protocol, supported, txn.metadata, own, target.table)
        if old is None:  # default properties of the session may need more
            protocol = features.protocol_of(features.supported(protocol) | features.enabled_by(txn.metadata))
        if protocol != supported:
            txn.set_protocol(protocol)
        now = target.clock.now_ms()
        large = _in_pieces(spark, then, txn, now)
        added, removed = _files(spark, then, old, target.table) if large is None else ([], [])
        num_removed = len(removed) if large is None else large.num_removed
        if num_removed:
            command.check_removable()
        actions: list[Action] = [*added, *(add.remove(now) for add in removed), *_domains(then, old)]
        metrics = {
            "sourceTableSize": then.size_in_bytes if large is None else large.totals.size_in_bytes,
            "sourceNumOfFiles": then.num_files if large is None else large.totals.num_files,
            "numRemovedFiles": num_removed,
            "numCopiedFiles": 0,
            "removedFilesSize": sum(add.size for add in removed) if large is None else large.removed_bytes,
            "copiedFilesSize": 0,
        }
        parameters = {"source": source.name, "sourceVersion": then.version}
        operation = Operation("CLONE", parameters, metrics, replaces_table=True, names_absent_version=True)
        return command.commit(actions, operation, bulk=large)


def _files(
    spark: SparkSession, source: Snapshot, old: Snapshot | None, target: str
) -> tuple[list[AddFile], list[AddFile]]:
    """The files that the clone adds to the table at `target`, and those that it removes."""
    sources = list(source.add_files())
    files = {_key(add, target): add for add in (adopted(add, source.table) for add in sources)}
    # Paths that are not allowed in the source must not become paths of the clone, and must be readable here.
    external_files.check(spark, source.table, source.version, _paths(sources))
    external_files.check(spark, target, None, _paths(files.values()))
    existing = {} if old is None else {_key(add, target): add for add in old.add_files()}
    added = [add for key, add in files.items() if key not in existing]
    return added, [add for key, add in existing.items() if key not in files]


def _in_pieces(spark: SparkSession, source: Snapshot, txn: Transaction, at_ms: int) -> FileReplacement | None:
    """The files of a large clone; None: source and target are small, or their files are needed as actions.

    `at_ms` is the time at which files of the target are removed.
    """

    def check(files: pa.Table, new: pa.Table) -> None:
        for table, version, rows in ((source.table, source.version, files), (txn.table, None, new)):
            external_files.check_files(spark, table, version, rows)
            vectors = (deletion_vector_of(value) for value in rows.column("deletionVector").drop_null().to_pylist())
            external_files.check(spark, table, version, _vector_paths(vectors))

    return file_replacement(
        source,
        txn.table,
        txn.snapshot,
        txn.protocol,
        txn.metadata,
        converted=lambda files: adopted_files.adopted(files, source.table),
        removed_at=at_ms,
        check=check,
    )


def _paths(adds: Iterable[AddFile]) -> Iterator[str]:
    """The paths of files and of their deletion vectors, URL-encoded as in the log."""
    for add in adds:
        yield add.path
        yield from _vector_paths([add.deletion_vector])


def _vector_paths(vectors: Iterable[DeletionVectorDescriptor | None]) -> Iterator[str]:
    for vector in vectors:
        if vector is not None and vector.storage_type != "i":
            yield deletion_vectors.path_of(vector)


def _key(add: AddFile, table: str) -> FileKey:
    return paths.canonical(add.path, table), add.key[1]


def adopted(add: AddFile, source: str) -> AddFile:
    """A file of the table at `source`, as an action for another table: with absolute paths and without row IDs."""
    return replace(
        add,
        path=paths.absolute_uri(source, add.path),
        deletion_vector=adopted_vector(add.deletion_vector, source),
        base_row_id=None,
        default_row_commit_version=None,
        data_change=True,
    )


def cloned_metadata(source: Metadata, target: Metadata | None, overrides: Mapping[str, str]) -> Metadata:
    """The source's schema and properties, with the ID and name of the target, or a new ID."""
    kept = {key: value for key, value in source.configuration.items() if not key.startswith(_MATERIALISED)}
    if target is not None:
        kept |= {key: value for key, value in target.configuration.items() if key.startswith(_MATERIALISED)}
    return replace(
        source,
        id=str(uuid.uuid4()) if target is None else target.id,
        name=None if target is None else target.name,
        description=None if target is None else target.description,
        configuration={**kept, **overrides},
    )


def cloned_protocol(
    source: Protocol, target: Protocol | None, metadata: Metadata, overrides: Mapping[str, str], table: str
) -> Protocol:
    """The protocol with all features of source and target, and those that properties require."""
    wanted = features.supported(source) | features.requested(overrides)
    if target is not None:
        wanted |= features.supported(target)
    base = source if target is None else target
    if wanted != features.supported(base):
        base = features.protocol_of(wanted)
    stored = replace(metadata, configuration=properties.without_protocol_properties(metadata.configuration))
    return features.required_upgrade(base, stored, table) or base


def _domains(source: Snapshot, target: Snapshot | None) -> list[DomainMetadata]:
    """The clustering columns of the source replace those of the target."""
    new = source.domain_metadata.get(clustering.DOMAIN)
    old = None if target is None else target.domain_metadata.get(clustering.DOMAIN)
    if new is None and old is None:
        return []
    wanted = new or clustering.domain(())
    return [] if wanted == old else [wanted]
