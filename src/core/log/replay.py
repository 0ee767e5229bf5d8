"""Replay: from a base state and later commits to the state of a version (PROTOCOL.md, "Action Reconciliation").

The files of a table are columns (the base, read from a checkpoint) and an overlay (the actions of the later commits, by
path and deletion vector). A new version extends the overlay and shares the base.
"""

import threading
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import TYPE_CHECKING, TypeAlias

from ..protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from ..protocol.paths import canonical

if TYPE_CHECKING:
    import pyarrow as pa

LogicalFile: TypeAlias = AddFile | RemoveFile


@dataclass(frozen=True, slots=True)
class Header:
    """The state of a version except its files. `domains` holds the domains that aren't removed."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)

    def after(self, actions: Iterable[Action]) -> "Header":
        """The header after `actions` were applied in order; the same object if they change nothing in it."""
        protocol, metadata = self.protocol, self.metadata
        transactions: dict[str, SetTransaction] | None = None
        domains: dict[str, DomainMetadata] | None = None
        for action in actions:
            kind = type(action)
            if kind is AddFile or kind is RemoveFile:
                continue
            if isinstance(action, SetTransaction):
                if transactions is None:
                    transactions = dict(self.transactions)
                transactions[action.app_id] = action
            elif isinstance(action, DomainMetadata):
                if domains is None:
                    domains = dict(self.domains)
                if action.removed:
                    domains.pop(action.domain, None)
                else:
                    domains[action.domain] = action
            elif isinstance(action, Protocol):
                protocol = action
            elif isinstance(action, Metadata):
                metadata = action
        if protocol is self.protocol and metadata is self.metadata and transactions is None and domains is None:
            return self
        return replace(
            self,
            protocol=protocol,
            metadata=metadata,
            transactions=self.transactions if transactions is None else transactions,
            domains=self.domains if domains is None else domains,
        )


@dataclass(frozen=True, slots=True)
class Totals:
    """The number and bytes of a version's live files, in total and by size class; the same for deletion vectors.

    `file_counts` and `file_bytes` follow `SIZE_BINS` (PROTOCOL.md, "File Size Histogram Schema"), `deleted_counts`
    `DELETED_BINS` ("Deleted Record Counts Histogram Schema"); they are empty where only the sums are known.
    """

    num_files: int = 0
    size_in_bytes: int = 0
    num_deletion_vectors: int = 0
    num_deleted_records: int = 0
    file_counts: tuple[int, ...] = ()
    file_bytes: tuple[int, ...] = ()
    deleted_counts: tuple[int, ...] = ()

    def __add__(self, other: "Totals") -> "Totals":
        """The sums; those of the classes where both have them."""
        return Totals(
            self.num_files + other.num_files,
            self.size_in_bytes + other.size_in_bytes,
            self.num_deletion_vectors + other.num_deletion_vectors,
            self.num_deleted_records + other.num_deleted_records,
            tuple(map(add, self.file_counts, other.file_counts)),
            tuple(map(add, self.file_bytes, other.file_bytes)),
            tuple(map(add, self.deleted_counts, other.deleted_counts)),
        )

    def changed(self, changes: Iterable[tuple[int, int, DeletionVectorDescriptor | None]]) -> "Totals":
        """The totals after files were added or removed: (1 or -1, size in bytes, deletion vector) for each."""
        files, size, vectors, records = (
            self.num_files,
            self.size_in_bytes,
            self.num_deletion_vectors,
            self.num_deleted_records,
        )
        counts, sums, deleted = list(self.file_counts), list(self.file_bytes), list(self.deleted_counts)
        for sign, bytes_, vector in changes:
            files += sign
            size += sign * bytes_
            if vector is not None:
                vectors += sign
                records += sign * vector.cardinality
            if counts:
                index = bisect_right(SIZE_BINS, bytes_) - 1
                counts[index] += sign
                sums[index] += sign * bytes_
            if deleted:
                deleted[bisect_right(DELETED_BINS, vector.cardinality if vector else 0) - 1] += sign
        return Totals(files, size, vectors, records, tuple(counts), tuple(sums), tuple(deleted))


_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
SIZE_BINS: tuple[int, ...] = (
    0,
    *(_KB << power for power in range(3, 13)),
    *range(8 * _MB, 44 * _MB, 4 * _MB),
    *range(48 * _MB, 128 * _MB, 8 * _MB),
    *range(124 * _MB, 148 * _MB, 4 * _MB),
    *range(160 * _MB, 592 * _MB, 16 * _MB),
    *range(640 * _MB, 1472 * _MB, 64 * _MB),
    *range(1536 * _MB, 2176 * _MB, 128 * _MB),
    *range(2304 * _MB, 4352 * _MB, 256 * _MB),
    *(_GB << power for power in range(3, 9)),
)
"""Lower bounds of the size classes of a version checksum, in bytes; the same as Delta's, so histograms fit together."""

DELETED_BINS: tuple[int, ...] = (0, *(10**power for power in range(8)), 2**31 - 1)
"""Lower bounds of the classes of files by their number of deleted rows."""

NO_FILES = Totals(
    file_counts=(0,) * len(SIZE_BINS),
    file_bytes=(0,) * len(SIZE_BINS),
    deleted_counts=(0,) * len(DELETED_BINS),
)


_LONGEST_CHAIN = 64
"""The most commits that a lookup in an overlay visits; a longer chain is merged first."""


class CommitOverlay:
    """The file actions of the commits after the base: an immutable overlay that a later version extends.

    The cost of an extension is proportional to the commit. The merged view is computed once, when files are requested.
    Threads may share an overlay.
    """

    __slots__ = ("_depth", "_lock", "_merged", "_own", "_parent", "_root", "num_actions")

    def __init__(self, root: str, parent: "CommitOverlay | None" = None, actions: Sequence[LogicalFile] = ()) -> None:
        self._root = root
        self._parent = parent
        self._own: dict[FileKey, LogicalFile] = {}
        for file in actions:
            # The protocol forbids an add and a remove of one key in one commit. As in Delta, the later action wins.
            key = self.key(file)
            self._own.pop(key, None)
            self._own[key] = file
        self._merged: dict[FileKey, LogicalFile] | None = self._own if parent is None else None
        # One lock for the whole chain, because a child merges its parents.
        self._lock: threading.Lock = parent._lock if parent else threading.Lock()
        self._depth: int = parent._depth + 1 if parent else 0
        self.num_actions: int = (parent.num_actions if parent else 0) + len(self._own)

    def extend(self, actions: Iterable[Action]) -> "CommitOverlay":
        """The overlay after one more commit was applied."""
        files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
        if not files:
            return self
        if self._depth >= _LONGEST_CHAIN:
            self.merged()
        return CommitOverlay(self._root, self, files)

    def key(self, file: LogicalFile) -> FileKey:
        """The key of a logical file in this table."""
        dv = file.deletion_vector
        return canonical(file.path, self._root), dv.unique_id if dv else None

    def get(self, key: FileKey) -> LogicalFile | None:
        """The newest action of a logical file; `None`: no commit of the overlay has one, but the base may."""
        with self._lock:
            overlay: CommitOverlay | None = self
            while overlay is not None:
                if overlay._merged is not None:
                    return overlay._merged.get(key)
                if key in overlay._own:
                    return overlay._own[key]
                overlay = overlay._parent
            return None

    def merged(self) -> Mapping[FileKey, LogicalFile]:
        """The newest action of each logical file, in commit order."""
        with self._lock:
            if self._merged is None:
                chain = [self]
                overlay = self._parent
                while overlay is not None and overlay._merged is None:
                    chain.append(overlay)
                    overlay = overlay._parent
                merged = dict(overlay._merged) if overlay is not None and overlay._merged is not None else {}
                for link in reversed(chain):
                    for key, file in link._own.items():
                        merged.pop(key, None)
                        merged[key] = file
                self._merged = merged
                self._parent = None
                self._depth = 0
            return self._merged

    def changes(self, totals: Totals, actions: Iterable[Action], *, complete: bool) -> Totals | None:
        """`totals` after one more commit was applied; `None` when its actions don't have enough information.

        `complete`: there is no base, so a file that isn't in the overlay doesn't exist. With a base, a file that isn't
        in the overlay counts as new when it is added with new data, and as live when it is removed.
        """
        changed: list[tuple[int, int, DeletionVectorDescriptor | None]] = []
        for key, file in CommitOverlay(
            self._root, None, [f for f in actions if isinstance(f, AddFile | RemoveFile)]
        )._own.items():
            before = self.get(key)
            if isinstance(before, AddFile):
                changed.append((-1, before.size, before.deletion_vector))
            elif before is None and not complete:
                if isinstance(file, RemoveFile):
                    if file.size is None:
                        return None
                    changed.append((-1, file.size, file.deletion_vector))
                elif not file.data_change:
                    return None
            if isinstance(file, AddFile):
                changed.append((1, file.size, file.deletion_vector))
        return totals.changed(changed)


def unreconciled(actions: Iterable[Action], root: str) -> str | None:
    """The reason why `actions`, in any order, aren't a reconciled state: two have the same key. `None`: they are.

    PROTOCOL.md, "Action Reconciliation". Two adds of one path with different deletion vectors have different keys, but
    aren't a valid state either.
    """
    keys: set[FileKey] = set()
    added: set[str] = set()
    others: set[tuple[str, str]] = set()
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            vector = action.deletion_vector
            key = canonical(action.path, root), vector.unique_id if vector else None
            if key in keys:
                return f"it holds two file actions of {action.path}"
            keys.add(key)
            if isinstance(action, AddFile):
                if key[0] in added:
                    return f"it adds {action.path} twice"
                added.add(key[0])
            continue
        other: tuple[str, str]
        if isinstance(action, SetTransaction):
            other = "transactions of", action.app_id
        elif isinstance(action, DomainMetadata):
            other = "domains", action.domain
        elif isinstance(action, Protocol | Metadata):
            other = ("protocol" if isinstance(action, Protocol) else "metaData"), "actions"
        else:
            continue
        if other in others:
            return f"it holds two {' '.join(other)}"
        others.add(other)
    return None


def in_commit_timestamp(actions: Iterable[Action]) -> int | None:
    """The `inCommitTimestamp` of a commit (PROTOCOL.md, "In-Commit Timestamps"), in milliseconds."""
    for action in actions:
        if isinstance(action, CommitInfo):
            return action.in_commit_timestamp
    return None


def path_set(keys: Collection[FileKey]) -> "pa.Array":
    """The paths of these keys, for `covered`."""
    import pyarrow as pa

    # A builder: pa.array would import pandas where it is installed, which takes half a second.
    builder = pa.lib.StringBuilder()
    builder.append_values(sorted({path for path, _ in keys}))
    return builder.finish()


_LOOKUP = 2
"""One lookup in Python takes as long as Arrow needs to hash so many paths of a set, which it does at each call."""


def covered(
    paths: "pa.ChunkedArray", vectors: "pa.ChunkedArray", keys: Collection[FileKey], path_set: "pa.Array"
) -> list[int]:
    """The indices of the rows of a base that an overlay supersedes, ascending.

    `paths` are canonical paths, `vectors` the deletion vector structs of the same rows, `path_set` is of `keys`.
    """
    import pyarrow.compute as pc

    if not keys or len(paths) == 0:
        return []
    if len(paths) * _LOOKUP < len(path_set):
        rows: Sequence[int] = range(len(paths))
    else:
        rows = pc.indices_nonzero(pc.is_in(paths, value_set=path_set.cast(paths.type))).to_pylist()
        if not rows:
            return []
        paths, vectors = paths.take(rows), vectors.take(rows)
    candidates = zip(rows, paths.to_pylist(), vectors.to_pylist(), strict=True)
    return [row for row, path, vector in candidates if (path, vector_id(vector)) in keys]


def vector_id(vector: Mapping[str, object] | None) -> str | None:
    """The unique id of a deletion vector struct."""
    if vector is None or vector["storageType"] is None:
        return None
    base = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return base if vector["offset"] is None else f"{base}@{vector['offset']}"
