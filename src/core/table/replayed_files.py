"""The files of a version, by column: those of a checkpoint, and what the commits after it add and remove."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..log.replay import NO_FILES, CommitOverlay, Totals, covered, path_set
from ..protocol.actions import AddFile, RemoveFile

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log.checkpoint import CheckpointState
    from ..protocol.schema import StructType
    from ..skipping.predicates import Column

_PIECE = 1 << 16
"""The most files in a piece of the files that commits added."""


class ReplayedFiles:
    """The live and the removed files of one version. Immutable, and shared between threads; loaded when first needed.

    The live files are rows: first those of the checkpoint that no later commit adds or removes again, then the files
    that later commits added.
    """

    def __init__(self, table: str, tail: CommitOverlay, base: "CheckpointState | None") -> None:
        self._table = table
        self._tail = tail
        self._base = base
        self._lock = threading.RLock()
        self._loaded = False
        self._superseded: list[int] = []
        self._added: list[AddFile] = []
        self._num_base_rows = 0

    @property
    def loaded(self) -> bool:
        """Whether it is known which rows of the checkpoint are live."""
        return self._loaded

    def _load(self) -> None:
        """Find the rows of the checkpoint that later commits supersede, and the files that later commits added."""
        with self._lock:
            if self._loaded:
                return
            merged = self._tail.merged()
            self._added = [file for file in merged.values() if isinstance(file, AddFile)]
            if self._base is not None:
                vectors = self._base.adds(["path", "deletionVector"])[1]
                self._superseded = covered(self._base.canonical_paths(), vectors, merged, path_set(merged))
                self._num_base_rows = len(vectors) - len(self._superseded)
            self._loaded = True

    @property
    def num_base_rows(self) -> int:
        """The number of rows from the checkpoint, which come first."""
        self._load()
        return self._num_base_rows

    @property
    def added(self) -> Sequence[AddFile]:
        """The files that later commits added: the rows after those of the checkpoint."""
        self._load()
        return self._added

    def select(self, names: Sequence[str]) -> "pa.Table":
        """These columns of `add`, by name."""
        self._load()
        columns = [None] * len(names) if self._base is None else self._base.adds(names)
        return self._combined(dict(zip(names, columns, strict=True)))

    def _combined(self, base: "Mapping[str, pa.ChunkedArray | None]") -> "pa.Table":
        """The live rows of these columns of the checkpoint, followed by the added files."""
        import pyarrow as pa

        from ..log.columns import ADD_TYPES, column_of, without

        result: dict[str, pa.ChunkedArray] = {}
        for name, column in base.items():
            type_ = ADD_TYPES.get(name, pa.null() if column is None else column.type)
            chunks: list[pa.Array] = []
            if column is not None:
                chunks.extend(without(column, self._superseded).chunks)
            if self._added:
                chunks.append(column_of(self._added, name, type_))
            result[name] = pa.chunked_array(chunks, type_)
        return pa.table(result)

    def statistics(self, columns: "Collection[Column]", physical_schema: "StructType") -> "pa.Table":
        """The statistics of these columns (physical names): "stats" as JSON text, "stats_parsed" as structs.

        Files from a checkpoint have structs alone, also where the checkpoint has JSON text.
        """
        import pyarrow as pa

        self._load()
        if self._base is None:
            return self.select(["stats"])
        if self._base.has_stats_parsed():
            from ..log.checkpoint_shares import parsed_leaves

            parsed = self._base.stats_parsed(parsed_leaves(columns))
        else:
            from ..skipping.stats import leaf_types

            parsed = self._base.stats_from_text(leaf_types(physical_schema, sorted(columns)))
        # The JSON texts of the checkpoint have no more information, and are long.
        texts = pa.chunked_array([pa.nulls(len(parsed), pa.string())])
        return self._combined({"stats": texts, "stats_parsed": parsed})

    def totals(self) -> Totals:
        """The number and the bytes of the live files."""
        self._load()
        totals = NO_FILES
        if self._base is not None:
            from ..log.columns import totals_of, without

            sizes, vectors = self._base.adds(["size", "deletionVector"])
            totals = totals_of(without(sizes, self._superseded), without(vectors, self._superseded))
        return totals.changed((1, file.size, file.deletion_vector) for file in self._added)

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """See `Snapshot.pieces`."""
        from ..log.checkpoint_shares import left

        if self._base is not None:
            yield from left(self._base.pieces(with_stats=with_stats), self._table, self._tail.merged())
        yield from self.newer_pieces(with_stats=with_stats)

    def newer_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """`pieces` of the files that the commits after the checkpoint added."""
        import pyarrow as pa

        from ..log.columns import ADD_TYPES, FILE_SCHEMA, table_of

        adds = [file for file in self._tail.merged().values() if isinstance(file, AddFile)]
        schema = FILE_SCHEMA.append(pa.field("stats", ADD_TYPES["stats"])) if with_stats else FILE_SCHEMA
        for first in range(0, len(adds), _PIECE):
            yield table_of(adds[first : first + _PIECE], schema)

    def tombstones(self) -> "pa.Table":
        """See `Snapshot.tombstones`."""
        import pyarrow as pa

        from ..log.checkpoint_shares import left

        newer = self._newer_tombstones()
        if self._base is None:
            return newer
        return pa.concat_tables([*left([self._base.removes()], self._table, self._tail.merged()), newer])

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """See `Snapshot.tombstone_pieces`."""
        from ..log.checkpoint_shares import left

        if self._base is not None:
            yield from left(self._base.remove_pieces(), self._table, self._tail.merged())
        yield self._newer_tombstones()

    def _newer_tombstones(self) -> "pa.Table":
        from ..log.columns import REMOVE_SCHEMA, table_of

        return table_of([file for file in self._tail.merged().values() if isinstance(file, RemoveFile)], REMOVE_SCHEMA)


class SelectedFiles(ReplayedFiles):
    """Some files of a version, as rows in memory: the columns of `Snapshot.files`, and "stats" as JSON text."""

    def __init__(self, table: str, files: "pa.Table") -> None:
        super().__init__(table, CommitOverlay(table), None)
        self._files = files
        self._num_base_rows = files.num_rows
        self._loaded = True

    def select(self, names: Sequence[str]) -> "pa.Table":
        """These columns of `add`, by name; null for a column that the rows don't have."""
        import pyarrow as pa

        known = self._files.column_names
        return pa.table(
            {name: self._files.column(name) if name in known else pa.nulls(self._files.num_rows) for name in names}
        )

    def totals(self) -> Totals:
        """The number and the bytes of these files."""
        from ..log.columns import totals_of

        return totals_of(self._files.column("size"), self._files.column("deletionVector"))

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """These files as one piece."""
        yield self._files if with_stats else self._files.drop_columns(["stats"])
