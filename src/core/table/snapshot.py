"""A version of a table: its header is read at once, its files are read by column on demand."""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...error_context import error_context, sets_table
from ...errors import ChecksumMismatchError, CorruptLogError
from ...settings.declarations import CORRUPTION_IS_FATAL
from ..log.replay import NO_FILES, CommitOverlay, Header, LogicalFile, Totals, vector_id
from ..protocol.actions import Action, AddFile, DomainMetadata, FileKey, Metadata, Protocol, SetTransaction
from ..protocol.column_mapping import ColumnMapping
from ..protocol.paths import crc_name
from ..protocol.properties import TableProperties
from ..protocol.schema import StructType, parse_schema
from .pruned_files import prune_mask
from .replayed_files import ReplayedFiles, SelectedFiles

if TYPE_CHECKING:
    import pyarrow as pa

    from ..log.checkpoint import CheckpointState
    from ..log.checksum import VersionChecksum
    from ..skipping.predicates import Column, Predicate
    from ..skipping.stats import FileStats

_log = logging.getLogger(__name__)


class Snapshot:
    """One version of a table. Immutable, and shared between threads; lazy parts are loaded once.

    `table` is the root URI, `version` the version number. Created by `DeltaLog.snapshot`.
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
        replayed: ReplayedFiles | None = None,
    ) -> None:
        """`doubt` returns why a state that contradicts its checksum may be wrong; `None`: the commits confirm it."""
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
        self._replayed = replayed or ReplayedFiles(table, tail, base)
        self._files: pa.Table | None = None
        self._tombstones: pa.Table | None = None
        if header.protocol is None or header.metadata is None:
            missing = "protocol" if header.protocol is None else "metaData"
            raise CorruptLogError(
                f"version {version} of {table} has no {missing} action, neither in its checkpoint nor in its commits. "
                "Restore the log from a copy.",
                table=table,
                version=version,
            )
        self.protocol: Protocol = header.protocol
        self.metadata: Metadata = header.metadata

    def __repr__(self) -> str:
        return f"Snapshot({self.table!r}, version={self.version})"

    def with_header(self, metadata: Metadata, protocol: Protocol) -> "Snapshot":
        """The same version and files, read with this metadata and protocol: those of another version of the table."""
        header = replace(self._header, metadata=metadata, protocol=protocol)
        return Snapshot(self.table, self.version, header, self._tail, self._base, timestamp=self._timestamp)

    def with_files(self, files: "pa.Table") -> "Snapshot":
        """The same version with only these of its files: rows with the columns of `files_with_stats_text`."""
        version = self.table, self.version, self._header, CommitOverlay(self.table), None
        return Snapshot(*version, timestamp=self._timestamp, replayed=SelectedFiles(self.table, files))

    # --- the header -----------------------------------------------------------------------------------------------

    @cached_property
    @sets_table
    def schema(self) -> StructType:
        """The table's schema, partition columns included."""
        return parse_schema(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns, in order."""
        return self.metadata.partition_columns

    @property
    @sets_table
    def mapping(self) -> ColumnMapping:
        """The physical names of the columns, which data files, partition values and statistics use."""
        return ColumnMapping.of(self.protocol, self.metadata)

    @cached_property
    @sets_table
    def properties(self) -> TableProperties:
        """The table's properties as typed values."""
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
    @sets_table
    def timestamp_ms(self) -> int:
        """The time of the commit in milliseconds: its in-commit timestamp, or the modification time of its file."""
        # No cached_property: until Python 3.12 all snapshots would share its lock, and this may make a request.
        if self._timestamp_ms is None:
            self._timestamp_ms = self._timestamp(self.properties.enable_in_commit_timestamps)
        return self._timestamp_ms

    # --- the files ------------------------------------------------------------------------------------------------

    @property
    def files(self) -> "pa.Table":
        """The live files: one row each, with the columns of `add` under their protocol names, without stats.

        Raises ChecksumMismatchError when the state doesn't match the version's checksum, and the commits don't confirm
        the state.
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

    @sets_table
    def verify(self, counted: Totals | None = None) -> None:
        """Compare with the version checksum, once; one request, made when the files are loaded anyway.

        `counted` are the totals from a caller that read the files itself. Raises ChecksumMismatchError.
        """
        checksum = self._checksum() if self._checksum is not None else None
        if checksum is not None:
            from ..log.checksum import differences

            if counted is None:
                sentences = differences(checksum, self, self._counted())
            else:
                sentences = differences(replace(checksum, files=None), self, counted)
            if sentences:
                self._contradicted(checksum, sentences, may_confirm=counted is None)
        self._checksum = None

    def _contradicted(self, checksum: "VersionChecksum", sentences: Sequence[str], *, may_confirm: bool) -> None:
        """Warn if the commits confirm the state that was read; else raise ChecksumMismatchError."""
        message = f"version {self.version} of {self.table} doesn't match its checksum: {'; '.join(sentences)}"
        if not self._fatal:
            _log.warning("%s. The version is read anyway, because %s is false", message, CORRUPTION_IS_FATAL.key)
            return
        large = self._base is not None and self._base.is_large
        reason: str | None
        if self._doubt is None or not may_confirm or large:
            reason = "The log was changed after the commit, or a writer wrote a wrong checksum"
        else:
            reason = self._doubt(self, checksum)
            if reason is None:
                _log.warning("%s. The commits confirm the state: the checksum is wrong, and isn't used", message)
                return
        raise ChecksumMismatchError(
            f"{message}. {reason}: compare the log with a copy. To read the version with a warning, set "
            f"{CORRUPTION_IS_FATAL.key}=false.",
            table=self.table,
            version=self.version,
            path=crc_name(self.version),
        )

    @sets_table
    def select(self, names: Sequence[str]) -> "pa.Table":
        """These columns of `add` of the live files, in the order of `files`, without a check of the checksum."""
        with self._lock:
            return self._replayed.select(names)

    def files_with_stats_text(self) -> "pa.Table":
        """`files` with "stats" as JSON text for each file with statistics, also if a checkpoint has them as structs."""
        return self._with_stats_text(None)

    @sets_table
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
        """`files` in pieces, for callers that can't hold the statistics of all files in memory.

        With statistics, a piece has "stats" and, for files from a checkpoint that has structs, "stats_parsed"; either
        may be null where the other isn't.
        """
        with error_context(table=self.table, version=self.version):
            yield from self._replayed.pieces(with_stats=with_stats)

    def newer_pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """`pieces` of the files that the commits after the checkpoint added."""
        return self._replayed.newer_pieces(with_stats=with_stats)

    @sets_table
    def add_files(self, rows: "pa.Array | pa.ChunkedArray | Sequence[int] | None" = None) -> list[AddFile]:
        """The actions of the live files with their stats: all, or those of a mask or of indices into `files`."""
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
        num_base_rows, added = self._replayed.num_base_rows, self._replayed.added
        of_base = [index for index in indices if index < num_base_rows]
        base_actions: dict[int, AddFile] = {}
        if of_base:
            table = self._with_stats_text(None if of_base == list(range(total)) else of_base)
            base_actions = dict(zip(of_base, adds_of(table), strict=True))
        return [base_actions[i] if i < num_base_rows else added[i - num_base_rows] for i in indices]

    @property
    def at_hand(self) -> bool:
        """Whether the files can be had without a request."""
        return self._base is None or self._base.at_hand()

    def listed_files(self) -> list[AddFile]:
        """The actions of the live files without their stats, without a check of the checksum."""
        from ..log.columns import FILE_SCHEMA, adds_of

        return adds_of(self.select(FILE_SCHEMA.names))

    @sets_table
    def file_key(self, row: int) -> FileKey:
        """The path, as it is in the log, and the id of the deletion vector of a row of `files`."""
        files = self.files
        return files.column("path")[row].as_py(), vector_id(files.column("deletionVector")[row].as_py())

    @property
    @sets_table
    def tombstones(self) -> "pa.Table":
        """The removed files that the log still lists, with the columns of `remove` (expired ones included)."""
        with self._lock:
            if self._tombstones is None:
                self._tombstones = self._replayed.tombstones()
            return self._tombstones

    def tombstone_pieces(self) -> "Iterator[pa.Table]":
        """`tombstones` in pieces; those of a large checkpoint are decoded piece by piece, and not kept."""
        with error_context(table=self.table, version=self.version):
            yield from self._replayed.tombstone_pieces()

    # --- counts ---------------------------------------------------------------------------------------------------

    @property
    def num_files(self) -> int:
        """The number of live files."""
        return self._exact().num_files

    @property
    def size_in_bytes(self) -> int:
        """The size of the live files in bytes."""
        return self._exact().size_in_bytes

    def _exact(self) -> Totals:
        with self._lock:
            if (
                not self._replayed.loaded
                and self._known_totals is None
                and self._base is not None
                and self._base.is_large
            ):
                self.seed_totals_from_checksum()
            return self._counted() if self._replayed.loaded or self._known_totals is None else self._known_totals

    def totals(self) -> Totals | None:
        """Number and bytes of the live files if they are known without a request; else `None`.

        Before the files are loaded, they may be computed from an earlier version's totals and the commits since.
        """
        with self._lock:
            if self._replayed.loaded or (self._known_totals is None and (self._base is None or self._base.at_hand())):
                return self._counted()
            return self._known_totals

    @sets_table
    def _counted(self) -> Totals:
        with self._lock:
            if not self._exact_totals:
                self._known_totals = self._replayed.totals()
                self._exact_totals = True
            assert self._known_totals is not None
            return self._known_totals

    # --- pruning --------------------------------------------------------------------------------------------------

    def prune(self, predicate: "Predicate", *, time_zone: str) -> "pa.Table":
        """The rows of `files` that may hold rows which satisfy `predicate`, by partition values, then by statistics.

        Args:
            predicate: A predicate on logical column names.
            time_zone: The time zone of partition timestamps that name none.

        Returns:
            Rows of `files`.
        """
        return self.files.filter(self.prune_mask(predicate, time_zone=time_zone))

    @sets_table
    def prune_mask(self, predicate: "Predicate", *, time_zone: str) -> "pa.BooleanArray":
        """For each row of `files`, whether it may hold a row that satisfies `predicate`.

        Statistics are read only for files that the partition values don't exclude. The arguments are as in `prune`.
        """
        return prune_mask(self.files, self._with_stats_of, self.mapping, predicate, time_zone=time_zone)

    def file_stats(self, columns: "Collection[Column]", rows: "Sequence[int] | None" = None) -> "FileStats":
        """The statistics of columns (physical names) in the files: all, or those of indices into `files`."""
        from ..skipping import stats

        if rows is not None and not (self._base is not None and self._base.has_stats_parsed()):
            files = self.files_with("stats")  # the texts of the other files aren't parsed
        else:
            files = self._with_stats_of(columns)
        if rows is not None:
            files = files.select([name for name in files.column_names if name.startswith("stats")]).take(rows)
        return stats.read(files, columns, self.mapping.physical)

    def num_records(self) -> "pa.Array":
        """The number of rows in each file of `files`, deleted rows included, from its statistics; null: unknown."""
        from ..skipping import stats

        return stats.read(self._with_stats_of(()), (), self.mapping.physical).num_records

    @sets_table
    def _with_stats_of(self, columns: "Collection[Column]") -> "pa.Table":
        """`files` with the statistics of these columns (physical names); from a checkpoint as structs, without other
        columns.
        """
        with self._lock:
            more = self._replayed.statistics(columns, self.mapping.physical)
        files = self.files
        for name in more.column_names:
            files = files.append_column(name, more.column(name))
        return files

    # --- the next version -----------------------------------------------------------------------------------------

    @property
    def base_version(self) -> int:
        """The version of the checkpoint that this version was read from; -1 if there was none."""
        return -1 if self._base is None else self._base.version

    @property
    def base_lost(self) -> bool:
        """Whether the checkpoint was removed since it was opened, before everything in it was read."""
        return self._base is not None and self._base.lost

    @property
    def base(self) -> "CheckpointState | None":
        """The checkpoint, for code that reads its files in another place."""
        return self._base

    @property
    def overlay(self) -> "Mapping[FileKey, LogicalFile]":
        """The newest file action of each file in the commits after the checkpoint."""
        return self._tail.merged()

    @property
    def tail_actions(self) -> int:
        """The number of file actions after the base, which a newer checkpoint would contain."""
        return self._tail.num_actions

    def after(
        self,
        version: int,
        commits: Sequence[Sequence[Action]],
        *,
        timestamp: Callable[[bool], int],
        checksum: "Callable[[], VersionChecksum | None] | None" = None,
    ) -> "Snapshot":
        """The snapshot of `version`; `commits` are the actions of the commits since this one. No request."""
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

    def replaced(self, version: int, commits: Sequence[Sequence[Action]], files: ReplayedFiles) -> "Snapshot":
        """The snapshot of `version` with these files; `commits` are the actions of the commits since this one."""
        header = self._header
        for actions in commits:
            header = header.after(actions)
        tail = CommitOverlay(self.table)
        return Snapshot(
            self.table, version, header, tail, None, timestamp=self._timestamp, totals=files.totals(), replayed=files
        )

    def seed_totals_from_checksum(self) -> None:
        """Read the totals from the version's checksum, if there is one, so that later versions can update them."""
        with self._lock:
            checksum = self._checksum() if self._checksum is not None else None
            if checksum is not None and self._known_totals is None:
                self._known_totals = checksum.totals
