"""Whether a transaction may still be committed after another one won: the matrix of conflicts.

`check` is a pure function of what I read, what I want to write, one commit that came first, and the isolation level:
it gives back what I want to write, rebased onto that commit, or raises the typed conflict. It is called for each
winner in the order of versions, and each call sees the result of the one before.

The checks in their order, and the levels at which they hold (S: Serializable, W: WriteSerializable, SI:
SnapshotIsolation):

0. I drop a feature: any winner is a conflict, for what was found clean before may not be so any more.
1. The winner changed the protocol: a conflict if I write one too, if a feature was dropped, or if one was added that
   tells how files are written and I add some (all levels). Whether the new protocol can be written at all is for the
   caller to check (`features`).
2. The winner changed the metadata: a conflict (all levels), unless I write none and the change is one under which what
   I wrote is right too (`metadata_changes`: what it enables is then in force for me as well).
3. The same metadata domain: a conflict (all levels). Row ids are no such one: each attempt gives them out anew.
4. The winner moved a `txn` of an application that I read, or that I write: a conflict (all levels). That a blind
   write of a `txn` counts is stricter than Delta: else two streams of one name would each believe to be alone.
5. The winner added a file that I would have read: a conflict at S; at W only if it was no blind append, or if I
   change the metadata; never at SI, and never if I read nothing.
6. The winner removed a file that I read, or any file if I read the whole table: a conflict (all levels).
7. The winner removed a file that I remove: a conflict (all levels).

A commit that only says again what files there are, to say more of each (a backfill of row ids), leaves out the files
that a winner touched; and one that comes after it takes over what it said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    MetadataChangedException,
    ProtocolChangedException,
)
from ..protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from ..protocol.column_mapping import ColumnMapping
from ..protocol.features import BINDS_FILES, supported
from ..protocol.paths import canonical, canonical_column
from ..protocol.row_tracking import BACKFILL
from ..protocol.row_tracking import DOMAIN as ROW_TRACKING_DOMAIN
from ..skipping import predicates
from ..skipping.predicates import Predicate
from . import metadata_changes

if TYPE_CHECKING:
    import pyarrow as pa


class IsolationLevel(Enum):
    """Values as they stand in `delta.isolationLevel` and in `commitInfo`."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def level_for(actions: Iterable[Action], table_level: IsolationLevel, *, changes_data: bool) -> IsolationLevel:
    """The level at which `actions` are checked: snapshot isolation for a commit that changes no data.

    `table_level` is the table's property; `changes_data` is `Operation.changes_data`.
    """
    if table_level is IsolationLevel.WRITE_SERIALIZABLE and changes_data:
        return table_level
    for action in actions:
        if isinstance(action, AddFile | RemoveFile | AddCDCFile):
            if action.data_change:
                return table_level
        elif not (isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN):
            return table_level
    return IsolationLevel.SNAPSHOT


def only_adds(actions: Iterable[Action]) -> bool:
    """Whether no file action is anything but an `add`: with nothing read, that is a blind append."""
    return not any(isinstance(action, RemoveFile | AddCDCFile) for action in actions)


@dataclass(frozen=True, slots=True)
class ReadPredicate:
    """A predicate by which files were chosen, and the time zone of partition timestamps that name none."""

    predicate: Predicate
    time_zone: str


@dataclass(frozen=True)
class ReadSet:
    """What a transaction has read.

    `predicates` are those by which files were chosen; `files` are tables with the column `path` and `paths` single
    paths of the files seen (both as the log spells them); `app_ids` the applications whose `txn` was looked up.
    """

    predicates: tuple[ReadPredicate, ...] = ()
    files: tuple["pa.Table", ...] = ()
    paths: frozenset[str] = frozenset()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def depends_on_files(self) -> bool:
        """Whether it matters to the transaction which files the table has."""
        return self.whole_table or bool(self.predicates or self.files or self.paths)

    def first_read(self, removed: Mapping[str, RemoveFile], table: str) -> RemoveFile | None:
        """The first file read that is among `removed`, whose keys are canonical paths."""
        for path in self.paths:
            if (hit := removed.get(canonical(path, table))) is not None:
                return hit
        if self.files:
            import pyarrow as pa
            import pyarrow.compute as pc

            wanted = pa.array(list(removed), pa.string())
            for read in self.files:
                column = canonical_column(read.column("path"), table)
                found = column.filter(pc.is_in(column.cast(pa.string()), value_set=wanted))
                if len(found):
                    return removed[found[0].as_py()]
        return None


@dataclass(frozen=True)
class Staged:
    """What a transaction wants to commit, without its `commitInfo`.

    `metadata` and `protocol` are those that will be in force; `read_metadata` is that of the snapshot that was read
    (`None` for a new table), by whose partition columns read predicates are understood. `drops_features`: the protocol
    is lowered. `restates_files` as in `Operation`.
    """

    table: str
    actions: tuple[Action, ...]
    metadata: Metadata
    protocol: Protocol
    read_metadata: Metadata | None
    read_version: int = -1
    blind_append: bool = False
    drops_features: bool = False
    restates_files: bool = False

    @cached_property
    def writes_metadata(self) -> bool:
        return any(isinstance(action, Metadata) for action in self.actions)

    @cached_property
    def writes_protocol(self) -> bool:
        return any(isinstance(action, Protocol) for action in self.actions)

    @cached_property
    def domains(self) -> frozenset[str]:
        return frozenset(action.domain for action in self.actions if isinstance(action, DomainMetadata))

    @cached_property
    def app_ids(self) -> frozenset[str]:
        return frozenset(action.app_id for action in self.actions if isinstance(action, SetTransaction))

    @cached_property
    def removed(self) -> frozenset[str]:
        return frozenset(canonical(a.path, self.table) for a in self.actions if isinstance(a, RemoveFile))


@dataclass(frozen=True)
class Winner:
    """A commit that came first: its actions, and the same sorted by what the checks ask of them.

    `file_time_ms` is when its file was written, in milliseconds.
    """

    version: int
    actions: tuple[Action, ...] = ()
    info: CommitInfo | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    file_time_ms: int = 0

    @classmethod
    def of(cls, version: int, actions: Sequence[Action], file_time_ms: int = 0) -> "Winner":
        info: CommitInfo | None = None
        metadata: Metadata | None = None
        protocol: Protocol | None = None
        adds: list[AddFile] = []
        removes: list[RemoveFile] = []
        app_ids: set[str] = set()
        domains: set[str] = set()
        for action in actions:
            if isinstance(action, AddFile):
                adds.append(action)
            elif isinstance(action, RemoveFile):
                removes.append(action)
            elif isinstance(action, CommitInfo):
                info = action
            elif isinstance(action, SetTransaction):
                app_ids.add(action.app_id)
            elif isinstance(action, Metadata):
                metadata = action
            elif isinstance(action, Protocol):
                protocol = action
            elif isinstance(action, DomainMetadata):
                domains.add(action.domain)
        return cls(
            version,
            tuple(actions),
            info,
            metadata,
            protocol,
            tuple(adds),
            tuple(removes),
            frozenset(app_ids),
            frozenset(domains),
            file_time_ms,
        )

    def time(self) -> int:
        """When it was committed, in milliseconds: by itself, else by its file."""
        told = None if self.info is None else self.info.in_commit_timestamp
        return self.file_time_ms if told is None else told

    @property
    def backfills(self) -> bool:
        """Whether it only gives row ids to files that were there."""
        return self.info is not None and self.info.operation == BACKFILL

    @property
    def blind_append(self) -> bool:
        """Whether it says of itself that it read nothing; a writer that doesn't say so may have read anything."""
        return self.info is not None and self.info.is_blind_append is True

    @property
    def described(self) -> str:
        operation = self.info.operation if self.info is not None else None
        return f"version {self.version}" + (f" ({operation})" if operation else "")


def check(reads: ReadSet, staged: Staged, winner: Winner, level: IsolationLevel) -> Staged:
    """`staged` as if its transaction had begun after `winner`; the typed conflict where that can't be.

    Raises a `DeltaConcurrentModificationException`. See the module for the checks and their order.
    """
    if staged.drops_features:
        raise ProtocolChangedException(_message(staged, winner, "came before this one, which drops a feature"))
    rebased = _check_protocol(staged, winner)
    rebased = _check_metadata(rebased, winner)
    if shared := (staged.domains & winner.domains) - {ROW_TRACKING_DOMAIN}:
        raise ConcurrentTransactionException(
            _message(staged, winner, f"wrote the metadata domain {min(shared)!r}, which this transaction writes too")
        )
    if moved := (reads.app_ids | staged.app_ids) & winner.app_ids:
        raise ConcurrentTransactionException(
            _message(
                staged,
                winner,
                f"advanced the transaction identifier of the application {min(moved)!r}, on which this one depends: "
                "two writers use one application id",
            )
        )
    if staged.restates_files:
        return _without_touched(rebased, winner)
    if winner.backfills:
        return _with_row_ids(rebased, winner)
    if winner.adds:
        _check_added(reads, staged, winner, level)
    if winner.removes:
        _check_removed(reads, staged, winner)
    return rebased


def _without_touched(staged: Staged, winner: Winner) -> Staged:
    paths = [add.path for add in winner.adds] + [remove.path for remove in winner.removes]
    touched = {canonical(path, staged.table) for path in paths}
    kept = tuple(
        a for a in staged.actions if not isinstance(a, AddFile) or canonical(a.path, staged.table) not in touched
    )
    return staged if len(kept) == len(staged.actions) else replace(staged, actions=kept)


def _with_row_ids(staged: Staged, winner: Winner) -> Staged:
    """What I add again or remove bears the row ids that it has got by now."""
    told = {canonical(add.path, staged.table): add for add in winner.adds}

    def updated(action: Action) -> Action:
        if not isinstance(action, AddFile | RemoveFile):
            return action
        known = told.get(canonical(action.path, staged.table))
        if known is None:
            return action
        return replace(
            action, base_row_id=known.base_row_id, default_row_commit_version=known.default_row_commit_version
        )

    return replace(staged, actions=tuple(updated(action) for action in staged.actions))


def _check_protocol(staged: Staged, winner: Winner) -> Staged:
    if winner.protocol is None:
        return staged
    if staged.read_version < 0 and winner.version == 0:
        raise ProtocolChangedException(_message(staged, winner, "created the table, as this transaction wants to"))
    if staged.writes_protocol:
        raise ProtocolChangedException(
            _message(staged, winner, "changed the table's protocol, as this transaction does")
        )
    before, after = supported(staged.protocol), supported(winner.protocol)
    if dropped := before - after:
        raise ProtocolChangedException(_message(staged, winner, f"dropped the feature {min(dropped)}"))
    if (binding := (after - before) & BINDS_FILES) and any(isinstance(action, AddFile) for action in staged.actions):
        raise ProtocolChangedException(
            _message(staged, winner, f"added the feature {min(binding)}, by which the files would have been written")
        )
    return replace(staged, protocol=winner.protocol)


def _check_metadata(staged: Staged, winner: Winner) -> Staged:
    if winner.metadata is None:
        return staged
    if not staged.writes_metadata and (
        metadata_changes.says_identity_only(winner.info)
        or metadata_changes.may_pass(staged.metadata, winner.metadata, staged.protocol)
    ):
        return replace(staged, metadata=winner.metadata)
    raise MetadataChangedException(
        _message(staged, winner, "changed the table's metadata: schema, partitioning, properties or description")
    )


def _check_added(reads: ReadSet, staged: Staged, winner: Winner, level: IsolationLevel) -> None:
    if level is IsolationLevel.SNAPSHOT or staged.blind_append:
        return
    if level is IsolationLevel.WRITE_SERIALIZABLE and winner.blind_append and not staged.writes_metadata:
        return
    partitioned = staged.read_metadata is not None and bool(staged.read_metadata.partition_columns)
    hit: AddFile | None
    if reads.whole_table or (reads.predicates and not partitioned):
        hit = winner.adds[0]
    else:
        hit = _first_match(winner.adds, reads.predicates, staged)
    if hit is not None:
        where = _partition(hit.partition_values)
        raise ConcurrentAppendException(
            _message(staged, winner, f"added files {f'in the partition {where} ' if where else ''}that this one read")
            + ("" if where else " Partitioning the table, and conditions on its columns, keep writers apart.")
        )


def _first_match(adds: Sequence[AddFile], by: tuple[ReadPredicate, ...], staged: Staged) -> AddFile | None:
    """The first of `adds` whose partition may satisfy one of the predicates; their stats are not looked at."""
    if staged.read_metadata is None or not by:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..skipping.pruning import may_match

    files = pa.table(
        {
            "path": pa.array([add.path for add in adds], pa.string()),
            "partitionValues": pa.array(
                [list(add.partition_values.items()) for add in adds], pa.map_(pa.string(), pa.string())
            ),
        }
    )
    mapping = ColumnMapping.of(staged.protocol, staged.read_metadata)
    names = mapping.physical_partition_columns
    for read in by:
        part, _ = predicates.split(read.predicate, mapping.partition_columns)
        part = predicates.with_columns(part, mapping.to_physical)
        kept = may_match(files, part, mapping.physical, names, use_stats=False, time_zone=read.time_zone)
        first: int = pc.index(kept, pa.scalar(True)).as_py()
        if first >= 0:
            return adds[first]
    return None


def _check_removed(reads: ReadSet, staged: Staged, winner: Winner) -> None:
    removed = {canonical(remove.path, staged.table): remove for remove in winner.removes}
    hit = winner.removes[0] if reads.whole_table else reads.first_read(removed, staged.table)
    if hit is not None:
        raise ConcurrentDeleteReadException(
            _message(staged, winner, f"removed {_file(hit)}, which this transaction read")
        )
    for path in staged.removed:
        if path in removed:
            raise ConcurrentDeleteDeleteException(
                _message(staged, winner, f"removed {_file(removed[path])}, which this transaction removes too")
            )


def _partition(values: Mapping[str, str | None]) -> str:
    return f"[{', '.join(f'{name}={value}' for name, value in values.items())}]" if values else ""


def _file(remove: RemoveFile) -> str:
    where = _partition(remove.partition_values or {})
    return f"the file {remove.path}" + (f" of the partition {where}" if where else "")


def _message(staged: Staged, winner: Winner, what: str) -> str:
    return (
        f"nothing was committed to {staged.table}: {winner.described}, which came after version "
        f"{staged.read_version} that this transaction read, {what}. Run the operation again on the new snapshot."
    )
