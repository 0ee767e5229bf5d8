"""Whether a transaction may still be committed after another one was committed first: the conflict matrix.

"I" is the transaction that is checked; a "winner" is a transaction that was committed first. `check` is a pure
function of what I read, what I want to write, one winner, and the isolation level. It returns what I want to write,
rebased onto the winner, or raises the typed conflict. It is called once for each winner, in the order of versions; each
call gets the result of the one before.

The checks in their order, and the levels at which they hold (S: Serializable, W: WriteSerializable, SI:
SnapshotIsolation):

0. I drop a feature: any winner is a conflict, because it may have brought back traces of the feature.
1. The winner changed the protocol: a conflict if I write one too, if a feature was dropped, or if a feature was added
   that decides how files are written and I add files (all levels). So is row tracking if I add files in bulk, whose
   row ids aren't assigned at each attempt. The caller checks whether it can write the new protocol at all (`features`).
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
8. I add files that an earlier version had (RESTORE), and the winner is the start or the end of a VACUUM: a conflict
   (all levels), because the VACUUM may have deleted them after I looked for them. Delta has no such rule.

A backfill of row ids adds existing files again, with row ids. If I am a backfill, I leave out the files that a winner
added or removed. If the winner is a backfill, I take over its row ids.

A commit that is too large for memory is checked in parts: 5 to 7 hold for one part after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ....errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from ...protocol.actions import (
    Action,
    AddFile,
    RemoveFile,
)
from ...protocol.column_mapping import ColumnMapping
from ...protocol.features import BINDS_FILES, supported
from ...protocol.paths import canonical
from ...protocol.row_tracking import DOMAIN as ROW_TRACKING_DOMAIN
from ...protocol.row_tracking import FEATURE as ROW_TRACKING
from ...skipping import predicates
from . import metadata_changes
from .isolation import IsolationLevel
from .staged import ReadPredicate, ReadSet, Staged
from .winner import Winner


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
    if staged.readds_files and winner.vacuums:
        raise _conflict(
            ConcurrentDeleteReadException, staged, winner, "deletes files that this transaction may add again"
        )
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
            " Give each writer an application id of its own.",
        )
    if staged.restates_files:
        for part in winner.parts():
            rebased = _without_touched(rebased, part)
        return rebased
    if winner.backfills and staged.in_bulk:
        raise _conflict(
            ConcurrentAppendException, staged, winner, "assigned row ids to files that this transaction has read"
        )
    if winner.backfills:
        for part in winner.parts():
            rebased = _with_row_ids(rebased, part)
        return rebased
    if reads.depends_on_files or staged.removed:
        for part in winner.parts():
            if part.adds:
                _check_added(reads, staged, part, level)
            if part.removes:
                _check_removed(reads, staged, part)
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
    if (binding := (after - before) & BINDS_FILES) and staged.adds_files:
        raise _conflict(
            ProtocolChangedException,
            staged,
            winner,
            f"added the feature {min(binding)}, which decides how files are written",
        )
    if staged.adds_in_bulk and ROW_TRACKING in after - before:
        raise _conflict(
            ProtocolChangedException,
            staged,
            winner,
            f"added the feature {ROW_TRACKING}: the files that this transaction adds have no row ids",
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


_File = TypeVar("_File", AddFile, RemoveFile)


def _first_match(files: Sequence[_File], read_predicates: Sequence[ReadPredicate], staged: Staged) -> _File | None:
    """The first of `files` whose partition may satisfy one of the predicates; statistics aren't used."""
    if staged.read_metadata is None or not read_predicates:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    from ...skipping.pruning import may_match

    for file in files:
        if file.partition_values is None:  # a `remove` may lack them: it may be of any partition
            return file
    partitions = [list((file.partition_values or {}).items()) for file in files]
    table = pa.table(
        {
            "path": pa.array([file.path for file in files], pa.string()),
            "partitionValues": pa.array(partitions, pa.map_(pa.string(), pa.string())),
        }
    )
    mapping = ColumnMapping.of(staged.protocol, staged.read_metadata)
    names = mapping.physical_partition_columns
    for selection in read_predicates:
        part, _ = predicates.split(selection.predicate, mapping.partition_columns)
        part = predicates.with_columns(part, mapping.to_physical)
        kept = may_match(table, part, mapping.physical, names, use_stats=False, time_zone=selection.time_zone)
        first: int = pc.index(kept, pa.scalar(True)).as_py()
        if first >= 0:
            return files[first]
    return None


def _check_removed(reads: ReadSet, staged: Staged, winner: Winner) -> None:
    removed = {canonical(remove.path, staged.table): remove for remove in winner.removes}
    hit = winner.removes[0] if reads.whole_table else reads.first_read(removed, staged.table)
    if hit is None:
        hit = _first_match(winner.removes, [one for one in reads.predicates if one.every_file], staged)
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
