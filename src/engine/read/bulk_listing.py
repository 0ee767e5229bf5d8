"""Builds Spark's `PartitionDirectory` objects for the files of a table in the JVM, from columns sent in bulk.

Created individually over Py4J, a file costs about 3 ms; in bulk about 10 us. Every file is a directory of its own, with
its own row of values: its partition values, independent of the layout on disk, and constants such as its number.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol import paths
from ...core.protocol import schema as schemas
from ...core.protocol.partition_values import column_of, typed
from ...errors import CorruptLogError
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.registry.classes import INTERNAL_ROW, PARTITION_DIRECTORY
from ..jvm.types import spark_type
from .deletion_vectors import has_vector
from .extra_columns import NO_EXTRA_COLUMNS, ExtraColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .deletion_vectors import Hidden

_STATUS = "org.apache.hadoop.fs.FileStatus"
_PATH = "org.apache.hadoop.fs.Path"
_TEXTS = "[Ljava.lang.String;"
_BLOCK_SIZE = 128 << 20
_VECTORS_AT_ONCE = 128
_FILES_AT_ONCE = 1 << 17
_KEPT_BYTES = 64 << 20
"""Maximum size of the deletion bitmaps whose JVM directories a listing keeps for the next query."""
_PLAIN = r"^[A-Za-z0-9_=-]([A-Za-z0-9_=.-]|/[A-Za-z0-9_=-])*$"  # relative; needs no URL encoding or normalization


def _primitive(field: schemas.StructField) -> schemas.PrimitiveType:
    if not isinstance(field.data_type, schemas.PrimitiveType):
        raise CorruptLogError(f"the partition column {field.name} has the type {schemas.type_text(field.data_type)}")
    return field.data_type


def uris(root: str, files: pa.Table) -> list[str]:
    """The percent-encoded URI of each file."""
    column = files.column("path")
    if pc.all(pc.match_substring_regex(column, _PLAIN)).as_py():  # the common case, 20 times as fast
        start = paths.absolute_uri(root, "x")[:-1]
        return [start + path for path in column.to_pylist()]
    return [paths.absolute_uri(root, path) for path in files.column("path").to_pylist()]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Cached directories with deletion bitmaps: an `Object[]` in the JVM, and the file index and size of each.

    They are in order of use; the most recently used are last.
    """

    directories: JavaObject
    files: pa.Array
    sizes: pa.Array

    def with_more(self, gateway: Gateway, directories: JavaObject, files: pa.Array, sizes: pa.Array) -> "Vectors":
        return Vectors(
            directories if self.directories is None else gateway.joined(self.directories, directories),
            pa.concat_arrays([self.files, files]),
            pa.concat_arrays([self.sizes, sizes.cast(pa.int64())]),
        )

    def trimmed(self, gateway: Gateway, used: pa.Array, most: int) -> "Vectors":
        """The most recently used directories whose bitmaps have at most `most` bytes in total."""
        if (pc.sum(self.sizes).as_py() or 0) <= most:
            return self
        places = pa.array(range(len(self.files)), pa.int32())
        now = pc.is_in(self.files, value_set=used)
        order = pa.concat_arrays([places.filter(pc.invert(now)), places.filter(now)])
        sizes = self.sizes.take(order)
        behind = pc.subtract(pc.sum(sizes), pc.subtract(pc.cumulative_sum(sizes), sizes))  # includes its own size
        order = order.filter(pc.less_equal(behind, most))
        if not len(order):
            return NO_VECTORS
        return Vectors(gateway.picked(self.directories, order), self.files.take(order), self.sizes.take(order))


NO_VECTORS = Vectors(None, pa.array([], pa.int32()), pa.array([], pa.int64()))


class Listing:
    """The files that one frame may read. Its JVM objects are created at the first use and then shared."""

    def __init__(
        self,
        gateway: Gateway,
        spark: "SparkSession",
        root: str,
        files: pa.Table,
        values_schema: schemas.StructType,
        *,
        hidden: "Hidden | None" = None,
        extra: ExtraColumns = NO_EXTRA_COLUMNS,
        numbered: bool = False,
        time_zone: str,
    ) -> None:
        """`files` has the protocol's column names; `values_schema` starts with the partition columns, physically named.

        They are followed by the fields of `hidden`, the per-file columns of `extra`, and with `numbered` the index in
        `files`. `time_zone` applies to timestamps in partition values that have no time zone.
        """
        self.files = files
        self.root = root
        self._gateway = gateway
        self._spark = spark
        self._values_schema = values_schema
        self._hidden = hidden
        self._extra = extra
        self._numbered = numbered
        self._time_zone = time_zone
        self._kept = NO_VECTORS

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @cached_property
    def _java_schema(self) -> JavaObject:
        return self._gateway.schema(schemas.to_json(self._values_schema))

    @property
    def _partition_fields(self) -> tuple[schemas.StructField, ...]:
        more = (1 if self._numbered else 0) + len(self._extra.per_file)
        more += 0 if self._hidden is None else len(self._hidden.fields)
        return self._values_schema.fields[: len(self._values_schema) - more]

    @cached_property
    def _distinct(self) -> tuple[pa.Array, pa.Array]:
        """The index of the first file of each distinct tuple of values, and the tuple's number for each file."""
        count = len(self)
        if self._numbered or self._extra.per_file:
            own = pa.array(range(count), pa.int32())
            return own, own
        code = pa.array([0] * count, pa.int64())
        for field in self._partition_fields:
            encoded = column_of(self.files.column("partitionValues"), field.name).dictionary_encode(
                null_encoding="encode"
            )
            code = pc.add(pc.multiply(code, len(encoded.dictionary)), encoded.indices.cast(pa.int64()))
            code = code.dictionary_encode().indices.cast(pa.int64())  # renumbered, so the product can't overflow
        encoded = code.dictionary_encode()
        return pc.index_in(encoded.dictionary, code).cast(pa.int32()), encoded.indices.cast(pa.int32())

    @cached_property
    def _rows(self) -> JavaObject:
        """An `InternalRow[]`, with one row per distinct tuple of values, without deletion vectors."""
        firsts, _ = self._distinct
        nothing = [] if self._hidden is None else self._hidden.nothing(len(firsts))
        return self._rows_of(self.files.take(firsts), nothing, firsts)

    def _rows_of(self, files: pa.Table, hidden: list[pa.Array], numbers: pa.Array) -> JavaObject:
        columns = [
            typed(column_of(files.column("partitionValues"), f.name), _primitive(f), time_zone=self._time_zone)
            for f in self._partition_fields
        ]
        columns += hidden
        columns += self._extra.values(files)
        if self._numbered:
            columns.append(numbers)
        values = pa.table(columns, names=list(self._values_schema.names))
        return self._gateway.rows(self._spark, values, spark_type(self._values_schema))

    @cached_property
    def _directories(self) -> JavaObject:
        """An `Object[]` of all directories, in the order of the files, without deletion vectors."""
        if len(self._values_schema):
            return self._directories_of(self.files, self._rows, self._distinct[1])
        rows = self._gateway.jvm.java.lang.reflect.Array.newInstance(self._gateway.type(INTERNAL_ROW), 1)
        rows[0] = self._gateway.no_values
        return self._directories_of(self.files, rows, pa.array([0] * len(self), pa.int32()))

    def _directories_of(self, files: pa.Table, rows: JavaObject, numbers: pa.Array) -> JavaObject:
        """The directories of `files`; `numbers` selects the row of `rows` (an `InternalRow[]`) with a file's values."""
        if files.num_rows <= _FILES_AT_ONCE:
            return self._some_directories(files, rows, numbers)
        java = self._gateway.jvm.java.util
        directories = java.ArrayList(files.num_rows)
        for start in range(0, files.num_rows, _FILES_AT_ONCE):  # the texts of all paths would need gigabytes
            some, of_some = files.slice(start, _FILES_AT_ONCE), numbers.slice(start, _FILES_AT_ONCE)
            directories.addAll(java.Arrays.stream(self._some_directories(some, rows, of_some)).toList())
        return directories.toArray()

    def _some_directories(self, files: pa.Table, rows: JavaObject, numbers: pa.Array) -> JavaObject:
        gateway = self._gateway
        columns = [
            rows,
            gateway.ints(numbers),
            gateway.longs(_numbers(files, "size")),
            gateway.longs(_numbers(files, "modificationTime")),
            gateway.strings(uris(self.root, files)),
        ]
        bound = gateway.array(gateway.jvm.java.lang.Object, columns)
        directory_of = gateway.handles.insertArguments(_directory_of(gateway), 0, bound)
        return gateway.table_of(directory_of, files.num_rows)

    @cached_property
    def _with_vectors(self) -> pa.Array | None:
        """For each file, whether it has a deletion vector; `None` if no file has one."""
        if self._hidden is None:
            return None
        mask = has_vector(self.files).combine_chunks()
        return mask if pc.any(mask).as_py() else None

    @property
    def everything(self) -> JavaObject:
        """`Seq[PartitionDirectory]` of all files."""
        if self._with_vectors is not None:  # not cached, because the objects contain all bitmaps
            return self.subset(pa.array(range(len(self)), pa.int32()))
        return self._plain

    @cached_property
    def _plain(self) -> JavaObject:
        return self._gateway.wrapped(self._directories)

    def subset(self, indices: pa.Array) -> JavaObject:
        """`Seq[PartitionDirectory]` of the files at `indices` (int32); those with deletion vectors come last."""
        gateway = self._gateway
        if self._with_vectors is None:
            return gateway.wrapped(gateway.picked(self._directories, indices))
        theirs = self._with_vectors.take(indices)
        marked = indices.filter(theirs)
        plain = gateway.picked(self._directories, indices.filter(pc.invert(theirs)))
        return gateway.wrapped(gateway.joined(plain, self._marked(marked)) if len(marked) else plain)

    def _marked(self, indices: pa.Array) -> JavaObject:
        """An `Object[]` of the directories of these files, with deletion vectors; each vector is read once."""
        kept = self._kept
        fresh = indices.filter(pc.invert(pc.is_in(indices, value_set=kept.files)))
        for start in range(0, len(fresh), _VECTORS_AT_ONCE):
            part = fresh.slice(start, _VECTORS_AT_ONCE)
            files = self.files.take(part)
            assert self._hidden is not None
            hidden = self._hidden.values(files)
            rows = self._rows_of(files, hidden, part)
            directories = self._directories_of(files, rows, pa.array(range(len(part)), pa.int32()))
            kept = kept.with_more(self._gateway, directories, part, pc.fill_null(pc.binary_length(hidden[0]), 0))
        selected = self._gateway.picked(kept.directories, pc.index_in(indices, value_set=kept.files).cast(pa.int32()))
        # If two threads get here at once, the cache keeps the result of one of them.
        self._kept = kept.trimmed(self._gateway, indices, _KEPT_BYTES)
        return selected

    def matching(self, filters: JavaObject) -> pa.Array:
        """For each file, whether its values fulfil all these Catalyst filters, evaluated exactly, by Spark."""
        firsts, numbers = self._distinct
        if not len(firsts):
            return pa.array([], pa.bool_())
        matching_rows = self._gateway.rows_matching(filters, self._java_schema, self._rows, len(firsts))
        return pc.is_in(numbers, value_set=matching_rows)


@lru_cache(maxsize=4)
def _directory_of(gateway: Gateway) -> JavaObject:
    """A method handle: (rows, row of each file, sizes, modification times, URIs, index) -> `PartitionDirectory`.

    It is composed once per JVM and then bound to the columns of a frame: composing takes about 60 method handles, and
    the JVM generates a class for many of them.
    """
    handles, lookup = gateway.handles, gateway.lookup

    def element(kind: str) -> JavaObject:
        return handles.arrayElementGetter(gateway.type(kind))

    def constructor(of: str, *arguments: str) -> JavaObject:
        return lookup.findConstructor(gateway.type(of), gateway.signature("void", *arguments))

    uri_of = handles.filterReturnValue(element(_TEXTS), constructor("java.net.URI", "java.lang.String"))
    path_of = handles.filterReturnValue(uri_of, constructor(_PATH, "java.net.URI"))
    # (length, is a directory, replication, block size, modification time, path)
    status = constructor(_STATUS, "long", "boolean", "int", "long", "long", _PATH)
    same = gateway.array(gateway.jvm.java.lang.Object, [False, 1, _BLOCK_SIZE])
    status = handles.insertArguments(status, 1, same)
    for place, part in ((2, path_of), (1, element("[J")), (0, element("[J"))):
        status = handles.collectArguments(status, place, part)
    statuses = gateway.type(f"[L{_STATUS};")
    status = handles.filterReturnValue(status, handles.identity(statuses).asCollector(statuses, 1))
    row_of = handles.collectArguments(element(f"[L{INTERNAL_ROW};"), 1, element("[I"))
    directory = lookup.findStatic(
        gateway.type(PARTITION_DIRECTORY),
        "apply",
        gateway.signature(PARTITION_DIRECTORY, INTERNAL_ROW, f"[L{_STATUS};"),
    )
    for place, part in ((1, status), (0, row_of)):
        directory = handles.collectArguments(directory, place, part)
    signature = gateway.signature(PARTITION_DIRECTORY, f"[L{INTERNAL_ROW};", "[I", "[J", "[J", _TEXTS, "int")
    return handles.permuteArguments(directory, signature, gateway.array(gateway.jvm.int, [0, 1, 5, 2, 5, 3, 5, 4, 5]))


def _numbers(files: pa.Table, name: str) -> pa.Array:
    return pc.fill_null(files.column(name).combine_chunks().cast(pa.int64()), 0)
