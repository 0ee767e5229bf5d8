"""Whether a transaction may still be committed after another one was committed first: the conflict matrix.

"I" is the transaction that is checked; a "winner" is a transaction that was committed first. `check` is a pure
function of what I read, what I want to write, one winner, and the isolation level. It returns what I want to write,
rebased onto the winner, or raises the typed conflict. It is called once for each winner, in the order of versions; each
call gets the result of the one before.

The checks in their order, and the levels at which they hold (S: Serializable, W: WriteSerializable, SI:
SnapshotIsolation):

0. I drop a feature: any winner is a conflict, because it may have brought back traces of the feature.
1. The winner changed the protocol: a conflict if I write one too, if a feature was dropped, or if a feature was added
   that decides how files are written and I add files (all levels). The caller checks whether it can write the new
   protocol at all (`features`).
2. The winner changed the metadata: a conflict (all levels), unless I write none and my files are valid under the new
   metadata too (`metadata_changes`; the new metadata then applies to my commit as well).
3. Both write the same metadata domain: a conflict (all levels). The domain of row tracking is an exception: each
   attempt assigns the row ids again.
4. The winner set the `txn` of an application that I read, or that I write: a conflict (all levels). Delta is less
   strict: it allows a `txn` that I write without reading it. Then two streams with the same application id would not
   notice each other.
5. The winner added a file that I would have read: a conflict at S; at W only if the winner was no blind append, or if I
   change the metadata; never at SI, and never if I read nothing.
6. The winner removed a file that I read, or any file if I read the whole table: a conflict (all levels).
7. The winner removed a file that I remove: a conflict (all levels).

A backfill of row ids adds existing files again, with row ids. If I am a backfill, I leave out the files that a winner
added or removed. If the winner is a backfill, I take over its row ids.
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
    DeltaConcurrentModificationException,
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
    """The values of `delta.isolationLevel` and of `commitInfo.isolationLevel`."""

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
    """Whether `add` is the only kind of file action: a commit that also read nothing is then a blind append."""
    return not any(isinstance(action, RemoveFile | AddCDCFile) for action in actions)


@dataclass(frozen=True, slots=True)
class ReadPredicate:
    """A predicate that selected the files to read, and the time zone of partition timestamps that name none."""

    predicate: Predicate
    time_zone: str


@dataclass(frozen=True)
class ReadSet:
    """The files and identifiers that a transaction has read.

    Args:
        predicates: The predicates that selected files.
        files: Tables with the column `path`: files that were read, with the paths as they are in the log.
        paths: Single files that were read, with the paths as they are in the log.
        whole_table: The transaction read the whole table.
        app_ids: The applications whose `txn` was read.
    """

    predicates: tuple[ReadPredicate, ...] = ()
    files: tuple["pa.Table", ...] = ()
    paths: frozenset[str] = frozenset()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def depends_on_files(self) -> bool:
        """Whether the result of the transaction depends on which files the table has."""
        return self.whole_table or bool(self.predicates or self.files or self.paths)

    def first_read(self, removed: Mapping[str, RemoveFile], table: str) -> RemoveFile | None:
        """The first file that was read and that is in `removed` (keys: canonical paths); None: there is none."""
        for path in self.paths:
            if (hit := removed.get(canonical(path, table))) is not None:
                return hit
        if self.files:
            import pyarrow as pa
            import pyarrow.compute as pc

            removed_paths = pa.array(list(removed), pa.string())
            for files in self.files:
                column = canonical_column(files.column("path"), table)
                hits = column.filter(pc.is_in(column.cast(pa.string()), value_set=removed_paths))
                if len(hits):
                    return removed[hits[0].as_py()]
        return None


@dataclass(frozen=True)
class Staged:
    """The content of a transaction before its commit, without its `commitInfo`.

    Args:
        table: The canonical root URI of the table.
        actions: The actions to commit.
        metadata: The metadata that holds after the commit.
        protocol: The protocol that holds after the commit.
        read_metadata: The metadata of the snapshot that was read (`None` for a new table). Read predicates refer to
            its partition columns.
        read_version: The version that was read; -1 for a new table.
        blind_append: The transaction only adds files and read none.
        drops_features: The transaction removes features from the protocol.
        restates_files: As in `Operation`.
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
    """A commit that came first: its actions, also sorted by kind for the checks.

    `file_time_ms` is the modification time of its log file, in milliseconds since the epoch.
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
        """The time of the commit in milliseconds: the in-commit timestamp, else the time of the log file."""
        in_commit = None if self.info is None else self.info.in_commit_timestamp
        return self.file_time_ms if in_commit is None else in_commit

    @property
    def backfills(self) -> bool:
        """Whether the commit only assigns row ids to existing files."""
        return self.info is not None and self.info.operation == BACKFILL

    @property
    def blind_append(self) -> bool:
        """Whether its commitInfo says that it read nothing; a writer that doesn't say so may have read anything."""
        return self.info is not None and self.info.is_blind_append is True

    @property
    def described(self) -> str:
        operation = self.info.operation if self.info is not None else None
        return f"version {self.version}" + (f" ({operation})" if operation else "")


def check(reads: ReadSet, staged: Staged, winner: Winner, level: IsolationLevel) -> Staged:
    """Check `staged` against one commit that came first, and rebase it onto that commit.

    See the docstring of the module for the checks and their order.

    Returns:
        `staged` as if its transaction had begun after `winner`.

    Raises:
        DeltaConcurrentModificationException: The transaction can't be committed after `winner`.
    """
    if staged.drops_features:
        raise _conflict(ProtocolChangedException, staged, winner, "came before this one, which drops a feature")
    rebased = _check_protocol(staged, winner)
    rebased = _check_metadata(rebased, winner)
    if shared := (staged.domains & winner.domains) - {ROW_TRACKING_DOMAIN}:
        raise _conflict(
            ConcurrentTransactionException,
            staged,
            winner,
            f"wrote the metadata domain {min(shared)!r}, which this transaction writes too",
        )
    if moved := (reads.app_ids | staged.app_ids) & winner.app_ids:
        raise _conflict(
            ConcurrentTransactionException,
            staged,
            winner,
            f"advanced the transaction identifier of the application {min(moved)!r}, on which this one depends: "
            "two writers use one application id",
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
    """Give the files that I add again or remove the row ids that the winner, a backfill, assigned to them."""
    backfilled = {canonical(add.path, staged.table): add for add in winner.adds}

    def updated(action: Action) -> Action:
        if not isinstance(action, AddFile | RemoveFile):
            return action
        known = backfilled.get(canonical(action.path, staged.table))
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
        raise _conflict(ProtocolChangedException, staged, winner, "created the table, as this transaction wants to")
    if staged.writes_protocol:
        raise _conflict(
            ProtocolChangedException, staged, winner, "changed the table's protocol, as this transaction does"
        )
    before, after = supported(staged.protocol), supported(winner.protocol)
    if dropped := before - after:
        raise _conflict(ProtocolChangedException, staged, winner, f"dropped the feature {min(dropped)}")
    if (binding := (after - before) & BINDS_FILES) and any(isinstance(action, AddFile) for action in staged.actions):
        raise _conflict(
            ProtocolChangedException,
            staged,
            winner,
            f"added the feature {min(binding)}, which decides how files are written",
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
    raise _conflict(
        MetadataChangedException,
        staged,
        winner,
        "changed the table's metadata (its schema, partitioning, properties or description)",
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
        partition = _partition(hit.partition_values)
        raise _conflict(
            ConcurrentAppendException,
            staged,
            winner,
            f"added files {f'in the partition {partition} ' if partition else ''}that this one read",
            ""
            if partition
            else " To avoid this conflict, partition the table and use conditions on partition columns.",
        )


def _first_match(adds: Sequence[AddFile], read_predicates: tuple[ReadPredicate, ...], staged: Staged) -> AddFile | None:
    """The first of `adds` whose partition may satisfy one of the predicates; statistics aren't used."""
    if staged.read_metadata is None or not read_predicates:
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
    for selection in read_predicates:
        part, _ = predicates.split(selection.predicate, mapping.partition_columns)
        part = predicates.with_columns(part, mapping.to_physical)
        kept = may_match(files, part, mapping.physical, names, use_stats=False, time_zone=selection.time_zone)
        first: int = pc.index(kept, pa.scalar(True)).as_py()
        if first >= 0:
            return adds[first]
    return None


def _check_removed(reads: ReadSet, staged: Staged, winner: Winner) -> None:
    removed = {canonical(remove.path, staged.table): remove for remove in winner.removes}
    hit = winner.removes[0] if reads.whole_table else reads.first_read(removed, staged.table)
    if hit is not None:
        raise _conflict(
            ConcurrentDeleteReadException,
            staged,
            winner,
            f"removed {_file(hit)}, which this transaction read",
            path=hit.path,
        )
    for path in staged.removed:
        if path in removed:
            raise _conflict(
                ConcurrentDeleteDeleteException,
                staged,
                winner,
                f"removed {_file(removed[path])}, which this transaction removes too",
                path=removed[path].path,
            )


def _partition(values: Mapping[str, str | None]) -> str:
    return f"[{', '.join(f'{name}={value}' for name, value in values.items())}]" if values else ""


def _file(remove: RemoveFile) -> str:
    partition = _partition(remove.partition_values or {})
    return f"the file {remove.path}" + (f" of the partition {partition}" if partition else "")


def _conflict(
    kind: type[DeltaConcurrentModificationException],
    staged: Staged,
    winner: Winner,
    change: str,
    hint: str = "",
    *,
    path: str | None = None,
) -> DeltaConcurrentModificationException:
    """The error for what the winner changed; `path` is the file about which both disagree, if there is one."""
    return kind(
        f"nothing was committed to {staged.table}: {winner.described}, which came after version "
        f"{staged.read_version} that this transaction read, {change}. Run the operation again on the new snapshot."
        f"{hint}",
        table=staged.table,
        version=staged.read_version,
        path=path,
        winner=winner.version,
    )
