"""Writing checkpoints: classic, in parts, or V2 with sidecars (PROTOCOL.md, "Checkpoints").

The table and the session decide which kind is written: see `kind_of`. Apart from the snapshot, only some pieces of the
statistics and of the file are in memory: a store that writes a file in pieces gets each as soon as it is ready. A
sidecar is in memory as a whole.
"""

import logging
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Literal, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ... import observe
from ...logstore.base import LogStore
from ...settings.declarations import CHECKPOINT_PART_SIZE, CHECKPOINT_V2_FORMAT
from ..log import last_checkpoint
from ..log.checkpoint_file import DamagedCheckpointError
from ..log.columns import vector_ids
from ..log.last_checkpoint import LastCheckpoint
from ..protocol.actions import CheckpointMetadata, Sidecar
from ..protocol.codec import serialise
from ..protocol.features import supported
from ..protocol.paths import LAST_CHECKPOINT, SIDECAR_DIRECTORY, checkpoint_name, part_name, uuid_checkpoint_name
from ..table.snapshot import Snapshot
from . import checkpoint_rows as rows
from . import spark_hash
from .checkpoint_parquet import NO_BOUND, CheckpointFile, MemorySink, filled, top_level

_Piece = TypeVar("_Piece")

_log = logging.getLogger(__name__)

_WAITING_ROWS = 4 * rows.PIECE_ROWS
_LEAST_ROWS = 1 << 14
_SPOOLED_BYTES = 8 << 20
"""The number of bytes read at a time from a part in a temporary file."""
_MOST_AS_JSON = 10_000
"""A V2 checkpoint with more header actions and sidecars is Parquet by default."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a checkpoint: `form` is the top-level format of V2, `files` the number of parts or sidecars."""

    name: Literal["classic", "parts", "v2"]
    files: int = 1
    form: Literal["json", "parquet"] = "json"


def kind_of(snapshot: Snapshot, tombstones: int, header: int, conf: Mapping[str, str]) -> Kind:
    """The kind of a version's checkpoint. `tombstones` and `header` are the numbers of these actions in it.

    V2 if `delta.checkpointPolicy` says so; in parts if the session sets `checkpoint.partSize`, which for V2 is the size
    of a sidecar. The protocol forbids parts if the table supports V2.
    """
    most = CHECKPOINT_PART_SIZE.of(conf)
    files = 1 if most is None else max(1, -(-(snapshot.num_files + tombstones) // most))
    if "v2Checkpoint" not in supported(snapshot.protocol):
        return Kind("parts", files) if files > 1 else Kind("classic")
    if snapshot.properties.checkpoint_policy != "v2":
        return Kind("classic")
    form = CHECKPOINT_V2_FORMAT.of(conf) or ("parquet" if header > _MOST_AS_JSON else "json")
    return Kind("v2", files, "json" if form == "json" else "parquet")


@dataclass(frozen=True, slots=True)
class Sidecars:
    """Sidecars written to the log, with the live files of the old checkpoint: `adds` files in all."""

    written: list[Sidecar]
    adds: int


SidecarWriter: TypeAlias = Callable[[Snapshot, rows.CheckpointLayout], Sidecars | None]
"""Writes the sidecars of a V2 checkpoint in another way, if the log is large; None: it isn't, or it can't."""


def write(
    store: LogStore,
    log_path: str,
    snapshot: Snapshot,
    now_ms: int,
    conf: Mapping[str, str] | None = None,
    sidecar_writer: SidecarWriter | None = None,
) -> LastCheckpoint:
    """Write the checkpoint of a version; return the hint for `_last_checkpoint` (see `point_at`).

    A valid checkpoint of another writer for this version is kept, because it has the same content. One that can't be
    read is replaced. `now_ms` decides which tombstones have expired. Raises the errors of the store; the table can be
    read without the checkpoint.
    """
    try:
        return _write(store, log_path, _Contents(snapshot, now_ms), conf or {}, sidecar_writer)
    except DamagedCheckpointError as error:
        # A damaged part of a large old checkpoint may be found only while it is read; then other files are read.
        fields = observe.fields(snapshot.table, version=snapshot.version, store=store, outcome="damaged")
        _log.warning("%s: %s; writing the checkpoint again without this file", snapshot.table, error, extra=fields)
        return _write(store, log_path, _Contents(snapshot, now_ms), conf or {}, None)


def _write(
    store: LogStore,
    log_path: str,
    contents: "_Contents",
    conf: Mapping[str, str],
    sidecar_writer: SidecarWriter | None,
) -> LastCheckpoint:
    snapshot = contents.snapshot
    # The tombstones may be millions: they are counted only if their number matters.
    tombstones = 0 if CHECKPOINT_PART_SIZE.of(conf) is None else contents.tombstones
    kind = kind_of(snapshot, tombstones, len(contents.header), conf)
    if kind.name == "v2":
        elsewhere = None if sidecar_writer is None else sidecar_writer(snapshot, contents.layout)
        return _write_v2(store, log_path, contents, kind, elsewhere)
    if kind.name == "parts":
        return _write_parts(store, log_path, contents, kind.files)
    size = _put(store, log_path, checkpoint_name(snapshot.version), partial(_classic, contents))
    if isinstance(size, _Held):  # the store may not have read all pieces
        return LastCheckpoint(snapshot.version, size.rows, num_of_add_files=size.adds)
    return contents.hint(contents.num_rows, size)


def point_at(store: LogStore, log_path: str, hint: LastCheckpoint) -> None:
    """Write `hint` to `_last_checkpoint`."""
    store.write(f"{log_path}/{LAST_CHECKPOINT}", last_checkpoint.serialise(hint), overwrite=True)


class _Contents:
    """The rows of a version's checkpoint, read in pieces."""

    def __init__(self, snapshot: Snapshot, now_ms: int) -> None:
        self.snapshot = snapshot
        self.now_ms = now_ms
        self.header = rows.header(snapshot, now_ms)
        self.layout = rows.layout(snapshot)
        self.num_adds = self.num_removes = 0
        """The number of live files, and of tombstones, returned so far."""

    @cached_property
    def tombstones(self) -> int:
        """The number of tombstones that haven't expired."""
        return sum(piece.num_rows for piece in rows.tombstones(self.snapshot, self.now_ms))

    def files(self, *, newer: bool = False) -> Iterator[tuple[str, pa.Array]]:
        """All rows of files; with `newer` only those of live files added after the old checkpoint."""
        for piece in rows.removes(rows.tombstones(self.snapshot, self.now_ms)):
            self.num_removes += len(piece)
            yield "remove", piece
        pieces = self.snapshot.newer_pieces if newer else self.snapshot.pieces
        for piece in _ahead(self.layout.rows(pieces(with_stats=self.layout.with_stats))):
            self.num_adds += len(piece)
            yield "add", piece

    @property
    def num_rows(self) -> int:
        """The number of rows of the checkpoint; valid after all files were returned."""
        return len(self.header) + self.num_removes + self.num_adds

    def hint(self, size: int, size_in_bytes: int | None, parts: int | None = None) -> LastCheckpoint:
        return LastCheckpoint(self.snapshot.version, size, parts, size_in_bytes, self.num_adds)


def _ahead(pieces: Iterator[_Piece]) -> Generator[_Piece]:
    """Iterate over the pieces and prepare the next one meanwhile: encoding and writing release Python's GIL."""
    with ThreadPoolExecutor(1, thread_name_prefix="tablelog-checkpoint") as pool:
        future = pool.submit(next, pieces, None)
        while (piece := future.result()) is not None:
            future = pool.submit(next, pieces, None)
            yield piece


class _Held(NamedTuple):
    """The content of a checkpoint file: the number of all rows, and of live files."""

    rows: int
    adds: int


def _put(store: LogStore, log_path: str, name: str, pieces: Callable[[], Generator[bytes]]) -> int | _Held:
    """Write a file with the same content for every writer. Returns its size, or the content of an existing valid file.

    `pieces` creates the content, from the start on each call.
    """
    path = f"{log_path}/{name}"
    try:
        return _written(store, path, pieces())
    except FileExistsError:
        pass  # the exception refers to the pieces, which are released before they are created again
    existing = _held(store, path)
    if existing is not None:
        _log.info("%s exists already", path, extra=observe.fields(store=store, outcome="exists"))
        return existing
    _log.warning("%s can't be read and is replaced", path, extra=observe.fields(store=store, outcome="damaged"))
    return _written(store, path, pieces(), overwrite=True)


def _written(store: LogStore, path: str, pieces: Generator[bytes], *, overwrite: bool = False) -> int:
    """Write a file and return its size in bytes. In any case the generator of pieces is closed."""
    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in pieces:
            size += len(piece)
            yield piece

    with closing(pieces):
        store.write_pieces(path, counted(), overwrite=overwrite)
    return size


def _classic(contents: _Contents) -> Generator[bytes]:
    """The classic checkpoint as Parquet (V1, allowed for every table); the next row group is prepared meanwhile."""
    with closing(_ahead(_row_groups(contents))) as groups:
        for group in groups:
            yield from group


def _row_groups(contents: _Contents) -> Iterator[list[bytes]]:
    contents.num_adds = contents.num_removes = 0
    sink = MemorySink()
    file = CheckpointFile(rows.classic_schema(contents.layout.type), sink, rows.PIECE_ROWS)
    for kind, column in rows.structs(contents.header):  # in the first row group
        file.put(kind, column)
    for kind, column in contents.files():
        file.put(kind, column)
        if pieces := sink.take():
            yield pieces
    file.close()
    yield sink.take()


def _write_parts(store: LogStore, log_path: str, contents: _Contents, count: int) -> LastCheckpoint:
    """Write a checkpoint in parts by Spark's hash, so that parts of two writers fit together.

    All parts are written at once, to temporary files, because a second pass over the statistics would take longer. The
    total number of buffered rows is limited, but each row group has a minimal size.
    """
    at_once = min(rows.PIECE_ROWS, max(_LEAST_ROWS, _WAITING_ROWS // count))
    schema = rows.classic_schema(contents.layout.type)
    version = contents.snapshot.version
    with_vectors = "deletionVectors" in supported(contents.snapshot.protocol)
    with ExitStack() as stack:
        spools = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        files: list[CheckpointFile] = []
        for spool in spools:
            files.append(CheckpointFile(schema, spool, at_once))
            stack.callback(files[-1].close)  # always runs before the temporary file is closed
        for kind, column in rows.structs(contents.header):
            files[spark_hash.SEED % count].put(kind, column)  # these rows have no path
        for kind, column in rows.joined(contents.files()):
            for number, indices in rows.by_part(spark_hash.parts(_hashes(column, with_vectors), count)):
                files[number].put(kind, column.take(indices))
        sizes: list[int] = []
        for number, (file, spool) in enumerate(zip(files, spools, strict=True)):
            file.close()
            size = _put(store, log_path, part_name(version, number + 1, count), partial(_spooled, spool))
            sizes += [] if isinstance(size, _Held) else [size]
    return contents.hint(contents.num_rows, sum(sizes) if len(sizes) == count else None, count)


def _spooled(spool: IO[bytes]) -> Generator[bytes]:
    spool.seek(0)
    while piece := spool.read(_SPOOLED_BYTES):
        yield piece


def _write_v2(
    store: LogStore, log_path: str, contents: _Contents, kind: Kind, elsewhere: Sidecars | None
) -> LastCheckpoint:
    """Write the sidecars, one after another, then the top-level file with a unique name."""
    version = contents.snapshot.version
    sidecars = [] if elsewhere is None else list(elsewhere.written)
    contents.num_adds = actions = 0 if elsewhere is None else elsewhere.adds
    size = sum(sidecar.size_in_bytes for sidecar in sidecars)
    if kind.files == 1:
        max_rows = NO_BOUND  # then the number of files isn't needed
    else:
        max_rows = max(1, -(-(contents.snapshot.num_files + contents.tombstones) // kind.files))
    for data, count in filled(contents.layout, contents.files(newer=elsewhere is not None), max_rows):
        name = f"{uuid.uuid4()}.parquet"
        # A unique name needs no condition, because no file with it exists.
        store.write(f"{log_path}/{SIDECAR_DIRECTORY}/{name}", data, overwrite=True)
        sidecars.append(Sidecar(name, len(data), contents.now_ms))
        size, actions = size + len(data), actions + count
    tags = {
        "sidecarNumActions": str(actions),
        "sidecarSizeInBytes": str(size),
        "numOfAddFiles": str(contents.num_adds),
    }
    top = [CheckpointMetadata(version, tags), *contents.header, *sidecars]
    data = serialise(top) if kind.form == "json" else top_level(top, contents.layout.type)
    store.write(f"{log_path}/{uuid_checkpoint_name(version, str(uuid.uuid4()), kind.form)}", data, overwrite=True)
    return contents.hint(actions + len(top), size + len(data))


def _hashes(files: pa.StructArray, with_vectors: bool) -> pa.Array:
    """The hash that decides the part: of the path, and of the deletion vector if the table supports them."""
    hashes = spark_hash.hashed(files.field("path"))
    if not with_vectors:
        return hashes
    return spark_hash.hashed(vector_ids(files.field("deletionVector")), hashes)


def _held(store: LogStore, path: str) -> _Held | None:
    """The content of a checkpoint file, from its path columns; None if it is damaged or missing."""
    try:
        file = pq.ParquetFile(pa.BufferReader(store.read(path)))
        paths = [n for n in (file.schema.column(i).path for i in range(len(file.schema))) if n.endswith(".path")]
        adds = 0
        for batch in file.iter_batches(columns=paths):
            if "add" in batch.schema.names:
                paths_ = pc.struct_field(batch.column("add"), "path")
                adds += len(paths_) - paths_.null_count
    except (FileNotFoundError, pa.ArrowException, OSError, ValueError):
        return None
    return _Held(file.metadata.num_rows, adds)
