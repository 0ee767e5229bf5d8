"""Deletion vectors on their way to Spark: read in bulk, and as constants of a file by which its rows are told apart.

A bitmap of the deleted rows rides with each file as a hidden partition value. Seven bits a byte keep every byte an
ASCII character, which Spark's `ascii` reads with no decoding; that costs a quarter of what an anti join does. Above
`MOST_ROWS` in a file the bitmap would weigh too much on each split of it: such vectors are joined.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.columns import deletion_vector_of
from ...core.protocol import deletion_vectors as core
from ...core.protocol import features, paths
from ...core.protocol import schema as schemas
from ...core.protocol.actions import DeletionVectorDescriptor
from ...core.protocol.deletion_vectors import DeletedRows
from ...errors import CorruptLogError, MissingDataFileError
from ...logstore.common.posix import open_regular
from ...logstore.common.uri import local_path, scheme_of
from ...logstore.data_files import DataFiles
from ..jvm.sessions import is_classic
from ..sql.hidden_names import free_names
from ..storage import external_files, hadoop_settings
from ..storage.parallel import in_parallel

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

MOST_ROWS = 7 * (4 << 20)
"""Rows of a file up to which its bitmap, 4 MiB of it, rides with each split."""

_LARGE_FILE = 16 << 20  # bytes; below them a file isn't asked for its rows
_LARGEST_BITMAP = 1 << 30
_BITS = 7
_CACHED_BYTES = 64 << 20


def may_have(snapshot: "Snapshot") -> bool:
    """Whether files of the table may have deletion vectors, in this version or in a later one of its protocol."""
    return "deletionVectors" in features.supported(snapshot.protocol)


# --- reading them -------------------------------------------------------------------------------------------------


class Vectors:
    """The deletion vectors of one table, read where Spark would read its files. Shared by threads."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _cache: ClassVar["OrderedDict[tuple[str, DeletionVectorDescriptor], tuple[DeletedRows, int]]"] = OrderedDict()

    def __init__(self, spark: "SparkSession", log: "DeltaLog") -> None:
        self._spark = spark
        self._log = log

    def rows(self, files: pa.Table) -> list[DeletedRows | None]:
        """What is deleted of each of `files` (rows of `Snapshot.files`); `None` for one with no vector.

        Raises CorruptLogError, MissingDataFileError, UntrustedTableError or an error of the `StorageError` group.
        """
        told = [deletion_vector_of(one) for one in files.column("deletionVector").to_pylist()]
        wanted = {one for one in told if one is not None}
        elsewhere = [core.path_of(one) for one in wanted if core.may_lie_outside(one)]
        external_files.check(self._spark, self._log.table, None, elsewhere)
        found: dict[DeletionVectorDescriptor, DeletedRows] = {}
        with self._lock:
            for one in wanted:
                known = self._cache.get((self._log.table, one))
                if known is not None:
                    found[one] = known[0]
                    self._cache.move_to_end((self._log.table, one))
        missing = wanted - found.keys()
        read = {one: core.of_inline(one) for one in missing if one.storage_type == "i"}
        by_file: dict[str, list[DeletionVectorDescriptor]] = {}
        for one in missing - read.keys():
            by_file.setdefault(core.path_of(one), []).append(one)
        for part in in_parallel(self._read, list(by_file.items())):
            read.update(part)
        self.remember(self._log.table, read)
        found |= read
        return [None if one is None else found[one] for one in told]

    @classmethod
    def remember(cls, table: str, known: Mapping[DeletionVectorDescriptor, DeletedRows]) -> None:
        """Keep what vectors of a table hold, that were read or written, as far as there is room."""
        with cls._lock:
            for one, rows in known.items():
                cls._cache[table, one] = rows, one.size_in_bytes
            size = sum(of_one for _, of_one in cls._cache.values())
            while len(cls._cache) > 1 and size > _CACHED_BYTES:
                size -= cls._cache.popitem(last=False)[1][1]

    def _read(self, item: tuple[str, list[DeletionVectorDescriptor]]) -> dict[DeletionVectorDescriptor, DeletedRows]:
        path, wanted = item
        uri = paths.absolute_uri(self._log.table, path)
        try:
            return core.of_file(lambda start, end: self._range(uri, start, end), wanted)
        except FileNotFoundError:
            raise MissingDataFileError(
                f"the file {paths.absolute(self._log.table, path)}, in which {self._log.table} has deletion vectors, "
                "is gone from storage: which rows of its data files are deleted is no longer known. Restore it"
            ) from None
        except CorruptLogError as error:
            raise CorruptLogError(f"{self._log.table}, {paths.absolute(self._log.table, path)}: {error}") from None

    def _range(self, uri: str, start: int, end: int) -> bytes:
        if scheme_of(uri) == "file":
            with open_regular(local_path(uri), uri) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(start)
                return file.read(max(min(end, size) - start, 0))
        if self._hadoop is not None:
            with self._hadoop.open_file(uri, end) as stream:
                stream.seek(start)
                return bytes(stream.read(end - start))
        root, _, name = uri.rpartition("/")
        return DataFiles.of(root, self._log.conf, self._log.storage_options).read_range(unquote(name), start, end)

    @cached_property
    def _hadoop(self) -> Any:
        """Spark's own file systems where these are what reads the table, else `None`."""
        if not is_classic(self._spark):
            return None
        settings = hadoop_settings.reaching(self._spark, self._log.table, self._log.conf)
        if settings is None:
            return None
        from ..storage.hadoop_client import HadoopFiles

        return HadoopFiles(self._spark, settings)


def bitmap(rows: DeletedRows) -> bytes:
    """Bit r % 7 of byte r // 7 is set: row r is deleted."""
    return bytes(_packed(rows, _BITS))


def plain_bitmap(rows: DeletedRows) -> bytes:
    """The same with eight bits a byte, as Arrow has them."""
    return bytes(_packed(rows, 8))


def _packed(rows: DeletedRows, bits: int) -> bytes:
    import numpy as np

    size = rows.last // bits + 1
    if size > _LARGEST_BITMAP:
        raise CorruptLogError(f"a deletion vector names the row {rows.last}, which no data file has")
    flags = np.zeros((size, bits), np.bool_)
    flags.reshape(-1)[rows.indexes().to_numpy()] = True
    return np.packbits(flags, axis=1, bitorder="little").tobytes()


# --- what a frame does by them ------------------------------------------------------------------------------------


class Hidden:
    """The columns of a frame that nobody sees, and what they say of its rows.

    `deleted` and `vector` are their names, which none of `columns` has; `joined` maps the id of each vector that is too
    large to ride to its number.
    """

    def __init__(self, vectors: Vectors, columns: Iterable[str], joined: Mapping[str, int] | None = None) -> None:
        self._vectors = vectors
        self.joined = dict(joined or {})
        self.deleted, self.vector = free_names(["__tablelog_deleted", "__tablelog_vector"], columns)

    @property
    def fields(self) -> tuple[schemas.StructField, ...]:
        made = [schemas.StructField(self.deleted, schemas.BINARY)]
        if self.joined:
            made.append(schemas.StructField(self.vector, schemas.INTEGER))
        return tuple(made)

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for columns that say the same."""
        return tuple(self.joined)

    def values(self, files: pa.Table) -> list[pa.Array]:
        """A column for each of `fields`, for rows of `Snapshot.files`; reads the vectors that ride."""
        numbers = [self.joined.get(one) if one else None for one in ids(files)]
        riding = pa.array([number is None for number in numbers], pa.bool_())
        rows = iter(self._vectors.rows(files.filter(riding)))
        maps = []
        for number in numbers:
            found = next(rows) if number is None else None
            maps.append(None if found is None else bitmap(found))
        columns = [pa.array(maps, pa.binary())]
        if self.joined:
            columns.append(pa.array(numbers, pa.int32()))
        return columns

    def nothing(self, count: int) -> list[pa.Array]:
        """The columns of files without a vector."""
        return [pa.nulls(count, schemas.arrow_type(f.data_type)) for f in self.fields]


def too_large(snapshot: "Snapshot") -> pa.Table:
    """The files of a version whose bitmaps are too large to ride with a split."""
    chosen = of_large_files(snapshot.files)
    if not pc.any(chosen).as_py():
        return snapshot.files.slice(0, 0)
    # How many rows a file with a vector has is told: the protocol wants it.
    return snapshot.files.filter(pc.fill_null(pc.and_(chosen, pc.greater(snapshot.num_records(), MOST_ROWS)), False))


def of_large_files(files: pa.Table) -> pa.ChunkedArray:
    """For each of the files whether it has a deletion vector, and so many bytes that this may be too large to ride."""
    return pc.and_(has_vector(files), pc.greater(files.column("size"), _LARGE_FILE))


def has_vector(files: pa.Table) -> pa.ChunkedArray:
    """For each of the files whether it has a deletion vector."""
    return pc.is_valid(pc.struct_field(files.column("deletionVector"), "storageType"))


def any_has_vector(files: pa.Table) -> bool:
    """Whether one of the files has a deletion vector."""
    return bool(pc.any(has_vector(files)).as_py())


def ids(files: pa.Table) -> list[str | None]:
    """The unique ids of the files' vectors."""
    told = (deletion_vector_of(one) for one in files.column("deletionVector").to_pylist())
    return [None if one is None else one.unique_id for one in told]


def rows_to_join(spark: "SparkSession", vectors: Vectors, files: pa.Table, hidden: Hidden) -> "DataFrame":
    """(number of a vector, row) for every row that the vectors of `files` delete."""
    numbers: list[pa.Array] = []
    indexes: list[pa.Array] = []
    done: set[str] = set()
    for one, rows in zip(ids(files), vectors.rows(files), strict=True):
        if one is not None and rows is not None and one not in done:
            done.add(one)
            numbers.append(pa.repeat(pa.scalar(hidden.joined[one], pa.int32()), len(rows)))
            indexes.append(rows.indexes())
    table = pa.table({"vector": pa.chunked_array(numbers, pa.int32()), "row": pa.chunked_array(indexes, pa.int64())})
    return spark.createDataFrame(table)


def live(frame: "DataFrame", hidden: Hidden, gone: "DataFrame | None", row_index: "Column") -> "DataFrame":
    """The rows of `frame`, which has the hidden columns, that are not deleted.

    `row_index` is a row's place in its file; `gone` comes from `rows_to_join`.
    """
    frame = frame.where(is_live(frame[hidden.deleted], row_index))
    if gone is None:
        return frame
    return frame.join(gone, (frame[hidden.vector] == gone["vector"]) & (row_index == gone["row"]), "left_anti")


def is_live(deleted: "Column", row_index: "Column") -> "Column":
    """Whether the row at `row_index` has no bit in the bitmap `deleted`; a zero byte answers first."""
    from pyspark.sql import functions as F

    byte = F.substring(deleted, (F.call_function("div", row_index, F.lit(_BITS)) + 1).cast("int"), F.lit(1))
    bit = F.getbit(F.ascii(byte.cast("string")), (row_index % _BITS).cast("int"))
    return deleted.isNull() | (byte == F.lit(b"\0")) | (byte == F.lit(b"")) | (bit == 0)
