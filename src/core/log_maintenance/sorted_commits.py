"""Replay of commits that are too large for memory: on the local disk, in buckets by the hash of each file's key.

The result is a checkpoint in temporary files of this process: a version with such a commit, and without a checkpoint in
the log, is then read as every other version with a large checkpoint.
"""

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from ...logstore.base import FileStatus
from ..log.checkpoint import CheckpointState
from ..log.checkpoint_shares import left
from ..log.columns import ADD_TYPES, DELETION_VECTOR, FILE_SCHEMA, REMOVE_SCHEMA, column_of, table_of, vector_ids
from ..log.replay import CommitOverlay, Header, LogicalFile
from ..log.segment import Checkpoint, LogEntry
from ..protocol.actions import AddFile, CheckpointMetadata, FileKey, RemoveFile, Sidecar
from ..protocol.codec import parse_line, serialise
from ..protocol.paths import SIDECAR_DIRECTORY, canonical_column, uuid_checkpoint_name
from ..table.snapshot import Snapshot
from . import checkpoint_rows as rows
from . import spark_hash
from .checkpoint_parquet import filled
from .temporary_files import Buckets, TemporaryFiles

if TYPE_CHECKING:
    from ..log.memory_limits import MemoryLimits
    from ..log.reader import LogReader
    from ..log.version_state import LiveFiles

_BUCKET_BYTES = 16 << 20
"""The bytes of commits in a bucket, whose actions are in memory at a time."""
_MOST_BUCKETS = 1 << 10
_PART_ROWS = 400_000
"""The most rows of one file of the result: one or more are in memory while it is read."""
_LOG = "temporary:/_delta_log"
_USE = "a large commit without a checkpoint (any writer can write it) is sorted"
_WITH_TEXT = FILE_SCHEMA.append(pa.field("stats", ADD_TYPES["stats"]))


def sorted_commits(
    table: str,
    reader: "LogReader",
    base: CheckpointState | None,
    commits: Sequence[LogEntry],
    recover: "Callable[[tuple[str, ...]], LiveFiles]",
    limits: "MemoryLimits",
) -> CheckpointState:
    """The checkpoint of the last of `commits`, in temporary files.

    Args:
        table: The table's root.
        reader: Reads the log.
        base: The checkpoint before the commits.
        commits: The consecutive commits after it, of any size.
        recover: See `CheckpointState`.
        limits: The limits of the handle.

    Raises:
        CorruptLogError: A commit is damaged, or the version has no protocol or metadata.
        DamagedCheckpointError: A file of `base` is damaged.
        ReplacedError: A commit was removed or replaced since it was listed.
        StorageError: The disk is full, or the store failed.
    """
    size = sum(entry.status.size for entry in commits)
    count = min(max(-(-size // _BUCKET_BYTES), 1), _MOST_BUCKETS)
    with closing(_Sorting(table, count)) as sorting:
        header = base.header if base else Header()
        for entry in commits:
            header = sorting.add_commit(reader, entry, header)
        version = commits[-1].version
        snapshot = Snapshot(table, version, header, CommitOverlay(table), None, timestamp=lambda _: 0)
        layout = rows.layout(snapshot)
        if base is not None:
            sorting.add_base(base, layout)
        return _checkpoint(snapshot, sorting.reconciled(layout), layout, recover, limits)


class _Sorting:
    """File actions in buckets: the lines of commits, and the rows of the checkpoint before them."""

    def __init__(self, table: str, count: int) -> None:
        self._table = table
        self._seed = random.getrandbits(32)
        self._lines = Buckets(count, _USE)
        self._bases = {"remove": Buckets(count, _USE), "add": Buckets(count, _USE)}

    def close(self) -> None:
        for buckets in (self._lines, *self._bases.values()):
            buckets.close()

    def add_commit(self, reader: "LogReader", entry: LogEntry, header: Header) -> Header:
        """Sort the file actions of a commit; return the header after it."""
        for batch in reader.listed_lines(entry):
            header = header.after(action for _, action in batch)
            files = [(line, action) for line, action in batch if isinstance(action, AddFile | RemoveFile)]
            actions = [action for _, action in files]
            paths = canonical_column(column_of(actions, "path", pa.string()), self._table)
            for bucket, indices in self._divided(paths, column_of(actions, "deletionVector", DELETION_VECTOR)):
                lines = [files[index][0].rstrip(b"\n") for index in indices.to_pylist()]
                self._lines.put(bucket, b"\n".join(lines))
        return header

    def add_base(self, base: CheckpointState, layout: rows.CheckpointLayout) -> None:
        """Sort the rows of the checkpoint before the commits, in the form of the result."""
        for kind, pieces in (
            ("remove", rows.removes(base.remove_pieces())),
            ("add", layout.rows(base.pieces(with_stats=layout.with_stats))),
        ):
            for _, column in rows.joined((kind, piece) for piece in pieces):
                keys = canonical_column(column.field("path"), self._table), column.field("deletionVector")
                for bucket, indices in self._divided(*keys):
                    batch = pa.RecordBatch.from_struct_array(column.take(indices))
                    self._bases[kind].put(bucket, batch.serialize().to_pybytes())

    def _divided(self, paths: pa.Array, vectors: pa.StructArray) -> Iterator[tuple[int, pa.Array]]:
        """The indices of the rows of each bucket. The seed is random, so that no writer can fill one bucket alone."""
        if not len(paths):
            return iter(())
        seeds = pa.repeat(pa.scalar(self._seed, pa.uint32()), len(paths))
        hashes = spark_hash.hashed(vector_ids(vectors), spark_hash.hashed(paths, seeds))
        return rows.by_part(spark_hash.parts(hashes, len(self._lines)))

    def reconciled(self, layout: rows.CheckpointLayout) -> Iterator[tuple[str, pa.StructArray]]:
        """The reconciled rows of all buckets, by the same rules as in `table.replayed_files`."""
        for bucket in range(len(self._lines)):
            overlay = CommitOverlay(self._table)
            for data in self._lines.pieces(bucket):
                overlay = overlay.extend(
                    action for line in data.split(b"\n") if (action := parse_line(line)) is not None
                )
            newest = overlay.merged()
            removed = [file for file in newest.values() if isinstance(file, RemoveFile)]
            added = [file for file in newest.values() if isinstance(file, AddFile)]
            yield from self._of_base("remove", bucket, rows.REMOVE_TYPE, newest)
            yield from (("remove", piece) for piece in rows.removes([table_of(removed, REMOVE_SCHEMA)]))
            yield from self._of_base("add", bucket, layout.type, newest)
            yield from (("add", piece) for piece in layout.rows([table_of(added, _WITH_TEXT)]))

    def _of_base(
        self, kind: str, bucket: int, type_: pa.StructType, newest: Mapping[FileKey, LogicalFile]
    ) -> Iterator[tuple[str, pa.StructArray]]:
        """The rows of the checkpoint in a bucket that no commit supersedes."""
        schema = pa.schema(list(type_))
        batches = (
            (kind, pa.ipc.read_record_batch(pa.py_buffer(data), schema).to_struct_array())
            for data in self._bases[kind].pieces(bucket)
        )
        pieces = (pa.Table.from_batches([pa.RecordBatch.from_struct_array(one)]) for _, one in rows.joined(batches))
        for piece in left(pieces, self._table, newest):
            for batch in piece.to_batches():
                yield kind, batch.to_struct_array()


def _checkpoint(
    snapshot: Snapshot,
    files: Iterator[tuple[str, pa.StructArray]],
    layout: rows.CheckpointLayout,
    recover: "Callable[[tuple[str, ...]], LiveFiles]",
    limits: "MemoryLimits",
) -> CheckpointState:
    """A V2 checkpoint in temporary files: its sidecars have any number of rows, also in a table without V2."""
    store, sidecars = TemporaryFiles(_USE), []
    for data, _ in filled(layout, rows.joined(files), _PART_ROWS):
        name = f"{uuid.uuid4()}.parquet"
        store.write(f"{_LOG}/{SIDECAR_DIRECTORY}/{name}", data)
        sidecars.append(Sidecar(name, len(data), 0))
    # Nothing expires at the time 0: the state is the same as that of an ordinary replay.
    top = serialise([CheckpointMetadata(snapshot.version), *rows.header(snapshot, 0), *sidecars])
    unique = str(uuid.uuid4())
    path = f"{_LOG}/{uuid_checkpoint_name(snapshot.version, unique, 'json')}"
    store.write(path, top)
    checkpoint = Checkpoint(snapshot.version, (FileStatus(path, len(top), 0),), unique, "json")
    return CheckpointState(store, _LOG, snapshot.table, checkpoint, recover, limits, in_log=False)
