"""Reads deletion vectors and passes them to Spark, which filters the deleted rows by them.

The bitmap of the deleted rows is passed to Spark as a hidden partition value of the file. It uses seven bits per byte,
so that every byte is an ASCII character, which Spark's `ascii` reads without decoding; that costs a quarter of an anti
join. If a file has more than `MOST_ROWS` rows, the bitmap would be too large to send with each split: the rows of such
vectors are anti-joined.
"""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.columns import deletion_vector_of
from ...core.protocol import deletion_vectors, features, paths
from ...core.protocol import schema as schemas
from ...core.protocol.actions import DeletionVectorDescriptor
from ...core.protocol.deletion_vectors import DeletedRows
from ...core.skipping import stats
from ...errors import CorruptLogError, MissingDataFileError
from ...logstore.common.posix import open_regular
from ...logstore.common.uri import local_path, scheme_of
from ...logstore.data_files import DataFiles
from ..jvm.connection.sessions import is_classic
from ..sql.hidden_names import free_names
from ..storage import external_files, hadoop_settings
from ..storage.parallel import in_parallel
from . import vector_cache
from .vector_cache import VectorCache

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

MOST_ROWS = 7 * (4 << 20)
"""Files up to this number of rows get their bitmap (at most 4 MiB) as a hidden value in each split."""

_LARGE_FILE = 16 << 20  # bytes; for smaller files, the row count isn't checked
_LARGEST_BITMAP = 1 << 30
_BITS = 7


def may_have(snapshot: "Snapshot") -> bool:
    """Whether files may have deletion vectors, in this version or in later versions with the same protocol."""
    return "deletionVectors" in features.supported(snapshot.protocol)


# --- reading them -------------------------------------------------------------------------------------------------


class Vectors:
    """Reads the deletion vectors of one table, by the same file system as Spark."""

    def __init__(self, spark: "SparkSession", log: "DeltaLog", cache: VectorCache = vector_cache.SHARED) -> None:
        self._spark = spark
        self._log = log
        self._cache = cache

    def rows(self, files: pa.Table) -> list[DeletedRows | None]:
        """The deleted rows of each of `files` (rows of `Snapshot.files`); `None` for a file without a vector.

        Raises CorruptLogError, MissingDataFileError, UntrustedTableError or an error of the `StorageError` group.
        """
        descriptors = [deletion_vector_of(vector) for vector in files.column("deletionVector").to_pylist()]
        wanted = {vector for vector in descriptors if vector is not None}
        elsewhere = [deletion_vectors.path_of(vector) for vector in wanted if deletion_vectors.may_lie_outside(vector)]
        external_files.check(self._spark, self._log.table, None, elsewhere)
        result = self._cache.get(self._log.table, wanted)
        missing = wanted - result.keys()
        read = {vector: deletion_vectors.of_inline(vector) for vector in missing if vector.storage_type == "i"}
        by_file: dict[str, list[DeletionVectorDescriptor]] = {}
        for vector in missing - read.keys():
            by_file.setdefault(deletion_vectors.path_of(vector), []).append(vector)
        for part in in_parallel(self._read, list(by_file.items())):
            read.update(part)
        self._cache.add(self._log.table, read)
        result |= read
        return [None if vector is None else result[vector] for vector in descriptors]

    def _read(self, item: tuple[str, list[DeletionVectorDescriptor]]) -> dict[DeletionVectorDescriptor, DeletedRows]:
        path, wanted = item
        uri, file = paths.absolute_uri(self._log.table, path), paths.absolute(self._log.table, path)
        try:
            return deletion_vectors.of_file(lambda start, end: self._range(uri, start, end), wanted)
        except FileNotFoundError:
            raise MissingDataFileError(
                f"the file {file} with deletion vectors of {self._log.table} doesn't "
                "exist: it is unknown which rows of the data files are deleted. Restore the file",
                table=self._log.table,
                path=file,
            ) from None
        except CorruptLogError as error:
            raise CorruptLogError(f"{self._log.table}, {file}: {error}", table=self._log.table, path=file) from None

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
        """Spark's Hadoop file systems if these read the table, else `None`."""
        if not is_classic(self._spark):
            return None
        settings = hadoop_settings.reaching(self._spark, self._log.table, self._log.conf)
        if settings is None:
            return None
        from ..storage.hadoop_client import HadoopFiles

        return HadoopFiles(self._spark, settings)


def bitmap(rows: DeletedRows) -> bytes:
    """The bitmap of deleted rows with 7 bits per byte: row r is bit r % 7 of byte r // 7."""
    return bytes(_packed(rows, _BITS))


def plain_bitmap(rows: DeletedRows) -> bytes:
    """The bitmap of deleted rows with 8 bits per byte, in Arrow's bit order."""
    return bytes(_packed(rows, 8))


def _packed(rows: DeletedRows, bits: int) -> bytes:
    import numpy as np

    size = rows.last // bits + 1
    if size > _LARGEST_BITMAP:
        raise CorruptLogError(f"a deletion vector has the row index {rows.last}, too large for any data file")
    flags = np.zeros((size, bits), np.bool_)
    flags.reshape(-1)[rows.indexes().to_numpy()] = True
    return np.packbits(flags, axis=1, bitorder="little").tobytes()


# --- filtering a frame by them ------------------------------------------------------------------------------------


class Hidden:
    """The hidden columns of a frame, and their values for each file.

    `deleted` (the bitmap) and `vector` (the number of a joined vector) are the column names, distinct from all of
    `columns`. `joined` maps the unique ID of each vector that is too large for a bitmap to its number.
    """

    def __init__(self, vectors: Vectors, columns: Iterable[str], joined: Mapping[str, int] | None = None) -> None:
        self._vectors = vectors
        self.joined = dict(joined or {})
        self.deleted, self.vector = free_names(["__tablelog_deleted", "__tablelog_vector"], columns)

    @property
    def fields(self) -> tuple[schemas.StructField, ...]:
        hidden_fields = [schemas.StructField(self.deleted, schemas.BINARY)]
        if self.joined:
            hidden_fields.append(schemas.StructField(self.vector, schemas.INTEGER))
        return tuple(hidden_fields)

    @property
    def key(self) -> tuple[str, ...]:
        """A key that is equal for hidden columns with equal values."""
        return tuple(self.joined)

    def values(self, files: pa.Table) -> list[pa.Array]:
        """A column for each of `fields`, for rows of `Snapshot.files`; reads the vectors that are passed as bitmaps."""
        numbers = [self.joined.get(vector_id) if vector_id else None for vector_id in ids(files)]
        riding = pa.array([number is None for number in numbers], pa.bool_())
        rows = iter(self._vectors.rows(files.filter(riding)))
        maps = []
        for number in numbers:
            deleted = next(rows) if number is None else None
            maps.append(None if deleted is None else bitmap(deleted))
        columns = [pa.array(maps, pa.binary())]
        if self.joined:
            columns.append(pa.array(numbers, pa.int32()))
        return columns

    def nothing(self, count: int) -> list[pa.Array]:
        """The hidden columns for files without a deletion vector."""
        return [pa.nulls(count, schemas.arrow_type(f.data_type)) for f in self.fields]


def too_large(snapshot: "Snapshot") -> pa.Table:
    """The files of a version whose vectors are too large to be passed as bitmaps."""
    chosen = of_large_files(snapshot.files)
    if not pc.any(chosen).as_py():
        return snapshot.files.slice(0, 0)
    # The statistics of a file with a deletion vector have its row count: the protocol requires it.
    return snapshot.files.filter(pc.fill_null(pc.and_(chosen, pc.greater(snapshot.num_records(), MOST_ROWS)), False))


def too_large_of(files: pa.Table, snapshot: "Snapshot") -> pa.Table | None:
    """Those of `files` whose vectors are too large to be passed as bitmaps; None if only `too_large` can say that.

    The files of the version aren't loaded for this: a stream calls it for each batch.
    """
    candidates = files.filter(of_large_files(files))
    if not candidates.num_rows:
        return candidates
    if "stats" not in candidates.column_names:
        return None
    records = stats.read(candidates, (), snapshot.mapping.physical).num_records
    return candidates.filter(pc.fill_null(pc.greater(records, MOST_ROWS), False))


def of_large_files(files: pa.Table) -> pa.ChunkedArray:
    """For each file, whether it has a deletion vector and enough bytes that the bitmap may be too large."""
    return pc.and_(has_vector(files), pc.greater(files.column("size"), _LARGE_FILE))


def has_vector(files: pa.Table) -> pa.ChunkedArray:
    """For each file, whether it has a deletion vector."""
    return pc.is_valid(pc.struct_field(files.column("deletionVector"), "storageType"))


def any_has_vector(files: pa.Table) -> bool:
    """Whether one of the files has a deletion vector."""
    return bool(pc.any(has_vector(files)).as_py())


def ids(files: pa.Table) -> list[str | None]:
    """The unique ID of each file's vector; `None` without one."""
    descriptors = (deletion_vector_of(descriptor) for descriptor in files.column("deletionVector").to_pylist())
    return [None if descriptor is None else descriptor.unique_id for descriptor in descriptors]


def rows_to_join(spark: "SparkSession", vectors: Vectors, files: pa.Table, hidden: Hidden) -> "DataFrame":
    """A frame with the rows that the vectors of `files` delete, as (number of the vector, row index)."""
    numbers: list[pa.Array] = []
    indexes: list[pa.Array] = []
    done: set[str] = set()
    for vector_id, rows in zip(ids(files), vectors.rows(files), strict=True):
        if vector_id is not None and rows is not None and vector_id not in done:
            done.add(vector_id)
            numbers.append(pa.repeat(pa.scalar(hidden.joined[vector_id], pa.int32()), len(rows)))
            indexes.append(rows.indexes())
    table = pa.table({"vector": pa.chunked_array(numbers, pa.int32()), "row": pa.chunked_array(indexes, pa.int64())})
    return spark.createDataFrame(table)


def live(frame: "DataFrame", hidden: Hidden, deleted_rows: "DataFrame | None", row_index: "Column") -> "DataFrame":
    """The rows of `frame`, which has the hidden columns, that are not deleted.

    `row_index` is a row's index in its file; `deleted_rows` is a result of `rows_to_join`.
    """
    frame = frame.where(is_live(frame[hidden.deleted], row_index))
    if deleted_rows is None:
        return frame
    return frame.join(
        deleted_rows, (frame[hidden.vector] == deleted_rows["vector"]) & (row_index == deleted_rows["row"]), "left_anti"
    )


def is_live(deleted: "Column", row_index: "Column") -> "Column":
    """Whether the bit of `row_index` is not set in the bitmap `deleted`; a zero byte is checked first."""
    from pyspark.sql import functions as F

    byte = F.substring(deleted, (F.call_function("div", row_index, F.lit(_BITS)) + 1).cast("int"), F.lit(1))
    bit = F.getbit(F.ascii(byte.cast("string")), (row_index % _BITS).cast("int"))
    return deleted.isNull() | (byte == F.lit(b"\0")) | (byte == F.lit(b"")) | (bit == 0)
