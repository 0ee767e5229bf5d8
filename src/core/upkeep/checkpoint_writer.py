"""Writing checkpoints: classic, in parts, or V2 with sidecars (PROTOCOL.md, "Checkpoints").

Which it is follows from the table and the session: see `kind_of`. In memory, beside what the snapshot holds anyway, are
some pieces of the statistics and of the file that is made of them: a store that takes a file in pieces gets each as it
is ready. A sidecar is there whole.
"""

import io
import logging
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Literal, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...logstore.base import LogStore
from ...settings.honoured import CHECKPOINT_PART_SIZE, CHECKPOINT_V2_FORMAT
from ..log import last_checkpoint
from ..log.checkpoint_file import DamagedCheckpointError
from ..log.last_checkpoint import LastCheckpoint
from ..log.parquet_footer import sealed
from ..protocol.actions import Action, CheckpointMetadata, Sidecar
from ..protocol.codec import serialise
from ..protocol.features import supported
from ..protocol.paths import LAST_CHECKPOINT, SIDECAR_DIRECTORY, checkpoint_name, part_name, uuid_checkpoint_name
from ..table.snapshot import Snapshot
from . import checkpoint_rows as rows
from . import spark_hash

_Piece = TypeVar("_Piece")

_log = logging.getLogger(__name__)

_REPEATED = [f"{kind}.partitionValues.key_value.{part}" for kind in ("add", "remove") for part in ("key", "value")]
"""The columns worth a dictionary; of the others nearly each value is another, and one costs half of the time."""
NO_BOUND = 1 << 62
_WAITING_ROWS = 8 * rows.PIECE_ROWS
_LEAST_ROWS = 1 << 14
_SPOOLED_BYTES = 8 << 20
"""So much is read at a time of a part that waits on the disk."""
_MOST_AS_JSON = 10_000
"""A V2 checkpoint with more actions than this beside its sidecars is Parquet, unless the session says otherwise."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`form` is that of the top level of a V2 checkpoint; `files` how many parts or sidecars there are."""

    name: Literal["classic", "parts", "v2"]
    files: int = 1
    form: Literal["json", "parquet"] = "json"


def kind_of(snapshot: Snapshot, tombstones: int, header: int, conf: Mapping[str, str]) -> Kind:
    """Which checkpoint a version gets. `tombstones` and `header` are how many of these actions it holds.

    V2 by `delta.checkpointPolicy`; in parts by the session's `checkpoint.partSize`, which V2 has as the size of a
    sidecar. The protocol forbids parts where the table supports V2 at all.
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
    """Sidecars that lie in the log and hold what a version has kept of the checkpoint below it: `adds` files in all."""

    written: list[Sidecar]
    adds: int


SidecarWriter: TypeAlias = Callable[[Snapshot, rows.CheckpointLayout], Sidecars | None]
"""Writes the sidecars of a V2 checkpoint elsewhere, where it takes the log for large; None: it doesn't, or can't."""


def write(
    store: LogStore,
    log_path: str,
    snapshot: Snapshot,
    now_ms: int,
    conf: Mapping[str, str] | None = None,
    sidecar_writer: SidecarWriter | None = None,
) -> LastCheckpoint:
    """Write the checkpoint of a version, and give what `_last_checkpoint` may say of it: see `point_at`.

    A whole checkpoint of another writer at this version is left as it is: both hold the same. One that can't be read
    is replaced. `now_ms` decides which tombstones have expired. Raises what the store raises; nothing of the table
    depends on it.
    """
    try:
        return _write(store, log_path, _Contents(snapshot, now_ms), conf or {}, sidecar_writer)
    except DamagedCheckpointError as error:
        # Of a large checkpoint below that is found in the midst of it; from here on what else there is takes its place.
        _log.warning("%s: %s; beginning again without it", snapshot.table, error)
        return _write(store, log_path, _Contents(snapshot, now_ms), conf or {}, None)


def _write(
    store: LogStore,
    log_path: str,
    contents: "_Contents",
    conf: Mapping[str, str],
    sidecar_writer: SidecarWriter | None,
) -> LastCheckpoint:
    snapshot = contents.snapshot
    kind = kind_of(snapshot, contents.kept.num_rows, len(contents.header), conf)
    if kind.name == "v2":
        elsewhere = None if sidecar_writer is None else sidecar_writer(snapshot, contents.layout)
        return _write_v2(store, log_path, contents, kind, elsewhere)
    if kind.name == "parts":
        return _write_parts(store, log_path, contents, kind.files)
    size = _put(store, log_path, checkpoint_name(snapshot.version), partial(_classic, contents))
    if isinstance(size, _Held):  # the store needn't have asked for all of ours
        return LastCheckpoint(snapshot.version, size.rows, num_of_add_files=size.adds)
    return contents.hint(contents.num_rows, size)


def point_at(store: LogStore, log_path: str, hint: LastCheckpoint) -> None:
    """Make `_last_checkpoint` say `hint`."""
    store.write(f"{log_path}/{LAST_CHECKPOINT}", last_checkpoint.serialise(hint), overwrite=True)


class _Sink(io.RawIOBase):
    """Keeps what is written as it comes: in small pieces, whose memory serves again, for fresh memory takes time."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)  # not copied where it is that already
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> list[bytes]:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces


class _Sealing(io.RawIOBase):
    """Passes on what is written, up to `hold`; what comes after that is in `held`."""

    def __init__(self, sink: IO[bytes] | io.RawIOBase) -> None:
        super().__init__()
        self._sink = sink
        self.hold = False
        self.held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.hold:
            self.held.append(bytes(data))
            return len(self.held[-1])
        return self._sink.write(data) or 0


class _File:
    """One Parquet file in the making: rows of one kind after another, in row groups of a bounded size.

    Its pages have checksums, and so has its footer (`parquet_footer`).
    """

    def __init__(self, schema: pa.Schema, sink: IO[bytes] | io.RawIOBase, at_once: int) -> None:
        self._schema = schema
        self._at_once = at_once
        self._sink = sink
        self._sealing = _Sealing(sink)
        self._writer = pq.ParquetWriter(
            self._sealing,
            schema,
            compression="snappy",
            use_compliant_nested_type=True,
            use_dictionary=_REPEATED,
            write_page_checksum=True,
        )
        self._waiting: list[pa.RecordBatch] = []
        self.rows = 0

    def put(self, kind: str, column: pa.Array) -> None:
        if len(column) == 0:
            return
        arrays = [column if f.name == kind else pa.nulls(len(column), f.type) for f in self._schema]
        self._waiting.append(pa.record_batch(arrays, schema=self._schema))
        self.rows += len(column)
        if sum(batch.num_rows for batch in self._waiting) >= self._at_once:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=2 * rows.PIECE_ROWS)
            self._waiting.clear()

    def close(self) -> None:
        self._flush()
        self._sealing.hold = True
        self._writer.close()
        if self._sealing.held:
            self._sink.write(sealed(b"".join(self._sealing.held)))
            self._sealing.held = []


class _Contents:
    """The rows of the checkpoint of a version; `kept` are the tombstones that haven't expired."""

    def __init__(self, snapshot: Snapshot, now_ms: int) -> None:
        self.snapshot = snapshot
        self.now_ms = now_ms
        self.header = rows.header(snapshot, now_ms)
        self.kept = rows.tombstones(snapshot, now_ms)
        self.layout = rows.layout(snapshot)
        self.num_adds = 0
        """How many have been given out."""

    def files(self, *, newer: bool = False) -> Iterator[tuple[str, pa.Array]]:
        """All rows of files; with `newer` only those of files that came after the checkpoint below."""
        yield from (("remove", piece) for piece in rows.removes(self.kept))
        pieces = self.snapshot.newer_pieces if newer else self.snapshot.pieces
        for piece in _ahead(self.layout.rows(pieces(with_stats=self.layout.with_stats))):
            self.num_adds += len(piece)
            yield "add", piece

    @property
    def num_rows(self) -> int:
        """How many rows its checkpoint has, when the files have been given out."""
        tombstones: int = self.kept.num_rows
        return len(self.header) + tombstones + self.num_adds

    def hint(self, size: int, size_in_bytes: int | None, parts: int | None = None) -> LastCheckpoint:
        return LastCheckpoint(self.snapshot.version, size, parts, size_in_bytes, self.num_adds)


def _ahead(pieces: Iterator[_Piece]) -> Generator[_Piece]:
    """The pieces, of which the next is made while one is used: encoding and writing hold no lock of the interpreter."""
    with ThreadPoolExecutor(1, thread_name_prefix="tablelog-checkpoint") as pool:
        coming = pool.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = pool.submit(next, pieces, None)
            yield piece


class _Held(NamedTuple):
    """What is in a file of a checkpoint: all of its rows, and those of live files."""

    rows: int
    adds: int


def _put(store: LogStore, log_path: str, name: str, pieces: Callable[[], Generator[bytes]]) -> int | _Held:
    """Write a file whose content every writer agrees on, and give its bytes, or what is in a whole one that was there.

    `pieces` makes the content, from its beginning each time.
    """
    path = f"{log_path}/{name}"
    try:
        return _written(store, path, pieces())
    except FileExistsError:
        pass  # which holds what was made so far, and is let go before it is made again
    found = _held(store, path)
    if found is not None:
        _log.info("%s is there already", path)
        return found
    _log.warning("%s can't be read, and is replaced", path)
    return _written(store, path, pieces(), overwrite=True)


def _written(store: LogStore, path: str, pieces: Generator[bytes], *, overwrite: bool = False) -> int:
    """Write a file and give its bytes. However that ends, what makes the pieces has ended too."""
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
    """The classic checkpoint as Parquet (V1 spec, allowed for every table); a row group is made while one is used."""
    with closing(_ahead(_row_groups(contents))) as groups:
        for group in groups:
            yield from group


def _row_groups(contents: _Contents) -> Iterator[list[bytes]]:
    contents.num_adds = 0
    sink = _Sink()
    file = _File(rows.classic_schema(contents.layout.type), sink, rows.PIECE_ROWS)
    for kind, column in rows.structs(contents.header):  # in the first row group
        file.put(kind, column)
    for kind, column in contents.files():
        file.put(kind, column)
        if made := sink.taken():
            yield made
    file.close()
    yield sink.taken()


def _write_parts(store: LogStore, log_path: str, contents: _Contents, count: int) -> LastCheckpoint:
    """In parts by Spark's hash, so that parts of two writers fit together whatever the order they come in.

    The parts grow side by side, on the disk: a second pass over the statistics would cost more. What waits for a row
    group of each is bounded together, but for row groups that are worth reading.
    """
    at_once = min(rows.PIECE_ROWS, max(_LEAST_ROWS, _WAITING_ROWS // count))
    schema = rows.classic_schema(contents.layout.type)
    version = contents.snapshot.version
    with_vectors = "deletionVectors" in supported(contents.snapshot.protocol)
    with ExitStack() as stack:
        spools = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        files: list[_File] = []
        for spool in spools:
            files.append(_File(schema, spool, at_once))
            stack.callback(files[-1].close)  # whatever happens, before what it writes to is closed
        for kind, column in rows.structs(contents.header):
            files[spark_hash.SEED % count].put(kind, column)  # as a row with no path
        for kind, column in contents.files():
            chosen = spark_hash.parts(_hashes(column, with_vectors), count)
            for number, file in enumerate(files):
                file.put(kind, column.filter(pc.equal(chosen, number)))
        ours: list[int] = []
        for number, (file, spool) in enumerate(zip(files, spools, strict=True)):
            file.close()
            size = _put(store, log_path, part_name(version, number + 1, count), partial(_spooled, spool))
            ours += [] if isinstance(size, _Held) else [size]
    return contents.hint(contents.num_rows, sum(ours) if len(ours) == count else None, count)


def _spooled(spool: IO[bytes]) -> Generator[bytes]:
    spool.seek(0)
    while piece := spool.read(_SPOOLED_BYTES):
        yield piece


def _write_v2(
    store: LogStore, log_path: str, contents: _Contents, kind: Kind, elsewhere: Sidecars | None
) -> LastCheckpoint:
    """Sidecars first, each whole before the next, then what names them, under a name of its own."""
    version = contents.snapshot.version
    sidecars = [] if elsewhere is None else list(elsewhere.written)
    contents.num_adds = actions = 0 if elsewhere is None else elsewhere.adds
    size = sum(sidecar.size_in_bytes for sidecar in sidecars)
    if kind.files == 1:
        most = NO_BOUND  # how many there are need not be known
    else:
        most = max(1, -(-(contents.snapshot.num_files + contents.kept.num_rows) // kind.files))
    for data, count in filled(contents.layout, contents.files(newer=elsewhere is not None), most):
        name = f"{uuid.uuid4()}.parquet"
        # A name that nobody else has needs no condition, and no file is there to be replaced.
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


def top_level(actions: Sequence[Action], add_type: pa.DataType) -> bytes:
    """The top level of a V2 checkpoint as Parquet."""
    made = io.BytesIO()
    file = _File(rows.top_level_schema(add_type), made, rows.PIECE_ROWS)
    for kind, column in rows.structs(actions):
        file.put(kind, column)
    file.close()
    return made.getvalue()


def filled(
    layout: rows.CheckpointLayout, columns: Iterable[tuple[str, pa.Array]], most: int
) -> Iterator[tuple[bytes, int]]:
    """Sidecars of at most so many rows each, as Parquet: (bytes, rows). `columns` are rows of `add` and `remove`."""
    schema = rows.sidecar_schema(layout.type)
    made, file = io.BytesIO(), None
    for kind, column in columns:
        at = 0
        while at < len(column):
            if file is None:
                made = io.BytesIO()
                file = _File(schema, made, rows.PIECE_ROWS)
            taken = column.slice(at, most - file.rows)
            file.put(kind, taken)
            at += len(taken)
            if file.rows >= most:
                file.close()
                yield made.getvalue(), file.rows
                file = None
    if file is not None:
        file.close()
        yield made.getvalue(), file.rows


def _hashes(files: pa.StructArray, with_vectors: bool) -> pa.Array:
    """What parts are made by: the path, and the deletion vector where the table may have them."""
    hashes = spark_hash.hashed(files.field("path"))
    if not with_vectors:
        return hashes
    return spark_hash.hashed(_vector_ids(files.field("deletionVector")), hashes)


_ID_FIELDS = ("storageType", "pathOrInlineDv", "offset")


def _vector_ids(vectors: pa.StructArray) -> pa.Array:
    storage, where, offset = (vectors.flatten()[vectors.type.get_field_index(n)] for n in _ID_FIELDS)
    base = pc.binary_join_element_wise(storage, where, "")
    with_offset = pc.binary_join_element_wise(base, offset.cast(pa.string()), "@")
    return pc.if_else(offset.is_valid(), with_offset, base)


def _held(store: LogStore, path: str) -> _Held | None:
    """What is in a Parquet file of a checkpoint, read as far as its paths go; None of one that is damaged or gone."""
    try:
        file = pq.ParquetFile(pa.BufferReader(store.read(path)))
        paths = [n for n in (file.schema.column(i).path for i in range(len(file.schema))) if n.endswith(".path")]
        adds = 0
        for batch in file.iter_batches(columns=paths):
            if "add" in batch.schema.names:
                found = pc.struct_field(batch.column("add"), "path")
                adds += len(found) - found.null_count
    except (FileNotFoundError, pa.ArrowException, OSError, ValueError):
        return None
    return _Held(file.metadata.num_rows, adds)
