"""Reading checkpoints: classic, multi-part and V2, lazily by column (PROTOCOL.md, "Checkpoints").

Opening a checkpoint decodes only the few rows that aren't files. The columns of files are decoded on demand. The bytes
of a large file are released once the columns of `Snapshot.files` are decoded.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from ...errors import CorruptLogError, MissingCommitError, TableNotFoundError, VersionNotFoundError
from ...logstore.base import FileStatus, LogStore
from ...logstore.common.uri import escaped
from ..protocol.actions import Action, AddFile, RemoveFile, Sidecar
from ..protocol.codec import parse_commit
from ..protocol.paths import LOG_DIRECTORY, SIDECAR_DIRECTORY, canonical_column, decode
from .checkpoint_file import (
    HEADER_KINDS,
    Damage,
    DamagedCheckpointError,
    ParquetFile,
    ReplacedError,
    opened_listed,
    read_listed,
)
from .column_types import fitted
from .memory_limits import DEFAULT_LIMITS, MemoryLimits
from .replay import Header
from .segment import Checkpoint, name_of
from .version_state import LiveFiles

if TYPE_CHECKING:
    import pyarrow as pa

    from ..protocol.schema import Column, DataType

_log = logging.getLogger(__name__)

_CACHE_BYTES = 256 << 20
"""The most bytes kept in memory of decoded columns (stats) that aren't in `Snapshot.files`."""
_THREADS = 8
_AT_ONCE = 256 << 20
"""A checkpoint with more bytes is large: only some of its files are in memory at a time, while they are read.

A file with more bytes is never in memory: the parts that are read are.
"""
_TOGETHER = 256 << 20
"""The most bytes of files of a large checkpoint that are in memory together."""


def sidecar_name(sidecar: Sidecar) -> str | None:
    """The name of a sidecar's file in `_sidecars`; `None` if the path is outside it, which the protocol doesn't allow.

    PROTOCOL.md, "Sidecar File Information": a path is a file name, or a URI of the file. Only the file name of a URI is
    used, because the log may have been copied.
    """
    directory, slash, name = decode(sidecar.path).rpartition("/")
    if name in ("", ".", "..") or "\0" in name:
        return None
    return name if not slash or f"/{directory}".endswith(f"/{LOG_DIRECTORY}/{SIDECAR_DIRECTORY}") else None


class _Extra(NamedTuple):
    """The cache key of a column that isn't in `FILE_SCHEMA`: whole, some `leaves` of it, or `parsed` from JSON text."""

    column: str
    form: Literal["whole", "leaves", "parsed"] = "whole"
    of: tuple[str, ...] = ()


class CheckpointState:
    """The state that a checkpoint holds. The header is read at once, the files are read by column on demand.

    Snapshots and threads share it. Raises `DamagedCheckpointError` if a file can't be read, and `ReplacedError` on
    opening if the files differ from those that were listed.
    """

    def __init__(
        self,
        store: LogStore,
        log_path: str,
        table: str,
        checkpoint: Checkpoint,
        recover: Callable[[tuple[str, ...]], LiveFiles],
        limits: MemoryLimits = DEFAULT_LIMITS,
        *,
        in_log: bool = True,
    ) -> None:
        """`recover` reads the same version without the files that it gets as argument, if damage is detected later.

        `in_log`: its files are in the log; else they are temporary files of this process.
        """
        self.in_log = in_log
        self.version = checkpoint.version
        self.names = checkpoint.names
        self.checksum = checkpoint.checksum
        self.compared = False
        """Whether its files were compared with the checksum of its version."""
        self.lost = False
        """Whether its files no longer exist: a handle then opens the table again."""
        self._store = store
        self._log_path = log_path
        self._table = table
        self._recover = recover
        self._kept_file_bytes = limits.kept_file_bytes
        self._recovered: LiveFiles | None = None
        self._lock = threading.RLock()
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._extra: dict[_Extra, pa.ChunkedArray] = {}
        self._paths: pa.ChunkedArray | None = None
        self._removes: pa.Table | None = None
        self._inline: list[AddFile | RemoveFile] = []
        self._files: list[ParquetFile] = []
        located: list[tuple[str, int]] = []
        actions: list[Action] = []
        for status in checkpoint.files:
            if checkpoint.format == "json":
                data = read_listed(store, status)
                with Damage(name_of(status), self.names):
                    actions.extend(parse_commit(data))
                continue
            self._files.append(ParquetFile(name_of(status), self._loader(status), self.names))
            located.append((status.path, status.size))
        self._sizes = [size for _, size in located]
        self.size_in_bytes = sum(self._sizes)
        for file in self._each():
            actions.extend(file.actions(HEADER_KINDS))
        self.header = Header().after(actions)
        self.sidecars = tuple(action for action in actions if isinstance(action, Sidecar))
        if self.sidecars:
            # The protocol: file actions are all in the sidecars, or all in the checkpoint itself.
            located = [(self._sidecar_path(sidecar), sidecar.size_in_bytes) for sidecar in self.sidecars]
            self._sizes = [size for _, size in located]
            self.size_in_bytes = sum(self._sizes)
            self._files = [self._sidecar(path, size) for path, size in located]
        else:
            self._inline = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
        self.files: tuple[tuple[str, int], ...] | None = None if self._inline else tuple(located)
        """Path and size of the Parquet files that hold all of its file actions, where these do."""

    def _each(self) -> Iterator[ParquetFile]:
        """Its Parquet files, loaded: a small checkpoint keeps all bytes in memory, a large one a few files' bytes."""
        if self.size_in_bytes <= _AT_ONCE:
            self._fetch(self._files)
            yield from self._files
            return
        for batch in self._batches():
            self._fetch(batch)
            yield from batch
            for file in batch:
                file.release(0)

    def _batches(self) -> Iterator[Sequence[ParquetFile]]:
        """Its files in groups whose bytes may be in memory together."""
        batch: list[ParquetFile] = []
        filled = 0
        for file, size in zip(self._files, self._sizes, strict=True):
            if batch and (len(batch) == _THREADS or filled + size > _TOGETHER):
                yield batch
                batch, filled = [], 0
            batch.append(file)
            filled += size
        if batch:
            yield batch

    @staticmethod
    def _fetch(files: Sequence[ParquetFile]) -> None:
        """Load several files in parallel, because each load is a request."""
        missing = [file for file in files if not file.at_hand]
        if len(missing) > 1:
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(ParquetFile.fetch, missing))

    def _loader(self, status: FileStatus) -> Callable[[], bytes | IO[bytes]]:
        opened = False

        def load() -> bytes | IO[bytes]:
            nonlocal opened
            if not opened:
                data = opened_listed(self._store, status, _AT_ONCE)
                opened = True
                return data
            try:
                return opened_listed(self._store, status, _AT_ONCE)
            except ReplacedError as error:
                raise self._removed_meanwhile(str(error)) from None

        return load

    def _sidecar_path(self, sidecar: Sidecar) -> str:
        name = sidecar_name(sidecar)
        if name is None or sidecar.size_in_bytes < 0:
            description = f"{sidecar.path[:200]!r}, {sidecar.size_in_bytes} bytes"
            message = f"the checkpoint {self.names[0]} has a sidecar ({description}) that isn't in {SIDECAR_DIRECTORY}"
            raise DamagedCheckpointError(message, self.names, path=self.names[0])
        return f"{self._log_path}/{SIDECAR_DIRECTORY}/{escaped(os.fsencode(name))}"

    def _sidecar(self, path: str, size: int) -> ParquetFile:
        name = path.rpartition("/")[2]
        store, names = self._store, self.names  # a reference to `self` would be a cycle, which keeps temporary files
        sidecar = f"the sidecar {name} of the checkpoint {names[0]}"

        def load() -> bytes | IO[bytes]:
            try:
                if size > _AT_ONCE:
                    return opened_listed(store, FileStatus(path, size, 0), _AT_ONCE)
                data = store.read_at_most(path, size)
            except FileNotFoundError:
                raise DamagedCheckpointError(f"{sidecar} is missing", names, path=name) from None
            except (CorruptLogError, ReplacedError) as error:
                raise DamagedCheckpointError(f"{sidecar}: {error}", names, path=name) from error
            if len(data) != size:
                message = f"{sidecar} has {len(data)} bytes, and {size} by the checkpoint"
                raise DamagedCheckpointError(message, names, path=name)
            return data

        return ParquetFile(name, load, names)

    def _removed_meanwhile(self, reason: str) -> VersionNotFoundError:
        self.lost = True
        return VersionNotFoundError(
            f"the checkpoint of version {self.version} of {self._table} was removed or replaced since it was opened "
            f"({reason}). Take a new snapshot.",
            table=self._table,
            version=self.version,
        )

    def adds(self, names: Sequence[str]) -> "list[pa.ChunkedArray]":
        """Columns of the live files, by the field names of `add`; a column that doesn't exist is null."""
        from .columns import ADD_TYPES, FILE_SCHEMA

        with self._lock:
            core = [name for name in names if name in FILE_SCHEMA.names and name not in self._columns]
            if core and self._recovered is None:
                # All of them in one pass: the bytes are released afterwards.
                missing = [name for name in FILE_SCHEMA.names if name not in self._columns]
                try:
                    self._columns.update(self._read("add", missing, ADD_TYPES))
                except DamagedCheckpointError as error:
                    # Only possible before any column was returned, because the order of rows may differ.
                    _log.warning("%s: %s; reading the version from other files of the log instead", self._table, error)
                    self._recovered = self._recovery(error)
                for file in self._files:
                    file.release(self._kept_file_bytes)
            if self._recovered is not None:
                table = self._recovered.select(names)
                return [table.column(name) for name in names]
            return [self._columns[name] if name in self._columns else self._whole(name) for name in names]

    def _recovery(self, error: DamagedCheckpointError) -> LiveFiles:
        try:
            return self._recover(error.names)
        except (MissingCommitError, VersionNotFoundError, TableNotFoundError):
            if self._was_removed():
                raise self._removed_meanwhile(str(error)) from None
            raise error from None

    def _was_removed(self) -> bool:
        """Whether the checkpoint itself was removed, as a cleanup does, and not only a part of it."""
        try:
            self._store.read(f"{self._log_path}/{self.names[0]}")
        except FileNotFoundError:
            return True
        return False

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The live files in pieces, in the order of `adds`: the columns of `FILE_SCHEMA`; with statistics also
        "stats" and, if the checkpoint has it, "stats_parsed", which are decoded for one piece at a time.
        """
        import pyarrow as pa

        from .columns import ADD_TYPES, FILE_SCHEMA, column_of

        if self.is_large and not self.loaded:
            yield from self._streamed(with_stats)
            return
        core = dict(zip(FILE_SCHEMA.names, self.adds(FILE_SCHEMA.names), strict=True))
        if self._recovered is not None:
            yield from self._recovered.pieces(with_stats=with_stats)
            return
        if not with_stats:
            yield pa.table(core)
            return
        offset = 0
        for file in self._files:
            with self._lock:
                batches = file.structs("add", ("stats", "stats_parsed"))
            for batch in batches:
                piece = pa.table({name: column.slice(offset, len(batch)) for name, column in core.items()})
                offset += len(batch)
                columns = {field.name: child for field, child in zip(batch.type, batch.flatten(), strict=True)}
                texts = columns.get("stats")
                with Damage(file.name, self.names):
                    texts = pa.nulls(len(batch), pa.string()) if texts is None else fitted(texts, ADD_TYPES["stats"])
                piece = piece.append_column("stats", texts)
                if "stats_parsed" in columns:
                    piece = piece.append_column("stats_parsed", columns["stats_parsed"])
                yield piece
            with self._lock:
                file.release(self._kept_file_bytes)
        inline = [file for file in self._inline if isinstance(file, AddFile)]
        if inline:
            piece = pa.table({name: column.slice(offset) for name, column in core.items()})
            yield piece.append_column("stats", column_of(inline, "stats", ADD_TYPES["stats"]))

    def open_file(self, path: str) -> BinaryIO:
        """One of `files`, open for reading."""
        return self._store.open_file(path)

    @property
    def is_large(self) -> bool:
        """Whether the checkpoint is too large to keep all files in memory."""
        return self.size_in_bytes > _AT_ONCE and self.files is not None

    @property
    def loaded(self) -> bool:
        """Whether the columns of its files are in memory."""
        return bool(self._columns) or self._recovered is not None

    def _streamed(self, with_stats: bool) -> "Iterator[pa.Table]":
        """`pieces` without columns in memory. After an error for damage, the next call reads other files of the log."""
        from .checkpoint_shares import pieces

        files = self._each()
        while True:
            try:
                with self._lock:
                    file = next(files, None)
                if file is None:
                    return
                yield from pieces(file, ("stats", "stats_parsed") if with_stats else ())
            except DamagedCheckpointError as error:
                self._lose(error)
                raise

    def _lose(self, error: DamagedCheckpointError) -> None:
        """From now on, read other files of the log, if nothing was read from this checkpoint yet."""
        with self._lock:
            if not self.loaded:
                self._recovered = self._recovery(error)

    def stats_parsed(self, leaves: Iterable[str]) -> "pa.ChunkedArray":
        """The column `stats_parsed`, reduced to `leaves` (dotted paths below it); null if it doesn't exist."""
        paths = [f"stats_parsed.{leaf}" for leaf in sorted(leaves)]
        return self._kept(_Extra("stats_parsed", "leaves", tuple(paths)), paths)

    def has_stats_parsed(self) -> bool:
        """Whether the checkpoint has statistics as structs; the columns of the files must have been read before."""
        return self._recovered is None and any("stats_parsed" in file.add_fields for file in self._files)

    def stats_from_text(self, leaves: "Sequence[tuple[Column, DataType]]") -> "pa.ChunkedArray":
        """The statistics of these columns as structs, parsed from JSON text.

        The text is decoded in pieces, because it is much larger than the result.
        """
        import pyarrow as pa

        from ..protocol.schema import type_text
        from ..skipping import stats
        from .columns import column_of

        described = tuple(f"{'.'.join(column)}: {type_text(data_type)}" for column, data_type in leaves)
        key = _Extra("stats", "parsed", described)
        with self._lock:
            if key not in self._extra:
                tree = stats.tree(leaves)
                if self._recovered is not None or _Extra("stats") in self._extra:
                    pieces: Iterable[pa.Array] = self.adds(["stats"])[0].chunks
                else:
                    inline = [file for file in self._inline if isinstance(file, AddFile)]
                    pieces = chain(
                        chain.from_iterable(file.pieces("add", "stats") for file in self._each()),
                        [column_of(inline, "stats", pa.string())] if inline else [],
                    )
                chunks = [chunk for piece in pieces for chunk in stats.parse_json(piece, tree).chunks]
                self._remember(key, pa.chunked_array(chunks, stats.struct_type(tree)))
            return self._extra[key]

    def _whole(self, name: str) -> "pa.ChunkedArray":
        return self._kept(_Extra(name), None)

    def _kept(self, key: "_Extra", leaves: Sequence[str] | None) -> "pa.ChunkedArray":
        from .columns import ADD_TYPES

        with self._lock:
            if key not in self._extra:
                self._remember(key, self._read("add", [key.column], ADD_TYPES, leaves)[key.column])
            return self._extra[key]

    def _remember(self, key: "_Extra", column: "pa.ChunkedArray") -> None:
        for file in self._files:
            file.release(self._kept_file_bytes)
        self._extra[key] = column
        while len(self._extra) > 1 and sum(c.nbytes for c in self._extra.values()) > _CACHE_BYTES:
            del self._extra[next(iter(self._extra))]

    def _read(
        self, kind: str, names: Sequence[str], types: Any, leaves: Sequence[str] | None = None
    ) -> "dict[str, pa.ChunkedArray]":
        import pyarrow as pa

        from .columns import column_of

        inline = [file for file in self._inline if isinstance(file, AddFile if kind == "add" else RemoveFile)]
        tables = [file.columns(kind, names, leaves) for file in self._each()]
        result: dict[str, pa.ChunkedArray] = {}
        with Damage(self.names[0], self.names):
            for name in names:
                data_type = types.get(name)
                columns = [table.column(name) for table in tables]
                if data_type is None:
                    # A struct that follows the table's schema: its fields may differ between files of the checkpoint.
                    merged = (
                        pa.concat_tables(
                            [pa.table({name: column}) for column in columns], promote_options="permissive"
                        ).column(0)
                        if columns
                        else pa.chunked_array([pa.nulls(0)])
                    )
                    data_type = merged.type
                    chunks = merged.chunks
                else:
                    chunks = [fitted(chunk, data_type) for column in columns for chunk in column.chunks]
                if inline:
                    chunks.append(column_of(inline, name, data_type))
                result[name] = pa.chunked_array(chunks, data_type)
            for name in ("path", "size") if kind == "add" else ("path",):
                if name in result and result[name].null_count:
                    raise CorruptLogError(f"a file has no {name}")
        return result

    def canonical_paths(self) -> "pa.ChunkedArray":
        """The paths of the live files in the canonical form that replay compares."""
        with self._lock:
            if self._paths is None:
                self._paths = canonical_column(self.adds(["path"])[0], self._table)
            return self._paths

    def removes(self) -> "pa.Table":
        """The tombstones, with the columns of `REMOVE_SCHEMA`."""
        import pyarrow as pa

        from .columns import REMOVE_SCHEMA

        with self._lock:
            if self._recovered is not None:
                return self._recovered.tombstones
            if self._removes is None:
                types = {field.name: field.type for field in REMOVE_SCHEMA}
                try:
                    columns = self._read("remove", REMOVE_SCHEMA.names, types)
                    self._removes = pa.table(columns, schema=REMOVE_SCHEMA)
                except DamagedCheckpointError as error:
                    self._removes = self._recovery(error).tombstones
            return self._removes

    def remove_pieces(self) -> "Iterator[pa.Table]":
        """`removes` in pieces. A large checkpoint is decoded piece by piece. After an error for damage, the next call
        reads other files of the log.
        """
        from .checkpoint_shares import removed_pieces

        if not self.is_large or self._removes is not None or self._recovered is not None:
            yield self.removes()
            return
        files = self._each()
        while True:
            with self._lock:
                file = next(files, None)
            if file is None:
                return
            try:
                yield from removed_pieces(file)
            except DamagedCheckpointError as error:
                self._lose(error)
                raise

    def at_hand(self) -> bool:
        """Whether the columns of the files are available without a request."""
        with self._lock:
            return "size" in self._columns or self._recovered is not None or all(file.at_hand for file in self._files)


def checkpoint_alone(store: LogStore, log_path: str, table: str, checkpoint: Checkpoint) -> CheckpointState:
    """The state in a checkpoint, without other files: damage that is found later is an error too."""
    return CheckpointState(store, log_path, table, checkpoint, nothing_else)


def nothing_else(names: tuple[str, ...]) -> LiveFiles:
    """For `CheckpointState`: there are no other files of the version."""
    raise MissingCommitError(f"only {names[0]} is read")
