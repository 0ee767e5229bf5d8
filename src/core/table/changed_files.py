"""What changed in one version, from its commit alone (PROTOCOL.md, "Add CDC File", "Reader Requirements").

The changes of a version are in its change data files; if it has none, they are the rows of the files that it adds and
removes. A file that one version removes and adds again has a new deletion vector: the changed rows are the difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptLogError
from ..log.columns import FILE_SCHEMA, REMOVE_SCHEMA, adds_of, mask_of, removes_of, table_of
from ..protocol import paths
from ..protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, FileAction, RemoveFile
from ..protocol.change_data import DELETE, INSERT

_NO_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_ADDS = FILE_SCHEMA.append(pa.field("stats", pa.string()))
_CHANGE_DATA = pa.schema([FILE_SCHEMA.field(name) for name in ("path", "partitionValues", "size")])


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a large commit whose rows change, as columns: an action for each would need ten times the memory.

    `adds` have the columns of a snapshot's files and `stats`, `removes` those of its tombstones. Of change data files,
    `change_data` has the path, the partition values and the size.
    """

    adds: pa.Table
    removes: pa.Table
    change_data: pa.Table


@dataclass(frozen=True, slots=True)
class Commit:
    """One version: its number, its time in milliseconds, its actions.

    A large commit may have its files in columns (`files`); then they aren't among the actions.
    """

    version: int
    timestamp_ms: int
    actions: Sequence[Action]
    files: Files | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file whose rows, except those that its deletion vector deletes, changed in a version.

    `change_type` is that of all rows; `None`: the rows of a change data file have their own.
    """

    commit: Commit
    file: AddFile | RemoveFile | AddCDCFile
    change_type: str | None


@dataclass(frozen=True, slots=True)
class VectorChange:
    """A file that got another deletion vector."""

    commit: Commit
    removed: RemoveFile
    added: AddFile


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Files of a large commit whose rows changed in one way, as the columns of `Files`; see `FileChange`."""

    commit: Commit
    files: pa.Table
    change_type: str | None


class Changes(NamedTuple):
    """The changes in one version."""

    files: Sequence[FileChange] = ()
    vectors: Sequence[VectorChange] = ()
    columns: Sequence[ColumnChange] = ()


def of_commit(commit: Commit, table: str) -> Changes:
    """The changes in one version. CorruptLogError if a `remove` has too little information to read the file."""
    if commit.files is not None:
        return _of_columns(commit, commit.files, table)
    change_data = [FileChange(commit, action, None) for action in commit.actions if isinstance(action, AddCDCFile)]
    if change_data or changes_nothing(commit.actions):
        return Changes(change_data)
    adds = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, AddFile) and a.data_change}
    removes = {paths.canonical(a.path): a for a in commit.actions if isinstance(a, RemoveFile) and a.data_change}
    for remove in removes.values():
        if remove.partition_values is None or remove.size is None:
            raise _unreadable(commit, remove.path, table)
    both = removes.keys() & adds.keys()
    changed = [FileChange(commit, add, INSERT) for path, add in adds.items() if path not in both]
    changed += [FileChange(commit, remove, DELETE) for path, remove in removes.items() if path not in both]
    return Changes(changed, [VectorChange(commit, removes[path], adds[path]) for path in removes if path in both])


def _unreadable(commit: Commit, path: str, table: str) -> CorruptLogError:
    return CorruptLogError(
        f"version {commit.version} of {table} removes {path} without its size or partition, so its rows "
        "can't be read: read the changes of other versions",
        table=table,
        version=commit.version,
        path=path,
    )


def changes_nothing(actions: Iterable[Action]) -> bool:
    """Whether the commitInfo says that no row changed: a MERGE of Delta may rewrite files without changing rows."""
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if info is None or info.operation != "MERGE" or info.operation_metrics is None:
        return False
    return all(str(info.operation_metrics.get(name)) == "0" for name in _NO_ROWS)


# --- large commits ------------------------------------------------------------------------------------------------


def collected(batches: Iterable[Sequence[Action]]) -> tuple[list[Action], Files] | None:
    """The other actions of a large commit, and its files in columns; None if there is no batch.

    Args:
        batches: The actions of the commit, in order. One batch at a time is in memory.
    """
    others: list[Action] = []
    adds, removes, change_data = [_ADDS.empty_table()], [REMOVE_SCHEMA.empty_table()], [_CHANGE_DATA.empty_table()]
    empty = True
    for batch in batches:
        empty = False
        others += [action for action in batch if not isinstance(action, FileAction)]
        adds.append(table_of([a for a in batch if isinstance(a, AddFile) and a.data_change], _ADDS))
        removes.append(table_of([a for a in batch if isinstance(a, RemoveFile) and a.data_change], REMOVE_SCHEMA))
        change_data.append(table_of([a for a in batch if isinstance(a, AddCDCFile)], _CHANGE_DATA))
    return None if empty else (others, Files(*map(pa.concat_tables, (adds, removes, change_data))))


def _of_columns(commit: Commit, files: Files, table: str) -> Changes:
    if files.change_data.num_rows or changes_nothing(commit.actions):
        return Changes(columns=[ColumnChange(commit, files.change_data, None)] if files.change_data.num_rows else ())
    adds, removes = _last_of_each_path(files.adds), _last_of_each_path(files.removes)
    unreadable = pc.or_(pc.is_null(removes["partitionValues"]), pc.is_null(removes["size"]))
    if pc.any(unreadable).as_py():
        raise _unreadable(commit, removes["path"].filter(unreadable)[0].as_py(), table)
    of_adds, of_removes = paths.canonical_column(adds["path"]), paths.canonical_column(removes["path"])
    fewer, more = sorted((of_adds, of_removes), key=len)
    both = more.filter(pc.is_in(more, value_set=fewer))  # a hash table of the fewer ones
    added_again, removed = pc.is_in(of_adds, value_set=both), pc.is_in(of_removes, value_set=both)
    before = dict(zip(of_removes.filter(removed).to_pylist(), removes_of(removes.filter(removed)), strict=True))
    after = dict(zip(of_adds.filter(added_again).to_pylist(), adds_of(adds.filter(added_again)), strict=True))
    return Changes(
        vectors=[VectorChange(commit, before[path], after[path]) for path in before],
        columns=[
            ColumnChange(commit, found, change_type)
            for found, change_type in (
                (adds.filter(pc.invert(added_again)), INSERT),
                (removes.filter(pc.invert(removed)), DELETE),
            )
            if found.num_rows
        ],
    )


def _last_of_each_path(files: pa.Table) -> pa.Table:
    """The files without those whose path occurs again later, which no valid commit has.

    Hashes of 8 bytes are compared first: the paths themselves may need gigabytes.
    """
    keys = paths.canonical_column(files["path"])
    hashes = pa.chunked_array(
        [pa.array([hash(key) for key in chunk.to_pylist()], pa.int64()) for chunk in keys.chunks], pa.int64()
    )
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated):
        return files
    rows = pc.indices_nonzero(pc.is_in(hashes, value_set=repeated)).to_pylist()
    last = dict(zip(keys.take(rows).to_pylist(), rows, strict=True))
    dropped = set(rows) - set(last.values())
    keep = bytearray(b"\x01") * len(files)
    for row in dropped:
        keep[row] = 0
    return files.filter(mask_of(keep))
