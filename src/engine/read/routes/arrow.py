"""The Arrow route: Python workers read the files by pyarrow, through Spark's public Python data source.

The class of the data source is defined inside a function, so that it is pickled by value: executors need pyarrow and
the storage's fsspec package, but not tablelog. The options of the file systems are pickled with it; so secrets are
in no option and in no plan. The list of files is an option, because Spark Connect plans a frame more than once.
"""

import base64
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....core.protocol import column_mapping
from ....core.protocol import schema as schemas
from ....core.protocol.column_mapping import ColumnMapping
from ....core.protocol.partition_values import typed_columns
from ....core.protocol.paths import absolute, absolute_uri
from ....core.skipping import predicates, pruning
from ....logstore.data_files import file_system, path_in
from ....settings.spark_own import PYTHON_FILTER_PUSHDOWN
from ...jvm import settings
from ...jvm.serialization import pickled
from ...jvm.types import has_collation, read_schema, spark_type
from ...storage import external_files
from ..deletion_vectors import Vectors, any_has_vector, plain_bitmap
from ..extra_columns import ExtraColumns
from ..scan_spec import ScanSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

    from ....core.deltalog import DeltaLog

NAME = "tablelog_arrow"
_KEY = os.urandom(16)  # prevents guessing a configuration from its digest
_DELETED = "deleted"
# Types whose filter values have an unambiguous representation in the data source API.
_PUSHED = (
    schemas.BYTE,
    schemas.SHORT,
    schemas.INTEGER,
    schemas.LONG,
    schemas.STRING,
    schemas.BOOLEAN,
    schemas.DATE,
)


def frame(spark: "SparkSession", log: "DeltaLog", scan: ScanSpec) -> "DataFrame":
    """The rows of a scan, without void columns."""
    snapshot, files, extra = scan.snapshot, scan.files, scan.extra
    # The user didn't select the version, so a write may pin the frame to another one (`pinning`).
    newest = not (scan.pinned or scan.added_names)
    shown = schemas.StructType((*read_schema(snapshot.schema).fields, *extra.fields))
    for name, kind in ((scan.file_number, schemas.INTEGER), (scan.row_index, schemas.LONG)):
        if name is not None:
            shown = schemas.StructType((*shown.fields, schemas.StructField(name, kind)))
    schemas.arrow_schema(shown)  # raises here, not in a worker, for a type that Arrow doesn't support
    # Spark raises an error for a reader with pushed filters unless pushdown is enabled.
    offered = settings.of(spark, PYTHON_FILTER_PUSHDOWN)
    if files is None:
        files = snapshot.files_with("stats") if offered else snapshot.files
    external_files.check_files(spark, snapshot.table, snapshot.version, files)
    if any_has_vector(files):
        rows = Vectors(spark, log).rows(files)
        maps = [None if one is None else plain_bitmap(one) for one in rows]
        files = files.append_column(_DELETED, pa.array(maps, pa.large_binary()))
    source = _source(_systems(log, files), takes_filters=offered)
    spark.dataSource.register(source)
    spec = {
        "table": snapshot.table,
        "version": snapshot.version,
        "newest": newest,
        "schema": schemas.to_json(snapshot.schema),
        "mode": snapshot.mapping.mode,
        "partition_columns": list(snapshot.partition_columns),
        "per_file": [[f.name, name] for f, name in extra.per_file],
        "number": scan.file_number,
        "row_index": scan.row_index,
        "zone": settings.time_zone(spark),
    }
    options = {"spec": json.dumps(spec), "files": _packed(files, extra)}
    return spark.read.format(source.name()).schema(spark_type(shown)).options(**options).load()


def _packed(files: pa.Table, extra: ExtraColumns) -> str:
    wanted = dict.fromkeys(
        ("path", "partitionValues", "size", "stats", _DELETED, *(name for _, name in extra.per_file))
    )
    chosen = files.select([name for name in wanted if name in files.column_names])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chosen.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(chosen)
    return base64.b64encode(sink.getvalue()).decode()


def _systems(log: "DeltaLog", files: pa.Table) -> dict[str, tuple[str, dict[str, Any]]]:
    """`scheme://authority` of each location of files -> (module:Class, options) of its fsspec file system."""
    paths = files.column("path")
    elsewhere = paths.filter(pc.match_substring(paths, ":")).to_pylist()
    places = {_place(absolute_uri(log.table, path)) for path in ("x", *elsewhere)}
    file_systems = {
        place: file_system(f"{place}/x", log.conf, log.storage_options) for place in places if place != "file://"
    }
    return {place: (system.implementation, dict(system.options)) for place, system in file_systems.items()}


def _place(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _mark_of(systems: Mapping[str, tuple[str, dict[str, Any]]]) -> str:
    """A digest that distinguishes data sources with different configurations; empty for local files."""
    if not systems:
        return ""
    return "_" + hashlib.blake2b(pickled(systems), digest_size=6, key=_KEY).hexdigest()


def plan(spec: Mapping[str, Any], packed: str, predicate: Any) -> list[dict[str, Any]]:
    """The read plan of each file: `path` for its file system, `place` (see `_systems`), `size`, the error message
    `gone` for a missing file and the prefix `bad` for an unreadable one, the constant values of the file, the bitmap of
    `deleted` rows, and the name of the row index column. The constants are arrays of one value, because Arrow pickles
    a scalar as a Python value, and Python can't represent all values.
    """
    mapping = _mapping(spec)
    files = pa.ipc.open_stream(base64.b64decode(packed)).read_all()
    numbers = pa.array(range(files.num_rows), pa.int32())
    physical, names, zone = mapping.physical, mapping.physical_partition_columns, spec["zone"]
    if predicate != predicates.TRUE:
        predicate = predicates.with_columns(predicate, mapping.to_physical)
        keep = pruning.may_match(files, predicate, physical, names, time_zone=zone)
        files, numbers = files.filter(keep), numbers.filter(keep)
    values = typed_columns(files, physical, names, time_zone=zone)
    columns = dict(zip(mapping.partition_columns, values.columns, strict=True))
    columns |= {name: files.column(column) for name, column in spec["per_file"]}
    deleted = files[_DELETED].to_pylist() if _DELETED in files.column_names else [None] * files.num_rows
    if spec["number"] is not None:
        columns[spec["number"]] = numbers
    planned = []
    for i, (path, size) in enumerate(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)):
        location, uri = absolute(spec["table"], path), absolute_uri(spec["table"], path)
        gone = (
            f"tablelog.errors.MissingDataFileError: the file {location}, which is part of version {spec['version']} of "
            f"{spec['table']}, doesn't exist. Restore it, or remove it from the table."
        )
        bad = (
            f"tablelog.errors.UnreadableDataFileError: the file {location}, which is part of version "
            f"{spec['version']} of {spec['table']}, can't be read as a Parquet file of that table: "
        )
        constants = {name: column.take([i]) for name, column in columns.items()}
        planned.append(
            {
                "path": path_in(uri),
                "place": _place(uri),
                "size": size,
                "constants": constants,
                "gone": gone,
                "bad": bad,
                "deleted": deleted[i],
                "row_index": spec["row_index"],
            }
        )
    return planned


def _mapping(spec: Mapping[str, Any]) -> ColumnMapping:
    return ColumnMapping(spec["mode"], schemas.parse_schema(spec["schema"]), tuple(spec["partition_columns"]))


def marked(spec: Mapping[str, Any], shown: schemas.StructType) -> pa.Schema:
    """The Arrow schema of these columns; each field has the `id` or the `name` of the column in files as metadata."""
    mapping = _mapping(spec)
    if not mapping.active:
        return schemas.arrow_schema(shown)
    mapped = dict(schemas.all_fields(mapping.logical))

    def marked_field(f: pa.Field, at: schemas.Column) -> pa.Field:
        field = mapped.get(at)
        marks = {}
        if field is not None and mapping.mode == "id":
            marks = {"id": str(column_mapping.field_id(field))}
        elif field is not None:
            marks = {"name": column_mapping.physical_name(field)}
        return pa.field(f.name, inside(f.type, at), f.nullable, marks)

    def inside(kind: pa.DataType, at: schemas.Column) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([marked_field(f, (*at, f.name)) for f in kind])
        if pa.types.is_list(kind):
            element = kind.value_field
            return pa.list_(element.with_type(inside(element.type, (*at, "element"))))
        if pa.types.is_map(kind):
            item = kind.item_field
            return pa.map_(inside(kind.key_type, (*at, "key")), item.with_type(inside(item.type, (*at, "value"))))
        return kind

    return pa.schema([marked_field(f, (f.name,)) for f in schemas.arrow_schema(shown)])


def predicate_of(filters: Any, schema: schemas.StructType) -> Any:
    """The predicate for the filters that Spark pushes down; unsupported filters skip no files."""
    operators = {
        "EqualTo": "=",
        "EqualNullSafe": "<=>",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
    }

    def predicate_for(pushed: Any) -> Any:
        kind = type(pushed).__name__
        if kind == "Not":
            return predicates.Not(predicate_for(pushed.child))
        match = schemas.find(schema, pushed.attribute, case_sensitive=True) if hasattr(pushed, "attribute") else None
        if match is None:
            return predicates.Opaque(kind)
        column, field = match
        if field.data_type not in _PUSHED or has_collation(field):
            return predicates.Opaque(kind)
        arrow = schemas.arrow_type(field.data_type)
        if kind in operators and pushed.value is not None:
            return predicates.Compare(operators[kind], column, pa.scalar(pushed.value, arrow))  # type: ignore[arg-type]
        if kind == "In":
            return predicates.In(column, tuple(pa.scalar(value, arrow) for value in pushed.value))
        if kind == "IsNull":
            return predicates.IsNull(column)
        if kind == "IsNotNull":
            return predicates.IsNotNull(column)
        if kind == "StringStartsWith" and field.data_type == schemas.STRING:
            return predicates.StartsWith(column, pushed.value)
        return predicates.Opaque(kind)

    return predicates.all_of(predicate_for(pushed) for pushed in filters)


def _source(systems: Mapping[str, tuple[str, dict[str, Any]]], *, takes_filters: bool) -> "type[DataSource]":
    """The data source class. `read` uses only names defined inside: it runs where tablelog may not be installed."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    split_size, cost_of_opening = 128 << 20, 4 << 20
    field_id = b"PARQUET:field_id"
    name = NAME + ("_skipping" if takes_filters else "") + _mark_of(systems)

    class Ranges(io.RawIOBase):
        """A file in a store, read by range requests; its size is known from the log."""

        def __init__(self, file: dict[str, Any]) -> None:
            from importlib import import_module

            super().__init__()
            (module, _, kind), options = systems[file["place"]][0].partition(":"), systems[file["place"]][1]
            self._system = getattr(import_module(module), kind)(**options)
            self._file = file
            self._at = 0
            self._tail = b""  # the bytes of the first request: the footer, or a whole small file

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def tell(self) -> int:
            return self._at

        def seek(self, offset: int, whence: int = 0) -> int:
            self._at = (0, self._at, self._file["size"])[whence] + offset
            return self._at

        def read(self, size: int | None = -1, /) -> bytes:
            end = self._file["size"] if size is None or size < 0 else min(self._at + size, self._file["size"])
            if end <= self._at:
                return b""
            if self._at >= self._file["size"] - len(self._tail):
                start = self._at - self._file["size"]
                self._at = end
                return (
                    self._tail[start:][: end - self._file["size"]] if end < self._file["size"] else self._tail[start:]
                )
            try:
                data = bytes(self._system.cat_file(self._file["path"], start=self._at, end=end))
            except FileNotFoundError:
                raise
            except Exception as error:
                typed = "StorageAccessError" if isinstance(error, PermissionError) else "StorageError"
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise OSError(f"tablelog.errors.{typed}: reading {self._file['path']}: {reason}") from error
            self._at += len(data)
            if not self._tail and self._at == self._file["size"]:
                self._tail = data
            return data

    class TablelogReader(DataSourceReader):
        def __init__(self, options: Mapping[str, str], arrow: Any, table_schema: Any) -> None:
            self._options = dict(options)
            self._arrow = arrow
            self._table_schema = table_schema
            self._predicate: Any = None

        def partitions(self) -> list[Any]:
            from ....core.skipping.predicates import TRUE
            from .arrow import plan

            files = plan(
                json.loads(self._options["spec"]),
                self._options["files"],
                TRUE if self._predicate is None else self._predicate,
            )
            groups: list[list[Any]] = []
            room = 0
            for file in sorted(files, key=lambda file: -file["size"]):
                if not groups or room < file["size"]:
                    groups.append([])
                    room = split_size
                groups[-1].append(file)
                room -= file["size"] + cost_of_opening
            self._options = {}
            self._table_schema = None
            return [InputPartition(group) for group in groups] or [InputPartition([])]

        def read(self, partition: Any) -> Iterator[Any]:
            import pyarrow as pa

            for file in partition.value:
                try:
                    yield from self._read_file(file)
                except FileNotFoundError:
                    raise FileNotFoundError(file["gone"]) from None
                except (pa.ArrowException, OSError) as error:
                    if "tablelog.errors." in str(error):
                        raise
                    reason = " ".join(str(error).split())
                    raise ValueError(f"{file['bad']}{reason}. Restore the file, or remove it from the table.") from None

        def _read_file(self, file: dict[str, Any]) -> Iterator[Any]:
            import pyarrow as pa
            import pyarrow.parquet as pq

            remote = file["place"] in systems
            source = Ranges(file) if remote else file["path"]
            with pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=remote) as parquet:
                metadata = parquet.schema_arrow.metadata or {}
                legacy = b"org.apache.spark.legacyDateTime" in metadata or b"org.apache.spark.legacyINT96" in metadata
                stored = list(parquet.schema_arrow)
                computed = {*file["constants"], file.get("row_index")}
                places = {f.name: place(stored, f) for f in self._arrow if f.name not in computed}
                wanted = [stored[at].name for at in places.values() if at is not None]
                deleted, start = file.get("deleted"), 0
                for batch in parquet.iter_batches(batch_size=32_768, columns=wanted):
                    rows = batch.num_rows
                    indexes = pa.array(range(start, start + rows), pa.int64()) if file.get("row_index") else None
                    stay = None if deleted is None else live(deleted, start, rows)
                    start += rows
                    if stay is not None:
                        indexes = None if indexes is None else indexes.filter(stay)
                        batch, rows = batch.filter(stay) if wanted else batch, stay.true_count
                    columns = []
                    for f in self._arrow:
                        at = places.get(f.name)
                        if f.name in file["constants"]:
                            columns.append(pa.repeat(file["constants"][f.name].cast(f.type)[0], rows))
                        elif f.name == file.get("row_index"):
                            columns.append(indexes)
                        elif at is not None:
                            columns.append(fitted(batch.column(stored[at].name), f.type, legacy, f.name))
                        else:
                            columns.append(pa.nulls(rows, f.type))
                    yield pa.RecordBatch.from_arrays(columns, schema=self._arrow)

    class SkippingReader(TablelogReader):
        def pushFilters(self, filters: list[Any]) -> Any:
            from .arrow import predicate_of

            self._predicate = predicate_of(filters, self._table_schema)
            return filters  # all are returned, so that Spark applies them to the rows

    reader = SkippingReader if takes_filters else TablelogReader

    def place(stored: list[Any], f: Any) -> int | None:
        """The index of the file's field that has the column: by the ID or the name in its metadata, else its name."""
        marks = f.metadata or {}
        if b"id" in marks:
            return next(
                (i for i, candidate in enumerate(stored) if (candidate.metadata or {}).get(field_id) == marks[b"id"]),
                None,
            )
        name = marks.get(b"name", f.name.encode()).decode().lower()
        return next((i for i, candidate in enumerate(stored) if candidate.name.lower() == name), None)

    def is_marked(kind: Any) -> bool:
        import pyarrow as pa

        fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
        return any(f.metadata or is_marked(f.type) for f in fields)

    def live(deleted: bytes, start: int, rows: int) -> Any:
        """For each row from `start` on, whether its bit is not set; rows after the last byte are live."""
        import pyarrow as pa
        import pyarrow.compute as pc

        bits = pa.Array.from_buffers(pa.bool_(), 8 * len(deleted), [None, pa.py_buffer(deleted)]).slice(start, rows)
        return pa.concat_arrays([pc.invert(bits), pa.repeat(pa.scalar(True), rows - len(bits))])

    def fitted(values: Any, kind: Any, legacy: bool, name: str) -> Any:
        """Cast an Arrow array to a type: struct fields are matched by name, ignoring case; missing ones are null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if legacy and (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            days = values.cast(pa.timestamp("us")).cast(pa.int64()) if len(values) else values
            earliest = pc.min(days).as_py() if len(values) else None
            if earliest is not None and earliest < -2_208_988_800_000_000:  # 1900-01-01
                raise ValueError(
                    f"tablelog.errors.UnsupportedEnvironmentError: the column {name} holds dates before 1900 in the "
                    "calendar of Spark 2, which the Arrow route can't read: use a classic session"
                )
        if values.type == kind and not is_marked(kind):
            return values
        if pa.types.is_dictionary(values.type):
            return fitted(values.dictionary_decode(), kind, legacy, name)
        if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
            stored = list(values.type)
            places = [place(stored, f) for f in kind]
            children = [
                pa.nulls(len(values), f.type)
                if at is None
                else fitted(values.field(at), f.type, legacy, f"{name}.{f.name}")
                for f, at in zip(kind, places, strict=True)
            ]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
        if pa.types.is_list(kind) and pa.types.is_list(values.type):
            inner = fitted(values.values, kind.value_type, legacy, name)
            return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=values.is_null())
        if pa.types.is_map(kind) and pa.types.is_map(values.type):
            keys = fitted(values.keys, kind.key_type, legacy, name)
            items = fitted(values.items, kind.item_type, legacy, name)
            return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
        return values.cast(kind)

    class TablelogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def reader(self, schema: Any) -> Any:
            from ....core.protocol.schema import parse_schema
            from .arrow import marked

            known = parse_schema(schema.json())
            return reader(self.options, marked(json.loads(self.options["spec"]), known), known)

    return TablelogSource
