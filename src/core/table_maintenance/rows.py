"""The rows of a version as Arrow batches, read file by file, without Spark.

It reads what Spark reads: partition values, deletion vectors, column mapping by name and by id, columns that a file
doesn't have, and types that were widened since it was written.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import UnreadableDataFileError, UnsupportedEnvironmentError
from ..protocol import partition_values, paths
from ..protocol.actions import AddFile
from ..protocol.column_mapping import field_id, physical_name
from ..protocol.deletion_vectors import DeletedRows
from ..protocol.schema import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, arrow_type
from .data_files import TableData

if TYPE_CHECKING:
    import pyarrow as pa

    from ..deltalog import DeltaLog
    from ..table.snapshot import Snapshot

_BATCH = 4_096
_PARQUET_ID = b"PARQUET:field_id"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_YEAR_1900_US = -2_208_988_800_000_000


def batches(
    log: "DeltaLog", snapshot: "Snapshot", indices: "Iterable[int] | pa.Array", columns: Sequence[str]
) -> "Iterator[pa.RecordBatch]":
    """The rows of some files of a version; one batch is in memory at a time.

    Args:
        log: The table's log.
        snapshot: The version.
        indices: The files, as indices in `snapshot.files`.
        columns: The columns to read, by their exact names.

    Raises:
        MissingDataFileError: A file doesn't exist.
        UnreadableDataFileError: A file isn't Parquet, or doesn't fit the schema.
        UntrustedTableError: A file is outside of the table.
        UnsupportedFeatureError: A column has a type without an Arrow form.
        CorruptLogError: A deletion vector is damaged.
    """
    data = TableData(log)
    fields = [f for name in columns for f in snapshot.schema if f.name == name]
    for index in indices:
        for add in snapshot.add_files([int(index)]):
            yield from _of_file(data, snapshot, add, fields)


def _of_file(
    data: TableData, snapshot: "Snapshot", add: AddFile, fields: Sequence[StructField]
) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    deleted = data.deleted_rows(add.deletion_vector)
    finder = _Finder(snapshot.mapping.mode)
    schema = pa.schema([pa.field(f.name, arrow_type(f.data_type)) for f in fields])
    try:
        with data.open(add.path) as stream, pq.ParquetFile(stream, coerce_int96_timestamp_unit="us") as parquet:
            stored = parquet.schema_arrow
            legacy = any(key in (stored.metadata or {}) for key in _LEGACY)
            places = {f.name: finder.place(list(stored), f) for f in fields if f.name not in snapshot.partition_columns}
            wanted = [stored.field(at).name for at in places.values() if at is not None]
            start = 0
            for batch in parquet.iter_batches(batch_size=_BATCH, columns=wanted):
                keep = _live(deleted, start, batch.num_rows)
                start += batch.num_rows
                rows = batch if keep is None else batch.filter(keep)
                count = batch.num_rows if keep is None else keep.true_count
                arrays = []
                for f, kind in zip(fields, schema.types, strict=True):
                    at = places.get(f.name)
                    if f.name in snapshot.partition_columns:
                        arrays.append(_constant(add, f, count))
                    elif at is None:
                        arrays.append(pa.nulls(count, kind))
                    else:
                        values = rows.column(stored.field(at).name)
                        _check_calendar(values, f.name, legacy=legacy)
                        arrays.append(finder.fitted(values, f.data_type))
                yield pa.RecordBatch.from_arrays(arrays, names=schema.names)
    except (pa.ArrowException, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise UnreadableDataFileError(
            f"{snapshot.table}: the data file {paths.decode(add.path)} can't be read: {reason}. Restore the file, or "
            "remove it from the table",
            table=snapshot.table,
            path=add.path,
        ) from error


def _live(deleted: DeletedRows | None, start: int, count: int) -> "pa.BooleanArray | None":
    import pyarrow as pa

    if deleted is None:
        return None
    return pa.array([row not in deleted for row in range(start, start + count)], pa.bool_())


def _constant(add: AddFile, f: StructField, count: int) -> "pa.Array":
    import pyarrow as pa

    assert isinstance(f.data_type, PrimitiveType)
    values = add.partition_values
    text = values.get(physical_name(f), values.get(f.name))
    return pa.repeat(partition_values.typed_value(text, f.data_type, time_zone="UTC"), count)


def _check_calendar(values: "pa.Array", name: str, *, legacy: bool) -> None:
    """Refuse dates before 1900 that Spark 2 wrote: they are in another calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not legacy or not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        return
    earliest = pc.min(values.cast(pa.timestamp("us")).cast(pa.int64())).as_py() if len(values) else None
    if earliest is not None and earliest < _YEAR_1900_US:
        raise UnsupportedEnvironmentError(
            f"the column {name} holds dates before 1900 in the calendar of Spark 2: read the table with Spark"
        )


class _Finder:
    """Finds the columns of a table in data files, by the column mapping of the table."""

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def place(self, stored: "Sequence[pa.Field]", f: StructField) -> int | None:
        """The index of the file's field that has the column; `None` if the file doesn't have it."""
        wanted = field_id(f) if self._mode == "id" else None
        if wanted is not None:
            mark = str(wanted).encode()
            return next((i for i, one in enumerate(stored) if (one.metadata or {}).get(_PARQUET_ID) == mark), None)
        name = (f.name if self._mode == "none" else physical_name(f)).lower()
        return next((i for i, one in enumerate(stored) if one.name.lower() == name), None)

    def fitted(self, values: "pa.Array", data_type: DataType) -> "pa.Array":
        """The values with the type of the column; fields of structs are found by name or id, missing ones are null."""
        import pyarrow as pa

        kind = arrow_type(data_type)
        if values.offset:  # a mask can't be combined with the offset of a slice
            values = pa.concat_arrays([values])
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if isinstance(data_type, StructType) and pa.types.is_struct(values.type):
            stored = list(values.type)
            places = [self.place(stored, f) for f in data_type]
            children = [
                pa.nulls(len(values), arrow_type(f.data_type))
                if at is None
                else self.fitted(values.field(at), f.data_type)
                for f, at in zip(data_type, places, strict=True)
            ]
            return pa.StructArray.from_arrays(
                children, fields=[f.with_nullable(True) for f in kind], mask=values.is_null()
            )
        if isinstance(data_type, ArrayType) and pa.types.is_list(values.type):
            inner = self.fitted(values.values, data_type.element_type)
            return pa.ListArray.from_arrays(values.offsets, inner, mask=values.is_null())
        if isinstance(data_type, MapType) and pa.types.is_map(values.type):
            keys = self.fitted(values.keys, data_type.key_type)
            items = self.fitted(values.items, data_type.value_type)
            return pa.MapArray.from_arrays(values.offsets, keys, items, mask=values.is_null())
        return values if values.type == kind else values.cast(kind)
