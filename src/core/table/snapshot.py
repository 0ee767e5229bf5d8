"""A table as it was at one version: what the header says at once, its files by column when asked for."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import ChecksumMismatchError, CorruptLogError
from ...settings.honoured import CORRUPTION_IS_FATAL
from ..log.replay import NO_FILES, CommitOverlay, Header, LogicalFile, Totals, covered, vector_id
from ..protocol.actions import Action, AddFile, DomainMetadata, FileKey, Metadata, Protocol, RemoveFile, SetTransaction
from ..protocol.column_mapping import ColumnMapping
from ..protocol.properties import TableProperties
from ..protocol.schema import StructType, parse_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log.checkpoint import CheckpointState
    from ..log.checksum import VersionChecksum
    from ..skipping.predicates import Column, Predicate

_log = logging.getLogger(__name__)

_PIECE = 1 << 16


class Snapshot:
    """One version of a table. Immutable and shared between threads; what is lazy is loaded once.

    `table` is the root URI, `version` the number of the version. Made by `DeltaLog.snapshot`.
    """

    def __init__(
        self,
        table: str,
        version: int,
        header: Header,
        tail: CommitOverlay,
        base: "CheckpointState | None",
        *,
        timestamp: Callable[[bool], int],
        checksum: "Callable[[], VersionChecksum | None] | None" = None,
        fatal: bool = True,
        doubt: "Callable[[Snapshot, VersionChecksum], str | None] | None" = None,
        totals: Totals | None = None,
    ) -> None:
        """`doubt` says why a state that its checksum contradicts may be wrong; `None`: the commits confirm it."""
        self.table = table
        self.version = version
        self._header = header
        self._tail = tail
        self._base = base
        self._timestamp = timestamp
        self._timestamp_ms: int | None = None
        self._checksum = checksum
        self._fatal = fatal
        self._doubt = doubt
        self._known_totals = NO_FILES if totals is None and base is None and not tail.num_actions else totals
        self._exact_totals = False
        self._lock = threading.RLock()
        self._loaded = False
        self._dropped: list[int] = []
        self._adds: list[AddFile] = []
        self._base_rows = 0
        self._files: pa.Table | None = None
        self._tombstones: pa.Table | None = None
        if header.protocol is None or header.metadata is None:
            what = "protocol" if header.protocol is None else "metaData"
            raise CorruptLogError(
                f"version {version} of {table} has no {what} action: neither its checkpoint nor its commits hold one. "
                "Restore the log from a copy."
            )
        self.protocol: Protocol = header.protocol
        self.metadata: Metadata = header.metadata

    def __repr__(self) -> str:
        return f"Snapshot({self.table!r}, version={self.version})"

    # --- the header -----------------------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> StructType:
        """The table's schema, partition columns included."""
        return parse_schema(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def mapping(self) -> ColumnMapping:
        """What the columns are called in data files, partition values and statistics."""
        return ColumnMapping.of(self.protocol, self.metadata)

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties, typed."""
        return TableProperties.of(self.metadata)

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """The newest `txn` of each application (PROTOCOL.md, "Transaction Identifiers")."""
        return self._header.transactions

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The live metadata domains (PROTOCOL.md, "Domain Metadata")."""
        return self._header.domains

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed, in milliseconds: its in-commit timestamp, or its file's modification."""
        # No cached_property: until Python 3.12 its lock is one for all snapshots, and this may be a request.
        if self._timestamp_ms is None:
            self._timestamp_ms = self._timestamp(self.properties.enable_in_commit_timestamps)
        return self._timestamp_ms

    # --- the files ------------------------------------------------------------------------------------------------

    @property
    def files(self) -> "pa.Table":
        """The live files: a row each, with the columns of `add` as the protocol names them, but no stats.

        Raises ChecksumMismatchError when the version's checksum disagrees, and the commits don't confirm what was read.
        """
        from ..log.columns import FILE_SCHEMA

        with self._lock:
            if self._files is None:
                files = self.select(FILE_SCHEMA.names)
                self.verify()
                self._files = files
            return self._files

    def files_with(self, *columns: str) -> "pa.Table":
        """`files` with more columns of `add` ("stats", "stats_parsed", ...), in the same order of rows."""
        files = self.files
        extra = [name for name in columns if name not in files.column_names]
        if not extra:
            return files
        more = self.select(extra)
        for name in extra:
            files = files.append_column(more.schema.field(name), more.column(name))
        return files

    def verify(self, counted: Totals | None = None) -> None:
        """Compare with the version checksum, once: one request, made when the files are being loaded anyway.

        `counted` is what somebody has counted who read the files elsewhere. Raises ChecksumMismatchError.
        """
        told = self._checksum() if self._checksum is not None else None
        if told is not None:
            from ..log.checksum import differences

            if counted is None:
                found = differences(told, self, self._counted())
            else:
                found = differences(replace(told, files=None), self, counted)
            if found:
                self._contradicted(told, found, may_confirm=counted is None)
        self._checksum = None

    def _contradicted(self, told: "VersionChecksum", found: Sequence[str], *, may_confirm: bool) -> None:
        """Warn where the commits say what was read, not the checksum; else raise ChecksumMismatchError."""
        message = f"version {self.version} of {self.table} isn't what its checksum says: {'; '.join(found)}"
        if not self._fatal:
            _log.warning("%s. It is read all the same, for %s is false", message, CORRUPTION_IS_FATAL.key)
            return
        large = self._base is not None and self._base.is_large
        why: str | None
        if self._doubt is None or not may_confirm or large:
            why = "The log was changed after the commit, or a writer got the checksum wrong"
        else:
            why = self._doubt(self, told)
            if why is None:
                _log.warning("%s. The commits say what was read: the checksum is wrong, and isn't used", message)
                return
        raise ChecksumMismatchError(
            f"{message}. {why}: compare with a copy. {CORRUPTION_IS_FATAL.key}=false reads on with a warning."
        )

    def _load(self) -> None:
        """Find the rows of the base that the commits after it leave, and the files that these add."""
        if self._loaded:
            return
        merged = self._tail.merged()
        self._adds = [file for file in merged.values() if isinstance(file, AddFile)]
        if self._base is not None:
            vectors = self._base.adds(["path", "deletionVector"])[1]
            self._base_rows = len(vectors)
            self._dropped = covered(self._base.canonical_paths(), vectors, merged)
            self._base_rows -= len(self._dropped)
        self._loaded = True

    def select(self, names: Sequence[str]) -> "pa.Table":
        """These columns of `add` of the live files, in the order of `files`, with no look at the version checksum."""
        with self._lock:
            self._load()
            columns = [None] * len(names) if self._base is None else self._base.adds(names)
            return self._combined(dict(zip(names, columns, strict=True)))

    def _combined(self, base: "Mapping[str, pa.ChunkedArray | None]") -> "pa.Table":
        import pyarrow as pa

        from ..log.columns import ADD_TYPES, column_of, without

        result: dict[str, pa.ChunkedArray] = {}
        for name, column in base.items():
            type_ = ADD_TYPES.get(name, pa.null() if column is None else column.type)
            chunks: list[pa.Array] = []
            if column is not None:
                chunks.extend(without(column, self._dropped).chunks)
            if self._adds:
                chunks.append(column_of(self._adds, name, type_))
            result[name] = pa.chunked_array(chunks, type_)
        return pa.table(result)

    def files_with_stats_text(self) -> "pa.Table":
        """`files` with "stats" as JSON text for every file that has statistics, also where a checkpoint has structs."""
        return self._with_stats_text(None)

    def _with_stats_text(self, rows: Sequence[int] | None) -> "pa.Table":
        table = self.files_with("stats")
        if rows is not None:
            table = table.take(rows)
        if self._base is not None and table.column("stats").null_count and self._base.has_stats_parsed():
            from ..skipping.stats_text import stats_texts

            parsed = self.files_with("stats_parsed").column("stats_parsed")
            texts = stats_texts(table.column("stats"), parsed if rows is None else parsed.take(rows))
            table = table.set_column(table.column_names.index("stats"), "stats", texts)
        return table

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """`files` piece by piece, for who must not hold the statistics of all files at once.

        With the statistics there are "stats" and, of files that a checkpoint has them of, "stats_parsed"; either may
        be null where the other is not.
        """
        from ..log.checkpoint_shares import left

        if self._base is not None:
            merged = self._tail.merged()
            for piece in self._base.pieces(with_stats=with_stats):
                yield left(piece, self.table, merged)
        yield from self.newer_pieces(with_stats=with_stats)

    def newer_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """`pieces` of the files that the commits after the checkpoint added."""
        import pyarrow as pa

        from ..log.columns import ADD_TYPES, FILE_SCHEMA, table_of

        adds = [file for file in self._tail.merged().values() if isinstance(file, AddFile)]
        schema = FILE_SCHEMA.append(pa.field("stats", ADD_TYPES["stats"])) if with_stats else FILE_SCHEMA
        for first in range(0, len(adds), _PIECE):
            yield table_of(adds[first : first + _PIECE], schema)

    def add_files(self, rows: "pa.Array | pa.ChunkedArray | Sequence[int] | None" = None) -> list[AddFile]:
        """The actions of the live files, with their stats: all, or those of a mask or of indices into `files`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from ..log.columns import adds_of

        total = self.files.num_rows
        if rows is None:
            indices: Sequence[int] = range(total)
        elif isinstance(rows, pa.Array | pa.ChunkedArray) and pa.types.is_boolean(rows.type):
            indices = pc.indices_nonzero(rows).to_pylist()
        else:
            indices = rows.to_pylist() if isinstance(rows, pa.Array | pa.ChunkedArray) else rows
        of_base = [index for index in indices if index < self._base_rows]
        found: dict[int, AddFile] = {}
        if of_base:
            table = self._with_stats_text(None if len(of_base) == total else of_base)
            found = dict(zip(of_base, adds_of(table), strict=True))
        return [found[i] if i < self._base_rows else self._adds[i - self._base_rows] for i in indices]

    @property
    def at_hand(self) -> bool:
        """Whether the files can be had without a request."""
        return self._base is None or self._base.at_hand()

    def listed_files(self) -> list[AddFile]:
        """The actions of the live files without their stats, and with no look at the version checksum."""
        from ..log.columns import FILE_SCHEMA, adds_of

        return adds_of(self.select(FILE_SCHEMA.names))

    def file_key(self, row: int) -> FileKey:
        """The path, as the log spells it, and the id of the deletion vector of a row of `files`."""
        files = self.files
        return files.column("path")[row].as_py(), vector_id(files.column("deletionVector")[row].as_py())

    @property
    def tombstones(self) -> "pa.Table":
        """The removed files that the log still knows, with the columns of `remove` (expired ones included)."""
        with self._lock:
            if self._tombstones is None:
                self._tombstones = self._removed()
            return self._tombstones

    def _removed(self) -> "pa.Table":
        import pyarrow as pa

        from ..log.columns import REMOVE_SCHEMA, mask_of, table_of
        from ..protocol.paths import canonical_column

        merged = self._tail.merged()
        own = table_of([file for file in merged.values() if isinstance(file, RemoveFile)], REMOVE_SCHEMA)
        if self._base is None:
            return own
        base = self._base.removes()
        paths = canonical_column(base.column("path"), self.table)
        rows = set(covered(paths, base.column("deletionVector"), merged))
        if rows:
            base = base.filter(mask_of(bytearray(row not in rows for row in range(base.num_rows))))
        return pa.concat_tables([base, own])

    # --- counts ---------------------------------------------------------------------------------------------------

    @property
    def num_files(self) -> int:
        """How many live files there are."""
        return self._exact().num_files

    @property
    def size_in_bytes(self) -> int:
        """How many bytes they have."""
        return self._exact().size_in_bytes

    def _exact(self) -> Totals:
        with self._lock:
            if not self._loaded and self._known_totals is None and self._base is not None and self._base.is_large:
                self.seed_totals_from_checksum()
            return self._counted() if self._loaded or self._known_totals is None else self._known_totals

    def totals(self) -> Totals | None:
        """Count and bytes of the live files, where knowing them costs no request; else `None`.

        Until the files are loaded, they may be those of an earlier version and what the commits since said.
        """
        with self._lock:
            if self._loaded or (self._known_totals is None and (self._base is None or self._base.at_hand())):
                return self._counted()
            return self._known_totals

    def _counted(self) -> Totals:
        with self._lock:
            if not self._exact_totals:
                self._load()
                totals = NO_FILES
                if self._base is not None:
                    from ..log.columns import totals_of, without

                    sizes, vectors = self._base.adds(["size", "deletionVector"])
                    totals = totals_of(without(sizes, self._dropped), without(vectors, self._dropped))
                self._known_totals = totals.changed((1, file.size, file.deletion_vector) for file in self._adds)
                self._exact_totals = True
            assert self._known_totals is not None
            return self._known_totals

    # --- pruning --------------------------------------------------------------------------------------------------

    def prune(self, predicate: "Predicate", *, time_zone: str) -> "pa.Table":
        """The rows of `files` that may hold a row of `predicate`: by partition values, then by stats.

        `time_zone` is that of partition timestamps that name none.
        """
        return self.files.filter(self.prune_mask(predicate, time_zone=time_zone))

    def prune_mask(self, predicate: "Predicate", *, time_zone: str) -> "pa.BooleanArray":
        """For each row of `files` whether it may hold a row of `predicate`; stats are read only where they matter.

        The predicate names columns logically, whatever the column mapping. `time_zone` is as in `prune`.
        """
        import pyarrow.compute as pc

        from ..log.columns import mask_of
        from ..skipping.predicates import columns, split, with_columns
        from ..skipping.pruning import may_match

        mapping = self.mapping
        files, schema, partition_columns = self.files, mapping.physical, mapping.physical_partition_columns
        if mapping.active:
            predicate = with_columns(predicate, mapping.to_physical)
        of_partition, of_data = split(predicate, partition_columns)
        mask = may_match(files, of_partition, schema, partition_columns, use_stats=False, time_zone=time_zone)
        if of_data is None or not columns(of_data):
            return mask
        rows = pc.indices_nonzero(mask)
        if len(rows) == 0:
            return mask
        chosen = self._with_stats_of(columns(of_data)).take(rows)
        hits = may_match(chosen, predicate, schema, partition_columns, time_zone=time_zone)
        flags = bytearray(files.num_rows)
        for row in rows.filter(hits).to_pylist():
            flags[row] = 1
        return mask_of(flags)

    def num_records(self) -> "pa.Array":
        """How many rows lie in the file of each row of `files`, deleted ones included, by its stats; null: unknown."""
        from ..skipping import stats

        return stats.read(self._with_stats_of(()), (), self.mapping.physical).num_records

    def _with_stats_of(self, columns: "Collection[Column]") -> "pa.Table":
        """`files` with the statistics of these columns, by their physical names: of a checkpoint as structs, with no
        other column's.
        """
        if self._base is None:
            return self.files_with("stats")
        import pyarrow as pa

        with self._lock:
            self._load()
            if self._base.has_stats_parsed():
                from ..log.checkpoint_shares import parsed_leaves

                parsed = self._base.stats_parsed(parsed_leaves(columns))
            else:
                from ..skipping.stats import leaf_types

                parsed = self._base.stats_from_text(leaf_types(self.mapping.physical, sorted(columns)))
            # The texts of the base say nothing more, and are long.
            texts = pa.chunked_array([pa.nulls(len(parsed), pa.string())])
            more = self._combined({"stats": texts, "stats_parsed": parsed})
        files = self.files
        for name in more.column_names:
            files = files.append_column(name, more.column(name))
        return files

    # --- the next version -----------------------------------------------------------------------------------------

    @property
    def base_version(self) -> int:
        """The version of the checkpoint below; -1 where there is none."""
        return -1 if self._base is None else self._base.version

    @property
    def base_lost(self) -> bool:
        """Whether the checkpoint below was removed since it was opened, and something asked for more of it."""
        return self._base is not None and self._base.lost

    @property
    def base(self) -> "CheckpointState | None":
        """The checkpoint below, for who reads its files elsewhere than here."""
        return self._base

    @property
    def overlay(self) -> "Mapping[FileKey, LogicalFile]":
        """What the commits after that checkpoint say of files: the newest action of each."""
        return self._tail.merged()

    @property
    def tail_actions(self) -> int:
        """How many file actions lie over the base: what a newer checkpoint would save."""
        return self._tail.num_actions

    def after(
        self,
        version: int,
        commits: Sequence[Sequence[Action]],
        *,
        timestamp: Callable[[bool], int],
        checksum: "Callable[[], VersionChecksum | None] | None" = None,
    ) -> "Snapshot":
        """The snapshot of `version`, whose commits since this one hold `commits`; costs no request."""
        header, tail, totals = self._header, self._tail, self._known_totals
        for actions in commits:
            if totals is not None:
                totals = tail.changes(totals, actions, complete=self._base is None)
            header, tail = header.after(actions), tail.extend(actions)
        return Snapshot(
            self.table,
            version,
            header,
            tail,
            self._base,
            timestamp=timestamp,
            checksum=checksum,
            fatal=self._fatal,
            doubt=self._doubt,
            totals=totals,
        )

    def seed_totals_from_checksum(self) -> None:
        """Take the totals from the version's checksum where there is one, so that later versions can go on from it."""
        with self._lock:
            told = self._checksum() if self._checksum is not None else None
            if told is not None and self._known_totals is None:
                self._known_totals = told.totals
