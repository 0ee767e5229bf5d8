"""Compares files that are too many for memory: on the local disk, by the hash of each file's path.

In memory are a bucket of the files at a time, and one byte for each file.
"""

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ...errors import CorruptLogError, InvalidArgumentError
from ..log.columns import mask_of, vector_ids
from ..protocol.actions import FileKey
from ..protocol.paths import canonical_column
from . import checkpoint_rows as rows
from . import spark_hash
from .temporary_files import Buckets

_BUCKET_BYTES = 8 << 20
"""The bytes of checkpoints for each bucket: some 40,000 files."""
_MOST_BUCKETS = 1 << 10
_USE = "the files of a large table are sorted"
_KEY = pa.struct([("path", pa.string()), ("vector", pa.string()), ("size", pa.int64()), ("row", pa.int64())])


class RowFlags:
    """One flag for each file of a version that is read in pieces, always in the same order.

    A checkpoint that is found damaged is replaced by other files of the log, with the files in another order. Each
    reading is compared with the first one by a checksum of the paths. `table` is named in the error.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._flags = bytearray()
        self._checksum = 0

    def extend(self, paths: pa.Array) -> int:
        """Add the files with these paths; return the number of the first."""
        first = len(self._flags)
        self._flags.extend(bytes(len(paths)))
        self._checksum = _checksum(paths, self._checksum)
        return first

    def set(self, row: int) -> None:
        self._flags[row] = 1

    @property
    def count(self) -> int:
        """The number of files with a flag."""
        return self._flags.count(1)

    def filtered(self, pieces: Iterable[pa.Table], *, flagged: bool) -> Iterator[pa.Table]:
        """The files whose flag is `flagged`; `pieces` are all pieces of the version.

        Raises CorruptLogError, at the latest after the last piece, if the files come in another order than at first.
        """
        first = checksum = 0
        for piece in pieces:
            flags = self._flags[first : first + piece.num_rows]
            first += piece.num_rows
            if first > len(self._flags):
                break
            checksum = _checksum(piece.column("path"), checksum)
            chosen = flags.count(1) if flagged else flags.count(0)
            if chosen == piece.num_rows:
                yield piece
            elif chosen:
                yield piece.filter(mask_of(flags if flagged else flags.translate(_INVERTED)))
        if first != len(self._flags) or checksum != self._checksum:
            raise CorruptLogError(
                f"{self._table}: the files of a version came in another order than at first: a file of its checkpoint "
                "is damaged, or was replaced meanwhile. What was being written is discarded. Run the operation again",
                table=self._table,
            )


def _checksum(paths: pa.Array | pa.ChunkedArray, checksum: int) -> int:
    """The checksum of these paths after those of `checksum`."""
    text = "".join(f"{path}\n" for path in paths.to_pylist())
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), checksum)


_INVERTED = bytes([1, 0]) + bytes(range(2, 256))


@dataclass(frozen=True)
class Comparison:
    """How one version becomes another: which of its files go, which of the other one come, and which tombstones end.

    `added` are flags of the wanted files, `removed` of the files that are there now, `revived` of the tombstones.
    """

    added: RowFlags
    removed: RowFlags
    revived: RowFlags
    num_added: int
    added_bytes: int
    num_removed: int
    removed_bytes: int


def compared(
    table: str,
    wanted: Iterable[pa.Table],
    now: Iterable[pa.Table],
    tombstones: Iterable[pa.Table],
    size_in_bytes: int,
) -> Comparison:
    """Compare files by path and deletion vector.

    Args:
        table: The table's root.
        wanted: The files that the table shall have, in pieces with the columns "path", "deletionVector" and "size". If
            their version has other paths for them, these are in the column "original".
        now: The files that it has.
        tombstones: Its tombstones.
        size_in_bytes: About the bytes of all these in checkpoints.

    Raises:
        InvalidArgumentError: Two of the wanted files have one path.
        StorageError: The disk is full.
    """
    with _sorted(table, (wanted, now, tombstones), size_in_bytes) as (count, (new, old, gone)):
        counts = [0, 0, 0, 0]
        for bucket in range(count):
            for index, number in enumerate(_compare(bucket, new, old, gone)):
                counts[index] += number
    return Comparison(new.flags, old.flags, gone.flags, *counts)


def flags_of(table: str, sought: Iterable[pa.Table], files: Iterable[pa.Table], size_in_bytes: int) -> RowFlags:
    """Flags of all `files`, which are set for those that are also in `sought`, by path and deletion vector.

    The parameters are as in `compared`. Raises StorageError.
    """
    with _sorted(table, (sought, files), size_in_bytes) as (count, (wanted, there)):
        for bucket in range(count):
            keys = wanted.of_bucket(bucket)
            for key, (row, _) in there.of_bucket(bucket).items():
                if key in keys:
                    there.flags.set(row)
    return there.flags


@contextmanager
def _sorted(table: str, sides: Sequence[Iterable[pa.Table]], size_in_bytes: int) -> Iterator[tuple[int, list["_Side"]]]:
    """The number of buckets, and each side with its files in them."""
    count = min(max(-(-size_in_bytes // _BUCKET_BYTES), 1), _MOST_BUCKETS)
    seed = random.getrandbits(32)  # random, so that no writer can fill one bucket alone
    with ExitStack() as stack:
        result = [_Side(table, stack.enter_context(closing(Buckets(count, _USE)))) for _ in sides]
        for side, pieces in zip(result, sides, strict=True):
            side.sort(pieces, seed)
        yield count, result


class _Side:
    """Some files in buckets: their keys, their sizes and their rows."""

    def __init__(self, table: str, buckets: Buckets) -> None:
        self.table = table
        self.flags = RowFlags(table)
        self._buckets = buckets

    def sort(self, pieces: Iterable[pa.Table], seed: int) -> None:
        for _, keys in rows.joined(("", key) for key in self._keys(pieces)):
            seeds = pa.repeat(pa.scalar(seed, pa.uint32()), len(keys))
            hashes = spark_hash.hashed(keys.field("path"), seeds)
            for bucket, indices in rows.by_part(spark_hash.parts(hashes, len(self._buckets))):
                batch = pa.RecordBatch.from_struct_array(keys.take(indices))
                self._buckets.put(bucket, batch.serialize().to_pybytes())

    def _keys(self, pieces: Iterable[pa.Table]) -> Iterator[pa.StructArray]:
        for piece in pieces:
            original = "original" if "original" in piece.column_names else "path"
            names = ["path", "deletionVector", "size", *({original} - {"path"})]
            for batch in piece.select(names).to_batches(max_chunksize=rows.PIECE_ROWS):
                first = self.flags.extend(batch.column(original))
                columns = [
                    canonical_column(batch.column("path"), self.table),
                    vector_ids(batch.column("deletionVector")),
                    batch.column("size"),
                    pa.array(range(first, first + len(batch)), pa.int64()),
                ]
                yield pa.StructArray.from_arrays(columns, fields=list(_KEY))

    def of_bucket(self, bucket: int) -> dict[FileKey, tuple[int, int]]:
        """The row and the size of each file."""
        found: dict[FileKey, tuple[int, int]] = {}
        for data in self._buckets.pieces(bucket):
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), pa.schema(list(_KEY)))
            path, vector, size, row = (column.to_pylist() for column in batch.columns)
            found.update(zip(zip(path, vector, strict=True), zip(row, size, strict=True), strict=True))
        return found


def _compare(bucket: int, wanted: _Side, now: _Side, tombstones: _Side) -> tuple[int, int, int, int]:
    """Set the flags of a bucket's files; return the numbers and bytes of the files to add and of those to remove."""
    new, old = wanted.of_bucket(bucket), now.of_bucket(bucket)
    added = {key: value for key, value in new.items() if key not in old}
    removed = [value for key, value in old.items() if key not in new]
    names: set[str] = set()
    for (path, _), (row, _) in added.items():
        if path in names:
            raise InvalidArgumentError(f"the file {path} is added twice in one commit to {wanted.table}")
        names.add(path)
        wanted.flags.set(row)
    for row, _ in removed:
        now.flags.set(row)
    for key, (row, _) in tombstones.of_bucket(bucket).items():
        if key in added:
            tombstones.flags.set(row)
    return len(added), sum(size for _, size in added.values()), len(removed), sum(size for _, size in removed)
